/* Cancelling: harmless on an idle timer, final on a pending one, whatever its state. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"

START_TEST(cancelling_an_idle_timer_is_harmless_and_answers_0)
{
	struct placed placed = place(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_timer zero;

	memset(&zero, 0, sizeof zero);
	freeze(&placed);
	ck_assert_int_eq(ww_wheel_cancel(placed.wheel, &timer), 0);
	ck_assert_int_eq(ww_wheel_cancel(placed.wheel, &timer), 0);
	ck_assert_int_eq(ww_wheel_cancel(placed.wheel, &zero), 0);
	ck_assert(is_frozen(&placed));
	OK(ww_wheel_schedule(placed.wheel, &timer, 5));
	go(placed.wheel, 5);
	ck_assert_int_eq(ww_wheel_cancel(placed.wheel, &timer), 0);
	ck_assert_uint_eq(stats_of(placed.wheel).cancelled, 0);
	unplace(&placed);
}
END_TEST

START_TEST(cancelling_a_pending_timer_answers_1_and_it_does_not_expire)
{
	struct ww_wheel *wheel = make_from(30);

	for (size_t i = 0; i < VALID_TIMES; i++) {
		struct ww_timer timer = WW_TIMER_INIT(note);

		if (valid_times[i].time > WW_TIME_MAX - 30) {
			continue;
		}
		OK(ww_wheel_schedule(wheel, &timer, valid_times[i].time));
		ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
		ck_assert_int_eq(ww_timer_pending(&timer), 0);
		ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 0);
		assert_sound(wheel);
		ck_assert_uint_eq(pending_in(wheel), 0);
		/* Its memory may be reused. */
		memset(&timer, 0xA5, sizeof timer);
	}
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX), 0);
	unmake(wheel);
}
END_TEST

START_TEST(the_memory_of_a_cancelled_timer_can_be_used_again_at_once)
{
	/* In every slot, one of three neighbours goes: the first, the middle or the last. Its bytes are overwritten. */
	static const uint64_t delays[] = {0, 1, 59, 100, 7100, 100000, WEEK, 2 * WEEK};

	for (size_t d = 0; d < sizeof delays / sizeof delays[0]; d++) {
		for (size_t gone = 0; gone < 20; gone++) {
			struct ww_wheel *wheel = make(NULL);
			struct ww_timer timers[20];

			for (size_t i = 0; i < 20; i++) {
				OK(ww_timer_init(&timers[i], note));
				OK(ww_wheel_schedule(wheel, &timers[i], delays[d]));
			}
			ck_assert_int_eq(ww_wheel_cancel(wheel, &timers[gone]), 1);
			memset(&timers[gone], 0xA5, sizeof timers[gone]);
			assert_sound(wheel);
			ck_assert_uint_eq(go(wheel, delays[d]), 19);
			for (size_t i = 0; i < 20; i++) {
				ck_assert_uint_eq(times_recorded(&timers[i]), i != gone);
			}
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(a_timer_can_be_cancelled_at_every_stage_of_its_life)
{
	/* Before each demotion, after it, and in the tick before it expires. */
	static const uint64_t when[] = {0, 1, 3599, 3600, 3601, 7079, 7080, 7081, 7099};

	for (size_t i = 0; i < sizeof when / sizeof when[0]; i++) {
		struct ww_wheel *wheel = make(NULL);
		struct ww_timer timer = WW_TIMER_INIT(note);
		struct ww_timer other = WW_TIMER_INIT(note);

		OK(ww_wheel_schedule(wheel, &timer, 7100));
		OK(ww_wheel_schedule(wheel, &other, 7100));
		go(wheel, when[i]);
		ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
		assert_sound(wheel);
		ck_assert_uint_eq(pending_in(wheel), 1);
		ck_assert_uint_eq(go(wheel, 7100), 1);
		ck_assert_ptr_eq(record[0].timer, &other);
		unmake(wheel);
	}
}
END_TEST

START_TEST(a_timer_moved_later_can_be_cancelled_in_its_old_slot_and_in_its_new_one)
{
	static const uint64_t when[] = {0, 10, 99, 100, 101, 120, 5000, 9999};

	for (size_t i = 0; i < sizeof when / sizeof when[0]; i++) {
		struct ww_wheel *wheel = make(NULL);
		struct ww_timer timer = WW_TIMER_INIT(note);

		OK(ww_wheel_schedule(wheel, &timer, 100));
		ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, 10000), 1);
		go(wheel, when[i]);
		ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
		memset(&timer, 0xA5, sizeof timer);
		assert_sound(wheel);
		ck_assert_uint_eq(go(wheel, 20000), 0);
		unmake(wheel);
	}
}
END_TEST

START_TEST(a_timer_left_by_a_budget_can_be_cancelled)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timers[10];
	size_t count = 0;
	size_t cancelled = 0;

	for (size_t i = 0; i < 10; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(wheel, &timers[i], 5));
	}
	ck_assert_int_eq(ww_wheel_advance(wheel, 5, 4, &count), 1);
	ck_assert_uint_eq(count, 4);
	for (size_t i = 0; i < 10; i++) {
		if (ww_timer_pending(&timers[i]) == 1) {
			ck_assert_int_eq(ww_wheel_cancel(wheel, &timers[i]), 1);
			memset(&timers[i], 0xA5, sizeof timers[i]);
			assert_sound(wheel);
			cancelled++;
		}
	}
	ck_assert_uint_eq(cancelled, 6);
	ck_assert_uint_eq(go(wheel, 100), 0);
	unmake(wheel);
}
END_TEST

