/*
 * Timers in an application's libev loop: a driver without threads has a descriptor, which an ev_io watches.
 * A beat every 20 ms keeps a watchdog of 60 ms quiet; after the fifth beat the watchdog barks.
 */
#include <stdio.h>

#ifdef HAVE_LIBEV
#include <ev.h>
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

static void readable(struct ev_loop *loop, ev_io *io, int events)
{
	wrong |= events != EV_READ || ww_driver_dispatch(io->data, 100) < 0; /* 100 callbacks at most */
	if (done || wrong)
		ev_io_stop(loop, io); /* nothing is left to wait for: ev_run returns */
}

int main(void)
{
	struct ww_driver_config config;
	struct ww_driver *driver;
	struct ev_loop *loop = ev_default_loop(0);
	ev_io io;

	ww_driver_config_default(&config);
	config.flags = WW_DRIVER_THREADLESS;
	if (!loop || ww_driver_create(&driver, &config) != WW_OK)
		return 1;
	ev_io_init(&io, readable, ww_driver_fd(driver), EV_READ);
	io.data = driver;
	ev_io_start(loop, &io);
	ww_driver_now(driver, &start);
	ww_driver_schedule(driver, 60 * WW_MILLISECOND, bark, "the watchdog barks", &watchdog);
	ww_driver_schedule_every(driver, 20 * WW_MILLISECOND, 20 * WW_MILLISECOND, 0, beat, "beat", NULL);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	return ww_driver_destroy(driver) != WW_OK || wrong;
}
#else
int main(void)
{
	return puts("skipped: built without libev"), 77;
}
#endif
