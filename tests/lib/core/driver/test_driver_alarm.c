/*
 * The driver's alarm, which threads set without a lock. First what may happen just before one of them sets it, all in
 * one thread: the library's calls of pthread_mutex_lock come to this program's, which sees those of the clock's. Then
 * with threads.
 */
/* tier: check, threads */

#include <dlfcn.h>
#include <unistd.h>

#include "lib/core/clock/clock_internal.h"
#include "tests/lib/core/driver/fixture.h"

static _Atomic uint32_t calls;

static void count(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	(void)of;
	(void)firing;
	(void)user;
	calls++;
}

/* ---- What comes between */

enum { OPERATIONS = 200000, DEEPEST = 4, FARTHEST = 60 };

static int depth;
static uint64_t seed;
static _Atomic int hesitant; /* threads hesitate before they set the alarm */

static void do_something(void)
{
	uint64_t what = seed_below(&seed, 8);

	depth++;
	if (what < 4)
		(void)after(seed_below(&seed, FARTHEST) * TICK, count, NULL);
	else if (what < 6)
		ww_driver_wake(driver);
	else
		(void)ww_driver_dispatch(driver, 100);
	depth--;
}

#if !SANITIZED
static void hesitate(void)
{
	static _Atomic uint32_t turn;

	for (uint32_t n = turn++ % 7 * 3; n > 0; n--)
		sched_yield();
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*_Atomic real)(pthread_mutex_t *);

	if (!real)
		real = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT, "pthread_mutex_lock");
	if (depth > 0 && depth < DEEPEST && mutex == &virtual_clock->lock && seed_below(&seed, 2))
		do_something();
	if (hesitant && mutex == &virtual_clock->lock)
		hesitate();
	return real(mutex);
}
#endif

/* All calls have returned: the alarm is what the driver says that it is. */
static void check_alarm(void)
{
	uint64_t armed = driver->armed;

	ck_assert(!driver->awake);
	ck_assert_uint_le(armed, ww_driver_next_tick(driver));
	if (driver->kicked || armed <= now_ns() / TICK)
		ck_assert_int_eq(driver->alarm->went_off, 1);
	else {
		ck_assert_int_eq(driver->alarm->went_off, 0);
		ck_assert_uint_eq(driver->alarm->when, armed == WW_NEVER ? NEVER : armed * TICK);
	}
}

START_TEST(whatever_comes_before_the_alarm_is_set_it_is_right_afterwards)
{
	seed = seed_of_run("test_driver_alarm");
	begin(WW_DRIVER_THREADLESS, 0);
	for (int n = seed_rounds(OPERATIONS); n > 0; n--) {
		do_something();
		check_alarm();
		if (seed_below(&seed, 4) == 0) {
			advance(seed_below(&seed, 4) * TICK / 2);
			check_alarm();
		}
	}
	end();
}
END_TEST

/* ---- Threads */

enum { THREADS = 4, ROUNDS = SLOW ? 500 : 3000, EACH = 6 };

static pthread_barrier_t barrier;
static _Atomic int scheduling;
static int rounds;

/* In each round all threads schedule earlier and earlier. */
static void *schedule_earlier(void *unused)
{
	for (int round = 0; round < rounds; round++) {
		pthread_barrier_wait(&barrier);
		for (uint64_t n = EACH; n > 0; n--)
			(void)after(n * TICK, count, NULL);
		scheduling--;
		pthread_barrier_wait(&barrier);
	}
	return unused;
}

/* A pass begins after a kick, be it one that has already been on its way. */
static void kick_and_wait(void)
{
	uint64_t wakeups = driver->wakeups;

	ww_driver_wake(driver);
	UNTIL(driver->wakeups != wakeups);
}

/*
 * The driver falls asleep again and again meanwhile. Then time goes on tick by tick. Nothing else asks the driver to
 * look: if the alarm were set too late or not at all, the test would wait for ever.
 */
START_TEST(no_wake_up_is_lost_while_threads_schedule_earlier_and_earlier)
{
	pthread_t thread[THREADS];

	(void)alarm(500); /* end rather than hang */
	seed = seed_of_run("test_driver_alarm");
	begin(0, 1);
	/* To the tick. */
	go(TICK - now_ns() % TICK);
	hesitant = 1;
	rounds = seed_rounds(ROUNDS);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, schedule_earlier, NULL), 0);
	for (int round = 0; round < rounds; round++) {
		uint64_t kicks = seed_below(&seed, 30);
		calls = 0;
		scheduling = THREADS;
		pthread_barrier_wait(&barrier);
		for (uint64_t n = 0; n < kicks && scheduling; n++)
			kick_and_wait();
		pthread_barrier_wait(&barrier);
		for (uint32_t n = 1; n <= EACH; n++) {
			advance(TICK);
			UNTIL(calls == n * THREADS);
		}
	}
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	hesitant = 0;
	end();
}
END_TEST

TEST_MAIN("driver/alarm", whatever_comes_before_the_alarm_is_set_it_is_right_afterwards,
    no_wake_up_is_lost_while_threads_schedule_earlier_and_earlier)
