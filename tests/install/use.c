/*
 * A user's program for an installed weekwheel, compiled as C11 and as C++17: use [ALLOCATOR]. The library must take its
 * memory from ALLOCATOR.
 */

#include <stdio.h>
#include <string.h>
#include <weekwheel/weekwheel.h>

struct session {
	int ended;
	struct ww_timer timer;
};

static void end(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	(void)wheel;
	(void)missed;
	WW_TIMER_OWNER(timer, struct session, timer)->ended = 1;
}

int main(int count, char **arguments)
{
	struct session session = {0, WW_TIMER_INIT(end)};
	struct ww_wheel *wheel;
	int error;

	if (strcmp(ww_version(), WW_VERSION) != 0) {
		(void)fprintf(stderr, "header %s, library %s\n", WW_VERSION, ww_version());
		return 1;
	}
	if (count > 1 && strcmp(ww_allocator_name(), arguments[1]) != 0) {
		(void)fprintf(stderr, "memory comes from %s\n", ww_allocator_name());
		return 1;
	}
	error = ww_wheel_create(&wheel, NULL);
	if (error == WW_OK)
		error = ww_wheel_schedule(wheel, &session.timer, 1800);
	if (error == WW_OK)
		error = ww_wheel_advance(wheel, 1799, WW_UNLIMITED, NULL);
	if (error == WW_OK && session.ended) {
		(void)fprintf(stderr, "ended early\n");
		return 1;
	}
	if (error == WW_OK)
		error = ww_wheel_advance(wheel, 1800, WW_UNLIMITED, NULL);
	if (error != WW_OK || !session.ended) {
		(void)fprintf(stderr, "%s\n", ww_strerror(error));
		return 1;
	}
	return ww_wheel_destroy(wheel) == WW_OK ? 0 : 1;
}
