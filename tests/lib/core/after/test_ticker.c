/* Tickers and sleeping. */
/* tier: quick */

#include "tests/lib/core/after/fixture.h"

static struct ww_ticker *ticker_of(struct world world, uint64_t period)
{
	struct ww_ticker *ticker = NULL;

	OK(ww_ticker_create(&ticker, world.driver, period));
	ck_assert_ptr_nonnull(ticker);
	return ticker;
}

START_TEST(periods_out_of_range_are_refused)
{
	struct world world = make_world();
	struct ww_ticker *ticker = NULL;

	ck_assert_int_eq(ww_ticker_create(NULL, world.driver, 1), WW_EINVAL);
	ck_assert_int_eq(ww_ticker_create(&ticker, NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_ticker_create(&ticker, world.driver, 0), WW_EINVAL);
	ck_assert_int_eq(ww_ticker_create(&ticker, world.driver, WW_DRIVER_TIME_MAX), WW_EOVERFLOW);
	ck_assert_int_eq(ww_ticker_receive(NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_ticker_poll(NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_ticker_stop(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_ticker_reset(NULL, 1), WW_EINVAL);
	OK(ww_ticker_destroy(NULL));
	ck_assert_int_eq(ww_sleep(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_sleep(world.driver, UINT64_MAX), WW_EOVERFLOW);
	ck_assert_ptr_null(ticker);
	ticker = ticker_of(world, 5 * MS);
	ck_assert_int_eq(ww_ticker_reset(ticker, 0), WW_EINVAL);
	ck_assert_int_eq(ww_ticker_reset(ticker, UINT64_MAX), WW_EOVERFLOW);
	pass(world, 5 * MS);
	ck_assert_int_eq(ww_ticker_poll(ticker, NULL), 1);
	OK(ww_ticker_destroy(ticker));
	end_world(world);
}
END_TEST

START_TEST(ticks_do_not_drift)
{
	const uint64_t period = 2 * MS + MS / 2; /* every other deadline lies between two ticks of the driver */
	struct world world = make_world();
	struct ww_ticker *ticker = ticker_of(world, period);
	uint64_t now = START;

	for (uint64_t tick = 1; tick <= 1000; tick++) {
		uint64_t deadline = START + tick * period;
		uint64_t rounded = (deadline + MS - 1) / MS * MS;
		uint64_t time = 0;
		pass(world, rounded - now - 1);
		ck_assert_int_eq(ww_ticker_poll(ticker, &time), 0);
		pass(world, 1);
		OK(ww_ticker_receive(ticker, &time));
		ck_assert_uint_eq(time, deadline);
		ck_assert_int_eq(ww_ticker_poll(ticker, &time), 0);
		now = rounded;
	}
	OK(ww_ticker_destroy(ticker));
	end_world(world);
}
END_TEST

START_TEST(a_slow_receiver_finds_the_oldest_tick_and_then_the_next_one)
{
	struct world world = make_world();
	struct ww_ticker *ticker = ticker_of(world, 10 * MS);
	uint64_t time = 0;

	for (int i = 0; i < 5; i++)
		pass(world, 10 * MS);
	ck_assert_int_eq(ww_ticker_poll(ticker, &time), 1);
	ck_assert_uint_eq(time, START + 10 * MS);
	ck_assert_int_eq(ww_ticker_poll(ticker, &time), 0);
	pass(world, 10 * MS);
	ck_assert_int_eq(ww_ticker_poll(ticker, &time), 1);
	ck_assert_uint_eq(time, START + 60 * MS);
	/* A stall of many periods is one tick. */
	pass(world, 105 * MS);
	ck_assert_int_eq(ww_ticker_poll(ticker, &time), 1);
	ck_assert_int_eq(ww_ticker_poll(ticker, &time), 0);
	pass(world, 5 * MS);
	ck_assert_int_eq(ww_ticker_poll(ticker, &time), 1);
	ck_assert_uint_eq(time, START + 170 * MS);
	OK(ww_ticker_destroy(ticker));
	end_world(world);
}
END_TEST

START_TEST(a_ticker_can_be_stopped_and_reset)
{
	struct world world = make_world();
	struct ww_ticker *ticker = ticker_of(world, 10 * MS);
	uint64_t time = 0;

	pass(world, 10 * MS);
	ck_assert_int_eq(ww_ticker_stop(ticker), 1);
	ck_assert_int_eq(ww_ticker_stop(ticker), 0);
	ck_assert_int_eq(ww_ticker_poll(ticker, &time), 0); /* the tick that was there is gone */
	pass(world, HOUR_NS);
	ck_assert_int_eq(ww_ticker_poll(ticker, &time), 0);
	ck_assert_uint_eq(stats_of(world).pending, 0);
	ck_assert_int_eq(ww_ticker_reset(ticker, 20 * MS), 0);
	for (uint64_t tick = 1; tick <= 3; tick++) {
		pass(world, 20 * MS);
		ck_assert_int_eq(ww_ticker_poll(ticker, &time), 1);
		ck_assert_uint_eq(time, START + 10 * MS + HOUR_NS + tick * 20 * MS);
	}
	pass(world, 20 * MS);
	ck_assert_int_eq(ww_ticker_reset(ticker, 7 * MS), 1);
	ck_assert_int_eq(ww_ticker_poll(ticker, &time), 0);
	for (int tick = 1; tick <= 3; tick++) {
		pass(world, 7 * MS);
		ck_assert_int_eq(ww_ticker_poll(ticker, &time), 1);
	}
	ck_assert_uint_eq(stats_of(world).pending, 1);
	OK(ww_ticker_destroy(ticker));
	ck_assert_uint_eq(stats_of(world).pending, 0);
	end_world(world);
}
END_TEST

/* ---- Sleep ------------------------------------------------------------------------------------------------------ */

struct sleeper {
	struct world world;
	uint64_t delay;
	uint64_t woke;
	int result;
};

static void *sleep_once(void *argument)
{
	struct sleeper *sleeper = argument;

	sleeper->result = ww_sleep(sleeper->world.driver, sleeper->delay);
	(void)ww_driver_now(sleeper->world.driver, &sleeper->woke);
	return NULL;
}

START_TEST(sleepers_wake_when_their_time_comes)
{
	enum { SLEEPERS = 5 };
	struct world world = make_world();
	struct sleeper sleepers[SLEEPERS];
	pthread_t threads[SLEEPERS];

	for (int i = 0; i < SLEEPERS; i++) {
		sleepers[i] = (struct sleeper){.world = world, .delay = (uint64_t)(i + 1) * HOUR_NS, .result = 1};
		threads[i] = start_thread(sleep_once, &sleepers[i]);
	}
	wait_until_pending(world, SLEEPERS);
	for (int i = 0; i < SLEEPERS; i++) {
		pass(world, HOUR_NS - 1);
		ck_assert_uint_eq(stats_of(world).pending, (uint64_t)(SLEEPERS - i));
		pass(world, 1);
		end_thread(threads[i]);
		OK(sleepers[i].result);
		ck_assert_uint_eq(sleepers[i].woke, START + sleepers[i].delay);
	}
	OK(ww_sleep(world.driver, 0));
	end_world(world);
}
END_TEST

TEST_MAIN("after/ticker", periods_out_of_range_are_refused, ticks_do_not_drift,
    a_slow_receiver_finds_the_oldest_tick_and_then_the_next_one, a_ticker_can_be_stopped_and_reset,
    sleepers_wake_when_their_time_comes)
