#ifndef LIB_CORE_WHEEL_EVENT_H
#define LIB_CORE_WHEEL_EVENT_H

/*
 * Members that the layers above read inline. The driver reads a wheel's head after each schedule; ww_wheel_next, which
 * is exact, would cost O(levels). A session map reads a timer in each lookup.
 */

#include "weekwheel/wheel.h"

/*
 * A time before which advance has nothing to do. It may be earlier than what ww_wheel_next answers, when what it was
 * noted for was cancelled or moved.
 */
static inline uint64_t wheel_event(const struct ww_wheel *wheel)
{
	return ((const struct ww_wheel_head *)(const void *)wheel)->event;
}

/* What ww_timer_deadline answers for a timer that is pending. */
static inline uint64_t pending_deadline(const struct ww_timer *timer)
{
	return WW_TIME_MAX + 1 - timer->ww_to_end;
}

#endif
