/*
 * Threads that share clocks and alarms, wait for them, and are cancelled in their calls.
 *
 * The library calls pthread_setcancelstate before it takes a lock. The program puts its own in front of the C
 * library's. It lets other threads run at that point, which brings out races on a single processor too.
 */
/* tier: check, threads, no-valgrind */

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#include "tests/lib/core/clock/fixture.h"
#include "tests/support/seed.h"

/* The random numbers of a thread that lets others run where the library is about to take a clock's lock. */
static _Thread_local uint64_t *hesitates;

int pthread_setcancelstate(int state, int *old_state)
{
	static _Atomic(int (*)(int, int *)) known;
	int (*next)(int, int *) = atomic_load(&known);

	if (next == NULL) {
		*(void **)(void *)&next = dlsym(RTLD_NEXT, "pthread_setcancelstate");
		atomic_store(&known, next);
	}
	if (hesitates != NULL && seed_below(hesitates, 4) == 0)
		sched_yield();
	return next(state, old_state);
}

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 100000 };

struct race {
	struct ww_clock *clock;
	struct ww_alarm *alarm;
	uint64_t state;
	_Atomic uint64_t begun, ended;
	int failed;
};

static void *advance_in_each_round(void *argument)
{
	struct race *race = argument;

	hesitates = &race->state;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&race->begun) < round)
			sched_yield();
		if (round % 2 == 0)
			race->failed |= ww_clock_virtual_advance(race->clock, 1);
		else
			race->failed |= ww_clock_virtual_set(race->clock, round);
		atomic_store(&race->ended, round);
	}
	return NULL;
}

/*
 * In each round the clock reaches the very time to which the alarm is being set. No later step makes up for a lost one.
 */
