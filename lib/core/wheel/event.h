#ifndef LIB_CORE_WHEEL_EVENT_H
#define LIB_CORE_WHEEL_EVENT_H

/* What the driver reads of a wheel's head after each schedule; ww_wheel_next, which is exact, would cost O(levels). */

#include "weekwheel/wheel.h"

/*
 * A time before which advance has nothing to do. It may be earlier than what ww_wheel_next answers, when what it was
 * noted for was cancelled or moved.
 */
static inline uint64_t wheel_event(const struct ww_wheel *wheel)
{
	return ((const struct ww_wheel_head *)(const void *)wheel)->event;
}

#endif
