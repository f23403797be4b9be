/* Advancing: any step, in order of tick, never backwards. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"
#include "tests/support/seed.h"

START_TEST(time_moves_by_any_step)
{
	static const uint64_t steps[] = {
	    0, 1, 59, 60, 61, 3599, 3600, 86400, 604800, 31536000, 3153600000, 1000000000000};
	struct ww_wheel *wheel = make(NULL);
	uint64_t now = 0;

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		now += steps[i];
		ck_assert_uint_eq(go(wheel, now), 0);
		ck_assert_uint_eq(ww_wheel_now(wheel), now);
	}
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX), 0);
	ck_assert_uint_eq(ww_wheel_now(wheel), WW_TIME_MAX);
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX), 0);
	unmake(wheel);
}
END_TEST

START_TEST(time_that_goes_backwards_is_refused_and_changes_nothing)
{
	struct placed placed = place(NULL);
	struct ww_timer timers[4];
	struct ww_timer copies[4];
	struct ww_expiry batch[4];
	static const uint64_t back[] = {9999, 9998, 9940, 9939, 3600, 1, 0};

	go(placed.wheel, 10000);
	for (size_t i = 0; i < 4; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(placed.wheel, &timers[i], 50 * i * i));
	}
	freeze(&placed);
	memcpy(copies, timers, sizeof timers);
	for (size_t i = 0; i < sizeof back / sizeof back[0]; i++) {
		size_t count = 4711;

		ck_assert_int_eq(ww_wheel_advance(placed.wheel, back[i], WW_UNLIMITED, &count), WW_EBACKWARDS);
		ck_assert_int_eq(ww_wheel_advance_batch(placed.wheel, back[i], batch, 4, &count), WW_EBACKWARDS);
		ck_assert_uint_eq(count, 4711);
		ck_assert(is_frozen(&placed));
		ck_assert_mem_eq(copies, timers, sizeof timers);
	}
	ck_assert_uint_eq(ww_wheel_now(placed.wheel), 10000);
	ck_assert_uint_eq(recorded, 0);
	ck_assert_uint_eq(go(placed.wheel, 10450), 4);
	unplace(&placed);
}
END_TEST

START_TEST(time_that_goes_backwards_is_refused_even_when_nothing_is_due)
{
	static const uint64_t delays[] = {0, 50, 7100, 100000, WEEK, 3 * WEEK};
	struct ww_expiry batch[1];

	/* An empty wheel first, then one with a timer at some distance. */
	for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
		struct placed placed = place(NULL);
		struct ww_timer timer = WW_TIMER_INIT(note);
		size_t count = 4711;

		go(placed.wheel, 10000);
		if (delays[i] > 0) {
			OK(ww_wheel_schedule(placed.wheel, &timer, delays[i]));
		}
		freeze(&placed);
		ck_assert_int_eq(ww_wheel_advance(placed.wheel, 9999, WW_UNLIMITED, &count), WW_EBACKWARDS);
		ck_assert_int_eq(ww_wheel_advance(placed.wheel, 0, 0, NULL), WW_EBACKWARDS);
		ck_assert_int_eq(ww_wheel_advance_batch(placed.wheel, 9999, batch, 1, &count), WW_EBACKWARDS);
		ck_assert_uint_eq(count, 4711);
		ck_assert(is_frozen(&placed));
		ck_assert_uint_eq(go(placed.wheel, 10000 + delays[i]), delays[i] > 0);
		unplace(&placed);
	}
}
END_TEST

START_TEST(expired_may_be_null)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 1));
	OK(ww_wheel_advance(wheel, 1, WW_UNLIMITED, NULL));
	ck_assert_uint_eq(recorded, 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_jump_expires_everything_in_order_of_tick)
{
	static const uint64_t ranges[] = {5, 60, 3600, 86400, 604800, 20 * WEEK, UINT64_C(1) << 50};
	static struct ww_timer timers[1000];
	static uint64_t deadlines[1000];

	for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
		struct ww_wheel *wheel = make_from(55);
		uint64_t seed = 3;
		uint64_t last = 0;

		for (size_t i = 0; i < 1000; i++) {
			OK(ww_timer_init(&timers[i], note));
			deadlines[i] = 56 + seed_below(&seed, ranges[r]);
			OK(ww_wheel_schedule_at(wheel, &timers[i], deadlines[i]));
		}
		ck_assert_uint_eq(go(wheel, 55 + ranges[r]), 1000);
		for (size_t i = 0; i < 1000; i++) {
			uint64_t deadline = deadlines[record[i].timer - timers];

			ck_assert_uint_ge(deadline, last);
			ck_assert_uint_eq(record[i].now, 55 + ranges[r]);
			ck_assert_uint_eq(record[i].missed, 0);
			last = deadline;
		}
		unmake(wheel);
	}
}
END_TEST

