/* Levels: which one a timer is filed in, when it is demoted, and that demotion is spread over time. */
/* tier: check, every-build, no-valgrind (long, and of the wheel others reach each line) */

#include "tests/lib/core/wheel/fixture.h"
#include "tests/support/seed.h"

#define SECONDS 0
#define MINUTES 1
#define HOURS 2
#define DAYS 3
#define OUTSIDE 4
#define DUE 5

START_TEST(a_timer_is_filed_in_the_level_that_fits_its_delay)
{
	static const struct {
		uint64_t delay;
		uint32_t level;
	} expected[] = {
	    {0, DUE},
	    {1, SECONDS},
	    {MINUTE - 1, SECONDS},
	    {MINUTE + 1, MINUTES},
	    {2 * MINUTE, MINUTES},
	    {HOUR - 1, MINUTES},
	    {HOUR + MINUTE, HOURS},
	    {7100, HOURS},
	    {DAY - 1, HOURS},
	    {DAY + HOUR, DAYS},
	    {WEEK - 1, DAYS},
	    {WEEK, DAYS},
	    {WEEK + 1, OUTSIDE},
	    {400 * DAY, OUTSIDE},
	};

	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		struct ww_wheel *wheel = make(NULL);
		struct ww_timer timer = WW_TIMER_INIT(note);
		uint32_t level;

		OK(ww_wheel_schedule(wheel, &timer, expected[i].delay));
		level = level_of_only_timer(wheel);
		ck_assert_msg(level == expected[i].level, "a delay of %" PRIu64 " is in level %u, not %u",
		    expected[i].delay, level, expected[i].level);
		unmake(wheel);
	}
}
END_TEST

/* 7,100 s from time 0: hours, minutes with 3,500 s left, seconds with 20 s left, expired at exactly 7,100. */
START_TEST(a_delay_of_7100_s_goes_from_hours_to_minutes_to_seconds_and_expires_at_7100)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	uint64_t left = 0;

	OK(ww_wheel_schedule(wheel, &timer, 7100));
	for (uint64_t now = 0; now < 7100; now++) {
		uint32_t expected = now < 3600 ? HOURS : now < 7080 ? MINUTES : SECONDS;

		ck_assert_uint_eq(go(wheel, now), 0);
		ck_assert_msg(level_of_only_timer(wheel) == expected, "at %" PRIu64 " in level %u, not %u", now,
		    level_of_only_timer(wheel), expected);
	}
	ck_assert_int_eq(ww_wheel_time_left(wheel, &timer, &left), 1);
	ck_assert_uint_eq(left, 1);
	ck_assert_uint_eq(stats_of(wheel).demoted, 2);
	ck_assert_uint_eq(go(wheel, 7100), 1);
	ck_assert_ptr_eq(record[0].timer, &timer);
	ck_assert_uint_eq(record[0].now, 7100);
	ck_assert_uint_eq(stats_of(wheel).demoted, 2);
	unmake(wheel);
}
END_TEST

START_TEST(a_delay_of_7100_s_from_time_30_expires_at_7130)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	ck_assert_uint_eq(go(wheel, 30), 0);
	OK(ww_wheel_schedule(wheel, &timer, 7100));
	for (uint64_t now = 30; now < 7130; now++) {
		uint32_t expected = now < 3600 ? HOURS : now < 7080 ? MINUTES : SECONDS;

		ck_assert_uint_eq(go(wheel, now), 0);
		ck_assert_uint_eq(level_of_only_timer(wheel), expected);
	}
	ck_assert_uint_eq(go(wheel, 7130), 1);
	ck_assert_uint_eq(record[0].now, 7130);
	unmake(wheel);
}
END_TEST

START_TEST(the_example_needs_no_call_between_its_demotions)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 7100));
	go(wheel, 3600);
	ck_assert_uint_eq(level_of_only_timer(wheel), MINUTES);
	go(wheel, 7080);
	ck_assert_uint_eq(level_of_only_timer(wheel), SECONDS);
	ck_assert_uint_eq(go(wheel, 7099), 0);
	ck_assert_uint_eq(go(wheel, 7100), 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_timer_outside_enters_the_highest_level_and_is_demoted_through_all)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	uint64_t deadline = 8 * DAY + 7100;
	uint32_t last = OUTSIDE;

	OK(ww_wheel_schedule(wheel, &timer, deadline));
	ck_assert_uint_eq(level_of_only_timer(wheel), OUTSIDE);
	for (uint64_t now = 0; now < deadline; now++) {
		uint32_t level;

		OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, NULL));
		/* Look around each full hour, and at each of the last 100 ticks. */
		if ((now + 2) % HOUR > 4 && now < deadline - 100) {
			continue;
		}
		level = level_of_only_timer(wheel);
		ck_assert_uint_le(level, last);
		last = level;
		/*
		 * Once it has less than a turn of a level left and that level's slot has come, it is in that level or a
		 * lower one.
		 */
		if (now >= deadline / DAY * DAY) {
			ck_assert_uint_le(level, HOURS);
		}
		if (now >= deadline / HOUR * HOUR) {
			ck_assert_uint_le(level, MINUTES);
		}
		if (now >= deadline / MINUTE * MINUTE) {
			ck_assert_uint_le(level, SECONDS);
		}
	}
	ck_assert_uint_eq(recorded, 0);
	ck_assert_uint_eq(go(wheel, deadline), 1);
	unmake(wheel);
}
END_TEST

