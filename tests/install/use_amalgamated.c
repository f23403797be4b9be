/*
 * A program with the wheel in two files, compiled as C11 and as C++17, for any machine: use_amalgamated SEED. Each of
 * many timers, moved and cancelled at random, expires when time has reached its deadline and not before,
 * or the program says which did not.
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
	return bad || left > 0 || ww_wheel_destroy(wheel) != WW_OK;
}
