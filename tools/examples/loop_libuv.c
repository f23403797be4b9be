/*
 * Timers in an application's libuv loop: a driver without threads has a descriptor, which a uv_poll_t watches.
 * A beat every 20 ms keeps a watchdog of 60 ms quiet; after the fifth beat the watchdog barks.
 */
#include <stdio.h>

#ifdef HAVE_LIBUV
#include <uv.h>
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

static void readable(uv_poll_t *poll, int status, int events)
{
	/* More than 100 callbacks keep it readable. */
	wrong |= status < 0 || !(events & UV_READABLE) || ww_driver_dispatch(poll->data, 100) < 0;
	if (done || wrong)
		uv_close((uv_handle_t *)poll, NULL); /* nothing is left to wait for: uv_run returns */
}

int main(void)
{
	struct ww_driver_config config;
	struct ww_driver *driver;
	uv_poll_t poll;

	ww_driver_config_default(&config);
	config.flags = WW_DRIVER_THREADLESS;
	if (ww_driver_create(&driver, &config) != WW_OK)
		return 1;
	uv_poll_init(uv_default_loop(), &poll, ww_driver_fd(driver));
	poll.data = driver;
	uv_poll_start(&poll, UV_READABLE, readable);
	ww_driver_now(driver, &start);
	ww_driver_schedule(driver, 60 * WW_MILLISECOND, bark, "the watchdog barks", &watchdog);
	ww_driver_schedule_every(driver, 20 * WW_MILLISECOND, 20 * WW_MILLISECOND, 0, beat, "beat", NULL);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	ww_driver_destroy(driver);
	return uv_loop_close(uv_default_loop()) != 0 || wrong;
}
#else
int main(void)
{
	return puts("skipped: built without libuv"), 77;
}
#endif
