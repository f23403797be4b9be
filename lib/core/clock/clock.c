/* The two real clocks, and reading any clock. */

#include "lib/base/time.h"
#include "lib/core/clock/clock_internal.h"

struct ww_clock *ww_clock_elapsed(void)
{
	static struct ww_clock elapsed = {.id = CLOCK_BOOTTIME};

	return &elapsed;
}

struct ww_clock *ww_clock_wall(void)
{
	static struct ww_clock wall = {.id = CLOCK_REALTIME};

	return &wall;
}

int ww_clock_now(struct ww_clock *clock, uint64_t *ns)
{
	if (clock == NULL || ns == NULL)
		return WW_EINVAL;
	if (clock->is_virtual) {
		*ns = atomic_load_explicit(&clock->now, memory_order_acquire);
		return WW_OK;
	}
	/* The kernel keeps both as signed 64-bit nanoseconds and refuses times before 1970: the result fits. */
	*ns = time_now(clock->id);
	return WW_OK;
}
