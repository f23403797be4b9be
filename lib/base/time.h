#ifndef LIB_BASE_TIME_H
#define LIB_BASE_TIME_H

/*
 * The system's clocks in nanoseconds, and condition variables that wait by the monotonic one. Include it behind a
 * feature-test macro that has clock_gettime, such as _GNU_SOURCE.
 */

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define TIME_SECOND UINT64_C(1000000000)

/* Never fails for a clock that the system has. */
static inline uint64_t time_now(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * TIME_SECOND + (uint64_t)now.tv_nsec;
}

/* Monotonic. */
static inline int64_t time_ms(void)
{
	return (int64_t)(time_now(CLOCK_MONOTONIC) / 1000000);
}

/* The moment `ns` after `now`, or the last one that there is. */
static inline uint64_t time_add(uint64_t now, uint64_t ns)
{
	return ns > UINT64_MAX - now ? UINT64_MAX : now + ns;
}

/* The moment `ns` before `now`, or the first one that there is. */
static inline uint64_t time_sub(uint64_t now, uint64_t ns)
{
	return ns > now ? 0 : now - ns;
}

/* What is left until CLOCK_MONOTONIC reads `deadline`, in ms for poll, rounded up, an hour at most; 0: it is over. */
static inline int time_left_ms(uint64_t deadline)
{
	uint64_t now = time_now(CLOCK_MONOTONIC);

	if (now >= deadline)
		return 0;
	return deadline - now > 3600 * TIME_SECOND ? 3600000 : (int)((deadline - now + 999999) / 1000000);
}

static inline struct timespec time_spec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / TIME_SECOND), .tv_nsec = (long)(ns % TIME_SECOND)};
}

/* Make a condition variable for time_wait. Returns an errno. */
static inline int time_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;
	int error = pthread_condattr_init(&attributes);

	if (error)
		return error;
	error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	error = error ? error : pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
	return error;
}

/* Wait until the variable is signalled, or CLOCK_MONOTONIC reads `deadline`: then it returns ETIMEDOUT. */
static inline int time_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline)
{
	const struct timespec until = time_spec(deadline);

	return pthread_cond_timedwait(cond, lock, &until);
}

#endif
