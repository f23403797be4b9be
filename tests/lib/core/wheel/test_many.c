/* Scheduling and cancelling many timers in a call. The model test compares both with the oracle. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"
#include "tests/support/seed.h"

/* More than a call prefetches ahead. */
#define N 100

static struct ww_timer timers[N];
static struct ww_timer *all[N];
static uint64_t delays[N];

static void set_up(void)
{
	uint64_t seed = 5;

	for (size_t i = 0; i < N; i++) {
		OK(ww_timer_init(&timers[i], note));
		all[i] = &timers[i];
		delays[i] = seed_below(&seed, 3 * WEEK);
	}
}

static size_t drain(struct ww_wheel *wheel)
{
	static struct ww_expiry batch[N];
	size_t count = 0;

	OK(ww_wheel_drain(wheel, batch, N, &count));
	return count;
}

START_TEST(many_are_scheduled_as_one_by_one)
{
	struct ww_wheel *wheel = make_from(77);
	size_t count = 4711;

	set_up();
	OK(ww_wheel_schedule_many(wheel, all, delays, N, &count));
	ck_assert_uint_eq(count, N);
	assert_sound(wheel);
	for (size_t i = 0; i < N; i++) {
		uint64_t deadline = 0;

		ck_assert_int_eq(ww_timer_deadline(&timers[i], &deadline), 1);
		ck_assert_uint_eq(deadline, 77 + delays[i]);
	}
	/* Pending ones are rescheduled, and the last of several delays of a timer counts. */
	for (size_t i = 0; i < N; i++) {
		all[i] = &timers[0];
		delays[i] = N - i;
	}
	OK(ww_wheel_schedule_many(wheel, all, delays, N, NULL));
	ck_assert_uint_eq(go(wheel, 78), 1);
	ck_assert_uint_eq(go(wheel, 77 + 3 * WEEK), N - 1);
	unmake(wheel);
}
END_TEST

START_TEST(scheduling_stops_at_the_first_that_is_refused)
{
	struct placed other = place(NULL);
	struct ww_wheel *wheel = make_from(1);

	for (int kind = 0; kind < 3; kind++) {
		size_t count = 4711;
		int expected = kind == 0 ? WW_EINVAL : kind == 1 ? WW_EOVERFLOW : WW_ECORRUPT;

		set_up();
		if (kind == 0) {
			all[60] = NULL;
		} else if (kind == 1) {
			delays[60] = WW_TIME_MAX;
		} else {
			OK(ww_wheel_schedule(other.wheel, &timers[60], 7));
			freeze(&other);
		}
		ck_assert_int_eq(ww_wheel_schedule_many(wheel, all, delays, N, &count), expected);
		ck_assert_uint_eq(count, 60);
		for (size_t i = 0; i < N; i++) {
			ck_assert_int_eq(ww_timer_pending(&timers[i]), i < 60 || (i == 60 && kind == 2));
		}
		if (kind == 2) {
			ck_assert(is_frozen(&other));
			ck_assert_int_eq(ww_wheel_cancel(other.wheel, &timers[60]), 1);
		}
		ck_assert_uint_eq(drain(wheel), 60);
		assert_sound(wheel);
	}
	unmake(wheel);
	unplace(&other);
}
END_TEST

START_TEST(many_are_cancelled_and_idle_ones_passed_over)
{
	struct ww_wheel *wheel = make(NULL);
	size_t count = 4711;

	set_up();
	OK(ww_wheel_schedule_many(wheel, all, delays, N, NULL));
	for (size_t i = 0; i < N; i += 3) {
		ck_assert_int_eq(ww_wheel_cancel(wheel, &timers[i]), 1);
	}
	for (size_t i = 0; i < N / 2; i++) {
		all[i] = &timers[N - 1 - i];
	}
	/* Each of the upper half comes twice, and the lower half not at all. */
	OK(ww_wheel_cancel_many(wheel, all, N, &count));
	ck_assert_uint_eq(count, N / 2 - (N / 2 + 1) / 3);
	assert_sound(wheel);
	for (size_t i = 0; i < N; i++) {
		ck_assert_int_eq(ww_timer_pending(&timers[i]), i < N / 2 && i % 3 != 0);
	}
	OK(ww_wheel_cancel_many(wheel, all, N, &count));
	ck_assert_uint_eq(count, 0);
	unmake(wheel);
}
END_TEST

START_TEST(cancelling_passes_over_those_that_are_refused)
{
	struct placed other = place(NULL);
	struct ww_wheel *wheel = make(NULL);
	size_t count = 4711;

	set_up();
	OK(ww_wheel_schedule(other.wheel, &timers[20], 7));
	all[20] = NULL;
	OK(ww_wheel_schedule_many(wheel, all, delays, 20, NULL));
	OK(ww_wheel_schedule_many(wheel, all + 21, delays, N - 21, NULL));
	all[0] = &timers[20];
	freeze(&other);
	ck_assert_int_eq(ww_wheel_cancel_many(wheel, all, N, &count), WW_ECORRUPT);
	ck_assert_uint_eq(count, N - 2);
	ck_assert(is_frozen(&other));
	ck_assert_int_eq(ww_timer_pending(&timers[0]), 1);
	ck_assert_int_eq(ww_wheel_cancel_many(wheel, all + 1, N - 1, &count), WW_EINVAL);
	ck_assert_uint_eq(count, 0);
	assert_sound(wheel);
	ck_assert_int_eq(ww_wheel_cancel(wheel, &timers[0]), 1);
	ck_assert_int_eq(ww_wheel_cancel(other.wheel, &timers[20]), 1);
	unmake(wheel);
	unplace(&other);
}
END_TEST

START_TEST(no_timers_at_all_are_fine_and_null_is_refused)
{
	struct placed scene = place(NULL);
	size_t count = 4711;

	set_up();
	freeze(&scene);
	OK(ww_wheel_schedule_many(scene.wheel, NULL, NULL, 0, &count));
	ck_assert_uint_eq(count, 0);
	OK(ww_wheel_cancel_many(scene.wheel, NULL, 0, NULL));
	ck_assert_int_eq(ww_wheel_schedule_many(NULL, all, delays, N, &count), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_many(scene.wheel, NULL, delays, N, &count), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_schedule_many(scene.wheel, all, NULL, N, NULL), WW_EINVAL);
	count = 4711;
	ck_assert_int_eq(ww_wheel_cancel_many(NULL, all, N, &count), WW_EINVAL);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(ww_wheel_cancel_many(scene.wheel, NULL, N, &count), WW_EINVAL);
	ck_assert(is_frozen(&scene));
	unplace(&scene);
}
END_TEST

TEST_MAIN("wheel/many", many_are_scheduled_as_one_by_one, scheduling_stops_at_the_first_that_is_refused,
    many_are_cancelled_and_idle_ones_passed_over, cancelling_passes_over_those_that_are_refused,
    no_timers_at_all_are_fine_and_null_is_refused)
