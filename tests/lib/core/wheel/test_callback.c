/*
 * What a callback may do: schedule, cancel and reschedule any timer, drain the wheel, free its own object. And what it
 * may not do.
 */
/* tier: check, every-build */

#include "tests/lib/core/wheel/fixture.h"

#define CROWD 60

static struct ww_timer crowd[CROWD];
static struct ww_timer other;
static struct ww_timer witness;
static size_t rounds;

/* ---- A timer that schedules itself ---------------------------------------------------------------------------- */

static void again_now(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	ck_assert_int_eq(ww_timer_pending(timer), 0);
	OK(ww_wheel_schedule(wheel, timer, 0));
	ck_assert_int_eq(ww_timer_pending(timer), 1);
	assert_sound(wheel);
}

START_TEST(a_callback_that_schedules_itself_with_no_delay_runs_once_a_call)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(again_now);

	OK(ww_wheel_schedule(wheel, &timer, 5));
	for (size_t i = 1; i <= 10; i++) {
		ck_assert_uint_eq(go(wheel, 5), 1);
		ck_assert_uint_eq(recorded, i);
	}
	ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
	unmake(wheel);
}
END_TEST

/*
 * A delay of 0 counts from the end of the jump, which an earlier tick's callback has not reached yet: the timer expires
 * in order, in this call.
 */
START_TEST(a_callback_that_schedules_itself_with_no_delay_in_a_jump_runs_once_more_at_its_end)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(again_now);
	struct ww_timer between = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 5));
	OK(ww_wheel_schedule(wheel, &between, 50));
	ck_assert_uint_eq(go(wheel, 100), 3);
	ck_assert_ptr_eq(record[1].timer, &between);
	ck_assert_ptr_eq(record[2].timer, &timer);
	ck_assert_uint_eq(go(wheel, 100), 1);
	unmake(wheel);
}
END_TEST

static void again_in_the_past(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	OK(ww_wheel_schedule_at(wheel, timer, 1));
}

START_TEST(a_callback_that_schedules_itself_in_the_past_runs_once_a_call)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(again_in_the_past);

	OK(ww_wheel_schedule(wheel, &timer, 5));
	for (size_t i = 1; i <= 10; i++) {
		ck_assert_uint_eq(go(wheel, 10), 1);
	}
	unmake(wheel);
}
END_TEST

static void again_in_7(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	OK(ww_wheel_schedule(wheel, timer, 7));
}

START_TEST(in_a_callback_time_is_that_of_the_call_and_delays_count_from_there)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(again_in_7);
	uint64_t deadline = 0;

	OK(ww_wheel_schedule(wheel, &timer, 5));
	ck_assert_uint_eq(go(wheel, 1000), 1);
	ck_assert_uint_eq(record[0].now, 1000);
	ck_assert_int_eq(ww_timer_deadline(&timer, &deadline), 1);
	ck_assert_uint_eq(deadline, 1007);
	ck_assert_uint_eq(go(wheel, 1006), 0);
	ck_assert_uint_eq(go(wheel, 1007), 1);
	unmake(wheel);
}
END_TEST

/* ---- Scheduling others into the running jump ------------------------------------------------------------------ */

static void schedule_other_at_50(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	OK(ww_wheel_schedule_at(wheel, &other, 50));
	assert_sound(wheel);
}

START_TEST(a_timer_scheduled_into_the_running_jump_expires_in_it_in_order)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer early = WW_TIMER_INIT(schedule_other_at_50);
	struct ww_timer before = WW_TIMER_INIT(note);
	struct ww_timer after = WW_TIMER_INIT(note);

	OK(ww_timer_init(&other, note));
	OK(ww_wheel_schedule(wheel, &early, 10));
	OK(ww_wheel_schedule(wheel, &before, 49));
	OK(ww_wheel_schedule(wheel, &after, 51));
	ck_assert_uint_eq(go(wheel, 100), 4);
	ck_assert_ptr_eq(record[0].timer, &early);
	ck_assert_ptr_eq(record[1].timer, &before);
	ck_assert_ptr_eq(record[2].timer, &other);
	ck_assert_ptr_eq(record[3].timer, &after);
	unmake(wheel);
}
END_TEST

