/*
 * Timers in an application's own epoll loop: a driver without threads has a descriptor that is readable when something
 * is due. The timers are in watchdog.h.
 */
#define _POSIX_C_SOURCE 200809L
#include <sys/epoll.h>
#include <unistd.h>

#include "watchdog.h"

int main(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct ww_driver *driver;
	int loop = epoll_create1(EPOLL_CLOEXEC);

	if (loop < 0 || watchdog_start(&driver) != 0)
		return 1;
	if (epoll_ctl(loop, EPOLL_CTL_ADD, ww_driver_fd(driver), &event) != 0)
		return 1;
	while (!done && !wrong)
		if (epoll_wait(loop, &event, 1, -1) == 1) /* your other descriptors would be here too */
			ww_driver_dispatch(driver, 100);  /* more than 100 callbacks keep it readable */
	ww_driver_destroy(driver);
	close(loop);
	return wrong;
}
