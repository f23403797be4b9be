/*
 * Timers in an application's own epoll loop: a driver without threads has a descriptor that is readable when something
 * is due. A beat every 20 ms keeps a watchdog of 60 ms quiet; after the fifth beat the watchdog barks.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <weekwheel/driver.h>

static ww_handle watchdog;
static uint64_t start;
static int beats, done, wrong;

static void show(struct ww_driver *driver, const struct ww_firing *firing, const char *what)
{
	uint64_t now;

	ww_driver_now(driver, &now);
	wrong |= now < firing->deadline; /* never early */
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

int main(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct ww_driver_config config;
	struct ww_driver *driver;
	int loop = epoll_create1(EPOLL_CLOEXEC);

	ww_driver_config_default(&config);
	config.flags = WW_DRIVER_THREADLESS;
	if (loop < 0 || ww_driver_create(&driver, &config) != WW_OK)
		return 1;
	if (epoll_ctl(loop, EPOLL_CTL_ADD, ww_driver_fd(driver), &event) != 0)
		return 1;
	ww_driver_now(driver, &start);
	ww_driver_schedule(driver, 60 * WW_MILLISECOND, bark, "the watchdog barks", &watchdog);
	ww_driver_schedule_every(driver, 20 * WW_MILLISECOND, 20 * WW_MILLISECOND, 0, beat, "beat", NULL);
	while (!done && !wrong)
		if (epoll_wait(loop, &event, 1, -1) == 1) /* your other descriptors would be here too */
			ww_driver_dispatch(driver, 100);  /* more than 100 callbacks keep it readable */
	ww_driver_destroy(driver);
	close(loop);
	return wrong;
}