START_TEST(a_timer_scheduled_at_or_before_the_callbacks_tick_waits_for_the_next_call)
{
	/* The callback runs in tick 50 or later: 50 is the present or the past. */
	static const uint64_t ticks[] = {50, 51, 100};

	for (size_t i = 0; i < 3; i++) {
		struct ww_wheel *wheel = make(NULL);
		struct ww_timer timer = WW_TIMER_INIT(schedule_other_at_50);
		uint64_t when = 0;

		OK(ww_timer_init(&other, note));
		OK(ww_wheel_schedule(wheel, &timer, ticks[i]));
		ck_assert_uint_eq(go(wheel, 200), 1);
		ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
		ck_assert_uint_eq(when, 200);
		ck_assert_uint_eq(go(wheel, 200), 1);
		ck_assert_ptr_eq(record[1].timer, &other);
		unmake(wheel);
	}
}
END_TEST

/* ---- Moving other timers ---------------------------------------------------------------------------------------- */

static void move_the_others_later(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	for (size_t i = 0; i < CROWD; i++) {
		if (&crowd[i] != timer && recorded == 1) {
			ck_assert_int_eq(ww_wheel_reschedule(wheel, &crowd[i], 1 + i * 100), 1);
		}
	}
	assert_sound(wheel);
}

START_TEST(a_callback_can_move_others_of_its_tick_later)
{
	struct ww_wheel *wheel = make(NULL);
	size_t first;

	for (size_t i = 0; i < CROWD; i++) {
		OK(ww_timer_init(&crowd[i], move_the_others_later));
		OK(ww_wheel_schedule(wheel, &crowd[i], 7100));
	}
	ck_assert_uint_eq(go(wheel, 7100), 1);
	first = (size_t)(record[0].timer - crowd);
	for (size_t i = 0; i < CROWD; i++) {
		ck_assert_uint_eq(go(wheel, 7100 + i * 100), 0);
		ck_assert_uint_eq(go(wheel, 7100 + 1 + i * 100), i != first);
	}
	ck_assert_uint_eq(pending_in(wheel), 0);
	unmake(wheel);
}
END_TEST

static void pull_other_to_20(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &other, 20), 1);
	assert_sound(wheel);
}

START_TEST(a_callback_can_pull_a_far_timer_into_the_running_jump)
{
	static const uint64_t far[] = {21, 99, 101, 7100, 100000, 8 * DAY};

	for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
		struct ww_wheel *wheel = make(NULL);
		struct ww_timer timer = WW_TIMER_INIT(pull_other_to_20);
		struct ww_timer at_30 = WW_TIMER_INIT(note);

		OK(ww_timer_init(&other, note));
		OK(ww_wheel_schedule(wheel, &timer, 10));
		OK(ww_wheel_schedule(wheel, &at_30, 30));
		OK(ww_wheel_schedule(wheel, &other, far[i]));
		ck_assert_uint_eq(go(wheel, 100), 3);
		ck_assert_ptr_eq(record[1].timer, &other);
		ck_assert_ptr_eq(record[2].timer, &at_30);
		unmake(wheel);
	}
}
END_TEST

static void push_other_from_40_to_60(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &other, 60), 1);
}

START_TEST(a_callback_can_push_a_timer_later_within_the_running_jump)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(push_other_from_40_to_60);

	OK(ww_timer_init(&other, note));
	OK(ww_timer_init(&witness, note));
	OK(ww_wheel_schedule(wheel, &timer, 10));
	OK(ww_wheel_schedule(wheel, &other, 40));
	OK(ww_wheel_schedule(wheel, &witness, 50));
	ck_assert_uint_eq(go(wheel, 100), 3);
	ck_assert_ptr_eq(record[1].timer, &witness);
	ck_assert_ptr_eq(record[2].timer, &other);
	unmake(wheel);
}
END_TEST