START_TEST(a_cancelled_periodic_timer_stops)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule_every(wheel, &timer, 10, 10));
	ck_assert_uint_eq(go(wheel, 10), 1);
	ck_assert_uint_eq(go(wheel, 20), 1);
	ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
	ck_assert_uint_eq(go(wheel, 1000), 0);
	ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 0);
	unmake(wheel);
}
END_TEST

START_TEST(a_cancelled_timer_can_be_scheduled_again)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 10));
	ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
	OK(ww_wheel_schedule(wheel, &timer, 20));
	ck_assert_uint_eq(go(wheel, 19), 0);
	ck_assert_uint_eq(go(wheel, 20), 1);
	unmake(wheel);
}
END_TEST

/* ---- By another callback of the same tick --------------------------------------------------------------------- */

#define CROWD 40

static struct ww_timer crowd[CROWD];
static size_t survivors;

/* The first timer of the crowd that expires cancels all others. */
static void cancel_the_others(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	for (size_t i = 0; i < CROWD; i++) {
		ck_assert_int_eq(ww_wheel_cancel(wheel, &crowd[i]), &crowd[i] != timer && recorded == 1);
		if (&crowd[i] != timer) {
			memset(&crowd[i], 0, sizeof crowd[i]);
		}
		assert_sound(wheel);
	}
}

START_TEST(a_timer_cancelled_by_another_callback_of_the_same_tick_does_not_expire)
{
	static const uint64_t delays[] = {0, 1, 60, 7100, 2 * WEEK};

	for (size_t d = 0; d < sizeof delays / sizeof delays[0]; d++) {
		struct ww_wheel *wheel = make(NULL);

		for (size_t i = 0; i < CROWD; i++) {
			OK(ww_timer_init(&crowd[i], cancel_the_others));
			OK(ww_wheel_schedule(wheel, &crowd[i], delays[d]));
		}
		ck_assert_uint_eq(go(wheel, delays[d]), 1);
		ck_assert_uint_eq(recorded, 1);
		ck_assert_uint_eq(stats_of(wheel).cancelled, CROWD - 1);
		ck_assert_uint_eq(go(wheel, delays[d] + 10), 0);
		unmake(wheel);
	}
}
END_TEST

/* Each timer that expires cancels the next one that is still pending. */
static void cancel_one(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	(void)timer;
	(void)missed;
	survivors++;
	for (size_t i = 0; i < CROWD; i++) {
		if (ww_wheel_cancel(wheel, &crowd[i]) == 1) {
			memset(&crowd[i], 0xA5, sizeof crowd[i]);
			/* This loop must not take an overwritten timer for a pending one. */
			OK(ww_timer_init(&crowd[i], cancel_one));
			return;
		}
	}
}

START_TEST(each_callback_can_cancel_another_timer_of_its_tick)
{
	struct ww_wheel *wheel = make(NULL);

	survivors = 0;
	for (size_t i = 0; i < CROWD; i++) {
		OK(ww_timer_init(&crowd[i], cancel_one));
		OK(ww_wheel_schedule(wheel, &crowd[i], 77));
	}
	ck_assert_uint_eq(go(wheel, 77), CROWD / 2);
	ck_assert_uint_eq(survivors, CROWD / 2);
	ck_assert_uint_eq(stats_of(wheel).cancelled, CROWD / 2);
	ck_assert_uint_eq(pending_in(wheel), 0);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/cancel", cancelling_an_idle_timer_is_harmless_and_answers_0,
    cancelling_a_pending_timer_answers_1_and_it_does_not_expire,
    the_memory_of_a_cancelled_timer_can_be_used_again_at_once, a_timer_can_be_cancelled_at_every_stage_of_its_life,
    a_timer_moved_later_can_be_cancelled_in_its_old_slot_and_in_its_new_one, a_timer_left_by_a_budget_can_be_cancelled,
    a_cancelled_periodic_timer_stops, a_cancelled_timer_can_be_scheduled_again,
    a_timer_cancelled_by_another_callback_of_the_same_tick_does_not_expire,
    each_callback_can_cancel_another_timer_of_its_tick)
