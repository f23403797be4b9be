/* X: how fast a driver calls the callbacks of timers that are due at once. */
#include <time.h>

#include "lib/base/time.h"
#include "tools/bench/layers.h"
#include "weekwheel/weekwheel.h"

static void spin(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	const uint64_t *ns = user;
	uint64_t end = *ns ? time_now(CLOCK_MONOTONIC) + *ns : 0;

	(void)driver, (void)firing;
	while (end && time_now(CLOCK_MONOTONIC) < end)
		continue;
}

/* Returns 0 if they were due before all were scheduled. */
static int schedule_all(struct ww_driver *driver, uint64_t due, uint64_t *callback_ns)
{
	uint64_t now;

	for (uint64_t i = 0; i < LAYER_DUE; i++)
		layer_check(ww_driver_schedule_at(driver, due, spin, callback_ns, NULL), "a timer");
	layer_check(ww_driver_now(driver, &now), "the driver");
	return now < due;
}

static uint64_t wait_for_all(struct ww_driver *driver)
{
	const struct timespec pause = {0, 1000000};
	struct ww_driver_stats stats;
	uint64_t now;

	do {
		(void)nanosleep(&pause, NULL);
		layer_check(ww_driver_now(driver, &now), "the driver");
		layer_check(ww_driver_stats(driver, &stats), "the driver");
	} while (stats.fired < LAYER_DUE || stats.running);
	return now;
}

static uint64_t dispatch_all(struct ww_driver *driver, uint64_t due)
{
	uint64_t now;
	int ran;

	do
		layer_check(ww_driver_now(driver, &now), "the driver");
	while (now < due);
	for (int left = LAYER_DUE; left; left -= ran) {
		ran = ww_driver_dispatch(driver, LAYER_DUE);
		layer_check(ran, "the driver");
	}
	layer_check(ww_driver_now(driver, &now), "the driver");
	return now;
}

/* workers 0: no threads. */
static struct layer_sample fire_all(uint32_t workers, uint64_t callback_ns)
{
	struct ww_driver_config config;
	struct ww_driver *driver;
	uint64_t due, end;
	uint64_t ahead = WW_SECOND / 2;
	int in_time;

	layer_check(ww_driver_config_default(&config), "the driver");
	config.workers = workers;
	config.flags = workers ? 0 : WW_DRIVER_THREADLESS;
	do {
		layer_check(ww_driver_create(&driver, &config), "the driver");
		layer_check(ww_driver_now(driver, &due), "the driver");
		due += ahead;
		in_time = schedule_all(driver, due, &callback_ns);
		end = !in_time ? 0 : workers ? wait_for_all(driver) : dispatch_all(driver, due);
		layer_check(ww_driver_destroy(driver), "the driver");
		ahead *= 2;
	} while (!in_time);
	return (struct layer_sample){(double)(end - due) / LAYER_DUE, 0};
}

static uint32_t default_workers(void)
{
	struct ww_driver_config config;

	layer_check(ww_driver_config_default(&config), "the driver");
	return config.workers;
}

#define DUE(name, workers, ns)                                                                                         \
	struct layer_sample name(uint64_t n, uint64_t seed)                                                            \
	{                                                                                                              \
		(void)n, (void)seed;                                                                                   \
		return fire_all(workers, ns);                                                                          \
	}

DUE(layer_due, default_workers(), 0)
DUE(layer_due_1, 1, 0)
DUE(layer_due_2, 2, 0)
DUE(layer_due_alone, 0, 0)
DUE(layer_due_us, default_workers(), 1000)
DUE(layer_due_us_1, 1, 1000)
DUE(layer_due_us_2, 2, 1000)