/* Schedule the other timer for the next call, then move it into this one. */
static void schedule_late_then_move_on(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	OK(ww_wheel_schedule_at(wheel, &other, 3));
	assert_sound(wheel);
	ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &other, 300), 1);
	assert_sound(wheel);
}

START_TEST(a_timer_that_waited_for_the_next_call_and_was_moved_beyond_this_one_expires_at_its_deadline)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(schedule_late_then_move_on);

	OK(ww_timer_init(&other, note));
	OK(ww_wheel_schedule(wheel, &timer, 10));
	ck_assert_uint_eq(go(wheel, 100), 1);
	ck_assert_uint_eq(go(wheel, 299), 0);
	ck_assert_uint_eq(go(wheel, 300), 1);
	unmake(wheel);
}
END_TEST

static uint64_t moved_to;

static void schedule_late_then_move_on_by_time(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	OK(ww_wheel_schedule_at(wheel, &other, 3));
	ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &other, moved_to), 1);
}

START_TEST(a_timer_that_waited_for_the_next_call_and_was_moved_into_this_one_expires_in_order)
{
	/* Move it to within the running jump, and to its end. */
	static const uint64_t deadlines[] = {50, 100};

	for (size_t i = 0; i < 2; i++) {
		struct ww_wheel *wheel = make(NULL);
		struct ww_timer timer = WW_TIMER_INIT(schedule_late_then_move_on_by_time);
		struct ww_timer at_49 = WW_TIMER_INIT(note);
		struct ww_timer at_51 = WW_TIMER_INIT(note);

		moved_to = deadlines[i];
		OK(ww_timer_init(&other, note));
		OK(ww_wheel_schedule(wheel, &timer, 10));
		OK(ww_wheel_schedule(wheel, &at_49, 49));
		OK(ww_wheel_schedule(wheel, &at_51, 51));
		ck_assert_uint_eq(go(wheel, 100), 4);
		ck_assert_ptr_eq(record[i == 0 ? 2 : 3].timer, &other);
		unmake(wheel);
	}
}
END_TEST

/* ---- Freeing ---------------------------------------------------------------------------------------------------- */

struct object {
	struct ww_timer timer;
	struct object *victim;
};

static void free_own_object(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	struct object *object = WW_TIMER_OWNER(timer, struct object, timer);

	(void)wheel;
	(void)missed;
	rounds++;
	memset(object, 0xA5, sizeof *object);
	free(object);
}

START_TEST(a_callback_can_free_its_own_object)
{
	struct ww_wheel *wheel = make(NULL);

	rounds = 0;
	for (uint64_t i = 0; i < 1000; i++) {
		struct object *object = calloc(1, sizeof *object);

		ck_assert_ptr_nonnull(object);
		OK(ww_timer_init(&object->timer, free_own_object));
		OK(ww_wheel_schedule(wheel, &object->timer, i % 10 * 1000));
	}
	for (uint64_t now = 0; now <= 9000; now += 500) {
		ck_assert_uint_eq(go(wheel, now), now % 1000 == 0 ? 100 : 0);
	}
	ck_assert_uint_eq(rounds, 1000);
	unmake(wheel);
}
END_TEST

static void free_a_periodic_one(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	ck_assert_int_eq(ww_wheel_cancel(wheel, timer), 1);
	free_own_object(wheel, timer, missed);
}

START_TEST(a_callback_can_free_a_periodic_object_once_it_is_cancelled)
{
	struct ww_wheel *wheel = make(NULL);

	rounds = 0;
	for (uint64_t i = 0; i < 100; i++) {
		struct object *object = calloc(1, sizeof *object);

		ck_assert_ptr_nonnull(object);
		OK(ww_timer_init(&object->timer, free_a_periodic_one));
		OK(ww_wheel_schedule_every(wheel, &object->timer, 5, 1 + i));
	}
	ck_assert_uint_eq(go(wheel, 1000), 100);
	ck_assert_uint_eq(rounds, 100);
	ck_assert_uint_eq(go(wheel, 2000), 0);
	unmake(wheel);
}
END_TEST

