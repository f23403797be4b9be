/*
 * The elapsed time at which the jobs' clock goes on when the store is opened, and how long the machine was off.
 *
 *     then                       now
 *     ---|......................|-----> elapsed time of jobs
 *        last write    opening
 *        wall clock    wall clock        two readings, of which either may be wrong
 */
#include "lib/jobs/local/clock.h"

#include <string.h>

#include "lib/base/boot.h"
#include "lib/base/time.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/timer.h"
#include "lib/jobs/local/writing.h"

/*
 * Elapsed time begins with Unix time, which makes it readable, but not earlier than this (in 2001): a clock that says
 * so is wrong, and times would be less than those of the system's elapsed time.
 */
#define EARLIEST (UINT64_C(1000000000) * WW_SECOND)
/*
 * While nothing else is written, the clocks are looked at so often. They are written if the wall clock was set, which would
 * count as time off after a power failure, or once a day. What is less than a step is drift.
 */
#define LOOK_EVERY (600 * WW_SECOND)
#define SAVED_EVERY (24 * 3600 * WW_SECOND)
#define STEP WW_SECOND

/* Whether the driver's clock is the system's, which runs by itself, and not a virtual one. */
static int is_real(const struct timeline *line)
{
	uint64_t now = ww_jobs_time(line) - line->offset;
	uint64_t real = time_now(CLOCK_BOOTTIME);

	return now <= real && real - now < WW_SECOND;
}

/* An id that could not be read equals none. */
static int is_same_boot(const unsigned char one[16], const unsigned char other[16])
{
	static const unsigned char unknown[16];

	return memcmp(one, other, 16) == 0 && memcmp(one, unknown, 16) != 0;
}

uint64_t ww_jobs_clock_wall(const struct jobs_local *jobs)
{
	uint64_t now;

	if (jobs->store.ops->wall)
		return jobs->store.ops->wall(jobs->store.self);
	if (jobs->config.wall && ww_driver_now(jobs->config.wall, &now) == WW_OK)
		return now;
	/* A virtual clock that is alone stands still meanwhile. */
	return is_real(&jobs->elapsed) ? time_now(CLOCK_REALTIME) : 0;
}

/*
 * The time to add for the downtime. If the wall clock makes it negative, or longer than possible, one of its readings
 * was wrong, and nothing is added: jobs are late by the downtime, but none is early.
 */
static uint64_t time_off(struct jobs_local *jobs, uint64_t wall)
{
	uint64_t off = wall - jobs->meta.wall; /* less than none: more than any limit */

	jobs->downtime = (int64_t)off;
	return off > jobs->config.downtime_max ? 0 : off;
}

static void set_offset(struct jobs_local *jobs, int is_new)
{
	struct timeline *line = &jobs->elapsed;
	uint64_t wall = ww_jobs_clock_wall(jobs);
	uint64_t now = ww_jobs_time(line);
	uint64_t then = jobs->meta.elapsed;
	unsigned char id[16] = {0};

	/* A virtual clock begins again with each opening, like that of a machine. */
	if (is_real(line))
		boot_id(id);
	if (is_new)
		line->offset = (wall > EARLIEST ? wall : EARLIEST) - now;
	else if (is_same_boot(id, jobs->meta.boot_id) && now + jobs->meta.offset >= then)
		line->offset = jobs->meta.offset;
	else
		line->offset = then + time_off(jobs, wall) - now;
	memcpy(jobs->meta.boot_id, id, sizeof id);
	jobs->meta.offset = line->offset;
}

static int look(struct jobs_local *jobs, void *fired);

static void on_look(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver;
	ww_jobs_submit_firing(user, look, NULL, firing);
}

static void plan_look(struct jobs_local *jobs)
{
	if (!(jobs->config.flags & WW_JOBS_READONLY))
		(void)ww_driver_schedule(jobs->elapsed.driver, LOOK_EVERY, on_look, jobs, &jobs->clock_timer);
}

static int is_behind(const struct jobs_local *jobs)
{
	uint64_t passed = ww_jobs_time(&jobs->elapsed) - jobs->meta.elapsed;
	/* From minus a step to a step: to keep it above 0. */
	uint64_t step = ww_jobs_clock_wall(jobs) - jobs->meta.wall - passed + STEP;

	return passed >= SAVED_EVERY || step > 2 * STEP;
}

/* A write of nothing writes the clocks. */
static int look(struct jobs_local *jobs, void *fired)
{
	if (!ww_jobs_take_firing(jobs, fired, &jobs->clock_timer))
		return WW_OK;
	plan_look(jobs);
	return is_behind(jobs) ? ww_jobs_writing(jobs) : WW_OK;
}

void ww_jobs_clock_save(struct jobs_local *jobs)
{
	jobs->meta.elapsed = ww_jobs_time(&jobs->elapsed);
	jobs->meta.wall = ww_jobs_clock_wall(jobs);
}

void ww_jobs_clock_open(struct jobs_local *jobs, int is_new)
{
	jobs->elapsed = (struct timeline){
	    .jobs = jobs, .driver = jobs->config.driver, .table = STORE_DUE, .wants = 1, .planned = UINT64_MAX};
	jobs->wall = (struct timeline){.jobs = jobs,
	    .driver = jobs->config.wall,
	    .table = STORE_WALL,
	    .wants = jobs->config.wall != NULL,
	    .planned = UINT64_MAX};
	set_offset(jobs, is_new);
	if (is_new)
		ww_jobs_clock_save(jobs);
	plan_look(jobs);
	jobs->elapsed.opened = ww_jobs_time(&jobs->elapsed);
	jobs->wall.opened = ww_jobs_time(&jobs->wall);
}
