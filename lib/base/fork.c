/* Counts the forks between a process and the one that made an object, without a system call. */
#include "lib/base/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic uint32_t forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
	forks++;
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, count_fork);
}

uint32_t ww_fork_count(void)
{
	return atomic_load_explicit(&forks, memory_order_relaxed);
}

uint32_t ww_fork_watch(void)
{
	(void)pthread_once(&once, watch_forks);
	return ww_fork_count();
}
