/* A budget ends an advance early. The next call goes on with the rest. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"
#include "tests/support/seed.h"

#define N 500

static struct ww_timer timers[N];
static uint64_t deadlines[N];

/* `count` timers with deadlines from 1 to range. */
static struct ww_wheel *make_full(uint64_t range)
{
	struct ww_wheel *wheel = make(NULL);
	uint64_t seed = 11;

	for (size_t i = 0; i < N; i++) {
		OK(ww_timer_init(&timers[i], note));
		deadlines[i] = 1 + seed_below(&seed, range);
		OK(ww_wheel_schedule_at(wheel, &timers[i], deadlines[i]));
	}
	return wheel;
}

static void assert_all_recorded_once_in_order(void)
{
	uint64_t last = 0;

	ck_assert_uint_eq(recorded, N);
	for (size_t i = 0; i < N; i++) {
		uint64_t deadline = deadlines[record[i].timer - timers];

		ck_assert_uint_ge(deadline, last);
		last = deadline;
		ck_assert_uint_eq(times_recorded(&timers[i]), 1);
	}
}

START_TEST(a_budget_is_kept_and_nothing_is_lost_or_out_of_order)
{
	static const uint64_t ranges[] = {1, 3, 60, 5000, 200000, 3 * WEEK};
	static const size_t budgets[] = {1, 2, 7, 100, N - 1, N, N + 1, WW_UNLIMITED};

	for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
		for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++) {
			struct ww_wheel *wheel = make_full(ranges[r]);
			size_t left = N;
			int more = 1;

			while (more == 1) {
				size_t count = 4711;
				size_t expected = left < budgets[b] ? left : budgets[b];

				more = ww_wheel_advance(wheel, ranges[r], budgets[b], &count);
				ck_assert_uint_eq(count, expected);
				left -= count;
				ck_assert_int_eq(more, left > 0);
				ck_assert_uint_eq(ww_wheel_now(wheel), ranges[r]);
				ck_assert_uint_eq(pending_in(wheel), left);
				assert_sound(wheel);
			}
			assert_all_recorded_once_in_order();
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(a_budget_of_0_expires_nothing_and_says_whether_something_is_due)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	size_t count = 4711;

	ck_assert_int_eq(ww_wheel_advance(wheel, 10, 0, &count), 0);
	ck_assert_uint_eq(count, 0);
	ck_assert_uint_eq(ww_wheel_now(wheel), 10);
	OK(ww_wheel_schedule(wheel, &timer, 5));
	ck_assert_int_eq(ww_wheel_advance(wheel, 14, 0, &count), 0);
	ck_assert_int_eq(ww_wheel_advance(wheel, 15, 0, &count), 1);
	ck_assert_int_eq(ww_wheel_advance(wheel, 15, 0, &count), 1);
	ck_assert_uint_eq(count, 0);
	ck_assert_uint_eq(recorded, 0);
	assert_sound(wheel);
	ck_assert_int_eq(ww_wheel_advance(wheel, 7200, 0, &count), 1);
	ck_assert_uint_eq(go(wheel, 7200), 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_batch_of_capacity_0_may_be_null_and_expires_nothing)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_expiry one;
	size_t count = 4711;

	ck_assert_int_eq(ww_wheel_advance_batch(wheel, 1, NULL, 0, &count), 0);
	ck_assert_uint_eq(count, 0);
	OK(ww_wheel_schedule(wheel, &timer, 5));
	ck_assert_int_eq(ww_wheel_advance_batch(wheel, 6, NULL, 0, &count), 1);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(ww_wheel_advance_batch(wheel, 6, &one, 0, &count), 1);
	ck_assert_int_eq(ww_timer_pending(&timer), 1);
	ck_assert_int_eq(ww_wheel_advance_batch(wheel, 6, &one, 1, &count), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_ptr_eq(one.timer, &timer);
	unmake(wheel);
}
END_TEST

START_TEST(a_small_batch_gets_everything_in_the_end)
{
	struct ww_wheel *wheel = make_full(100000);
	struct ww_expiry batch[7];
	size_t seen = 0;
	uint64_t last = 0;
	int more = 1;

	while (more == 1) {
		size_t count = 4711;

		more = ww_wheel_advance_batch(wheel, 100000, batch, 7, &count);
		ck_assert_uint_eq(count, N - seen < 7 ? N - seen : 7);
		for (size_t i = 0; i < count; i++) {
			ck_assert_uint_eq(batch[i].deadline, deadlines[batch[i].timer - timers]);
			ck_assert_uint_ge(batch[i].deadline, last);
			last = batch[i].deadline;
		}
		seen += count;
	}
	ck_assert_int_eq(more, 0);
	ck_assert_uint_eq(seen, N);
	unmake(wheel);
}
END_TEST

START_TEST(the_rest_expires_in_order_at_a_later_time_too)
{
	struct ww_wheel *wheel = make_full(10000);
	uint64_t now = 0;

	while (recorded < N) {
		now += 97;
		ck_assert_int_ge(ww_wheel_advance(wheel, now, 3, NULL), 0);
		assert_sound(wheel);
		ck_assert_uint_lt(now, 1000000);
	}
	assert_all_recorded_once_in_order();
	unmake(wheel);
}
END_TEST

START_TEST(timers_left_by_a_budget_are_due_and_have_no_time_left)
{
	struct ww_wheel *wheel = make_full(60);
	uint64_t when = 0;

	ck_assert_int_eq(ww_wheel_advance(wheel, 100, 1, NULL), 1);
	ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
	ck_assert_uint_eq(when, 100);
	for (size_t i = 0; i < N; i++) {
		uint64_t left = 4711;

		if (ww_wheel_time_left(wheel, &timers[i], &left) == 1) {
			ck_assert_uint_eq(left, 0);
		}
	}
	ck_assert_uint_eq(go(wheel, 100), N - 1);
	unmake(wheel);
}
END_TEST

START_TEST(time_cannot_go_backwards_after_a_budget_ended_an_advance)
{
	struct ww_wheel *wheel = make_full(60);

	ck_assert_int_eq(ww_wheel_advance(wheel, 100, 1, NULL), 1);
	ck_assert_int_eq(ww_wheel_advance(wheel, 99, WW_UNLIMITED, NULL), WW_EBACKWARDS);
	ck_assert_uint_eq(recorded, 1);
	ck_assert_uint_eq(go(wheel, 100), N - 1);
	unmake(wheel);
}
END_TEST

START_TEST(timers_scheduled_between_two_calls_take_their_place_among_the_rest)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer first = WW_TIMER_INIT(note);
	struct ww_timer second = WW_TIMER_INIT(note);
	struct ww_timer last = WW_TIMER_INIT(note);
	struct ww_timer between = WW_TIMER_INIT(note);
	struct ww_timer passed = WW_TIMER_INIT(note);
	struct ww_timer later = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &first, 10));
	OK(ww_wheel_schedule(wheel, &second, 20));
	OK(ww_wheel_schedule(wheel, &last, 4000));
	ck_assert_int_eq(ww_wheel_advance(wheel, 5000, 1, NULL), 1);
	ck_assert_ptr_eq(record[0].timer, &first);
	OK(ww_wheel_schedule_at(wheel, &between, 30)); /* not reached yet: after the second, before the last */
	OK(ww_wheel_schedule_at(wheel, &passed, 5));   /* reached: somewhere in the next call */
	OK(ww_wheel_schedule(wheel, &later, 1));
	assert_sound(wheel);
	ck_assert_uint_eq(go(wheel, 5000), 4);
	ck_assert_uint_eq(times_recorded(&second), 1);
	ck_assert_uint_eq(times_recorded(&between), 1);
	ck_assert_uint_eq(times_recorded(&last), 1);
	ck_assert_uint_eq(times_recorded(&passed), 1);
	ck_assert_uint_eq(times_recorded(&later), 0);
	/* Apart from the late one, expiries are in order of tick. */
	for (size_t i = 1, k = 0; i < recorded; i++) {
		struct ww_timer *const order[] = {&second, &between, &last};

		if (record[i].timer != &passed) {
			ck_assert_ptr_eq(record[i].timer, order[k]);
			k++;
		}
	}
	ck_assert_uint_eq(go(wheel, 5001), 1);
	unmake(wheel);
}
END_TEST

