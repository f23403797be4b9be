/*
 * Timers in an application's libev loop: a driver without threads has a descriptor, which an ev_io watches. The timers
 * are in watchdog.h.
 */
#ifdef HAVE_LIBEV
#include <ev.h>

#include "watchdog.h"

static void readable(struct ev_loop *loop, ev_io *io, int events)
{
	wrong |= events != EV_READ || ww_driver_dispatch(io->data, 100) < 0; /* 100 callbacks at most */
	if (done || wrong)
		ev_io_stop(loop, io); /* nothing is left to wait for: ev_run returns */
}

int main(void)
{
	struct ww_driver *driver;
	struct ev_loop *loop = ev_default_loop(0);
	ev_io io;

	if (!loop || watchdog_start(&driver) != 0)
		return 1;
	ev_io_init(&io, readable, ww_driver_fd(driver), EV_READ);
	io.data = driver;
	ev_io_start(loop, &io);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	return ww_driver_destroy(driver) != WW_OK || wrong;
}
#else
#include <stdio.h>

int main(void)
{
	return puts("skipped: built without libev: Debian has it in the package libev-dev"), 77;
}
#endif
