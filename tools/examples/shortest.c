/* One timer, six days away. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

static void expired(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	printf("expired on day %d\n", (int)(ww_wheel_now(wheel) / 86400));
	(void)timer;
	(void)missed;
}

int main(void)
{
	struct ww_timer timer = WW_TIMER_INIT(expired);
	struct ww_wheel *wheel;

	if (ww_wheel_create(&wheel, NULL) != WW_OK)
		return 1;
	ww_wheel_schedule(wheel, &timer, 6 * 86400);
	for (uint64_t day = 1; day <= 7; day++) /* you pass the time to the wheel */
		ww_wheel_advance(wheel, day * 86400, WW_UNLIMITED, NULL);
	return ww_wheel_destroy(wheel) == WW_OK ? 0 : 1;
}