/*
 * All timers lie in one slot of an upper level, and time passes the slot's boundary tick by tick. No call may demote
 * more than a tenth of them. A cascade at the boundary would demote all of them in one call.
 */
static void assert_demotion_is_spread(uint64_t slot, uint64_t span, size_t count)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer *timers = calloc(count, sizeof *timers);
	uint64_t seed = 20;
	uint64_t demoted = 0;
	uint64_t largest = 0;
	uint64_t largest_at = 0;
	size_t expired = 0;

	ck_assert_ptr_nonnull(timers);
	for (size_t i = 0; i < count; i++) {
		OK(ww_wheel_schedule(wheel, &timers[i], slot * span + seed_below(&seed, span)));
	}
	for (uint64_t now = 0; now < (slot + 1) * span; now++) {
		uint64_t before = demoted;
		size_t fired = 0;

		OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, &fired));
		expired += fired;
		demoted = stats_of(wheel).demoted;
		if (demoted - before > largest) {
			largest = demoted - before;
			largest_at = now;
		}
		if (now == slot * span - 1 || now == slot * span) {
			assert_sound(wheel);
		}
	}
	ck_assert_uint_eq(expired, count);
	ck_assert_uint_eq(pending_in(wheel), 0);
	ck_assert_uint_ge(demoted, count - count / 10); /* the statistic does count */
	ck_assert_msg(largest <= count / 10, "%" PRIu64 " of %zu timers were demoted in the one call for %" PRIu64,
	    largest, count, largest_at);
	unmake(wheel);
	free(timers);
}

START_TEST(an_hour_slot_of_200000_timers_is_demoted_in_small_shares)
{
	assert_demotion_is_spread(2, HOUR, 200000);
}
END_TEST

START_TEST(a_day_slot_of_200000_timers_is_demoted_in_small_shares)
{
	assert_demotion_is_spread(2, DAY, 200000);
}
END_TEST

START_TEST(a_full_slot_loses_nothing_when_its_boundary_is_jumped_over)
{
	static const uint64_t jumps[] = {1, 7, 59, 60, 61, 1800, 3599, 3600, 3601, 10000, 86400, 100000};
	const size_t count = 20000;
	struct ww_timer *timers = calloc(count, sizeof *timers);
	struct ww_expiry *batch = calloc(count, sizeof *batch);

	ck_assert_ptr_nonnull(timers);
	ck_assert_ptr_nonnull(batch);
	for (size_t j = 0; j < sizeof jumps / sizeof jumps[0]; j++) {
		struct ww_wheel *wheel = make(NULL);
		uint64_t seed = 21;
		uint64_t now = DAY - 2 * HOUR;
		size_t expired = 0;

		for (size_t i = 0; i < count; i++) {
			OK(ww_wheel_schedule(wheel, &timers[i], DAY + seed_below(&seed, HOUR)));
		}
		go(wheel, now);
		while (expired < count) {
			uint64_t before = now;
			size_t fired = 0;

			now += jumps[j];
			ck_assert_int_eq(ww_wheel_advance_batch(wheel, now, batch, count, &fired), 0);
			for (size_t i = 0; i < fired; i++) {
				ck_assert_uint_gt(batch[i].deadline, before);
				ck_assert_uint_le(batch[i].deadline, now);
				ck_assert_uint_ge(batch[i].deadline, i == 0 ? 0 : batch[i - 1].deadline);
			}
			expired += fired;
			ck_assert_uint_le(now, 3 * DAY);
		}
		ck_assert_uint_eq(expired, count);
		unmake(wheel);
	}
	free(timers);
	free(batch);
}
END_TEST

