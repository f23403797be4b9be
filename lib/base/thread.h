#ifndef LIB_BASE_THREAD_H
#define LIB_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/*
 * Start a thread of the library's, with signals blocked: they are the application's. But not those that a thread raises
 * by its own fault: blocked, they would end the process and ask no handler, such as that of a crash reporter. Returns
 * an errno.
 */
static inline int thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t blocked;
	sigset_t former;
	int error;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &former);
	error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &former, NULL);
	return error;
}

/* Wait for a thread's end; no point of cancellation, which would leave it unknown who waits. */
static inline void thread_join(pthread_t thread)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_join(thread, NULL);
	pthread_setcancelstate(state, &state);
}

#endif
