/* When the wheel next needs a call of advance: never after the next expiry, and not much more often than necessary. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"
#include "tests/support/seed.h"

START_TEST(an_empty_wheel_never_needs_a_call)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	uint64_t when = 0;

	ck_assert_int_eq(ww_wheel_next(wheel, &when), 0);
	ck_assert_uint_eq(when, WW_NEVER);
	OK(ww_wheel_schedule(wheel, &timer, 10));
	ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
	ck_assert_uint_le(when, 10);
	ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
	ck_assert_int_eq(ww_wheel_next(wheel, &when), 0);
	ck_assert_uint_eq(when, WW_NEVER);
	OK(ww_wheel_schedule(wheel, &timer, 10));
	go(wheel, 10);
	ck_assert_int_eq(ww_wheel_next(wheel, &when), 0);
	ck_assert_uint_eq(when, WW_NEVER);
	unmake(wheel);
}
END_TEST

START_TEST(next_is_exact_for_a_timer_in_the_lowest_level)
{
	struct ww_wheel *wheel = make_from(1000);

	for (uint64_t delay = 0; delay < 60; delay++) {
		struct ww_timer timer = WW_TIMER_INIT(note);
		uint64_t when = 0;

		OK(ww_wheel_schedule(wheel, &timer, delay));
		ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
		ck_assert_uint_eq(when, 1000 + delay);
		ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
	}
	unmake(wheel);
}
END_TEST

/* Make only the calls that next asks for. Returns their number before the one that expired the timer. */
static size_t calls_until_expiry(struct ww_wheel *wheel, uint64_t deadline)
{
	size_t calls = 0;

	for (;;) {
		uint64_t when = 0;
		uint64_t before = ww_wheel_now(wheel);

		ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
		ck_assert_uint_le(when, deadline);
		ck_assert_uint_ge(when, before);
		if (go(wheel, when) == 1) {
			ck_assert_uint_eq(when, deadline);
			return calls;
		}
		ck_assert_uint_gt(when, before); /* no needless call twice */
		calls++;
	}
}

START_TEST(an_untouched_timer_needs_at_most_one_call_a_level)
{
	static const uint64_t starts[] = {0, 1, 59, 3599, 3600, 86399, 604799, 1234567};

	for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++) {
		for (size_t i = 0; i < VALID_TIMES && valid_times[i].time < WEEK; i++) {
			struct ww_wheel *wheel = make_from(starts[s]);
			struct ww_timer timer = WW_TIMER_INIT(note);
			size_t calls;

			OK(ww_wheel_schedule(wheel, &timer, valid_times[i].time));
			calls = calls_until_expiry(wheel, starts[s] + valid_times[i].time);
			/* The call of the lowest level is the one that expires it. */
			ck_assert_msg(calls <= 3, "%zu calls for a delay of %s", calls, valid_times[i].name);
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(a_timer_outside_needs_at_most_one_more_call_a_turn)
{
	static const uint64_t delays[] = {WEEK, WEEK + 1, 8 * DAY, 30 * DAY, 926 * DAY / 10, 400 * DAY, 3653 * DAY};

	for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
		struct ww_wheel *wheel = make_from(777);
		struct ww_timer timer = WW_TIMER_INIT(note);

		OK(ww_wheel_schedule(wheel, &timer, delays[i]));
		ck_assert_uint_le(calls_until_expiry(wheel, 777 + delays[i]), 3 + delays[i] / WEEK + 1);
		unmake(wheel);
	}
}
END_TEST

START_TEST(a_timer_moved_later_needs_a_call_for_its_old_slot_and_then_for_its_new_one)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 10));
	for (uint64_t beat = 0; beat < 100; beat++) {
		ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, 1800 + beat), 1);
	}
	/* One call for the old slot, and at most one for each level above the lowest. */
	ck_assert_uint_le(calls_until_expiry(wheel, 1899), 4);
	unmake(wheel);
}
END_TEST