START_TEST(a_jump_expires_due_timers_and_leaves_the_rest)
{
	static struct ww_timer timers[1000];
	static uint64_t deadlines[1000];
	struct ww_wheel *wheel = make(NULL);
	uint64_t seed = 4;
	uint64_t now = 0;
	size_t left = 1000;

	for (size_t i = 0; i < 1000; i++) {
		OK(ww_timer_init(&timers[i], note));
		deadlines[i] = 1 + seed_below(&seed, 3 * WEEK);
		OK(ww_wheel_schedule_at(wheel, &timers[i], deadlines[i]));
	}
	while (left > 0) {
		now += 1 + seed_below(&seed, UINT64_C(1) << seed_below(&seed, 18));
		left -= go(wheel, now);
		for (size_t i = 0; i < 1000; i++) {
			ck_assert_int_eq(ww_timer_pending(&timers[i]), deadlines[i] > now);
		}
		ck_assert_uint_eq(pending_in(wheel), left);
	}
	ck_assert_uint_eq(recorded, 1000);
	unmake(wheel);
}
END_TEST

START_TEST(advance_called_every_tick_expires_each_timer_in_the_tick_of_its_deadline)
{
	static struct ww_timer timers[3000];
	static uint64_t deadlines[3000];
	struct ww_wheel *wheel = make_from(3000);
	uint64_t seed = 5;
	size_t seen = 0;

	for (size_t i = 0; i < 3000; i++) {
		OK(ww_timer_init(&timers[i], note));
		deadlines[i] = 3001 + seed_below(&seed, 2 * DAY);
		OK(ww_wheel_schedule_at(wheel, &timers[i], deadlines[i]));
	}
	for (uint64_t now = 3000; now <= 3000 + 2 * DAY; now++) {
		OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, NULL));
		for (; seen < recorded; seen++) {
			ck_assert_uint_eq(deadlines[record[seen].timer - timers], now);
		}
	}
	ck_assert_uint_eq(recorded, 3000);
	unmake(wheel);
}
END_TEST

START_TEST(a_batch_holds_timer_deadline_and_missed)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer once = WW_TIMER_INIT(note);
	struct ww_timer every = WW_TIMER_INIT(note);
	struct ww_expiry batch[5];
	size_t count = 0;

	OK(ww_wheel_schedule(wheel, &once, 7100));
	OK(ww_wheel_schedule_every(wheel, &every, 10, 100));
	ck_assert_int_eq(ww_wheel_advance_batch(wheel, 8000, batch, 5, &count), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(recorded, 0); /* no callbacks */
	ck_assert_ptr_eq(batch[0].timer, &every);
	ck_assert_uint_eq(batch[0].deadline, 10);
	ck_assert_uint_eq(batch[0].missed, 79);
	ck_assert_ptr_eq(batch[1].timer, &once);
	ck_assert_uint_eq(batch[1].deadline, 7100);
	ck_assert_uint_eq(batch[1].missed, 0);
	ck_assert_int_eq(ww_timer_pending(&once), 0);
	ck_assert_int_eq(ww_timer_pending(&every), 1);
	/* They have expired: it is too late to cancel one. */
	ck_assert_int_eq(ww_wheel_cancel(wheel, &once), 0);
	ck_assert_int_eq(ww_wheel_cancel(wheel, &every), 1);
	ck_assert_uint_eq(stats_of(wheel).expired, 2);
	unmake(wheel);
}
END_TEST

START_TEST(the_unused_rest_of_a_batch_is_not_written)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_expiry batch[4];
	struct ww_expiry copy[4];
	size_t count = 0;

	memset(batch, 0x5A, sizeof batch);
	memcpy(copy, batch, sizeof batch);
	OK(ww_wheel_schedule(wheel, &timer, 1));
	ck_assert_int_eq(ww_wheel_advance_batch(wheel, 1, batch, 4, &count), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_mem_eq(batch + 1, copy + 1, 3 * sizeof batch[0]);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/advance", time_moves_by_any_step, time_that_goes_backwards_is_refused_and_changes_nothing,
    time_that_goes_backwards_is_refused_even_when_nothing_is_due, expired_may_be_null,
    a_jump_expires_everything_in_order_of_tick, a_jump_expires_due_timers_and_leaves_the_rest,
    advance_called_every_tick_expires_each_timer_in_the_tick_of_its_deadline, a_batch_holds_timer_deadline_and_missed,
    the_unused_rest_of_a_batch_is_not_written)