/* Two objects are due in the same tick: the first one cancels and frees the other. */
static void free_the_victim(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	struct object *object = WW_TIMER_OWNER(timer, struct object, timer);

	(void)missed;
	rounds++;
	ck_assert_int_eq(ww_wheel_cancel(wheel, &object->victim->timer), 1);
	memset(object->victim, 0xA5, sizeof *object->victim);
	free(object->victim);
	memset(object, 0xA5, sizeof *object);
	free(object);
}

START_TEST(a_callback_can_cancel_and_free_another_object_of_its_tick)
{
	struct ww_wheel *wheel = make(NULL);

	rounds = 0;
	for (int i = 0; i < 200; i++) {
		struct object *one = calloc(1, sizeof *one);
		struct object *two = calloc(1, sizeof *two);

		ck_assert_ptr_nonnull(one);
		ck_assert_ptr_nonnull(two);
		one->victim = two;
		two->victim = one;
		OK(ww_timer_init(&one->timer, free_the_victim));
		OK(ww_timer_init(&two->timer, free_the_victim));
		OK(ww_wheel_schedule(wheel, &one->timer, 77));
		OK(ww_wheel_schedule(wheel, &two->timer, 77));
	}
	ck_assert_uint_eq(go(wheel, 77), 200);
	ck_assert_uint_eq(rounds, 200);
	ck_assert_uint_eq(pending_in(wheel), 0);
	unmake(wheel);
}
END_TEST

/* ---- Draining --------------------------------------------------------------------------------------------------- */

static size_t taken;

static void drain_everything(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	struct ww_expiry batch[16];
	size_t count;
	int more;

	note(wheel, timer, missed);
	do {
		more = ww_wheel_drain(wheel, batch, 16, &count);
		taken += count;
		for (size_t i = 0; i < count; i++) {
			memset(batch[i].timer, 0, sizeof *batch[i].timer);
		}
	} while (more == 1);
	ck_assert_int_eq(more, 0);
	assert_sound(wheel);
}

START_TEST(a_callback_can_drain_the_wheel_with_the_timers_of_its_tick)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	taken = 0;
	for (size_t i = 0; i < CROWD; i++) {
		OK(ww_timer_init(&crowd[i], drain_everything));
		OK(ww_wheel_schedule(wheel, &crowd[i], i < 20 ? 100 : i < 40 ? 200 : 1000000));
	}
	ck_assert_uint_eq(go(wheel, 300), 1);
	ck_assert_uint_eq(taken, CROWD - 1);
	ck_assert_uint_eq(pending_in(wheel), 0);
	OK(ww_wheel_schedule(wheel, &timer, 7100));
	ck_assert_uint_eq(go(wheel, 7399), 0);
	ck_assert_uint_eq(go(wheel, 7400), 1);
	unmake(wheel);
}
END_TEST

/* ---- Refused calls ---------------------------------------------------------------------------------------------- */

static void try_to_enter_again(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	struct ww_expiry batch[2];
	size_t count = 4711;
	uint64_t now = ww_wheel_now(wheel);
	const uint64_t times[] = {now, now + 1, now + 100, WW_TIME_MAX};

	note(wheel, timer, missed);
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		ck_assert_int_eq(ww_wheel_advance(wheel, times[i], WW_UNLIMITED, &count), WW_EBUSY);
		ck_assert_int_eq(ww_wheel_advance(wheel, times[i], 0, NULL), WW_EBUSY);
		ck_assert_int_eq(ww_wheel_advance_batch(wheel, times[i], batch, 2, &count), WW_EBUSY);
	}
	ck_assert_int_eq(ww_wheel_destroy(wheel), WW_EBUSY);
	ck_assert_uint_eq(count, 4711);
	ck_assert_uint_eq(ww_wheel_now(wheel), now);
	assert_sound(wheel);
}