/* A at 10 expires and ends the budget. What is scheduled after it and before the next, out of order, is put in order. */
static void assert_order_between(uint64_t next, int batched)
{
	static struct ww_timer a, b, c, d, moved;
	struct ww_timer *const order[] = {&d, &c, &b};
	struct ww_wheel *wheel = make(NULL);
	struct ww_expiry batch[4];
	size_t count = 0;

	OK(ww_timer_init(&a, note));
	OK(ww_timer_init(&b, note));
	OK(ww_timer_init(&c, note));
	OK(ww_timer_init(&d, note));
	OK(ww_timer_init(&moved, note));
	OK(ww_wheel_schedule(wheel, &a, 10));
	OK(ww_wheel_schedule(wheel, &b, next));
	/* Its slot comes round before the next expiry, and demotes it only. */
	OK(ww_wheel_schedule(wheel, &moved, 11));
	ck_assert_int_eq(ww_wheel_reschedule(wheel, &moved, next + 100), 1);
	if (batched) {
		ck_assert_int_eq(ww_wheel_advance_batch(wheel, next + 10, batch, 1, &count), 1);
		ck_assert_uint_eq(count, 1);
		ck_assert_ptr_eq(batch[0].timer, &a);
		ck_assert_int_eq(ww_wheel_advance_batch(wheel, next + 10, NULL, 0, &count), 1);
	} else {
		ck_assert_int_eq(ww_wheel_advance(wheel, next + 10, 1, NULL), 1);
		ck_assert_int_eq(ww_wheel_advance(wheel, next + 10, 0, NULL), 1);
	}
	OK(ww_wheel_schedule_at(wheel, &c, 15));
	OK(ww_wheel_schedule_at(wheel, &d, 12));
	assert_sound(wheel);
	if (batched) {
		OK(ww_wheel_advance_batch(wheel, next + 10, batch, 4, &count));
		ck_assert_uint_eq(count, 3);
	} else {
		recorded = 0;
		ck_assert_uint_eq(go(wheel, next + 10), 3);
	}
	for (size_t i = 0; i < 3; i++) {
		ck_assert_ptr_eq(batched ? batch[i].timer : record[i].timer, order[i]);
	}
	ck_assert_uint_eq(go(wheel, next + 100), 1);
	unmake(wheel);
}