START_TEST(a_set_that_races_with_an_advance_is_not_lost)
{
	struct ww_clock *clock = make_clock(0);
	uint64_t state = seed_of_run("a_set_that_races_with_an_advance_is_not_lost");
	struct race race = {.clock = clock, .alarm = make_alarm(clock), .state = state + 1};
	pthread_t thread;

	hesitates = &state;
	ck_assert_int_eq(pthread_create(&thread, NULL, advance_in_each_round, &race), 0);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		atomic_store(&race.begun, round);
		OK(ww_alarm_set(race.alarm, round));
		while (atomic_load(&race.ended) < round)
			sched_yield();
		ck_assert_msg(readable(race.alarm) && ww_alarm_clear(race.alarm) == 1,
		    "the wake-up of round %" PRIu64 " is lost", round);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(race.failed, 0);
	hesitates = NULL;
	ck_assert_uint_eq(now(clock), ROUNDS);
	ww_alarm_destroy(race.alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

enum { THREADS = 4, SHARED_ALARMS = 3, THREAD_STEPS = 20000 };

struct hammer {
	struct ww_clock *clock;
	struct ww_alarm **alarms;
	uint64_t state;
	int failed;
};

static void *hammer(void *argument)
{
	struct hammer *mine = argument;

	hesitates = &mine->state;
	for (int step = 0; step < THREAD_STEPS; step++) {
		struct ww_alarm *alarm = mine->alarms[seed_below(&mine->state, SHARED_ALARMS)], *own;
		uint64_t ns = 0;

		mine->failed |= ww_clock_now(mine->clock, &ns) != WW_OK;
		ns += seed_below(&mine->state, 20);
		switch (seed_below(&mine->state, 8)) {
		case 0:
			mine->failed |= ww_clock_virtual_advance(mine->clock, 10) != WW_OK;
			break;
		case 1:
			mine->failed |= ww_clock_virtual_set(mine->clock, ns) != WW_OK;
			break;
		case 2:
			mine->failed |= ww_alarm_create(&own, mine->clock, NULL) != WW_OK;
			mine->failed |= ww_alarm_set(own, 0) != WW_OK || ww_alarm_clear(own) != 1;
			ww_alarm_destroy(own);
			break;
		case 3:
		case 4:
			mine->failed |= ww_alarm_clear(alarm) < 0;
			break;
		default:
			mine->failed |= ww_alarm_set(alarm, ns) != WW_OK;
			break;
		}
	}
	return NULL;
}

START_TEST(threads_share_alarms)
{
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *alarms[SHARED_ALARMS] = {make_alarm(clock), make_alarm(clock), make_alarm(clock)};
	struct hammer hammers[THREADS];
	pthread_t threads[THREADS];
	uint64_t seed = seed_of_run("threads_share_alarms");

	for (size_t i = 0; i < THREADS; i++) {
		hammers[i] = (struct hammer){clock, alarms, seed + i, 0};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(hammers[i].failed, 0);
	}
	for (size_t i = 0; i < SHARED_ALARMS; i++) {
		(void)went_off(alarms[i]);
		OK(ww_alarm_set(alarms[i], now(clock) + 5));
		ck_assert(!went_off(alarms[i]));
		OK(ww_clock_virtual_advance(clock, 5));
		ck_assert(went_off(alarms[i]));
		ww_alarm_destroy(alarms[i]);
	}
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

/* Of several threads that clear one alarm, exactly one is told each time it went off. */
struct clearer {
	struct ww_alarm *alarm;
	atomic_int *stop;
	uint64_t told;
};

static void *clear_until_stopped(void *argument)
{
	struct clearer *mine = argument;
	int last;

	do {
		last = atomic_load(mine->stop);
		mine->told += (uint64_t)ww_alarm_clear(mine->alarm);
		sched_yield();
	} while (!last);
	return NULL;
}

START_TEST(one_of_many_clearers_is_told_each_time)
{
	enum { TIMES = 2000 };
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *alarm = make_alarm(clock);
	atomic_int stop = 0;
	struct clearer clearers[THREADS];
	pthread_t threads[THREADS];
	uint64_t told = 0;

	for (size_t i = 0; i < THREADS; i++) {
		clearers[i] = (struct clearer){alarm, &stop, 0};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, clear_until_stopped, &clearers[i]), 0);
	}
	for (uint64_t i = 1; i <= TIMES; i++) {
		OK(ww_alarm_set(alarm, i));
		OK(ww_clock_virtual_advance(clock, 1));
		while (readable(alarm))
			sched_yield();
	}
	atomic_store(&stop, 1);
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		told += clearers[i].told;
	}
	ck_assert_uint_eq(told, TIMES);
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

/* ---- Waiting ---------------------------------------------------------------------------------------------------- */

/* The example of the header, word for word. */
static int wait_until(struct ww_clock *clock, uint64_t ns)
{
	struct ww_alarm *alarm;
	uint64_t now;
	int error = ww_alarm_create(&alarm, clock, NULL);

	if (error != WW_OK)
		return error;
	for (;;) {
		ww_clock_now(clock, &now);
		if (now >= ns || (error = ww_alarm_set(alarm, ns)) != WW_OK)
			break;
		if ((error = ww_alarm_wait(alarm)) != WW_OK)
			break;
		ww_alarm_clear(alarm);
	}
	ww_alarm_destroy(alarm);
	return error;
}

struct waiter {
	struct ww_clock *clock;
	struct ww_alarm *alarm;
	uint64_t until;
	int answer;
	atomic_int done;
};

static void *wait_for_time(void *argument)
{
	struct waiter *mine = argument;

	mine->answer = wait_until(mine->clock, mine->until);
	atomic_store(&mine->done, 1);
	return NULL;
}

static void *wait_for_alarm(void *argument)
{
	struct waiter *mine = argument;

	mine->answer = ww_alarm_wait(mine->alarm);
	atomic_store(&mine->done, 1);
	return NULL;
}

START_TEST(the_headers_example_waits_for_a_week)
{
	struct waiter waiter = {.clock = make_clock(50 * S), .until = 604800 * S, .answer = 1};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_time, &waiter), 0);
	for (uint64_t time = 3600 * S; time < waiter.until; time += 3600 * S) {
		OK(ww_clock_virtual_set(waiter.clock, time - 50 * S));
		OK(ww_clock_virtual_set(waiter.clock, time - 60 * S));
		sched_yield();
		ck_assert_int_eq(atomic_load(&waiter.done), 0);
	}
	OK(ww_clock_virtual_set(waiter.clock, waiter.until));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	OK(waiter.answer);
	OK(ww_clock_virtual_destroy(waiter.clock));
	OK(wait_until(ww_clock_elapsed(), now(ww_clock_elapsed()) + MS));
}
END_TEST

START_TEST(a_wait_wakes_all_threads_and_leaves_the_alarm_set_off)
{
	struct ww_clock *clock = make_clock(0);
	struct waiter waiters[THREADS];
	struct ww_alarm *alarm = make_alarm(clock);
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		waiters[i] = (struct waiter){.alarm = alarm, .answer = 1};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_for_alarm, &waiters[i]), 0);
	}
	OK(ww_alarm_set(alarm, 1));
	OK(ww_clock_virtual_advance(clock, 1));
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		OK(waiters[i].answer);
	}
	OK(ww_alarm_wait(alarm));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

