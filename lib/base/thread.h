#ifndef LIB_BASE_THREAD_H
#define LIB_BASE_THREAD_H

/* Starting and joining the threads of the libraries. */

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/*
 * Start a thread of the library with signals blocked: they are the application's. Signals of the thread's own faults
 * are not blocked, as they would then end the process without a call of its handler, such as a crash reporter's.
 * Returns an errno.
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

/* Tell debuggers and top the calling thread's name, where the system can. */
static inline void thread_name(const char *name)
{
#if defined __linux__
	(void)pthread_setname_np(pthread_self(), name);
#else
	(void)name;
#endif
}

/* Wait for a thread's end. No point of cancellation: the caller could not know whether the thread was joined. */
static inline void thread_join(pthread_t thread)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_join(thread, NULL);
	pthread_setcancelstate(state, &state);
}

#endif
