/*
 * Drives the wheel through the events and measures it. The measured time begins after the memory has been touched, and
 * leaves out checks.
 */
#include "tools/weekwheel/replay/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "weekwheel/wheel.h"

enum { BATCH = 256, PROGRESS_STEP = 1 << 14, CHECK_STEP = 1 << 14 };

/* A timer a cache line. Its index is the number of its key. */
struct replay_session {
	_Alignas(64) struct ww_timer timer;
};

struct replay_visit {
	size_t first, last;
	uint32_t requests;
};

struct drive {
	const struct events *events;
	const struct replay_options *options;
	struct replay_result *result;
	struct ww_wheel *wheel;
	struct replay_session *sessions;
	struct replay_visit *visits; /* NULL unless sessions are kept */
	uint64_t now;
	uint64_t clock;     /* when the last advance ended, or 0 if something was done since then */
	uint64_t paused_ns; /* spent on checks */
	int due_now;        /* a deadline is not after the wheel's time */
	size_t until_check;
	struct ww_expiry batch[BATCH];
};

/* The functions below return 0, or -1 after a message. */

static int drive_refused(const struct drive *drive, const char *call, int error)
{
	return message_error("at %" PRIu64 ": %s failed: %s", drive->now, call, ww_strerror(error));
}

static void drive_keep(struct drive *drive, uint32_t id)
{
	struct replay_expiry *expiry = expiries_add(&drive->result->outcome.expiries, drive->now, id);
	const struct replay_visit *visit = drive->visits ? &drive->visits[id] : NULL;

	if (visit)
		*expiry = (struct replay_expiry){drive->now, id, visit->requests, visit->first, visit->last};
}

static int drive_expire(struct drive *drive, size_t count)
{
	struct replay_result *result = drive->result;

	for (size_t i = 0; i < count; i++) {
		uint64_t deadline = drive->batch[i].deadline;
		struct replay_session *session = WW_TIMER_OWNER(drive->batch[i].timer, struct replay_session, timer);

		if (deadline > drive->now)
			return message_error(
			    "the wheel expired a timer at %" PRIu64 " that is due at %" PRIu64, drive->now, deadline);
		if (drive->now - deadline > result->max_late_ticks)
			result->max_late_ticks = drive->now - deadline;
		if (drive->options->keep_expiries)
			drive_keep(drive, (uint32_t)(session - drive->sessions));
	}
	result->outcome.tally.expired += count;
	result->outcome.tally.pending -= count;
	return 0;
}

/* Advance once. The time of an advance is that of all its batches. */
static int drive_advance(struct drive *drive, uint64_t now)
{
	uint64_t took = 0;
	int more;

	drive->now = now;
	do {
		uint64_t begin = drive->clock ? drive->clock : time_now(CLOCK_MONOTONIC);
		uint64_t end;
		size_t count = 0;

		more = ww_wheel_advance_batch(drive->wheel, now, drive->batch, BATCH, &count);
		end = time_now(CLOCK_MONOTONIC);
		took += end - begin;
		drive->clock = count ? 0 : end;
		if (more < 0)
			return drive_refused(drive, "ww_wheel_advance_batch", more);
		if (drive_expire(drive, count))
			return -1;
	} while (more);
	histogram_add(&drive->result->advance, took);
	return 0;
}

/* Return the time of the next advance: `time`, or earlier if the wheel has something to do or every tick is wanted. */
static uint64_t drive_step(const struct drive *drive, uint64_t time)
{
	uint64_t next = WW_NEVER;

	if (drive->options->every_tick)
		return drive->now + 1;
	ww_wheel_next(drive->wheel, &next);
	if (next <= drive->now)
		next = drive->now + 1;
	return next < time ? next : time;
}

/* Let all expire that is due at `time` or before. */
static int drive_to(struct drive *drive, uint64_t time)
{
	uint64_t steps = 0;

	if (drive->due_now) {
		drive->due_now = 0;
		if (drive_advance(drive, drive->now))
			return -1;
	}
	while (drive->now < time) {
		if (drive_advance(drive, drive_step(drive, time)))
			return -1;
		if (++steps % (PROGRESS_STEP * 64) == 0)
			progress_show(drive->now - drive->result->start, drive->result->end - drive->result->start);
	}
	return 0;
}

static void drive_visit(struct drive *drive, const struct event *event, int begins)
{
	struct replay_visit *visit = &drive->visits[event->id];
	size_t index = (size_t)(event - drive->events->at);

	if (begins) {
		visit->first = index;
		visit->requests = 0;
	}
	visit->last = index;
	visit->requests++;
}

static int drive_start(struct drive *drive, const struct event *event)
{
	struct ww_timer *timer = &drive->sessions[event->id].timer;
	struct tally *tally = &drive->result->outcome.tally;
	uint64_t deadline = event_deadline(event);
	int moved = ww_wheel_reschedule_at(drive->wheel, timer, deadline);
	int error = moved == 0 ? ww_wheel_schedule_at(drive->wheel, timer, deadline) : 0;

	if (moved < 0)
		return drive_refused(drive, "ww_wheel_reschedule_at", moved);
	if (error)
		return drive_refused(drive, "ww_wheel_schedule_at", error);
	if (moved)
		tally->refreshed++;
	else
		tally_schedule(tally);
	if (drive->visits)
		drive_visit(drive, event, !moved || event->kind == EVENT_SET);
	drive->due_now |= deadline <= drive->now;
	return 0;
}

