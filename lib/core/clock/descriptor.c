/* The descriptors of alarms on Linux: timerfd for the real clocks, eventfd for virtual ones. */

/* A time_t of 32 bits, the default on some systems, would wrap round in 2038. */
#define _FILE_OFFSET_BITS 64
#define _TIME_BITS 64

#include "lib/core/clock/descriptor.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/core/clock/clock_internal.h"

#define NS_PER_S UINT64_C(1000000000)

static const struct timespec at_once = {0, 1};

int ww_descriptor_open(const struct ww_clock *clock)
{
	if (clock->is_virtual)
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return timerfd_create(clock->id, TFD_CLOEXEC | TFD_NONBLOCK);
}

void ww_descriptor_set(int fd, const struct ww_clock *clock, uint64_t ns)
{
	struct itimerspec setting = {{0, 0}, {0, 0}};
	int flags = TFD_TIMER_ABSTIME;

	if (ns != NEVER) {
		setting.it_value.tv_sec = (time_t)(ns / NS_PER_S);
		setting.it_value.tv_nsec = (long)(ns % NS_PER_S);
		/* Only while it is set: otherwise a step of the clock must not make it readable. */
		if (clock->id == CLOCK_REALTIME)
			flags |= TFD_TIMER_CANCEL_ON_SET;
	}
	/* To the kernel 0 means not set. */
	if (ns == 0)
		setting.it_value = at_once;
	/*
	 * ECANCELED: the clock was stepped after the last setting, and the descriptor was not cleared since. The kernel
	 * has set the timer, but it is not readable any more. As `ns` may be computed from before the step, make it so.
	 */
	while (timerfd_settime(fd, flags, &setting, NULL) != 0 && errno == ECANCELED)
		setting.it_value = at_once;
}

int ww_descriptor_raise(int fd)
{
	const uint64_t one = 1;

	return write(fd, &one, sizeof one) == (ssize_t)sizeof one;
}

int ww_descriptor_clear(int fd)
{
	uint64_t count;

	/* ECANCELED: the wall clock was stepped. */
	return read(fd, &count, sizeof count) == (ssize_t)sizeof count || errno == ECANCELED;
}
