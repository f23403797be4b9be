/* Moving a pending timer: later (the heartbeat), or earlier. An idle timer does not move. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"
#include "tests/support/seed.h"

START_TEST(an_idle_timer_stays_idle_and_the_answer_is_0)
{
	struct placed placed = place(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_timer copy = timer;

	freeze(&placed);
	ck_assert_int_eq(ww_wheel_reschedule(placed.wheel, &timer, 10), 0);
	ck_assert_int_eq(ww_wheel_reschedule_at(placed.wheel, &timer, 10), 0);
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	ck_assert(is_frozen(&placed));
	ck_assert_mem_eq(&copy, &timer, sizeof timer);
	/* An expired timer is idle too: a late heartbeat does not revive it. */
	OK(ww_wheel_schedule(placed.wheel, &timer, 10));
	ck_assert_uint_eq(go(placed.wheel, 10), 1);
	ck_assert_int_eq(ww_wheel_reschedule(placed.wheel, &timer, 10), 0);
	ck_assert_uint_eq(go(placed.wheel, 1000), 0);
	unplace(&placed);
}
END_TEST

static const uint64_t delays[] = {0, 1, 2, 59, 60, 61, 119, 120, 3599, 3600, 3661, 7100, 86399, 86400, 90061, 604799,
    604800, 604801, 1000000, 34560000};
#define DELAYS (sizeof delays / sizeof delays[0])

START_TEST(a_timer_moved_earlier_or_later_expires_only_at_its_new_deadline)
{
	static const uint64_t starts[] = {0, 30, 3599, 86399, 604799};

	for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++) {
		for (size_t i = 0; i < DELAYS; i++) {
			for (size_t k = 0; k < DELAYS; k++) {
				struct ww_wheel *wheel = make_from(starts[s]);
				struct ww_timer timer = WW_TIMER_INIT(note);
				struct ww_timer neighbour = WW_TIMER_INIT(note);
				uint64_t deadline = starts[s] + delays[k];
				uint64_t told = 0;

				OK(ww_wheel_schedule(wheel, &neighbour, delays[i]));
				OK(ww_wheel_schedule(wheel, &timer, delays[i]));
				ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, delays[k]), 1);
				assert_sound(wheel);
				ck_assert_int_eq(ww_timer_deadline(&timer, &told), 1);
				ck_assert_uint_eq(told, deadline);
				if (delays[k] > 0) {
					go(wheel, deadline - 1);
					ck_assert_uint_eq(times_recorded(&timer), 0);
				}
				go(wheel, deadline);
				ck_assert_uint_eq(times_recorded(&timer), 1);
				go(wheel, starts[s] + 40000000);
				ck_assert_uint_eq(times_recorded(&timer), 1);
				ck_assert_uint_eq(times_recorded(&neighbour), 1);
				unmake(wheel);
			}
		}
	}
}
END_TEST

START_TEST(a_timer_moved_later_and_back_again_expires_at_the_last_deadline)
{
	for (size_t i = 0; i < DELAYS; i++) {
		for (size_t k = 1; k < DELAYS; k++) {
			struct ww_wheel *wheel = make(NULL);
			struct ww_timer timer = WW_TIMER_INIT(note);

			/* Move it later, back to between the two deadlines, then to the first again. */
			OK(ww_wheel_schedule(wheel, &timer, delays[i]));
			ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, 40000000), 1);
			ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, delays[k]), 1);
			assert_sound(wheel);
			ck_assert_uint_eq(go(wheel, delays[k] - 1), 0);
			ck_assert_uint_eq(go(wheel, delays[k]), 1);
			ck_assert_uint_eq(go(wheel, 50000000), 0);
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(reschedule_at_moves_to_an_absolute_deadline)
{
	struct ww_wheel *wheel = make_from(1000);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 50));
	ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &timer, 9000), 1);
	ck_assert_uint_eq(go(wheel, 5000), 0);
	ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &timer, 6000), 1);
	ck_assert_uint_eq(go(wheel, 5999), 0);
	ck_assert_uint_eq(go(wheel, 6000), 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_timer_moved_to_the_past_expires_in_the_next_advance)
{
	struct ww_wheel *wheel = make_from(1000);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 7000));
	ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &timer, 3), 1);
	assert_sound(wheel);
	ck_assert_uint_eq(go(wheel, 1000), 1);
	/* A due timer can be taken back. */
	OK(ww_wheel_schedule(wheel, &timer, 0));
	ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, 5), 1);
	assert_sound(wheel);
	ck_assert_uint_eq(go(wheel, 1004), 0);
	ck_assert_uint_eq(go(wheel, 1005), 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_due_timer_moved_later_keeps_its_order_among_the_others)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer due = WW_TIMER_INIT(note);
	struct ww_timer before = WW_TIMER_INIT(note);
	struct ww_timer after = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &due, 0));
	OK(ww_wheel_schedule(wheel, &before, 100));
	OK(ww_wheel_schedule(wheel, &after, 102));
	ck_assert_int_eq(ww_wheel_reschedule(wheel, &due, 101), 1);
	ck_assert_uint_eq(go(wheel, 200), 3);
	ck_assert_ptr_eq(record[0].timer, &before);
	ck_assert_ptr_eq(record[1].timer, &due);
	ck_assert_ptr_eq(record[2].timer, &after);
	unmake(wheel);
}
END_TEST

