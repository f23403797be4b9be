#ifndef TESTS_SUPPORT_WORKER_H
#define TESTS_SUPPORT_WORKER_H

/*
 * What a test of a layer above the driver needs to see from inside it: it lets timers expire without running what they
 * queue, so that it can play the worker, and looks at a source's wheel.
 */

#include "lib/core/driver/driver_internal.h"

/* Queue what is due, and run nothing of it. */
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
