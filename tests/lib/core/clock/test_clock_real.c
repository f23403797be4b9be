/*
 * The real clocks: they go forward, their alarms go off, and a step of the wall clock is reported.
 *
 * No test may step the system's clock. The program puts its own timerfd_settime and read in front of the C library's,
 * which pretend that it was stepped.
 */
/* tier: check, threads */

#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/core/clock/fixture.h"

static atomic_int step_before_set;  /* this many calls of timerfd_settime answer ECANCELED */
static atomic_int step_before_read; /* this many calls of read for stepped_fd do */
static atomic_int stepped_fd;
static atomic_int last_flags; /* of the last timerfd_settime */

static int taken(atomic_int *count)
{
	if (atomic_load(count) <= 0)
		return 0;
	atomic_fetch_sub(count, 1);
	return 1;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new_value, struct itimerspec *old_value)
{
	int answer = (int)syscall(SYS_timerfd_settime, fd, flags, new_value, old_value);

	atomic_store(&last_flags, flags);
	if (answer == 0 && taken(&step_before_set)) {
		errno = ECANCELED;
		return -1;
	}
	return answer;
}

ssize_t read(int fd, void *buffer, size_t size)
{
	static _Atomic(ssize_t(*)(int, void *, size_t)) known;
	ssize_t (*next)(int, void *, size_t) = atomic_load(&known);

	if (next == NULL) {
		*(void **)(void *)&next = dlsym(RTLD_NEXT, "read");
		atomic_store(&known, next);
	}
	if (fd == atomic_load(&stepped_fd) && taken(&step_before_read)) {
		errno = ECANCELED;
		return -1;
	}
	return next(fd, buffer, size);
}

/* ---- The clocks ------------------------------------------------------------------------------------------------- */

static uint64_t system_time(clockid_t id)
{
	struct timespec time;

	ck_assert_int_eq(clock_gettime(id, &time), 0);
	return (uint64_t)time.tv_sec * S + (uint64_t)time.tv_nsec;
}

START_TEST(the_elapsed_clock_goes_forward)
{
	uint64_t last = system_time(CLOCK_BOOTTIME);

	ck_assert_ptr_nonnull(ww_clock_elapsed());
	ck_assert_ptr_eq(ww_clock_elapsed(), ww_clock_elapsed());
	for (int i = 0; i < 100000; i++) {
		uint64_t time = now(ww_clock_elapsed());

		ck_assert_uint_ge(time, last);
		ck_assert_uint_le(time, WW_CLOCK_MAX);
		last = time;
	}
	ck_assert_uint_le(last, system_time(CLOCK_BOOTTIME));
}
END_TEST

START_TEST(the_awake_clock_is_the_monotonic_one)
{
	uint64_t last = system_time(CLOCK_MONOTONIC);

	ck_assert_ptr_eq(ww_clock_awake(), ww_clock_awake());
	ck_assert_ptr_ne(ww_clock_awake(), ww_clock_elapsed());
	for (int i = 0; i < 100000; i++) {
		uint64_t time = now(ww_clock_awake());

		ck_assert_uint_ge(time, last);
		last = time;
	}
	ck_assert_uint_le(last, system_time(CLOCK_MONOTONIC));
}
END_TEST

START_TEST(the_wall_clock_is_the_systems)
{
	int between = 0;

	ck_assert_ptr_nonnull(ww_clock_wall());
	ck_assert_ptr_eq(ww_clock_wall(), ww_clock_wall());
	ck_assert_ptr_ne(ww_clock_wall(), ww_clock_elapsed());
	/* This fails only if the clock is stepped just then. */
	for (int i = 0; i < 10 && !between; i++) {
		uint64_t before = system_time(CLOCK_REALTIME), time = now(ww_clock_wall());

		between = before <= time && time <= system_time(CLOCK_REALTIME) && time <= WW_CLOCK_MAX;
	}
	ck_assert(between);
}
END_TEST

