/* No call does much more than its share: demotion where deadlines cluster, timers outside, and overdue timers. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"
#include "tests/support/seed.h"

#define MANY 100000u

static struct ww_timer crowd[MANY];

static uint64_t demoted_by(struct ww_wheel *wheel, uint64_t now)
{
	uint64_t before = stats_of(wheel).demoted;

	OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, NULL));
	return stats_of(wheel).demoted - before;
}

/* Real timeouts are not spread evenly: all of these end in the last ten seconds of an hour. */
START_TEST(an_hour_whose_timers_all_end_with_it_is_demoted_in_shares)
{
	struct ww_wheel *wheel = make(NULL);
	uint64_t most = 0;

	memset(crowd, 0, sizeof crowd);
	for (uint32_t i = 0; i < MANY; i++)
		OK(ww_wheel_schedule(wheel, &crowd[i], 3 * 3600 - 10 + i % 10));
	for (uint64_t now = 1; now < 2 * 3600 + 10; now++) {
		uint64_t demoted = demoted_by(wheel, now);
		most = demoted > most ? demoted : most;
	}
	ck_assert_uint_lt(most, MANY / 20);
	ck_assert_uint_gt(stats_of(wheel).demoted, MANY - 1);
	assert_sound(wheel);
	unmake(wheel);
}
END_TEST

/* One timer in each turn of a level for thousands of turns: none is looked at in the turns of the others. */
START_TEST(a_timer_outside_is_looked_at_seldom)
{
	struct ww_wheel_config config;
	struct ww_wheel *wheel;
	size_t expired;

	memset(crowd, 0, sizeof crowd);
	OK(ww_wheel_config_default(&config));
	config.levels = 1;
	wheel = make(&config);
	for (uint32_t i = 0; i < 5000; i++)
		OK(ww_wheel_schedule(wheel, &crowd[i], UINT64_C(60) * i + 7));
	OK(ww_wheel_advance(wheel, 60 * 5000, WW_UNLIMITED, &expired));
	ck_assert_uint_eq(expired, 5000);
	ck_assert_uint_lt(stats_of(wheel).demoted, UINT64_C(5000) * 10);
	unmake(wheel);
}
END_TEST

/* However far they are, and however many: once for each bit of the distance, and once a level. */
START_TEST(timers_very_far_outside_are_demoted_a_few_times_each)
{
	struct ww_wheel *wheel = make(NULL);
	uint64_t seed = 3;
	size_t expired;

	memset(crowd, 0, sizeof crowd);
	for (uint32_t i = 0; i < 5000; i++)
		OK(ww_wheel_schedule(wheel, &crowd[i], seed_below(&seed, WEEK * UINT64_C(1000000000))));
	for (uint32_t i = 0; i < 5000; i += 50)
		OK(ww_wheel_schedule(wheel, &crowd[i], seed_below(&seed, WW_TIME_MAX)));
	OK(ww_wheel_advance(wheel, WW_TIME_MAX, WW_UNLIMITED, &expired));
	ck_assert_uint_eq(expired, 5000);
	ck_assert_uint_lt(stats_of(wheel).demoted, UINT64_C(5000) * (30 + 4));
	unmake(wheel);
}
END_TEST

/* They end all over four weeks, two years from now. Meanwhile some move on, and others join. */
START_TEST(a_crowd_very_far_outside_is_demoted_in_shares)
{
	struct ww_wheel *wheel = make(NULL);
	uint64_t most = 0;
	size_t expired;

	memset(crowd, 0, sizeof crowd);
	for (uint32_t i = 0; i < MANY; i++)
		OK(ww_wheel_schedule(wheel, &crowd[i], 96 * WEEK + 4 * WEEK / MANY * i));
	OK(ww_wheel_advance(wheel, 96 * WEEK - 1200, WW_UNLIMITED, NULL));
	for (uint64_t now = 96 * WEEK - 1200; now < 96 * WEEK + 2; now++) {
		uint64_t demoted = demoted_by(wheel, now);
		uint32_t i = (uint32_t)(now % 1000);

		most = demoted > most ? demoted : most;
		OK(ww_wheel_schedule_at(wheel, &crowd[MANY - 1 - i], (97 + i) * WEEK));
		OK(ww_wheel_schedule_at(wheel, &crowd[MANY - 2000 - i], 96 * WEEK + 4000 + i));
		if (now % 200 == 0)
			assert_sound(wheel);
	}
	ck_assert_uint_lt(most, MANY / 20);
	assert_sound(wheel);
	OK(ww_wheel_advance(wheel, 2000 * WEEK, WW_UNLIMITED, &expired));
	ck_assert_uint_eq(stats_of(wheel).expired, MANY);
	unmake(wheel);
}
END_TEST

