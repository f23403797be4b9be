/* Calls that reach all timers at once: drain and each. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"

#define N 200

static struct ww_timer timers[N];
static uint64_t deadlines[N];

/* Timers in every level, outside, due, moved later, and periodic. */
static struct ww_wheel *make_full(void)
{
	struct ww_wheel *wheel = make_from(5000);

	for (size_t i = 0; i < N; i++) {
		static const uint64_t delays[] = {0, 3, 59, 200, 3000, 7100, 80000, 300000, 604800, 5000000};
		uint64_t delay = delays[i % 10] + i / 10 * 7;

		deadlines[i] = 5000 + delay;
		OK(ww_timer_init(&timers[i], note));
		if (i % 7 == 0) {
			OK(ww_wheel_schedule_every(wheel, &timers[i], delay, 10));
		} else {
			OK(ww_wheel_schedule(wheel, &timers[i], delay));
		}
		if (i % 3 == 0) {
			ck_assert_int_eq(ww_wheel_reschedule(wheel, &timers[i], delay + 9999), 1);
			deadlines[i] += 9999;
		}
	}
	return wheel;
}

static int count_one(struct ww_timer *timer, uint64_t deadline, void *user)
{
	(void)timer;
	(void)deadline;
	++*(size_t *)user;
	return 0;
}

START_TEST(drain_hands_over_every_timer_once_whatever_the_capacity)
{
	static const size_t capacities[] = {1, 3, 64, N - 1, N, N + 1};
	struct ww_expiry batch[N + 1];

	for (size_t c = 0; c < sizeof capacities / sizeof capacities[0]; c++) {
		struct ww_wheel *wheel = make_full();
		unsigned seen[N] = {0};
		size_t left = N;
		int more = 1;

		while (more == 1) {
			size_t count = 4711;

			more = ww_wheel_drain(wheel, batch, capacities[c], &count);
			ck_assert_uint_eq(count, left < capacities[c] ? left : capacities[c]);
			left -= count;
			ck_assert_int_eq(more, left > 0);
			for (size_t i = 0; i < count; i++) {
				size_t index = (size_t)(batch[i].timer - timers);

				ck_assert_uint_lt(index, N);
				ck_assert_uint_eq(seen[index]++, 0);
				ck_assert_uint_eq(batch[i].deadline, deadlines[index]);
				ck_assert_uint_eq(batch[i].missed, 0);
				ck_assert_int_eq(ww_timer_pending(batch[i].timer), 0);
			}
			assert_sound(wheel);
			ck_assert_uint_eq(pending_in(wheel), left);
			ck_assert_uint_eq(stats_of(wheel).drained, N - left);
		}
		ck_assert_uint_eq(left, 0);
		ck_assert_uint_eq(recorded, 0);
		ck_assert_uint_eq(go(wheel, 50000000), 0);
		unmake(wheel);
	}
}
END_TEST

START_TEST(an_empty_wheel_drains_nothing)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_expiry batch[2];
	size_t count = 4711;

	ck_assert_int_eq(ww_wheel_drain(wheel, batch, 2, &count), 0);
	ck_assert_uint_eq(count, 0);
	unmake(wheel);
}
END_TEST

START_TEST(a_drained_wheel_still_works)
{
	struct ww_wheel *wheel = make_full();
	struct ww_expiry batch[N];
	size_t count = 0;
	uint64_t when = 0;

	ck_assert_int_eq(ww_wheel_drain(wheel, batch, N, &count), 0);
	ck_assert_int_eq(ww_wheel_next(wheel, &when), 0);
	ck_assert_uint_eq(when, WW_NEVER);
	for (size_t i = 0; i < N; i++) {
		OK(ww_wheel_schedule_at(wheel, &timers[i], deadlines[i]));
	}
	assert_sound(wheel);
	for (size_t i = 0; i < N; i++) {
		go(wheel, deadlines[i] > ww_wheel_now(wheel) ? deadlines[i] : ww_wheel_now(wheel));
		ck_assert_uint_eq(times_recorded(&timers[i]), 1);
	}
	/* All are one-shots now, also those that were periodic. */
	ck_assert_uint_eq(recorded, N);
	ck_assert_uint_eq(pending_in(wheel), 0);
	unmake(wheel);
}
END_TEST

START_TEST(drained_timers_do_not_expire_and_the_others_do)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_expiry batch[30];
	size_t count = 0;

	for (size_t i = 0; i < 100; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(wheel, &timers[i], 7100));
	}
	ck_assert_int_eq(ww_wheel_drain(wheel, batch, 30, &count), 1);
	ck_assert_uint_eq(count, 30);
	ck_assert_uint_eq(go(wheel, 7100), 70);
	for (size_t i = 0; i < count; i++) {
		ck_assert_uint_eq(times_recorded(batch[i].timer), 0);
	}
	unmake(wheel);
}
END_TEST

START_TEST(drain_takes_timers_left_by_a_budget)
{
	struct ww_wheel *wheel = make_full();
	struct ww_expiry batch[N];
	size_t count = 0;

	ck_assert_int_eq(ww_wheel_advance(wheel, 20000, 5, NULL), 1);
	ck_assert_int_eq(ww_wheel_drain(wheel, batch, N, &count), 0);
	ck_assert_uint_eq(count, stats_of(wheel).drained);
	ck_assert_uint_eq(recorded, 5);
	ck_assert_int_eq(ww_wheel_advance(wheel, 20000, WW_UNLIMITED, NULL), 0);
	ck_assert_uint_eq(recorded, 5);
	unmake(wheel);
}
END_TEST