START_TEST(timers_scheduled_before_the_next_that_is_due_expire_in_order_of_tick)
{
	static const uint64_t next[] = {16, 20, 59, 60, 61, 3600, 3601, DAY, WEEK, 2 * WEEK + 5, 49 * WEEK, 300 * WEEK};

	for (size_t i = 0; i < sizeof next / sizeof next[0]; i++) {
		assert_order_between(next[i], 0);
		assert_order_between(next[i], 1);
	}
}
END_TEST

START_TEST(a_used_up_budget_does_not_hold_back_what_only_has_to_be_demoted)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer first = WW_TIMER_INIT(note), later = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &first, 10));
	OK(ww_wheel_schedule(wheel, &later, 3 * WEEK + DAY + 7));
	ck_assert_int_eq(ww_wheel_advance(wheel, 3 * WEEK + DAY, 1, NULL), 0);
	assert_sound(wheel);
	ck_assert_uint_eq(go(wheel, 3 * WEEK + DAY + 7), 1);
	unmake(wheel);
}
END_TEST

START_TEST(late_timers_expire_in_the_next_call_even_with_others_left_by_a_budget)
{
	struct ww_wheel *wheel = make_from(5);
	struct ww_timer late[4] = {WW_TIMER_INIT(note), WW_TIMER_INIT(note), WW_TIMER_INIT(note), WW_TIMER_INIT(note)};

	for (size_t i = 0; i < 3; i++) {
		OK(ww_wheel_schedule(wheel, &late[i], 0));
	}
	ck_assert_int_eq(ww_wheel_advance(wheel, 5, 1, NULL), 1);
	OK(ww_wheel_schedule_at(wheel, &late[3], 2));
	assert_sound(wheel);
	ck_assert_uint_eq(go(wheel, 5), 3);
	ck_assert_uint_eq(times_recorded(&late[3]), 1);
	ck_assert_uint_eq(go(wheel, 5), 0);
	unmake(wheel);
}
END_TEST

