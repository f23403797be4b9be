/* Clocks and alarms, mostly on virtual clocks. */
/* tier: check, threads */

#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>

#include "tests/lib/core/clock/fixture.h"
#include "tests/support/memory.h"
#include "tests/support/seed.h"

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

START_TEST(null_is_refused_or_harmless)
{
	struct ww_clock *clock = make_clock(5);
	struct ww_alarm *alarm = NULL;
	uint64_t ns = 17;

	ck_assert_int_eq(ww_clock_now(NULL, &ns), WW_EINVAL);
	ck_assert_int_eq(ww_clock_now(clock, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_clock_now(ww_clock_elapsed(), NULL), WW_EINVAL);
	ck_assert_int_eq(ww_clock_virtual_create(NULL, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_clock_virtual_advance(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_clock_virtual_set(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_create(NULL, clock, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_create(&alarm, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_fd(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_set(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_clear(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_alarm_wait(NULL), WW_EINVAL);
	ck_assert_uint_eq(ns, 17);
	ck_assert_ptr_null(alarm);
	OK(ww_clock_virtual_destroy(NULL));
	ww_alarm_destroy(NULL);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(the_time_of_real_clocks_cannot_be_set)
{
	struct ww_clock *clocks[] = {ww_clock_elapsed(), ww_clock_wall(), ww_clock_awake()};

	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(ww_clock_virtual_advance(clocks[i], 1), WW_EINVAL);
		ck_assert_int_eq(ww_clock_virtual_set(clocks[i], 1), WW_EINVAL);
		ck_assert_int_eq(ww_clock_virtual_destroy(clocks[i]), WW_EINVAL);
	}
}
END_TEST

START_TEST(times_beyond_the_last_one_are_refused)
{
	static const uint64_t beyond[] = {WW_CLOCK_MAX + 1, WW_CLOCK_MAX + 2, UINT64_MAX - 1};
	struct ww_clock *clock = make_clock(WW_CLOCK_MAX), *none = NULL;
	struct ww_alarm *alarms[] = {make_alarm(clock), make_alarm(ww_clock_elapsed()), make_alarm(ww_clock_wall())};

	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(ww_clock_virtual_create(&none, beyond[i], NULL), WW_EOVERFLOW);
		ck_assert_int_eq(ww_clock_virtual_set(clock, beyond[i]), WW_EOVERFLOW);
		ck_assert_int_eq(ww_clock_virtual_advance(clock, beyond[i]), WW_EOVERFLOW);
		for (size_t j = 0; j < 3; j++)
			ck_assert_int_eq(ww_alarm_set(alarms[j], beyond[i]), WW_EOVERFLOW);
	}
	ck_assert_ptr_null(none);
	ck_assert_int_eq(ww_clock_virtual_create(&none, UINT64_MAX, NULL), WW_EOVERFLOW);
	ck_assert_int_eq(ww_clock_virtual_set(clock, UINT64_MAX), WW_EOVERFLOW);
	ck_assert_int_eq(ww_clock_virtual_advance(clock, 1), WW_EOVERFLOW);
	ck_assert_int_eq(ww_clock_virtual_advance(clock, UINT64_MAX), WW_EOVERFLOW);
	OK(ww_clock_virtual_advance(clock, 0));
	ck_assert_uint_eq(now(clock), WW_CLOCK_MAX);
	for (size_t j = 0; j < 3; j++) {
		ck_assert(!readable(alarms[j]));
		OK(ww_alarm_set(alarms[j], WW_CLOCK_MAX));
	}
	ck_assert(went_off(alarms[0]));
	ck_assert(!readable(alarms[1]));
	for (size_t j = 0; j < 3; j++)
		ww_alarm_destroy(alarms[j]);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(a_refused_setting_keeps_the_former_one)
{
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *alarm = make_alarm(clock);

	OK(ww_alarm_set(alarm, 10));
	ck_assert_int_eq(ww_alarm_set(alarm, WW_CLOCK_MAX + 1), WW_EOVERFLOW);
	ck_assert_int_eq(ww_clock_virtual_advance(clock, WW_CLOCK_MAX + 1), WW_EOVERFLOW);
	OK(ww_clock_virtual_advance(clock, 10));
	ck_assert_int_eq(ww_alarm_set(alarm, WW_CLOCK_MAX + 1), WW_EOVERFLOW);
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

/* ---- Memory and descriptors ------------------------------------------------------------------------------------- */

START_TEST(a_clock_with_alarms_is_not_destroyed)
{
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *one = make_alarm(clock), *two = make_alarm(clock);

	ck_assert_int_eq(ww_clock_virtual_destroy(clock), WW_EBUSY);
	ww_alarm_destroy(one);
	ck_assert_int_eq(ww_clock_virtual_destroy(clock), WW_EBUSY);
	OK(ww_alarm_set(two, 3));
	OK(ww_clock_virtual_advance(clock, 3));
	ck_assert(went_off(two));
	ww_alarm_destroy(two);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(each_failed_allocation_is_reported)
{
	struct ww_clock *clock_marker = ww_clock_wall(), *clock;
	struct ww_alarm *alarm_marker = make_alarm(clock_marker), *alarm;
	struct test_memory memory;
	int error = WW_ENOMEM;

	for (size_t fail_at = 1; error != WW_OK; fail_at++) {
		ck_assert_uint_le(fail_at, 3);
		clock = clock_marker;
		alarm = alarm_marker;
		test_memory_init(&memory, fail_at);
		error = ww_clock_virtual_create(&clock, 0, &memory.table);
		if (error != WW_OK) {
			ck_assert_int_eq(error, WW_ENOMEM);
			ck_assert_ptr_eq(clock, clock_marker);
			ck_assert_uint_eq(memory.blocks, 0);
			continue;
		}
		error = ww_alarm_create(&alarm, clock, &memory.table);
		if (error != WW_OK) {
			ck_assert_int_eq(error, WW_ENOMEM);
			ck_assert_ptr_eq(alarm, alarm_marker);
			ck_assert_uint_eq(memory.blocks, 1);
		} else {
			ck_assert_uint_eq(memory.blocks, 2);
			ww_alarm_destroy(alarm);
		}
		OK(ww_clock_virtual_destroy(clock));
		ck_assert_uint_eq(memory.blocks, 0);
		ck_assert_uint_eq(memory.bytes, 0);
	}
	ck_assert_uint_eq(memory.calls, 2);
	ww_alarm_destroy(alarm_marker);
}
END_TEST

START_TEST(each_failed_descriptor_is_reported)
{
	struct ww_clock *clocks[] = {make_clock(0), ww_clock_elapsed(), ww_clock_wall()};
	struct ww_alarm *marker = make_alarm(clocks[0]);
	struct rlimit limit, none;
	struct test_memory memory;

	test_memory_init(&memory, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	for (size_t i = 0; i < 3; i++) {
		struct ww_alarm *alarm = marker;
		int error;

		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
		error = ww_alarm_create(&alarm, clocks[i], &memory.table);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		ck_assert_int_eq(error, WW_ESYSTEM);
		ck_assert_ptr_eq(alarm, marker);
		ck_assert_uint_eq(memory.blocks, 0);
	}
	ww_alarm_destroy(marker);
	OK(ww_clock_virtual_destroy(clocks[0]));
}
END_TEST

START_TEST(descriptors_are_closed_on_exec_and_when_destroyed)
{
	struct ww_clock *clocks[] = {make_clock(0), ww_clock_elapsed(), ww_clock_wall()};

	for (size_t i = 0; i < 3; i++) {
		struct ww_alarm *alarm = make_alarm(clocks[i]);
		int fd = ww_alarm_fd(alarm);

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(ww_alarm_fd(alarm), fd);
		ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
		OK(ww_alarm_set(alarm, 0));
		ww_alarm_destroy(alarm);
		ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	}
	OK(ww_clock_virtual_destroy(clocks[0]));
}
END_TEST

/* ---- Virtual clocks --------------------------------------------------------------------------------------------- */

START_TEST(the_time_of_a_virtual_clock_is_set)
{
	struct ww_clock *clock = make_clock(7), *other = make_clock(0);

	ck_assert_uint_eq(now(clock), 7);
	OK(ww_clock_virtual_advance(clock, 0));
	ck_assert_uint_eq(now(clock), 7);
	OK(ww_clock_virtual_advance(clock, 3));
	ck_assert_uint_eq(now(clock), 10);
	OK(ww_clock_virtual_set(clock, 4));
	ck_assert_uint_eq(now(clock), 4);
	OK(ww_clock_virtual_set(clock, 0));
	OK(ww_clock_virtual_advance(clock, WW_CLOCK_MAX));
	ck_assert_uint_eq(now(clock), WW_CLOCK_MAX);
	OK(ww_clock_virtual_set(clock, WW_CLOCK_MAX));
	ck_assert_uint_eq(now(other), 0);
	OK(ww_clock_virtual_destroy(clock));
	OK(ww_clock_virtual_destroy(other));
}
END_TEST

START_TEST(an_alarm_goes_off_in_its_nanosecond_and_once)
{
	struct ww_clock *clock = make_clock(100);
	struct ww_alarm *alarm = make_alarm(clock);

	ck_assert(!went_off(alarm));
	OK(ww_alarm_set(alarm, 200));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_advance(clock, 99));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_advance(clock, 1));
	ck_assert(readable(alarm));
	OK(ww_clock_virtual_advance(clock, 1));
	ck_assert(went_off(alarm));
	OK(ww_clock_virtual_advance(clock, S));
	ck_assert(!went_off(alarm));

	OK(ww_alarm_set(alarm, 10 * S));
	OK(ww_clock_virtual_set(clock, 10 * S - 1));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_set(clock, 20 * S));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(an_alarm_set_to_the_past_goes_off_at_once)
{
	static const uint64_t reached[] = {0, 1, 499, 500};
	struct ww_clock *clock = make_clock(500);
	struct ww_alarm *alarm = make_alarm(clock);

	for (size_t i = 0; i < sizeof reached / sizeof reached[0]; i++) {
		OK(ww_alarm_set(alarm, reached[i]));
		ck_assert(went_off(alarm));
	}
	/* Clearing twice counts once. */
	OK(ww_alarm_set(alarm, 0));
	OK(ww_alarm_set(alarm, 0));
	ck_assert(went_off(alarm));
	OK(ww_alarm_set(alarm, 501));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_set(clock, 0));
	ck_assert_int_eq(ww_alarm_clear(alarm), 1);
	OK(ww_alarm_set(alarm, 0));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(a_setting_replaces_the_former_one)
{
	struct ww_clock *clock = make_clock(0);
	struct ww_alarm *alarm = make_alarm(clock);

	/* Set it later, earlier, not at all. */
	OK(ww_alarm_set(alarm, 10));
	OK(ww_alarm_set(alarm, 20));
	OK(ww_clock_virtual_set(clock, 19));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_set(clock, 20));
	ck_assert(went_off(alarm));
	OK(ww_alarm_set(alarm, 50));
	OK(ww_alarm_set(alarm, 40));
	OK(ww_clock_virtual_set(clock, 40));
	ck_assert(went_off(alarm));
	OK(ww_clock_virtual_set(clock, 50));
	ck_assert(!went_off(alarm));
	OK(ww_alarm_set(alarm, 60));
	OK(ww_alarm_set(alarm, NEVER));
	OK(ww_clock_virtual_set(clock, WW_CLOCK_MAX));
	ck_assert(!went_off(alarm));
	OK(ww_clock_virtual_set(clock, 50));

	/* Setting takes back an alarm that has gone off. */
	OK(ww_alarm_set(alarm, 0));
	OK(ww_alarm_set(alarm, 60));
	ck_assert(!readable(alarm));
	OK(ww_clock_virtual_set(clock, 60));
	ck_assert(readable(alarm));
	OK(ww_alarm_set(alarm, NEVER));
	ck_assert(!went_off(alarm));

	/* Clearing an alarm that has not gone off leaves it set. */
	OK(ww_alarm_set(alarm, 70));
	ck_assert_int_eq(ww_alarm_clear(alarm), 0);
	OK(ww_clock_virtual_set(clock, 70));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(a_step_backwards_sets_off_the_alarms_that_are_set)
{
	struct ww_clock *clock = make_clock(1000);
	struct ww_alarm *set = make_alarm(clock), *not_set = make_alarm(clock), *spent = make_alarm(clock);

	OK(ww_alarm_set(set, 2000));
	OK(ww_alarm_set(not_set, 2000));
	OK(ww_alarm_set(not_set, NEVER));
	OK(ww_alarm_set(spent, 0));
	ck_assert(went_off(spent));
	OK(ww_clock_virtual_set(clock, 1000));
	ck_assert(!went_off(set));
	OK(ww_clock_virtual_set(clock, 999));
	ck_assert(went_off(set));
	ck_assert(!went_off(not_set));
	ck_assert(!went_off(spent));

	/* A listener for steps alone is not called when time passes. */
	OK(ww_alarm_set(set, WW_CLOCK_MAX));
	OK(ww_clock_virtual_advance(clock, S));
	OK(ww_clock_virtual_set(clock, 2 * S));
	ck_assert(!went_off(set));
	OK(ww_clock_virtual_set(clock, 0));
	ck_assert(went_off(set));
	ww_alarm_destroy(set);
	ww_alarm_destroy(not_set);
	ww_alarm_destroy(spent);
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

START_TEST(alarms_of_other_clocks_are_unaffected)
{
	struct ww_clock *one = make_clock(0), *two = make_clock(0);
	struct ww_alarm *of_one = make_alarm(one), *of_two = make_alarm(two);

	OK(ww_alarm_set(of_one, 5));
	OK(ww_alarm_set(of_two, 5));
	OK(ww_clock_virtual_advance(one, 5));
	ck_assert(went_off(of_one));
	ck_assert(!went_off(of_two));
	ww_alarm_destroy(of_one);
	ww_alarm_destroy(of_two);
	OK(ww_clock_virtual_destroy(one));
	OK(ww_clock_virtual_destroy(two));
}
END_TEST

/* ---- Random operations against the header ----------------------------------------------------------------------- */

enum { ALARMS = 100, STEPS = 200000, SPAN = 1000 };

/* WW_MODEL_OPS sets it, scaled down: each step here makes system calls. */
static uint64_t steps_of_run(void)
{
	const char *text = getenv("WW_MODEL_OPS");

	return text && *text ? strtoull(text, NULL, 0) / 20 : STEPS;
}

struct expected {
	struct ww_alarm *alarm;
	uint64_t when; /* NEVER: not set */
	int off;
};

static void expect_time(struct expected *all, uint64_t *time, uint64_t ns)
{
	for (size_t i = 0; i < ALARMS; i++) {
		if (all[i].when == NEVER || (ns >= *time && all[i].when > ns))
			continue;
		all[i].when = NEVER;
		all[i].off = 1;
	}
	*time = ns;
}

static void expect_setting(struct expected *one, uint64_t time, uint64_t ns)
{
	one->off = ns <= time;
	one->when = one->off ? NEVER : ns;
}

static void random_step(struct ww_clock *clock, struct expected *all, uint64_t *time, uint64_t *state)
{
	struct expected *one = &all[seed_below(state, ALARMS)];
	uint64_t ns = *time - SPAN + seed_below(state, 2 * SPAN);

	switch (seed_below(state, 20)) {
	case 0:
		ns = seed_below(state, SPAN / 4);
		OK(ww_clock_virtual_advance(clock, ns));
		expect_time(all, time, *time + ns);
		break;
	case 1:
		OK(ww_clock_virtual_set(clock, ns));
		expect_time(all, time, ns);
		break;
	case 2:
		OK(ww_alarm_set(one->alarm, NEVER));
		expect_setting(one, *time, NEVER);
		break;
	case 3:
		/* The alarm may be anywhere in the clock's list. */
		ww_alarm_destroy(one->alarm);
		*one = (struct expected){make_alarm(clock), NEVER, 0};
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		ck_assert_int_eq(ww_alarm_clear(one->alarm), one->off);
		one->off = 0;
		break;
	default:
		OK(ww_alarm_set(one->alarm, ns));
		expect_setting(one, *time, ns);
		break;
	}
}

START_TEST(random_operations_on_many_alarms_match_the_header)
{
	static struct expected all[ALARMS];
	uint64_t state = seed_of_run("random_operations_on_many_alarms_match_the_header"), time = 1000 * S;
	struct ww_clock *clock = make_clock(time);
	uint64_t steps = steps_of_run();

	for (size_t i = 0; i < ALARMS; i++)
		all[i] = (struct expected){make_alarm(clock), NEVER, 0};
	for (uint64_t step = 0; step < steps; step++) {
		size_t i = step % ALARMS;

		random_step(clock, all, &time, &state);
		ck_assert_uint_eq(now(clock), time);
		ck_assert_msg(readable(all[i].alarm) == all[i].off, "step %" PRIu64 ", alarm %zu", step, i);
	}
	for (size_t i = 0; i < ALARMS; i++) {
		ck_assert_int_eq(ww_alarm_clear(all[i].alarm), all[i].off);
		ww_alarm_destroy(all[i].alarm);
	}
	OK(ww_clock_virtual_destroy(clock));
}
END_TEST

TEST_MAIN("clock", null_is_refused_or_harmless, the_time_of_real_clocks_cannot_be_set,
    times_beyond_the_last_one_are_refused, a_refused_setting_keeps_the_former_one, a_clock_with_alarms_is_not_destroyed,
    each_failed_allocation_is_reported, each_failed_descriptor_is_reported,
    descriptors_are_closed_on_exec_and_when_destroyed, the_time_of_a_virtual_clock_is_set,
    an_alarm_goes_off_in_its_nanosecond_and_once, an_alarm_set_to_the_past_goes_off_at_once,
    a_setting_replaces_the_former_one, a_step_backwards_sets_off_the_alarms_that_are_set,
    alarms_of_other_clocks_are_unaffected, random_operations_on_many_alarms_match_the_header)