START_TEST(a_periodic_timer_keeps_its_period_and_counts_from_its_new_deadline)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule_every(wheel, &timer, 10, 10));
	ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, 13), 1);
	ck_assert_uint_eq(go(wheel, 12), 0);
	ck_assert_uint_eq(go(wheel, 13), 1);
	ck_assert_uint_eq(go(wheel, 22), 0);
	ck_assert_uint_eq(go(wheel, 23), 1);
	ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, 3), 1);
	ck_assert_uint_eq(go(wheel, 26), 1);
	ck_assert_uint_eq(go(wheel, 36), 1);
	unmake(wheel);
}
END_TEST

/*
 * A heartbeat moves a timer to a later deadline. It writes that timer alone: no byte of the wheel, no byte of the
 * slot's other timers.
 */
START_TEST(a_heartbeat_writes_only_the_timer)
{
	static const uint64_t timeouts[] = {1, 30, 59, 60, 1800, 3600, 7100, 86400, 604799, 604800, 8 * DAY, 400 * DAY};
	enum { N = 24 };

	for (size_t d = 0; d < sizeof timeouts / sizeof timeouts[0]; d++) {
		struct placed placed = place(NULL);
		struct ww_timer timers[N];
		struct ww_timer copies[N];

		go(placed.wheel, 12345);
		for (size_t i = 0; i < N; i++) {
			OK(ww_timer_init(&timers[i], note));
			OK(ww_wheel_schedule(placed.wheel, &timers[i], timeouts[d]));
		}
		for (size_t i = 0; i < N; i++) {
			uint64_t later = timeouts[d] + 1 + 1000 * i;

			freeze(&placed);
			memcpy(copies, timers, sizeof timers);
			if (i % 2 == 0) {
				ck_assert_int_eq(ww_wheel_reschedule(placed.wheel, &timers[i], later), 1);
			} else {
				OK(ww_wheel_schedule(placed.wheel, &timers[i], later));
			}
			ck_assert_msg(is_frozen(&placed), "a timeout of %" PRIu64 " wrote to the wheel", timeouts[d]);
			for (size_t k = 0; k < N; k++) {
				if (k != i) {
					ck_assert_mem_eq(&copies[k], &timers[k], sizeof timers[k]);
				}
			}
		}
		unplace(&placed);
	}
}
END_TEST

START_TEST(a_session_with_heartbeats_expires_once_after_the_last)
{
	static const uint64_t timeouts[] = {3, 30, 60, 1800, 3600, 100000};

	for (size_t d = 0; d < sizeof timeouts / sizeof timeouts[0]; d++) {
		struct ww_wheel *wheel = make(NULL);
		struct ww_timer timer = WW_TIMER_INIT(note);
		uint64_t seed = 7;
		uint64_t now = 0;

		OK(ww_wheel_schedule(wheel, &timer, timeouts[d]));
		for (int beat = 0; beat < 300; beat++) {
			now += seed_below(&seed, timeouts[d]);
			ck_assert_uint_eq(go(wheel, now), 0);
			ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, timeouts[d]), 1);
		}
		ck_assert_uint_eq(go(wheel, now + timeouts[d] - 1), 0);
		ck_assert_uint_eq(go(wheel, now + timeouts[d]), 1);
		ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, timeouts[d]), 0);
		unmake(wheel);
	}
}
END_TEST

START_TEST(a_heartbeat_works_with_only_the_calls_that_next_asks_for)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	uint64_t deadline = 1800;
	uint64_t when = 0;
	size_t calls = 0;

	OK(ww_wheel_schedule(wheel, &timer, deadline));
	ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &timer, 90000), 1);
	deadline = 90000;
	while (recorded == 0) {
		ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
		ck_assert_uint_le(when, deadline);
		ck_assert_uint_eq(go(wheel, when), when == deadline);
		ck_assert_uint_lt(++calls, 10);
	}
	ck_assert_uint_eq(record[0].now, 90000);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/reschedule", an_idle_timer_stays_idle_and_the_answer_is_0,
    a_timer_moved_earlier_or_later_expires_only_at_its_new_deadline,
    a_timer_moved_later_and_back_again_expires_at_the_last_deadline, reschedule_at_moves_to_an_absolute_deadline,
    a_timer_moved_to_the_past_expires_in_the_next_advance, a_due_timer_moved_later_keeps_its_order_among_the_others,
    a_periodic_timer_keeps_its_period_and_counts_from_its_new_deadline, a_heartbeat_writes_only_the_timer,
    a_session_with_heartbeats_expires_once_after_the_last, a_heartbeat_works_with_only_the_calls_that_next_asks_for)
