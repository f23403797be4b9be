/*
 * A program with the wheel in two files, compiled as C11 and as C++17, for any machine: use_amalgamated SEED. Each of
 * many timers, moved and cancelled at random, expires when time has reached its deadline and not before,
 * or the program says which did not. WITH_CORE: so do those of a driver whose clock is stepped back.
 */
#include "weekwheel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMERS = 20000, WEEK = 604800, STEPS = 40000 };

struct job {
	struct ww_timer timer;
	uint64_t due; /* WW_NEVER: it waits for nothing */
};

static struct job jobs[TIMERS];
static uint64_t before; /* time jumps from here */
static uint64_t now;
static uint64_t state;
static int bad;

static uint64_t draw(uint64_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 33) % below;
}

static void expire(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	struct job *job = WW_TIMER_OWNER(timer, struct job, timer);

	(void)missed;
	(void)wheel;
	if (job->due > now || job->due <= before) {
		(void)printf(
		    "due at %" PRIu64 ", expired between %" PRIu64 " and %" PRIu64 "\n", job->due, before, now);
		bad = 1;
	}
	job->due = WW_NEVER;
}

static void change(struct ww_wheel *wheel, struct job *job)
{
	uint64_t delay = draw(3) == 0 ? 1 + draw(120) : 1 + draw(WEEK);
	int error;

	if (draw(4) == 0) {
		error = ww_wheel_cancel(wheel, &job->timer);
		job->due = WW_NEVER;
	} else {
		/* Only a pending one can be moved. */
		error = ww_wheel_reschedule(wheel, &job->timer, delay);
		if (error == 0)
			error = ww_wheel_schedule(wheel, &job->timer, delay);
		job->due = now + delay;
	}
	if (error < 0) {
		(void)printf("%s\n", ww_strerror(error));
		bad = 1;
	}
}

#ifdef WITH_CORE
enum { FIRST = 1000, HOUR = 3600 }; /* seconds */

static struct ww_clock *wall;
static int fired[HOUR + 1];

static void fire(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	uint64_t time = 0;

	(void)driver;
	bad |= ww_clock_now(wall, &time) != WW_OK || firing->deadline > time;
	++*(int *)user;
}

/* Timers of each second of an hour, and a session, while time goes on, back, and on to the end. */
static int use_core(void)
{
	struct ww_driver_config config;
	struct ww_driver *driver;
	struct ww_session *sessions;
	ww_handle handle;
	void *value = NULL;

	if (ww_clock_virtual_create(&wall, FIRST * WW_SECOND, NULL) != WW_OK ||
	    ww_driver_config_default(&config) != WW_OK)
		return 1;
	config.clock = wall;
	config.workers = 1;
	if (ww_driver_create(&driver, &config) != WW_OK || ww_session_create(&sessions, driver, NULL) != WW_OK)
		return 1;
	for (int i = 1; i <= HOUR; i++)
		bad |= ww_driver_schedule(driver, (uint64_t)i * WW_SECOND, fire, &fired[i], &handle) != WW_OK;
	bad |= ww_session_put(sessions, "ada", 3, &fired, NULL, NULL, NULL) < 0;
	for (int step = 0; step < 3; step++) {
		const int times[] = {FIRST + HOUR / 2, FIRST / 2, FIRST + HOUR};

		bad |= ww_clock_virtual_set(wall, (uint64_t)times[step] * WW_SECOND) != WW_OK ||
		       ww_driver_settle(driver) != WW_OK;
		for (int i = 1; i <= HOUR; i++)
			bad |= fired[i] != (i <= HOUR / 2 || step == 2);
	}
	bad |= ww_session_get(sessions, "ada", 3, &value) != 1 || value != &fired;
	return bad || ww_session_destroy(sessions) != WW_OK || ww_driver_destroy(driver) != WW_OK ||
	       ww_clock_virtual_destroy(wall) != WW_OK;
}
#endif

int main(int count, char **arguments)
{
	struct ww_wheel *wheel;
	size_t left = 0;

	state = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
	if (ww_wheel_create(&wheel, NULL) != WW_OK)
		return 1;
	for (int i = 0; i < TIMERS; i++) {
		struct ww_timer fresh = WW_TIMER_INIT(expire);

		jobs[i].timer = fresh;
		jobs[i].due = WW_NEVER;
	}
	for (int step = 0; step < STEPS && !bad; step++) {
		change(wheel, &jobs[draw(TIMERS)]);
		before = now;
		now += draw(40);
		bad |= ww_wheel_advance(wheel, now, WW_UNLIMITED, NULL) != WW_OK;
	}
	before = now;
	now += WEEK;
	bad |= ww_wheel_advance(wheel, now, WW_UNLIMITED, NULL) != WW_OK || ww_wheel_check(wheel, NULL, 0) != WW_OK;
	for (int i = 0; i < TIMERS; i++)
		left += jobs[i].due != WW_NEVER;
	if (left > 0)
		(void)printf("%zu never expired\n", left);
#ifdef WITH_CORE
	if (use_core()) {
		(void)printf("the driver or the map is wrong\n");
		bad = 1;
	}
#endif
	return bad || left > 0 || ww_wheel_destroy(wheel) != WW_OK;
}
