/* Calls that come while an expiry is on its way: they take the value back, or the value is right. */
/* tier: quick, threads, no-valgrind */

#include "lib/core/after/channel.h"
#include "tests/lib/core/after/fixture.h"

/* ---- An expiry on its way --------------------------------------------------------------------------------------- */

/*
 * The test holds the channel's lock. The callback, which has begun, and another thread's call both wait for that lock.
 * Either may get it first: half of the rounds make one order likely, half the other.
 */
struct late {
	struct ww_channel *channel; /* the first member of the timer or ticker */
	int (*call)(struct ww_channel *channel);
	int result;
};

static int late_stop(struct ww_channel *channel)
{
	return ww_after_stop((struct ww_after *)(void *)channel);
}

static int late_reset(struct ww_channel *channel)
{
	return ww_after_reset((struct ww_after *)(void *)channel, HOUR_NS);
}

static int late_destroy(struct ww_channel *channel)
{
	return ww_after_destroy((struct ww_after *)(void *)channel);
}

/* A reset leaves nothing behind that would touch the destroyed timer. */
static int late_reset_and_destroy(struct ww_channel *channel)
{
	return late_reset(channel) == 1 ? late_destroy(channel) : WW_EINVAL;
}

static int late_ticker_stop(struct ww_channel *channel)
{
	return ww_ticker_stop((struct ww_ticker *)(void *)channel);
}

static int late_ticker_reset(struct ww_channel *channel)
{
	return ww_ticker_reset((struct ww_ticker *)(void *)channel, HOUR_NS);
}

static int late_ticker_destroy(struct ww_channel *channel)
{
	return ww_ticker_destroy((struct ww_ticker *)(void *)channel);
}

static int late_ticker_reset_and_destroy(struct ww_channel *channel)
{
	return late_ticker_reset(channel) == 1 ? late_ticker_destroy(channel) : WW_EINVAL;
}

static void *call_late(void *argument)
{
	struct late *late = argument;

	/* Neither stop nor reset is a cancellation point. */
	if (late->call == late_stop || late->call == late_reset || late->call == late_ticker_stop ||
	    late->call == late_ticker_reset)
		pthread_cancel(pthread_self());
	late->result = late->call(late->channel);
	return NULL;
}

/* Let the timer expire and the call come at the same time. Returns the call's answer. */
static int call_while_it_expires(
    struct world world, void *object, int (*call)(struct ww_channel *channel), int call_first)
{
	struct late late = {.channel = object, .call = call};
	uint64_t fired = stats_of(world).fired;
	pthread_t thread;

	pthread_mutex_lock(&late.channel->lock);
	if (call_first) {
		thread = start_thread(call_late, &late);
		for (int i = 0; i < 100; i++)
			sched_yield();
	}
	OK(ww_clock_virtual_advance(world.clock, MS));
	while (stats_of(world).fired == fired)
		sched_yield();
	for (int i = 0; i < 100; i++)
		sched_yield();
	if (!call_first)
		thread = start_thread(call_late, &late);
	pthread_mutex_unlock(&late.channel->lock);
	ck_assert_int_eq(end_thread(thread), 0);
	OK(ww_driver_settle(world.driver));
	return late.result;
}

START_TEST(a_value_on_its_way_is_taken_back)
{
	struct world world = make_world();

	for (int round = 0; round < 60; round++) {
		struct ww_after *after;
		OK(ww_after_create(&after, world.driver, MS));
		ck_assert_int_eq(call_while_it_expires(world, after, late_stop, round % 2), 1);
		ck_assert_int_eq(ww_after_poll(after, NULL), 0);
		ck_assert_int_eq(ww_after_reset(after, MS), 0);
		ck_assert_int_eq(call_while_it_expires(world, after, late_reset, round % 2), 1);
		ck_assert_int_eq(ww_after_poll(after, NULL), 0);
		ck_assert_uint_eq(stats_of(world).pending, 1);
		ck_assert_int_eq(ww_after_reset(after, MS), 1);
		OK(call_while_it_expires(world, after, late_destroy, round % 2));
		OK(ww_after_create(&after, world.driver, MS));
		OK(call_while_it_expires(world, after, late_reset_and_destroy, round % 2));
		ck_assert_uint_eq(stats_of(world).pending, 0);
	}
	end_world(world);
}
END_TEST

START_TEST(a_tick_on_its_way_is_taken_back)
{
	struct world world = make_world();

	for (int round = 0; round < 60; round++) {
		struct ww_ticker *ticker;
		OK(ww_ticker_create(&ticker, world.driver, MS));
		ck_assert_int_eq(call_while_it_expires(world, ticker, late_ticker_stop, round % 2), 1);
		ck_assert_int_eq(ww_ticker_poll(ticker, NULL), 0);
		ck_assert_int_eq(ww_ticker_reset(ticker, MS), 0);
		ck_assert_int_eq(call_while_it_expires(world, ticker, late_ticker_reset, round % 2), 1);
		ck_assert_int_eq(ww_ticker_poll(ticker, NULL), 0);
		ck_assert_uint_eq(stats_of(world).pending, 1);
		ck_assert_int_eq(ww_ticker_reset(ticker, MS), 1);
		OK(call_while_it_expires(world, ticker, late_ticker_destroy, round % 2));
		OK(ww_ticker_create(&ticker, world.driver, MS));
		OK(call_while_it_expires(world, ticker, late_ticker_reset_and_destroy, round % 2));
		ck_assert_uint_eq(stats_of(world).pending, 0);
	}
	end_world(world);
}
END_TEST

START_TEST(a_function_on_its_way_is_taken_back_or_called)
{
	struct world world = make_world();
	struct gate gate = {0};
	int called = 0;

	for (int round = 0; round < 60; round++) {
		struct ww_after *after;
		OK(ww_after_func(&after, world.driver, MS, gate_fn, &gate));
		called += !call_while_it_expires(world, after, late_stop, round % 2);
		ck_assert_int_eq(atomic_load(&gate.went), called);
		ck_assert_int_eq(ww_after_reset(after, MS), 0);
		called += !call_while_it_expires(world, after, late_reset, round % 2);
		ck_assert_int_eq(atomic_load(&gate.went), called);
		ck_assert_int_eq(ww_after_reset(after, MS), 1);
		OK(call_while_it_expires(world, after, late_destroy, round % 2));
		called = atomic_load(&gate.went);
		ck_assert_int_eq(atomic_load(&gate.came), called);
	}
	end_world(world);
}
END_TEST

TEST_MAIN("after/late", a_value_on_its_way_is_taken_back, a_tick_on_its_way_is_taken_back,
    a_function_on_its_way_is_taken_back_or_called)
