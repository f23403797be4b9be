#ifndef TESTS_LIB_CORE_CLOCK_FIXTURE_H
#define TESTS_LIB_CORE_CLOCK_FIXTURE_H

/* Shared by the tests of clocks: makes clocks and alarms or fails the test, and looks at the state of an alarm. */

#include <errno.h>
#include <poll.h>
#include <stdint.h>

#include "tests/support/suite.h"
#include "weekwheel/clock.h"

#define NEVER UINT64_MAX
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* A real alarm later than this is broken. Tests wait this long for nothing else. */
#define PATIENCE_MS 60000

static inline struct ww_clock *make_clock(uint64_t start)
{
	struct ww_clock *clock = NULL;

	OK(ww_clock_virtual_create(&clock, start, NULL));
	ck_assert_ptr_nonnull(clock);
	return clock;
}

static inline struct ww_alarm *make_alarm(struct ww_clock *clock)
{
	struct ww_alarm *alarm = NULL;

	OK(ww_alarm_create(&alarm, clock, NULL));
	ck_assert_ptr_nonnull(alarm);
	return alarm;
}

static inline uint64_t now(struct ww_clock *clock)
{
	uint64_t ns = NEVER;

	OK(ww_clock_now(clock, &ns));
	return ns;
}

static inline int readable_within(struct ww_alarm *alarm, int ms)
{
	struct pollfd descriptor = {.fd = ww_alarm_fd(alarm), .events = POLLIN};
	int count;

	do
		count = poll(&descriptor, 1, ms);
	while (count < 0 && errno == EINTR);
	ck_assert_int_ge(count, 0);
	return count == 1 && (descriptor.revents & POLLIN) != 0;
}

static inline int readable(struct ww_alarm *alarm)
{
	return readable_within(alarm, 0);
}

/* Whether the alarm has gone off, by its descriptor and by clear, which must agree. Clears it. */
static inline int went_off(struct ww_alarm *alarm)
{
	int answer = readable(alarm);

	ck_assert_int_eq(ww_alarm_clear(alarm), answer);
	ck_assert_int_eq(ww_alarm_clear(alarm), 0);
	ck_assert(!readable(alarm));
	return answer;
}

#endif
