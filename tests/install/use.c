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

/* To a macro, each comma of an initialiser begins an argument. */
struct moment {
	uint64_t ticks, days;
};

#ifdef __cplusplus
#define MOMENT moment
#else
#define MOMENT (struct moment)
#endif

static void end(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	(void)wheel;
	(void)missed;
	WW_TIMER_OWNER(timer, struct session, timer)->ended = 1;
}

/* Return WW_OK if the calls that are macros, and those of many timers, do the same in both languages. */
static int use_macros(struct ww_wheel *wheel, uint64_t now)
{
	struct session sessions[2] = {{0, WW_TIMER_INIT(end)}, {0, WW_TIMER_INIT(end)}};
	struct ww_timer *timers[] = {&sessions[0].timer, &sessions[1].timer};
	const uint64_t delays[] = {5, 6};
	struct ww_expiry batch[2];
	size_t number = 0;

	if (ww_wheel_schedule_many(wheel, timers, delays, 2, &number) != WW_OK || number != 2)
		return WW_EINVAL;
	if (ww_wheel_reschedule(wheel, timers[0], MOMENT{7, 0}.ticks) != 1)
		return WW_EINVAL;
	if (ww_wheel_reschedule_at(wheel, timers[1], MOMENT{now + 8, 0}.ticks) != 1)
		return WW_EINVAL;
	if (ww_wheel_advance(wheel, MOMENT{now + 6, 0}.ticks, WW_UNLIMITED, NULL) != WW_OK)
		return WW_EINVAL;
	if (ww_wheel_advance_batch(wheel, MOMENT{now + 7, 0}.ticks, batch, 2, &number) != WW_OK || number != 1)
		return WW_EINVAL;
	if (ww_wheel_cancel_many(wheel, timers, 2, &number) != WW_OK || number != 1)
		return WW_EINVAL;
	return WW_OK;
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
	if (error == WW_OK)
		error = use_macros(wheel, 1800);
	if (error != WW_OK || !session.ended) {
		(void)fprintf(stderr, "%s\n", ww_strerror(error));
		return 1;
	}
	return ww_wheel_destroy(wheel) == WW_OK ? 0 : 1;
}
