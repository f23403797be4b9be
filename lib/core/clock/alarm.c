/* Alarms of any clock; those of the real clocks use timerfd. */

/* A time_t of 32 bits, the default on some systems, would wrap round in 2038. */
#define _FILE_OFFSET_BITS 64
#define _TIME_BITS 64

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/core/clock/clock_internal.h"

#define NS_PER_S UINT64_C(1000000000)

static const struct timespec at_once = {0, 1};

/* ---- Real clocks ------------------------------------------------------------------------------------------------ */

static void set_timer(struct ww_alarm *alarm, uint64_t ns)
{
	struct itimerspec setting = {{0, 0}, {0, 0}};
	int flags = TFD_TIMER_ABSTIME;

	if (ns != NEVER) {
		setting.it_value.tv_sec = (time_t)(ns / NS_PER_S);
		setting.it_value.tv_nsec = (long)(ns % NS_PER_S);
		/* Only while it is set: otherwise a step of the clock must not make it go off. */
		if (alarm->clock->id == CLOCK_REALTIME)
			flags |= TFD_TIMER_CANCEL_ON_SET;
	}
	/* To the kernel 0 means not set. */
	if (ns == 0)
		setting.it_value = at_once;
	/*
	 * ECANCELED: the clock was stepped after the last setting, and the alarm was not cleared since. The kernel has
	 * set the timer, but it is not readable any more. As `ns` may be computed from before the step, make it go off.
	 */
	while (timerfd_settime(alarm->fd, flags, &setting, NULL) != 0 && errno == ECANCELED)
		setting.it_value = at_once;
}

static int clear_timer(struct ww_alarm *alarm)
{
	uint64_t count;
	int state, went_off;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	/* ECANCELED: the clock was stepped. */
	went_off = read(alarm->fd, &count, sizeof count) == (ssize_t)sizeof count || errno == ECANCELED;
	(void)pthread_setcancelstate(state, &state);
	return went_off;
}

/* ---- Any clock -------------------------------------------------------------------------------------------------- */

static int open_descriptor(const struct ww_clock *clock)
{
	if (clock->is_virtual)
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return timerfd_create(clock->id, TFD_CLOEXEC | TFD_NONBLOCK);
}

int ww_alarm_create(struct ww_alarm **alarm, struct ww_clock *clock, const struct ww_allocator *allocator)
{
	struct ww_alarm *made;

	if (alarm == NULL || clock == NULL)
		return WW_EINVAL;
	if (allocator == NULL)
		allocator = ww_allocator_default();
	made = allocator->allocate(allocator->user, sizeof *made);
	if (made == NULL)
		return WW_ENOMEM;
	*made = (struct ww_alarm){.clock = clock, .allocator = allocator, .when = NEVER};
	made->fd = open_descriptor(clock);
	if (made->fd < 0) {
		allocator->free(allocator->user, made, sizeof *made);
		return WW_ESYSTEM;
	}
	if (clock->is_virtual)
		ww_clock_virtual_add(made);
	*alarm = made;
	return WW_OK;
}

void ww_alarm_destroy(struct ww_alarm *alarm)
{
	int state;

	if (alarm == NULL)
		return;
	if (alarm->clock->is_virtual)
		ww_clock_virtual_remove(alarm);
	/* close is a cancellation point. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	(void)close(alarm->fd);
	(void)pthread_setcancelstate(state, &state);
	alarm->allocator->free(alarm->allocator->user, alarm, sizeof *alarm);
}

int ww_alarm_fd(const struct ww_alarm *alarm)
{
	return alarm == NULL ? WW_EINVAL : alarm->fd;
}

int ww_alarm_set(struct ww_alarm *alarm, uint64_t ns)
{
	if (alarm == NULL)
		return WW_EINVAL;
	if (ns > WW_CLOCK_MAX && ns != NEVER)
		return WW_EOVERFLOW;
	if (alarm->clock->is_virtual)
		ww_clock_virtual_set_alarm(alarm, ns);
	else
		set_timer(alarm, ns);
	return WW_OK;
}

int ww_alarm_clear(struct ww_alarm *alarm)
{
	if (alarm == NULL)
		return WW_EINVAL;
	return alarm->clock->is_virtual ? ww_clock_virtual_clear_alarm(alarm) : clear_timer(alarm);
}

int ww_alarm_wait(struct ww_alarm *alarm)
{
	struct pollfd descriptor;

	if (alarm == NULL)
		return WW_EINVAL;
	descriptor = (struct pollfd){.fd = alarm->fd, .events = POLLIN};
	while (poll(&descriptor, 1, -1) < 0)
		if (errno != EINTR)
			return WW_ESYSTEM;
	return WW_OK;
}
