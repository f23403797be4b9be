#ifndef TESTS_SUPPORT_WORKER_H
#define TESTS_SUPPORT_WORKER_H

/*
 * A test's view into the driver, for the layers above it: it lets timers expire without running their firings, which
 * lets a test play the worker, and reads the statistics of a source's wheel.
 */

#include "lib/core/driver/driver_internal.h"

/* Queue everything due, and run none of it. */
static inline void queue_due(struct ww_driver *driver)
{
	ww_driver_pass(driver);
}

static inline struct ww_stats wheel_stats(const struct timer_source *source)
{
	struct ww_stats stats = {0};

	(void)ww_wheel_stats(source->wheel, &stats);
	return stats;
}

#endif