static int drive_cancel(struct drive *drive, const struct event *event)
{
	struct tally *tally = &drive->result->outcome.tally;
	int was_pending = ww_wheel_cancel(drive->wheel, &drive->sessions[event->id].timer);

	if (was_pending < 0)
		return drive_refused(drive, "ww_wheel_cancel", was_pending);
	if (was_pending) {
		tally->cancelled++;
		tally->pending--;
	} else {
		tally->idle_cancels++;
	}
	return 0;
}

static int drive_check(struct drive *drive)
{
	uint64_t begin = time_now(CLOCK_MONOTONIC);
	char text[256];
	int error = ww_wheel_check(drive->wheel, text, sizeof text);

	drive->result->checks++;
	/* A check costs as much as there are timers. The more timers, the fewer checks, and the whole stays linear. */
	drive->until_check = CHECK_STEP + (size_t)drive->result->outcome.tally.pending;
	drive->paused_ns += time_now(CLOCK_MONOTONIC) - begin;
	if (!error)
		return 0;
	return message_error("at %" PRIu64 ": the wheel is broken: %s", drive->now, text);
}

static int drive_event(struct drive *drive, const struct event *event)
{
	if ((event->time_seconds > drive->now || drive->due_now) && drive_to(drive, event->time_seconds))
		return -1;
	drive->clock = 0;
	if (event->kind == EVENT_CANCEL ? drive_cancel(drive, event) : drive_start(drive, event))
		return -1;
	if (drive->options->check && drive->until_check-- == 0)
		return drive_check(drive);
	return 0;
}

static int drive_rest(struct drive *drive)
{
	if (drive_to(drive, drive->now))
		return -1;
	while (drive->options->to_end && drive->result->outcome.tally.pending > 0)
		if (drive_advance(drive, drive_step(drive, WW_TIME_MAX)))
			return -1;
	return 0;
}

static int drive_all(struct drive *drive)
{
	const struct events *events = drive->events;

	progress_begin("replaying ");
	for (size_t i = 0; i < events->count; i++) {
		if (drive_event(drive, &events->at[i]))
			return -1;
		if (i % PROGRESS_STEP == 0)
			progress_show(i, events->count);
	}
	return drive_rest(drive);
}

/* Reserve memory for all possible expiries. Its growth would be measured, too. */
static void drive_reserve(struct drive *drive)
{
	struct expiries *expiries = &drive->result->outcome.expiries;

	for (size_t i = 0; i < drive->events->count; i++)
		expiries->capacity += drive->events->at[i].kind != EVENT_CANCEL;
	expiries->at = memory_aligned(expiries->capacity, sizeof *expiries->at);
}

static int drive_init(struct drive *drive)
{
	const struct events *events = drive->events;
	size_t keys = keys_count(events->keys);
	struct ww_wheel_config config;
	int error;

	drive->now = events->count ? events->at[0].time_seconds : 0;
	drive->result->start = drive->now;
	drive->result->end = events->count ? events->at[events->count - 1].time_seconds : 0;
	drive->result->outcome.keys = keys;
	drive->until_check = CHECK_STEP;
	ww_wheel_config_default(&config);
	config.start = drive->now;
	error = ww_wheel_create(&drive->wheel, &config);
	if (error)
		return drive_refused(drive, "ww_wheel_create", error);
	drive->sessions = memory_aligned(keys, sizeof *drive->sessions);
	if (drive->options->keep_sessions)
		drive->visits = memory_aligned(keys, sizeof *drive->visits);
	if (drive->options->keep_expiries)
		drive_reserve(drive);
	return 0;
}

static void drive_keep_deadlines(struct drive *drive)
{
	struct outcome *outcome = &drive->result->outcome;

	outcome->deadline = memory_zeroed(outcome->keys, sizeof *outcome->deadline);
	for (size_t i = 0; i < outcome->keys; i++)
		if (ww_timer_deadline(&drive->sessions[i].timer, &outcome->deadline[i]) == 0)
			outcome->deadline[i] = WW_NEVER;
}

static int drive_finish(struct drive *drive)
{
	struct replay_result *result = drive->result;
	const struct tally *tally = &result->outcome.tally;
	struct ww_stats stats;
	int error = ww_wheel_stats(drive->wheel, &stats);

	if (error)
		return drive_refused(drive, "ww_wheel_stats", error);
	result->end = drive->now;
	result->wheel_bytes = stats.bytes;
	(void)ww_wheel_dump(drive->wheel, result->wheels, sizeof result->wheels);
	result->operations =
	    tally->scheduled + tally->refreshed + tally->cancelled + tally->idle_cancels + tally->expired;
	if (stats.pending != tally->pending)
		return message_error("the wheel says that %" PRIu64 " timers are pending, but %" PRIu64 " are",
		    stats.pending, tally->pending);
	if (!drive->options->check)
		return 0;
	drive_keep_deadlines(drive);
	return drive_check(drive);
}

int replay_run(const struct events *events, const struct replay_options *options, struct replay_result *result)
{
	struct drive *drive = memory_zeroed(1, sizeof *drive);
	int failed;

	memset(result, 0, sizeof *result);
	drive->events = events;
	drive->options = options;
	drive->result = result;
	failed = drive_init(drive);
	if (!failed) {
		uint64_t begin = time_now(CLOCK_MONOTONIC);

		failed = drive_all(drive);
		result->wall_ns = time_now(CLOCK_MONOTONIC) - begin - drive->paused_ns;
		progress_clear();
		failed = failed || drive_finish(drive);
	}
	ww_wheel_destroy(drive->wheel);
	free(drive->visits);
	free(drive->sessions);
	free(drive);
	return failed ? -1 : 0;
}
