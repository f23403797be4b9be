/*
 * Steady time: how it goes on over restarts, and what stands on disk in it.
 *
 *     last write                  start
 *     ---|..........................|-----> steady time
 *        wall and elapsed clock     the same clocks
 *
 * While the machine runs, elapsed time says how long the server was down. After a boot only the wall clock can say it, of
 * which either reading may be wrong: what was less than nothing, or longer than --max-downtime, is not counted. With
 * --clock virtual:SECONDS the user has said it, and the clock is moved by that behind the start.
 */
#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/keep/keep_internal.h"

/* ---- Deadlines */

uint64_t keep_ms_of(const struct keep *keep, uint64_t deadline)
{
	if (deadline != DATA_NEVER && deadline & KEEP_BEFORE)
		return deadline & ~KEEP_BEFORE;
	return deadline == DATA_NEVER ? DATA_NEVER
	                              : (uint64_t)data_to_steady_ms(keep->data, deadline + WW_MILLISECOND - 1);
}

uint64_t keep_disk_of(const struct keep *keep, uint64_t ms)
{
	uint64_t deadline = keep_deadline_of(keep, ms);

	return deadline == 1 ? KEEP_BEFORE | ms : deadline;
}

uint64_t keep_deadline_of(const struct keep *keep, uint64_t ms)
{
	return ms == DATA_NEVER ? DATA_NEVER : data_from_steady_ms(keep->data, (int64_t)ms);
}

/* ---- The clocks */

static int64_t ahead_now(const struct keep *keep)
{
	return data_steady_to_wall_ms(keep->data, 0);
}

static int add(const struct keep *keep, int64_t ahead, struct buffer *to)
{
	int64_t steady = data_steady_ms(keep->data);

	return keep_format_add(to, &(struct keep_entry){.kind = KEEP_CLOCK,
	                               .key = "",
	                               .value = "",
	                               .ttl = keep->boot,
	                               .deadline = (uint64_t)steady,
	                               .end = (uint64_t)(steady + ahead),
	                               .expiry = (uint64_t)data_steady_offset(keep->data)});
}

int keep_clock_add(struct keep *keep, struct buffer *to)
{
	return add(keep, ahead_now(keep), to);
}

int keep_clock_is_stepped(const struct keep *keep)
{
	return ahead_now(keep) != keep->ahead;
}

int keep_clock_add_step(struct keep *keep, struct buffer *to)
{
	int64_t ahead = ahead_now(keep);

	if (ahead == keep->ahead)
		return 0;
	if (add(keep, ahead, to) != 0)
		return -1;
	keep->ahead = ahead;
	return 0;
}

/* The message gives whole hours, whatever the clock says. */
static void warn(const struct keep *keep, int64_t down)
{
	const long long hour = 3600 * 1000;

	if (data_is_virtual(keep->data))
		return;
	if (down < 0)
		message_warning(
		    "the clock is %lld h behind the last write in %s, so how long the machine was off is not known: "
		    "sessions may be late by that; let the server start when the clock has been set",
		    -(long long)down / hour, keep->path);
	else
		message_warning(
		    "the clock says that the machine was off for %lld h, more than --max-downtime: it is not believed, and "
		    "sessions may be late by the time off; let the server start when the clock has been set",
		    (long long)down / hour);
}

void keep_clock_go_on(struct keep *keep, const struct keep_clock *clock, uint64_t last)
{
	int64_t now = (int64_t)(data_now(keep->data) / WW_MILLISECOND);
	int64_t then = (int64_t)last > clock->steady ? (int64_t)last : clock->steady;
	int64_t down;

	if (keep->boot && keep->boot == clock->boot && now + clock->offset >= then) {
		data_set_steady_offset(keep->data, clock->offset);
		return;
	}
	down = keep->config.knows_downtime ? 0 : data_wall_ms(keep->data) - (then + clock->wall - clock->steady);
	if (down < 0 || down > keep->config.downtime_max) {
		warn(keep, down);
		down = 0;
	}
	data_set_steady_offset(keep->data, then + down - now);
}