START_TEST(timers_cancelled_or_moved_during_a_pre_demotion_expire_correctly)
{
	const size_t count = 30000;
	struct ww_timer *timers = calloc(count, sizeof *timers);
	uint64_t *deadlines = calloc(count, sizeof *deadlines);
	struct ww_wheel *wheel = make(NULL);
	struct ww_expiry batch[64];
	uint64_t seed = 22;
	size_t pending = count;

	ck_assert_ptr_nonnull(timers);
	ck_assert_ptr_nonnull(deadlines);
	for (size_t i = 0; i < count; i++) {
		deadlines[i] = DAY + seed_below(&seed, DAY);
		OK(ww_wheel_schedule(wheel, &timers[i], deadlines[i]));
	}
	for (uint64_t now = DAY - HOUR - 10; now < 2 * DAY + HOUR; now++) {
		size_t fired;

		do {
			ck_assert_int_ge(ww_wheel_advance_batch(wheel, now, batch, 64, &fired), 0);
			for (size_t i = 0; i < fired; i++) {
				ck_assert_uint_eq(batch[i].deadline, now);
				ck_assert_uint_eq(deadlines[batch[i].timer - timers], now);
			}
			pending -= fired;
		} while (fired == 64);
		/* In the hours before and after the boundary, cancel one, move one later and one earlier. */
		if (now < DAY + HOUR) {
			size_t i = seed_below(&seed, count);

			pending -= (size_t)ww_wheel_cancel(wheel, &timers[i]);
			i = seed_below(&seed, count);
			if (ww_wheel_reschedule(wheel, &timers[i], DAY - HOUR) == 1) {
				deadlines[i] = now + DAY - HOUR;
			}
			i = seed_below(&seed, count);
			if (ww_wheel_reschedule(wheel, &timers[i], 1 + now % 5000) == 1) {
				deadlines[i] = now + 1 + now % 5000;
			}
		}
		if (now % 1000 == 0 || now == DAY) {
			assert_sound(wheel);
		}
		ck_assert_uint_eq(pending_in(wheel), pending);
	}
	ck_assert_uint_eq(pending, 0);
	unmake(wheel);
	free(timers);
	free(deadlines);
}
END_TEST

/*
 * A crowded slot is being pre-demoted when all of its timers but one are cancelled. Wherever that timer is filed by
 * then, it expires in its tick, even if advance is called only when ww_wheel_next asks for it.
 */
START_TEST(the_last_timer_of_a_pre_demoted_crowd_is_exact)
{
	static const struct {
		uint64_t slot;     /* when the slot begins */
		uint64_t deadline; /* the same for all timers */
	} crowds[] = {{120, 179}, {120, 121}, {10800, 14399}, {10800, 10801}, {3 * DAY, 4 * DAY - 1}};
	const size_t count = 1200;
	struct ww_timer *timers = calloc(count, sizeof *timers);

	ck_assert_ptr_nonnull(timers);
	for (size_t c = 0; c < sizeof crowds / sizeof crowds[0]; c++) {
		for (size_t kept = 0; kept < count; kept += 7) {
			struct ww_wheel *wheel = make(NULL);
			uint64_t when = 0;

			for (size_t i = 0; i < count; i++) {
				OK(ww_timer_init(&timers[i], note));
				OK(ww_wheel_schedule(wheel, &timers[i], crowds[c].deadline));
			}
			for (uint64_t now = crowds[c].slot < 100 ? 1 : crowds[c].slot - 100; now < crowds[c].slot;
			     now++) {
				OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, NULL));
			}
			for (size_t i = 0; i < count; i++) {
				if (i != kept) {
					ck_assert_int_eq(ww_wheel_cancel(wheel, &timers[i]), 1);
				}
			}
			assert_sound(wheel);
			ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
			ck_assert_uint_le(when, crowds[c].deadline);
			if (kept % 2 == 0) {
				while (when < crowds[c].deadline) {
					ck_assert_uint_eq(go(wheel, when), 0);
					ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
				}
				ck_assert_uint_eq(when, crowds[c].deadline);
			} else {
				ck_assert_uint_eq(go(wheel, crowds[c].deadline - 1), 0);
			}
			ck_assert_uint_eq(go(wheel, crowds[c].deadline), 1);
			unmake(wheel);
		}
	}
	free(timers);
}
END_TEST

TEST_MAIN("wheel/cascade", a_timer_is_filed_in_the_level_that_fits_its_delay,
    a_delay_of_7100_s_goes_from_hours_to_minutes_to_seconds_and_expires_at_7100,
    a_delay_of_7100_s_from_time_30_expires_at_7130, the_example_needs_no_call_between_its_demotions,
    a_timer_outside_enters_the_highest_level_and_is_demoted_through_all,
    an_hour_slot_of_200000_timers_is_demoted_in_small_shares, a_day_slot_of_200000_timers_is_demoted_in_small_shares,
    a_full_slot_loses_nothing_when_its_boundary_is_jumped_over,
    timers_cancelled_or_moved_during_a_pre_demotion_expire_correctly, the_last_timer_of_a_pre_demoted_crowd_is_exact)
