/*
 * Timers in an application's libuv loop: a driver without threads has a descriptor, which a uv_poll_t watches. The timers
 * are in watchdog.h.
 */
#ifdef HAVE_LIBUV
#include <uv.h>

#include "watchdog.h"

static void readable(uv_poll_t *poll, int status, int events)
{
	/* More than 100 callbacks keep it readable. */
	wrong |= status < 0 || !(events & UV_READABLE) || ww_driver_dispatch(poll->data, 100) < 0;
	if (done || wrong)
		uv_close((uv_handle_t *)poll, NULL); /* nothing is left to wait for: uv_run returns */
}

int main(void)
{
	struct ww_driver *driver;
	uv_poll_t poll;

	if (watchdog_start(&driver) != 0)
		return 1;
	uv_poll_init(uv_default_loop(), &poll, ww_driver_fd(driver));
	poll.data = driver;
	uv_poll_start(&poll, UV_READABLE, readable);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	ww_driver_destroy(driver);
	return uv_loop_close(uv_default_loop()) != 0 || wrong;
}
#else
#include <stdio.h>

int main(void)
{
	return puts("skipped: built without libuv: Debian has it in the package libuv1-dev"), 77;
}
#endif