START_TEST(a_jump_of_all_time_over_one_timer_looks_at_it_a_few_times)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	uint64_t when;
	size_t calls = 0;

	OK(ww_wheel_schedule(wheel, &timer, WW_TIME_MAX));
	for (; ww_wheel_next(wheel, &when) == 1; calls++)
		OK(ww_wheel_advance(wheel, when, WW_UNLIMITED, NULL));
	ck_assert_uint_eq(recorded, 1);
	ck_assert_uint_eq(record[0].now, WW_TIME_MAX);
	ck_assert_uint_le(calls, 6);
	unmake(wheel);
}
END_TEST

static void again_at_once(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	(void)missed;
	OK(ww_wheel_schedule(wheel, timer, 0));
}

/* Each overdue timer expires in the end, even with a budget of 1 and among timers that come again and again. */
START_TEST(no_overdue_timer_starves_under_a_budget)
{
	for (size_t budget = 1; budget <= 3; budget++) {
		struct ww_wheel *wheel = make_from(1000);
		struct ww_timer once[20], again[4];

		for (size_t i = 0; i < 20; i++) {
			OK(ww_timer_init(&once[i], note));
			OK(ww_wheel_schedule(wheel, &once[i], 0));
		}
		for (size_t i = 0; i < 4; i++) {
			OK(ww_timer_init(&again[i], again_at_once));
			OK(ww_wheel_schedule(wheel, &again[i], 0));
		}
		for (size_t call = 0; call < 200; call++)
			ck_assert_int_ge(ww_wheel_advance(wheel, 1000, budget, NULL), 0);
		ck_assert_uint_eq(recorded, 20);
		unmake(wheel);
	}
}
END_TEST

/*
 * A slot of minutes is pre-demoted back into the hours, because its timers were moved there. Their new slot is
 * pre-demoted in time.
 */
START_TEST(timers_pre_demoted_upwards_are_pre_demoted_again)
{
	struct ww_wheel *wheel = make(NULL);

	memset(crowd, 0, sizeof crowd);
	OK(ww_wheel_advance(wheel, 3500, WW_UNLIMITED, NULL));
	for (uint32_t i = 0; i < 600; i++)
		OK(ww_wheel_schedule_at(wheel, &crowd[i], 3610));
	for (uint32_t i = 0; i < 600; i++)
		ck_assert_int_eq(ww_wheel_reschedule_at(wheel, &crowd[i], 7198), 1);
	for (uint64_t now = 3500; now < 7198; now++) {
		OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, NULL));
		assert_sound(wheel);
	}
	ck_assert_uint_eq(stats_of(wheel).expired, 0);
	OK(ww_wheel_advance(wheel, 7198, WW_UNLIMITED, NULL));
	ck_assert_uint_eq(stats_of(wheel).expired, 600);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/smooth", an_hour_whose_timers_all_end_with_it_is_demoted_in_shares,
    a_timer_outside_is_looked_at_seldom, timers_very_far_outside_are_demoted_a_few_times_each,
    a_crowd_very_far_outside_is_demoted_in_shares, a_jump_of_all_time_over_one_timer_looks_at_it_a_few_times,
    no_overdue_timer_starves_under_a_budget, timers_pre_demoted_upwards_are_pre_demoted_again)
