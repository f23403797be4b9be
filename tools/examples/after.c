/* As in Go: wait for a timer, then for three ticks of a ticker. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

int main(void)
{
	struct ww_driver *driver;
	struct ww_after *after;
	struct ww_ticker *ticker;

	if (ww_driver_create(&driver, NULL) || ww_after_create(&after, driver, 10 * WW_MILLISECOND) ||
	    ww_ticker_create(&ticker, driver, 20 * WW_MILLISECOND))
		return 1;
	if (ww_after_receive(after, NULL) == WW_OK)
		puts("10 ms are over");
	for (int i = 1; i <= 3 && ww_ticker_receive(ticker, NULL) == WW_OK; i++)
		printf("tick %d\n", i);
	return ww_after_destroy(after) || ww_ticker_destroy(ticker) || ww_driver_destroy(driver);
}
