/*
 * A service's loop: a wheel of milliseconds on the system's clock. The loop sleeps until the wheel needs it, and runs for
 * a fifth of a second. In an event loop, the sleep is the timeout of epoll_wait.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <weekwheel/weekwheel.h>

static void beat(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	(void)timer;
	printf("%4llu ms: beat, %llu missed\n", (unsigned long long)ww_wheel_now(wheel), (unsigned long long)missed);
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(void)
{
	struct ww_timer timer = WW_TIMER_INIT(beat);
	struct ww_wheel_config config;
	struct ww_wheel *wheel;
	uint64_t origin = clock_ns(), now = 0, next;

	ww_wheel_config_default(&config);
	config.tick_ns = 1000000; /* ticks of a millisecond, and a fifth wheel: a horizon of 10 hours */
	config.slots[config.levels++] = 64;
	if (ww_wheel_create(&wheel, &config) != WW_OK)
		return 1;
	ww_wheel_schedule_every(wheel, &timer, 50, 50);
	while (now < 200 && ww_wheel_next(wheel, &next) == 1) {
		if (next > now) {
			struct timespec pause = {(time_t)((next - now) / 1000), (long)((next - now) % 1000) * 1000000};
			nanosleep(&pause, NULL); /* if a signal ends it early, the wheel is asked again */
		}
		ww_wheel_now_ns(wheel, clock_ns() - origin, &now);
		/* At most 1,000 callbacks. If more are due, ww_wheel_next says so, and the loop returns without a pause. */
		if (ww_wheel_advance(wheel, now, 1000, NULL) < 0)
			return 1;
	}
	ww_wheel_cancel(wheel, &timer);
	return ww_wheel_destroy(wheel) == WW_OK ? 0 : 1;
}
