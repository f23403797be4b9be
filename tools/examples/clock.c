/* A week of a virtual clock, whose alarm goes off on the last day. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

int main(void)
{
	const uint64_t day = 24 * 3600 * WW_SECOND;
	struct ww_clock *clock;
	struct ww_alarm *alarm; /* its descriptor, ww_alarm_fd, suits poll and every event loop */

	if (ww_clock_virtual_create(&clock, 0, NULL) || ww_alarm_create(&alarm, clock, NULL))
		return 1;
	if (ww_alarm_set(alarm, 7 * day) < 0)
		return 1;
	for (int i = 1; i <= 7; i++) {
		ww_clock_virtual_advance(clock, day);
		if (ww_alarm_clear(alarm) == 1)
			printf("it went off on day %d\n", i);
	}
	ww_alarm_destroy(alarm);
	return ww_clock_virtual_destroy(clock) != WW_OK;
}