static void check_real_alarm(struct ww_clock *clock)
{
	struct ww_alarm *alarm = make_alarm(clock);
	const uint64_t reached[] = {0, 1, now(clock)};

	ck_assert_int_eq(ww_alarm_clear(alarm), 0);
	for (size_t i = 0; i < 3; i++) {
		OK(ww_alarm_set(alarm, reached[i]));
		ck_assert(readable_within(alarm, PATIENCE_MS));
		ck_assert(went_off(alarm));
	}
	OK(ww_alarm_set(alarm, now(clock) + 3 * MS));
	OK(ww_alarm_wait(alarm));
	ck_assert(readable(alarm));
	ck_assert_int_eq(ww_alarm_clear(alarm), 1);

	/* Replaced, and taken away: each setting takes back that the alarm went off. */
	OK(ww_alarm_set(alarm, now(clock) + 3600 * S));
	OK(ww_alarm_set(alarm, 0));
	ck_assert(readable_within(alarm, PATIENCE_MS));
	OK(ww_alarm_set(alarm, NEVER));
	ck_assert_int_eq(ww_alarm_clear(alarm), 0);
	ww_alarm_destroy(alarm);
}

START_TEST(alarms_of_real_clocks_go_off)
{
	check_real_alarm(ww_clock_elapsed());
	check_real_alarm(ww_clock_awake());
	check_real_alarm(ww_clock_wall());
}
END_TEST

START_TEST(an_elapsed_alarm_is_never_early)
{
	struct ww_alarm *alarm = make_alarm(ww_clock_elapsed());

	for (uint64_t i = 0; i < 5; i++) {
		uint64_t deadline = now(ww_clock_elapsed()) + i * MS / 2;

		OK(ww_alarm_set(alarm, deadline));
		ck_assert(readable_within(alarm, PATIENCE_MS));
		ck_assert_uint_ge(now(ww_clock_elapsed()), deadline);
		ck_assert_int_eq(ww_alarm_clear(alarm), 1);
	}
	ww_alarm_destroy(alarm);
}
END_TEST

START_TEST(a_step_of_the_wall_clock_is_reported)
{
	struct ww_alarm *alarm = make_alarm(ww_clock_wall()), *elapsed = make_alarm(ww_clock_elapsed());

	/* Only an alarm of the wall clock asks for it, and only while it is set. */
	OK(ww_alarm_set(elapsed, WW_CLOCK_MAX));
	ck_assert_int_eq(atomic_load(&last_flags), TFD_TIMER_ABSTIME);
	OK(ww_alarm_set(alarm, NEVER));
	ck_assert_int_eq(atomic_load(&last_flags), TFD_TIMER_ABSTIME);
	OK(ww_alarm_set(alarm, WW_CLOCK_MAX));
	ck_assert_int_eq(atomic_load(&last_flags), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
	ck_assert(!readable(alarm));

	atomic_store(&stepped_fd, ww_alarm_fd(alarm));
	atomic_store(&step_before_read, 1);
	ck_assert_int_eq(ww_alarm_clear(alarm), 1);
	ck_assert_int_eq(ww_alarm_clear(alarm), 0);

	/* Setting does not lose a step that was not cleared. */
	atomic_store(&step_before_set, 2);
	OK(ww_alarm_set(alarm, WW_CLOCK_MAX));
	ck_assert_int_eq(atomic_load(&step_before_set), 0);
	ck_assert(readable_within(alarm, PATIENCE_MS));
	ck_assert(went_off(alarm));
	ww_alarm_destroy(alarm);
	ww_alarm_destroy(elapsed);
}
END_TEST

TEST_MAIN("clock/real", the_elapsed_clock_goes_forward, the_awake_clock_is_the_monotonic_one,
    the_wall_clock_is_the_systems, alarms_of_real_clocks_go_off, an_elapsed_alarm_is_never_early,
    a_step_of_the_wall_clock_is_reported)