START_TEST(advance_and_destroy_are_refused_in_a_callback)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer one = WW_TIMER_INIT(try_to_enter_again);
	struct ww_timer two = WW_TIMER_INIT(try_to_enter_again);
	struct ww_timer late = WW_TIMER_INIT(try_to_enter_again);

	OK(ww_wheel_schedule(wheel, &one, 50));
	OK(ww_wheel_schedule(wheel, &two, 5000));
	OK(ww_wheel_schedule(wheel, &late, 20000));
	ck_assert_uint_eq(go(wheel, 50), 1);
	ck_assert_uint_eq(go(wheel, 10000), 1);
	ck_assert_uint_eq(go(wheel, 20000), 1);
	/* Afterwards both are allowed again. */
	OK(ww_wheel_schedule(wheel, &one, 0));
	ck_assert_uint_eq(go(wheel, 20000), 1);
	unmake(wheel);
}
END_TEST

static struct ww_wheel *other_wheel;

static void use_the_other_wheel(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	ck_assert_uint_eq(go(other_wheel, 10), 1);
	OK(ww_wheel_destroy(other_wheel));
}

START_TEST(another_wheel_may_be_advanced_and_destroyed_in_a_callback)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(use_the_other_wheel);

	other_wheel = make(NULL);
	OK(ww_timer_init(&other, note));
	OK(ww_wheel_schedule(other_wheel, &other, 10));
	OK(ww_wheel_schedule(wheel, &timer, 10));
	ck_assert_uint_eq(go(wheel, 10), 1);
	ck_assert_uint_eq(recorded, 2);
	unmake(wheel);
}
END_TEST

static struct ww_timer pair[2];
static uint64_t moved_to;

/* The first of the two to expire moves the other one. */
static void move_other(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	if (recorded == 1) {
		ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &pair[timer == &pair[0]], moved_to), 1);
	}
}

START_TEST(a_due_timer_moved_within_the_expiring_tick_keeps_its_place)
{
	/* Both are due at 10 in a call that goes on to 30. */
	static const struct {
		uint64_t deadline;
		size_t in_this_call;
	} cases[] = {{10, 2}, {9, 1}, {0, 1}, {11, 2}, {30, 2}, {31, 1}};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ww_wheel *wheel = make(NULL);

		for (size_t k = 0; k < 2; k++) {
			OK(ww_timer_init(&pair[k], move_other));
			OK(ww_wheel_schedule(wheel, &pair[k], 10));
		}
		moved_to = cases[i].deadline;
		ck_assert_uint_eq(go(wheel, 30), cases[i].in_this_call);
		ck_assert_uint_eq(go(wheel, 31), 2 - cases[i].in_this_call);
		unmake(wheel);
	}
}
END_TEST

TEST_MAIN("wheel/callback", a_due_timer_moved_within_the_expiring_tick_keeps_its_place,
    a_callback_that_schedules_itself_with_no_delay_runs_once_a_call,
    a_callback_that_schedules_itself_with_no_delay_in_a_jump_runs_once_more_at_its_end,
    a_callback_that_schedules_itself_in_the_past_runs_once_a_call,
    in_a_callback_time_is_that_of_the_call_and_delays_count_from_there,
    a_timer_scheduled_into_the_running_jump_expires_in_it_in_order,
    a_timer_scheduled_at_or_before_the_callbacks_tick_waits_for_the_next_call,
    a_callback_can_move_others_of_its_tick_later, a_callback_can_pull_a_far_timer_into_the_running_jump,
    a_callback_can_push_a_timer_later_within_the_running_jump,
    a_timer_that_waited_for_the_next_call_and_was_moved_beyond_this_one_expires_at_its_deadline,
    a_timer_that_waited_for_the_next_call_and_was_moved_into_this_one_expires_in_order,
    a_callback_can_free_its_own_object, a_callback_can_free_a_periodic_object_once_it_is_cancelled,
    a_callback_can_cancel_and_free_another_object_of_its_tick,
    a_callback_can_drain_the_wheel_with_the_timers_of_its_tick, advance_and_destroy_are_refused_in_a_callback,
    another_wheel_may_be_advanced_and_destroyed_in_a_callback)