static atomic_int signals;

static void count_signal(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

START_TEST(signals_do_not_end_the_wait)
{
	struct waiter waiter = {.clock = make_clock(0), .answer = 1};
	struct sigaction action = {.sa_handler = count_signal};
	pthread_t thread;

	waiter.alarm = make_alarm(waiter.clock);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_alarm, &waiter), 0);
	for (int i = 0; i < 100; i++) {
		/* ThreadSanitizer delays a signal that comes just before the wait begins until another one comes. */
		while (atomic_load(&signals) <= i) {
			ck_assert_int_eq(pthread_kill(thread, SIGUSR1), 0);
			for (int k = 0; k < 1000 && atomic_load(&signals) <= i; k++)
				sched_yield();
		}
		ck_assert_int_eq(atomic_load(&waiter.done), 0);
	}
	OK(ww_alarm_set(waiter.alarm, 0));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	OK(waiter.answer);
	ww_alarm_destroy(waiter.alarm);
	OK(ww_clock_virtual_destroy(waiter.clock));
}
END_TEST

/* ---- Cancellation ----------------------------------------------------------------------------------------------- */

/*
 * A cancelled thread leaves AddressSanitizer's marks of its frames on the stack. At the thread's end, freeing the stack
 * that AddressSanitizer gave it for signals stumbles over them.
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "use_sigaltstack=0";
}

/* A cancelled thread ends at its first cancellation point: it must get to the end of this function. */
static void *use_all_when_cancelled(void *argument)
{
	struct waiter *mine = argument;
	struct ww_alarm *alarm;
	uint64_t ns;

	(void)pthread_cancel(pthread_self());
	mine->answer = ww_alarm_create(&alarm, mine->clock, NULL);
	for (int i = 0; i < 2; i++) {
		mine->answer |= ww_alarm_set(alarm, 0);
		(void)ww_alarm_clear(alarm);
		mine->answer |= ww_alarm_set(alarm, WW_CLOCK_MAX);
		(void)ww_alarm_clear(alarm);
		mine->answer |= ww_alarm_set(alarm, NEVER);
		mine->answer |= ww_clock_now(mine->clock, &ns);
	}
	if (mine->clock != ww_clock_elapsed() && mine->clock != ww_clock_wall()) {
		mine->answer |= ww_alarm_set(alarm, ns + 5);
		mine->answer |= ww_clock_virtual_advance(mine->clock, 5);
		mine->answer |= ww_alarm_set(alarm, WW_CLOCK_MAX);
		mine->answer |= ww_clock_virtual_set(mine->clock, 1);
	}
	ww_alarm_destroy(alarm);
	atomic_store(&mine->done, 1);
	pthread_testcancel();
	return NULL;
}

START_TEST(cancellation_waits_for_the_end_of_calls)
{
	struct ww_clock *clocks[] = {make_clock(0), ww_clock_elapsed(), ww_clock_wall()};

	for (size_t i = 0; i < 3; i++) {
		struct waiter waiter = {.clock = clocks[i], .answer = 1};
		pthread_t thread;
		void *result;

		ck_assert_int_eq(pthread_create(&thread, NULL, use_all_when_cancelled, &waiter), 0);
		ck_assert_int_eq(pthread_join(thread, &result), 0);
		ck_assert_ptr_eq(result, PTHREAD_CANCELED);
		ck_assert_int_eq(atomic_load(&waiter.done), 1);
		OK(waiter.answer);
	}
	OK(ww_clock_virtual_destroy(clocks[0]));
}
END_TEST

START_TEST(a_wait_can_be_cancelled)
{
	struct waiter waiter = {.clock = make_clock(0)};
	pthread_t thread;
	void *result;

	waiter.alarm = make_alarm(waiter.clock);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_alarm, &waiter), 0);
	ck_assert_int_eq(pthread_cancel(thread), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_int_eq(atomic_load(&waiter.done), 0);
	ww_alarm_destroy(waiter.alarm);
	OK(ww_clock_virtual_destroy(waiter.clock));
}
END_TEST

TEST_MAIN("clock/threads", a_set_that_races_with_an_advance_is_not_lost, threads_share_alarms,
    one_of_many_clearers_is_told_each_time, the_headers_example_waits_for_a_week,
    a_wait_wakes_all_threads_and_leaves_the_alarm_set_off, signals_do_not_end_the_wait,
    cancellation_waits_for_the_end_of_calls, a_wait_can_be_cancelled)