START_TEST(late_timers_of_three_interrupted_calls_all_expire_in_the_next)
{
	struct ww_wheel *wheel = make_from(100);
	struct ww_timer late[15];

	for (size_t i = 0; i < 15; i++) {
		OK(ww_timer_init(&late[i], note));
		OK(ww_wheel_schedule_at(wheel, &late[i], i));
		if (i % 5 == 4) {
			ck_assert_int_eq(ww_wheel_advance(wheel, 100, 1, NULL), 1);
			assert_sound(wheel);
		}
	}
	ck_assert_uint_eq(recorded, 3);
	ck_assert_int_eq(ww_wheel_advance(wheel, 100, WW_UNLIMITED, NULL), 0);
	ck_assert_uint_eq(recorded, 15);
	for (size_t i = 0; i < 15; i++) {
		ck_assert_uint_eq(times_recorded(&late[i]), 1);
	}
	unmake(wheel);
}
END_TEST

START_TEST(timers_moved_later_cost_no_budget)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer moved[10];
	struct ww_timer timer = WW_TIMER_INIT(note);
	size_t count = 0;

	for (size_t i = 0; i < 10; i++) {
		OK(ww_timer_init(&moved[i], note));
		OK(ww_wheel_schedule(wheel, &moved[i], 1 + i));
		ck_assert_int_eq(ww_wheel_reschedule(wheel, &moved[i], 500), 1);
	}
	OK(ww_wheel_schedule(wheel, &timer, 7));
	ck_assert_int_eq(ww_wheel_advance(wheel, 5, 0, &count), 0);
	ck_assert_int_eq(ww_wheel_advance(wheel, 20, 1, &count), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_ptr_eq(record[0].timer, &timer);
	ck_assert_uint_eq(go(wheel, 500), 10);
	unmake(wheel);
}
END_TEST

START_TEST(timers_left_by_a_budget_can_be_moved_later)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer pair[2] = {WW_TIMER_INIT(note), WW_TIMER_INIT(note)};
	struct ww_timer *left;

	OK(ww_wheel_schedule(wheel, &pair[0], 10));
	OK(ww_wheel_schedule(wheel, &pair[1], 10));
	ck_assert_int_eq(ww_wheel_advance(wheel, 50, 1, NULL), 1);
	left = ww_timer_pending(&pair[0]) == 1 ? &pair[0] : &pair[1];
	ck_assert_int_eq(ww_wheel_reschedule(wheel, left, 100), 1);
	assert_sound(wheel);
	ck_assert_int_eq(ww_wheel_advance(wheel, 50, 1, NULL), 0);
	ck_assert_uint_eq(go(wheel, 149), 0);
	ck_assert_uint_eq(go(wheel, 150), 1);
	unmake(wheel);
}
END_TEST

static size_t rearmed;

static void rearm_now(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	if (rearmed++ < 3) {
		OK(ww_wheel_schedule(wheel, timer, 0));
	}
}

START_TEST(timers_that_wait_for_the_next_call_are_not_left_by_the_budget)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(rearm_now);

	rearmed = 0;
	OK(ww_wheel_schedule(wheel, &timer, 5));
	ck_assert_int_eq(ww_wheel_advance(wheel, 5, 1, NULL), 0);
	ck_assert_int_eq(ww_timer_pending(&timer), 1);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(ww_wheel_advance(wheel, 5, 1, NULL), 0);
	}
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	ck_assert_uint_eq(recorded, 4);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/budget", a_budget_is_kept_and_nothing_is_lost_or_out_of_order,
    a_budget_of_0_expires_nothing_and_says_whether_something_is_due,
    a_batch_of_capacity_0_may_be_null_and_expires_nothing, a_small_batch_gets_everything_in_the_end,
    the_rest_expires_in_order_at_a_later_time_too, timers_left_by_a_budget_are_due_and_have_no_time_left,
    time_cannot_go_backwards_after_a_budget_ended_an_advance,
    timers_scheduled_between_two_calls_take_their_place_among_the_rest,
    timers_scheduled_before_the_next_that_is_due_expire_in_order_of_tick,
    a_used_up_budget_does_not_hold_back_what_only_has_to_be_demoted,
    late_timers_expire_in_the_next_call_even_with_others_left_by_a_budget,
    late_timers_of_three_interrupted_calls_all_expire_in_the_next, timers_moved_later_cost_no_budget,
    timers_left_by_a_budget_can_be_moved_later, timers_that_wait_for_the_next_call_are_not_left_by_the_budget)
