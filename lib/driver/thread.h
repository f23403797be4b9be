#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>
#include <signal.h>

/* Start a thread of the library's, with all signals blocked: they are the application's. Returns an errno. */
static inline int thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	sigset_t all;
	sigset_t former;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &former);
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
