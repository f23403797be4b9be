/* A timer by itself: making it, and what it says of its deadline. */

#include "lib/core/wheel/wheel_internal.h"

int ww_timer_init(struct ww_timer *timer, ww_timer_fn *callback)
{
	if (!timer)
		return WW_EINVAL;
	*timer = (struct ww_timer)WW_TIMER_INIT(callback);
	return WW_OK;
}

int ww_timer_pending(const struct ww_timer *timer)
{
	if (!timer)
		return WW_EINVAL;
	return timer_is_pending(timer);
}

int ww_timer_deadline(const struct ww_timer *timer, uint64_t *deadline)
{
	if (!timer || !deadline)
		return WW_EINVAL;
	if (!timer_is_pending(timer))
		return 0;
	*deadline = timer_deadline(timer);
	return 1;
}