START_TEST(drain_and_each_find_late_timers_from_before_between_and_after_interrupted_calls)
{
	struct ww_wheel *wheel = make_from(5000);
	struct ww_expiry batch[N];
	size_t count = 0;
	size_t expired = 0;
	size_t shown = 0;

	for (size_t i = 0; i < 30; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule_at(wheel, &timers[i], 4000 + i));
		if (i % 10 == 9 && i < 29) {
			ck_assert_int_eq(ww_wheel_advance(wheel, 5000, 2, &count), 1);
			expired += count;
		}
	}
	ck_assert_uint_eq(expired, 4);
	OK(ww_wheel_each(wheel, count_one, &shown));
	ck_assert_uint_eq(shown, 26);
	ck_assert_int_eq(ww_wheel_drain(wheel, batch, N, &count), 0);
	ck_assert_uint_eq(count, 26);
	for (size_t i = 0; i < 30; i++) {
		ck_assert_int_eq(ww_timer_pending(&timers[i]), 0);
	}
	ck_assert_uint_eq(go(wheel, 6000), 0);
	unmake(wheel);
}
END_TEST

/* ---- each ------------------------------------------------------------------------------------------------------- */

struct walk {
	unsigned seen[N];
	size_t calls;
	size_t stop_at;
	int answer;
};

static int look(struct ww_timer *timer, uint64_t deadline, void *user)
{
	struct walk *walk = user;
	size_t index = (size_t)(timer - timers);

	ck_assert_uint_lt(index, N);
	ck_assert_uint_eq(deadline, deadlines[index]);
	walk->seen[index]++;
	return ++walk->calls == walk->stop_at ? walk->answer : 0;
}

START_TEST(each_shows_every_pending_timer_once_with_its_deadline)
{
	struct ww_wheel *wheel = make_full();
	struct walk walk = {{0}, 0, 0, 0};

	OK(ww_wheel_each(wheel, look, &walk));
	ck_assert_uint_eq(walk.calls, N);
	for (size_t i = 0; i < N; i++) {
		ck_assert_uint_eq(walk.seen[i], 1);
	}
	unmake(wheel);
}
END_TEST

START_TEST(each_stops_at_an_answer_other_than_0_and_returns_it)
{
	static const int answers[] = {1, -1, 42, -4711};

	for (size_t i = 0; i < 4; i++) {
		struct ww_wheel *wheel = make_full();
		struct walk walk = {{0}, 0, 10 + 50 * i, answers[i]};

		ck_assert_int_eq(ww_wheel_each(wheel, look, &walk), answers[i]);
		ck_assert_uint_eq(walk.calls, 10 + 50 * i);
		unmake(wheel);
	}
}
END_TEST

START_TEST(each_of_an_empty_wheel_calls_nothing)
{
	struct ww_wheel *wheel = make(NULL);
	struct walk walk = {{0}, 0, 0, 0};

	OK(ww_wheel_each(wheel, look, &walk));
	ck_assert_uint_eq(walk.calls, 0);
	unmake(wheel);
}
END_TEST

struct object {
	struct ww_timer timer;
	size_t index;
};

struct reaper {
	struct ww_wheel *wheel;
	size_t calls;
	size_t kept;
};

/* Cancel two of three, and free their objects. */
static int reap(struct ww_timer *timer, uint64_t deadline, void *user)
{
	struct reaper *reaper = user;
	struct object *object = WW_TIMER_OWNER(timer, struct object, timer);

	(void)deadline;
	reaper->calls++;
	if (object->index % 3 != 0) {
		ck_assert_int_eq(ww_wheel_cancel(reaper->wheel, timer), 1);
		memset(object, 0xA5, sizeof *object);
		free(object);
	} else {
		reaper->kept++;
	}
	return 0;
}

START_TEST(each_may_cancel_and_free_the_timer_it_is_given)
{
	static const uint64_t spreads[] = {0, 1, 100, 10000};

	for (size_t s = 0; s < 4; s++) {
		struct ww_wheel *wheel = make(NULL);
		struct reaper reaper = {wheel, 0, 0};
		struct object *objects[90];

		for (size_t i = 0; i < 90; i++) {
			objects[i] = calloc(1, sizeof *objects[i]);
			ck_assert_ptr_nonnull(objects[i]);
			objects[i]->index = i;
			OK(ww_timer_init(&objects[i]->timer, note));
			OK(ww_wheel_schedule(wheel, &objects[i]->timer, 5 + i * spreads[s]));
		}
		OK(ww_wheel_each(wheel, reap, &reaper));
		ck_assert_uint_eq(reaper.calls, 90);
		ck_assert_uint_eq(reaper.kept, 30);
		assert_sound(wheel);
		ck_assert_uint_eq(pending_in(wheel), 30);
		ck_assert_uint_eq(go(wheel, 1000000), 30);
		for (size_t i = 0; i < 90; i += 3) {
			free(objects[i]);
		}
		unmake(wheel);
	}
}
END_TEST

TEST_MAIN("wheel/drain", drain_hands_over_every_timer_once_whatever_the_capacity, an_empty_wheel_drains_nothing,
    a_drained_wheel_still_works, drained_timers_do_not_expire_and_the_others_do, drain_takes_timers_left_by_a_budget,
    drain_and_each_find_late_timers_from_before_between_and_after_interrupted_calls,
    each_shows_every_pending_timer_once_with_its_deadline, each_stops_at_an_answer_other_than_0_and_returns_it,
    each_of_an_empty_wheel_calls_nothing, each_may_cancel_and_free_the_timer_it_is_given)
