/* A clock set by hand: stand-ins for functions of the C library, which event loops call. */
#include "tools/bench/structures/event_loop.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "tools/common/message.h"

/* What the clocks read at the benchmark's time 0. Not 0, which libevent takes for an unknown time. */
enum { START = 1000000 };

static _Thread_local struct {
	bool set;
	struct timespec now;
} hand;

/* The functions of the C library. NULL until the constructor has run; some are called before that. */
static struct {
	int (*clock_gettime)(clockid_t, struct timespec *);
	int (*gettimeofday)(struct timeval *, void *);
	int (*epoll_wait)(int, struct epoll_event *, int, int);
	int (*epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
} real;

void event_loop_enter(uint64_t now)
{
	hand.now.tv_sec = (time_t)(START + now);
	hand.set = true;
}

void event_loop_leave(void)
{
	hand.set = false;
}

void event_loop_reserve(const struct structure *structure, void *state, struct object *objects, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		structure->schedule(state, &objects[i], 1);
	while (n--)
		structure->cancel(state, &objects[n]);
}

_Noreturn void event_loop_failed(const struct structure *structure)
{
	message_error("%s cannot make a loop, or is another version than this was compiled with", structure->name);
	exit(STATUS_FAILED);
}

/* ISO C cannot convert a pointer to data into one to a function. */
static void event_loop_find(const char *name, void *function)
{
	void *found = dlsym(RTLD_NEXT, name);

	memcpy(function, &found, sizeof found);
}

__attribute__((constructor)) static void event_loop_find_all(void)
{
	event_loop_find("gettimeofday", &real.gettimeofday);
	event_loop_find("epoll_wait", &real.epoll_wait);
	event_loop_find("epoll_pwait", &real.epoll_pwait);
	event_loop_find("clock_gettime", &real.clock_gettime);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (hand.set) {
		*now = hand.now;
		return 0;
	}
	/* jemalloc calls it before constructors have run. */
	if (!real.clock_gettime)
		return (int)syscall(SYS_clock_gettime, clock, now);
	return real.clock_gettime(clock, now);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	if (hand.set) {
		*now = (struct timeval){.tv_sec = hand.now.tv_sec};
		return 0;
	}
	if (!real.gettimeofday)
		return (int)syscall(SYS_gettimeofday, now, zone);
	return real.gettimeofday(now, zone);
}

int epoll_wait(int poll, struct epoll_event *events, int most, int milliseconds)
{
	if (hand.set)
		return 0;
	return real.epoll_wait(poll, events, most, milliseconds);
}

int epoll_pwait(int poll, struct epoll_event *events, int most, int milliseconds, const sigset_t *mask)
{
	if (hand.set)
		return 0;
	return real.epoll_pwait(poll, events, most, milliseconds, mask);
}
