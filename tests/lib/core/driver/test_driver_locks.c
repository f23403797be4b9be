/* How many locks a fire takes. The library's calls of pthread_mutex_lock come to this program's, which counts them. */

#include <dlfcn.h>

#include "lib/core/clock/clock_internal.h"
#include "tests/lib/core/driver/fixture.h"

#define TIMERS 10000

static _Atomic uint64_t locks;
static _Atomic uint32_t calls;
/* The alarm of a virtual clock needs a lock, which that of a real one does not: it does not count. */
static _Atomic(pthread_mutex_t *) uncounted;

#if !SANITIZED
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*_Atomic real)(pthread_mutex_t *);

	if (!real)
		real = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT, "pthread_mutex_lock");
	locks += mutex != uncounted;
	return real(mutex);
}
#endif

static void count(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	(void)of;
	(void)firing;
	(void)user;
	calls++;
}

START_TEST(a_fire_takes_little_more_than_the_lock_of_the_queue)
{
	begin(0, 2);
	for (uint64_t i = 0; i < TIMERS; i++)
		(void)after(i / 100 * TICK, count, NULL);
	locks = 0;
	go((TIMERS / 100 + 1) * TICK);
	ck_assert_uint_eq(calls, TIMERS);
	ck_assert_uint_le(locks, TIMERS * 12 / 10);
	end();
}
END_TEST

static int worker_is_asleep(void)
{
	pthread_mutex_lock(&driver->queue.lock);
	int asleep = driver->queue.asleep != NULL;
	pthread_mutex_unlock(&driver->queue.lock);
	return asleep;
}

/* The caller's source, the agenda and the source in a pass, the queue for the push, and again in the worker. */
START_TEST(a_fire_for_which_all_sleep_takes_five_locks)
{
	begin(0, 1);
	UNTIL(worker_is_asleep());
	uncounted = &virtual_clock->lock;
	locks = 0;
	for (uint32_t i = 0; i < TIMERS / 10; i++) {
		(void)after(0, count, NULL);
		advance(TICK);
		UNTIL(calls == i + 1);
		/* From here on they only fall asleep. */
		UNTIL(driver->armed == WW_NEVER);
	}
	ck_assert_uint_le(locks, TIMERS / 10 * 5);
	end();
}
END_TEST

TEST_MAIN(
    "driver/locks", a_fire_takes_little_more_than_the_lock_of_the_queue, a_fire_for_which_all_sleep_takes_five_locks)
