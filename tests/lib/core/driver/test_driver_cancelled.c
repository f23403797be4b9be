/* Threads that are cancelled while they are in a call of the driver. */
/* tier: quick, threads */

#include "tests/lib/core/driver/fixture.h"

/* ---- Cancelled threads: nothing of the driver is left locked or half done */

static void *cancel_wait_elsewhere(void *argument)
{
	(void)ww_driver_cancel_wait(driver, *(ww_handle *)argument);
	return NULL;
}

START_TEST(a_thread_cancelled_while_it_waits_leaves_the_driver_usable)
{
	for (int kind = 0; kind < 2; kind++) {
		struct gate gate;
		pthread_t thread;
		void *result = NULL;
		gate_init(&gate);
		begin(0, 2);
		ww_handle handle = after(0, hold, &gate);
		advance(TICK);
		gate_wait(&gate, 1);
		ck_assert_int_eq(
		    pthread_create(&thread, NULL, kind ? settle_elsewhere : cancel_wait_elsewhere, &handle), 0);
		ck_assert_int_eq(pthread_cancel(thread), 0);
		ck_assert_int_eq(pthread_join(thread, &result), 0);
		ck_assert_ptr_eq(result, PTHREAD_CANCELED);
		(void)after(0, note, NULL);
		advance(TICK);
		UNTIL(fired_count == 1);
		gate_open(&gate, 1);
		settle();
		ck_assert_int_eq(ww_driver_cancel(driver, handle), WW_ESTALE);
		ck_assert_uint_eq(driver->queue.watchers, 0);
		for (uint32_t i = 0; i < driver->shard_count; i++)
			ck_assert_uint_eq(driver->shards[i].watchers, 0);
		end();
	}
}
END_TEST

struct outstanding {
	struct ww_driver *_Atomic made;
	struct gate gate;
	int came_through;
};

/* Makes every call that is not a cancellation point, with a cancellation pending. */
static void *call_all_when_cancelled(void *argument)
{
	struct outstanding *here = argument;
	struct ww_driver *made = NULL;
	struct ww_driver_stats stats;
	uint64_t ns;
	ww_handle handle;

	pthread_cancel(pthread_self());
	ck_assert(ww_driver_schedule(driver, TICK, note, NULL, &handle) == WW_OK);
	OK(ww_driver_reserve(driver, 1000));
	ck_assert(ww_driver_reschedule(driver, handle, 0) == 1);
	ck_assert(ww_driver_time_left(driver, handle, &ns) == 1);
	ck_assert(ww_driver_cancel(driver, handle) == 1);
	ck_assert(ww_driver_stats(driver, &stats) == WW_OK);
	ck_assert(ww_driver_create(&made, NULL) == WW_OK);
	ck_assert(ww_driver_schedule(made, 0, hold, &here->gate, NULL) == WW_OK);
	UNTIL(here->gate.inside == 1);
	OK(ww_driver_stop(made, NULL, NULL, NULL));
	here->made = made;
	/* This call waits. */
	OK(ww_driver_destroy(made));
	here->came_through = 1;
	pthread_testcancel();
	return NULL;
}

START_TEST(only_documented_calls_are_cancellation_points)
{
	struct outstanding here = {.made = NULL};
	pthread_t thread;
	void *result = NULL;

	gate_init(&here.gate);
	begin(0, 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_all_when_cancelled, &here), 0);
	UNTIL(here.made != NULL);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	gate_open(&here.gate, 1);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_int_eq(here.came_through, 1);
	end();
}
END_TEST

/* ---- Cancelled threads in functions of the application */

static void note_and_test(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	note(of, firing, user);
	pthread_testcancel();
}

static void take_and_test(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context)
{
	take(handle, fn, user, left, context);
	pthread_testcancel();
}

/* Dispatches, settles or stops, with a cancellation pending. */
static void *call_when_cancelled(void *argument)
{
	int kind = *(int *)argument;

	pthread_cancel(pthread_self());
	if (kind == 0)
		ck_assert(ww_driver_dispatch(driver, 10) == 10);
	else if (kind == 1)
		OK(ww_driver_stop(driver, take_and_test, NULL, NULL));
	else
		(void)ww_driver_settle(driver);
	*(int *)argument = 77;
	pthread_testcancel();
	return NULL;
}

START_TEST(a_thread_is_not_cancelled_in_a_callback_or_a_drain_function)
{
	static const int came_through[] = {77, 77, 2};

	for (int kind = 0; kind < 3; kind++) {
		int argument = kind;
		pthread_t thread;
		void *result = NULL;
		begin(WW_DRIVER_THREADLESS, 0);
		for (int i = 0; i < 50; i++)
			(void)after(0, note_and_test, NULL);
		advance(TICK);
		ck_assert_int_eq(pthread_create(&thread, NULL, call_when_cancelled, &argument), 0);
		ck_assert_int_eq(pthread_join(thread, &result), 0);
		ck_assert_ptr_eq(result, PTHREAD_CANCELED);
		/* A settle is a cancellation point, but not within a callback. */
		ck_assert_int_eq(argument, came_through[kind]);
		ck_assert_uint_eq(stats_of().running, 0);
		if (kind != 1)
			settle();
		ck_assert_uint_eq(fired_count, kind == 1 ? 0 : 50);
		ck_assert_uint_eq(drained_count, kind == 1 ? 50 : 0);
		end();
	}
}
END_TEST

TEST_MAIN("driver/cancelled", a_thread_cancelled_while_it_waits_leaves_the_driver_usable,
    only_documented_calls_are_cancellation_points, a_thread_is_not_cancelled_in_a_callback_or_a_drain_function)
