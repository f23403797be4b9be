/* Two timers of a driver: its threads call back for the one, and the other is cancelled in time. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

static void hello(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	puts(user);
	(void)driver;
	(void)firing;
}

int main(void)
{
	struct ww_driver *driver;
	ww_handle soon, later;

	if (ww_driver_create(&driver, NULL) ||
	    ww_driver_schedule(driver, 10 * WW_MILLISECOND, hello, "10 ms are over", &soon) ||
	    ww_driver_schedule(driver, 3600 * WW_SECOND, hello, "an hour is over", &later))
		return 1;
	if (ww_driver_cancel(driver, later) == 1)
		puts("cancelled");
	ww_sleep(driver, 100 * WW_MILLISECOND);
	if (ww_driver_cancel(driver, soon) == WW_ESTALE) /* and so for ever */
		puts("it has fired");
	return ww_driver_destroy(driver) != WW_OK;
}