START_TEST(next_is_never_after_the_first_expiry_of_many_timers)
{
	static struct ww_timer timers[300];
	static const uint64_t ranges[] = {70, 4000, 100000, 2 * WEEK};

	for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
		struct ww_wheel *wheel = make(NULL);
		uint64_t seed = 5 + r;
		size_t left = 300;

		for (size_t i = 0; i < 300; i++) {
			OK(ww_timer_init(&timers[i], note));
			OK(ww_wheel_schedule(wheel, &timers[i], seed_below(&seed, ranges[r])));
		}
		while (left > 0) {
			uint64_t earliest = WW_NEVER;
			uint64_t when = 0;
			uint64_t deadline;

			for (size_t i = 0; i < 300; i++) {
				if (ww_timer_deadline(&timers[i], &deadline) == 1 && deadline < earliest) {
					earliest = deadline;
				}
			}
			ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
			ck_assert_uint_le(when, earliest);
			left -= go(wheel, when);
			/* Heartbeats in between leave timers in slots before their deadlines. */
			if (left > 0 && seed_below(&seed, 4) == 0) {
				ck_assert_int_ge(
				    ww_wheel_reschedule(wheel, &timers[seed_below(&seed, 300)], ranges[r]), 0);
			}
			if (ww_wheel_now(wheel) > 3 * ranges[r]) {
				break;
			}
		}
		unmake(wheel);
	}
}
END_TEST

static uint64_t next_in_callback;

static void ask_in_callback(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	ck_assert_int_eq(ww_wheel_next(wheel, &next_in_callback), 1);
}

START_TEST(next_may_be_called_in_a_callback)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(ask_in_callback);
	struct ww_timer second = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 10));
	OK(ww_wheel_schedule(wheel, &second, 25));
	ck_assert_uint_eq(go(wheel, 10), 1);
	ck_assert_uint_ge(next_in_callback, 10);
	ck_assert_uint_le(next_in_callback, 25);
	unmake(wheel);
}
END_TEST

static int answer_in_callback;

static void ask_in_an_empty_wheel(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	answer_in_callback = ww_wheel_next(wheel, &next_in_callback);
}

START_TEST(an_empty_wheel_never_needs_a_call_whatever_was_interrupted)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer pair[2] = {WW_TIMER_INIT(note), WW_TIMER_INIT(note)};
	struct ww_timer last = WW_TIMER_INIT(ask_in_an_empty_wheel);
	uint64_t when = 0;

	/* The timers left by a budget are cancelled. */
	OK(ww_wheel_schedule(wheel, &pair[0], 10));
	OK(ww_wheel_schedule(wheel, &pair[1], 20));
	ck_assert_int_eq(ww_wheel_advance(wheel, 100, 1, NULL), 1);
	ck_assert_int_eq(ww_wheel_cancel(wheel, &pair[1]), 1);
	ck_assert_int_eq(ww_wheel_next(wheel, &when), 0);
	ck_assert_uint_eq(when, WW_NEVER);
	/* The last timer's callback runs before the jump has ended. */
	OK(ww_wheel_schedule(wheel, &last, 10));
	ck_assert_uint_eq(go(wheel, 200), 1);
	ck_assert_int_eq(answer_in_callback, 0);
	ck_assert_uint_eq(next_in_callback, WW_NEVER);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/next", an_empty_wheel_never_needs_a_call, next_is_exact_for_a_timer_in_the_lowest_level,
    an_untouched_timer_needs_at_most_one_call_a_level, a_timer_outside_needs_at_most_one_more_call_a_turn,
    a_timer_moved_later_needs_a_call_for_its_old_slot_and_then_for_its_new_one,
    next_is_never_after_the_first_expiry_of_many_timers, next_may_be_called_in_a_callback,
    an_empty_wheel_never_needs_a_call_whatever_was_interrupted)
