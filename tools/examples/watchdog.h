#ifndef TOOLS_EXAMPLES_WATCHDOG_H
#define TOOLS_EXAMPLES_WATCHDOG_H

/*
 * The timers of the loop_ examples: a beat every 20 ms keeps a watchdog of 60 ms quiet. After the fifth beat the
 * watchdog barks. The driver has no threads: it calls them from the application's loop.
 */

#include <stdio.h>
#include <weekwheel/driver.h>

static ww_handle watchdog;
static uint64_t start;
static int beats, done, wrong;

static void show(struct ww_driver *driver, const struct ww_firing *firing, const char *what)
{
	uint64_t now = 0;

	wrong |= ww_driver_now(driver, &now) != WW_OK || now < firing->deadline; /* never early */
	printf("%4llu ms: %s\n", (unsigned long long)((now - start) / WW_MILLISECOND), what);
}

static void beat(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	show(driver, firing, user);
	wrong |= done || ww_driver_reschedule(driver, watchdog, 60 * WW_MILLISECOND) != 1;
	if (++beats == 5)
		ww_driver_cancel(driver, firing->handle);
}

static void bark(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	show(driver, firing, user);
	wrong |= beats != 5;
	done = 1;
}

static int watchdog_start(struct ww_driver **driver)
{
	struct ww_driver_config config;

	ww_driver_config_default(&config);
	config.flags = WW_DRIVER_THREADLESS;
	if (ww_driver_create(driver, &config) != WW_OK)
		return -1;
	ww_driver_now(*driver, &start);
	/* In this order: if the process stands still for longer than the watchdog waits, a beat is due before it all the same. */
	ww_driver_schedule_every(*driver, 20 * WW_MILLISECOND, 20 * WW_MILLISECOND, 0, beat, "beat", NULL);
	ww_driver_schedule(*driver, 60 * WW_MILLISECOND, bark, "the watchdog barks", &watchdog);
	return 0;
}

#endif
