/* Alarms of any clock. */

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "lib/core/clock/clock_internal.h"
#include "lib/core/clock/descriptor.h"

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
	made->fd = ww_descriptor_open(clock);
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
		ww_descriptor_set(alarm->fd, alarm->clock, ns);
	return WW_OK;
}

int ww_alarm_clear(struct ww_alarm *alarm)
{
	int state, went_off;

	if (alarm == NULL)
		return WW_EINVAL;
	if (alarm->clock->is_virtual)
		return ww_clock_virtual_clear_alarm(alarm);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	went_off = ww_descriptor_clear(alarm->fd);
	(void)pthread_setcancelstate(state, &state);
	return went_off;
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
