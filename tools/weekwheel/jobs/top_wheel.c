/* What top shows: asks the server for statistics and counts, sorts counts into slots, and chooses how a slot looks. */
#include <string.h>
#include <time.h>

#include "lib/base/time.h"
#include "tools/common/duration.h"
#include "tools/weekwheel/jobs/top.h"
#include "tools/weekwheel/jobs/yaml.h"

/*
 * For a forecast the server reads its index as far as the forecast reaches. A wheel with a longer turn is therefore
 * asked for less often. A span divides the time between two questions, so that spans always begin at the same times.
 */
enum { TENTHS = 600, COUNT_MAX = 10080 };

static const char sixty[] = "0    .    10   .    20   .    30   .    40   .    50   .    ";

const struct top_wheel_kind top_wheel_kinds[TOP_WHEELS] = {
    {"sec", sixty, "60 s", 60, DURATION_SECOND / 10, TENTHS, 1},
    {"min", sixty, "1 h", 60, DURATION_SECOND, 3600, 5},
    {"hour", "0     6     12    18    ", "1 d", 24, 15 * DURATION_SECOND, 5760, 15},
    {"day", "MTWTFSS", "7 d", 7, 60 * DURATION_SECOND, COUNT_MAX, 60},
};

/* Return the slot of a time, in local time. */
static size_t slot_at(const struct top_wheel_kind *kind, uint64_t ns)
{
	time_t seconds = (time_t)(ns / DURATION_SECOND);
	struct tm tm;

	if (!localtime_r(&seconds, &tm))
		return 0;
	switch (kind - top_wheel_kinds) {
	case TOP_SECONDS:
		/* A leap second has no slot of its own. */
		return tm.tm_sec < 60 ? (size_t)tm.tm_sec : 59;
	case TOP_MINUTES:
		return (size_t)tm.tm_min;
	case TOP_HOURS:
		return (size_t)tm.tm_hour;
	default:
		return (size_t)(tm.tm_wday + 6) % 7;
	}
}

void top_wheels_turn(struct top_wheels *wheels, uint64_t now)
{

	wheels->now = now;
	for (size_t i = 0; i < TOP_WHEELS; i++)
		wheels->at[i].hand = slot_at(&top_wheel_kinds[i], now);
}

void top_wheel_fill(struct top_wheel *wheel, const struct top_wheel_kind *kind, uint64_t now, const uint64_t *counts)
{
	int left = 0;

	memset(wheel->slots, 0, sizeof wheel->slots);
	wheel->hand = slot_at(kind, now);
	wheel->sum = 0;
	for (size_t i = 0; i < kind->count; i++) {
		size_t slot = slot_at(kind, now + (i + 1) * kind->span - 1);

		wheel->sum += counts[i];
		left |= slot != wheel->hand;
		/* The turn ends in the slot of the hand. Jobs of the next turn come in when the hand has moved. */
		if (!left || slot != wheel->hand)
			wheel->slots[slot] += counts[i];
	}
}

/*
 * Return a number that changes when either clock, ours or the server's, passes a multiple of `every`; then the wheel
 * must be asked for again. Hands move at such times. The server's clock alone is not enough: a virtual one may stand
 * still while jobs are put.
 */
static uint64_t question(const struct top_wheel_kind *kind, uint64_t now)
{
	uint64_t every = kind->every * DURATION_SECOND;

	return wall_now() / every + now / every;
}

/*
 * The server counts ready and reserved jobs in the first tenth of a second, as they are due. Take them out. The first
 * spans of the other wheels are then sums of tenths.
 */
static void leave_overdue(const struct top_wheels *wheels, uint64_t tenths[TENTHS])
{
	uint64_t due = wheels->overdue + wheels->reserved;

	tenths[0] -= tenths[0] < due ? tenths[0] : due;
}

static uint64_t first_span(const struct top_wheel_kind *kind, const uint64_t tenths[TENTHS])
{
	size_t n = (size_t)(kind->span / top_wheel_kinds[TOP_SECONDS].span);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += tenths[i];
	return sum;
}

static int read_counts(struct jobs *jobs, struct top_wheels *wheels)
{
	uint64_t counts[COUNT_MAX], tenths[TENTHS];
	struct reply reply;

	for (size_t i = 0; i < TOP_WHEELS; i++) {
		const struct top_wheel_kind *kind = &top_wheel_kinds[i];
		uint64_t asked = question(kind, wheels->now);
		int answer;

		/* The wheel of seconds is fetched each time, since the others need its tenths. */
		if (i != TOP_SECONDS && wheels->is_asked && wheels->at[i].asked == asked)
			continue;
		answer = forecast_read(jobs, kind->span, kind->count, counts, &reply);
		if (answer)
			return answer;
		if (i == TOP_SECONDS) {
			leave_overdue(wheels, counts);
			memcpy(tenths, counts, sizeof tenths);
		}
		counts[0] = first_span(kind, tenths);
		top_wheel_fill(&wheels->at[i], kind, wheels->now, counts);
		wheels->at[i].asked = asked;
	}
	return 0;
}

/* A server with a virtual clock returns its time when advanced by 0. One with a real clock does not know the verb. */
static int read_clock(struct jobs *jobs, struct top_wheels *wheels)
{
	uint64_t now = wall_now();
	struct reply reply;

	if (!wheels->is_asked || wheels->is_virtual) {
		if (client_ask(&jobs->client, &reply, "advance 0"))
			return -1;
		wheels->is_virtual = reply_is(&reply, "ADVANCED");
		if (wheels->is_virtual && reply_number(&jobs->client, &reply, 1, &now))
			return -1;
		if (wheels->is_virtual)
			now = now < DURATION_TIME_MAX / DURATION_SECOND ? now * DURATION_SECOND : DURATION_TIME_MAX;
		else
			now = wall_now();
	}
	top_wheels_turn(wheels, now);
	return 0;
}

/* Turn the hands, and ask the server for counts that are out of date. */
static int read_wheels(struct jobs *jobs, struct top_wheels *wheels)
{
	int answer = 1;

	if (read_clock(jobs, wheels))
		return -1;
	if (!wheels->is_asked || wheels->has_forecast)
		answer = read_counts(jobs, wheels);
	wheels->has_forecast = answer == 0;
	wheels->is_asked = 1;
	return answer < 0 ? -1 : 0;
}

const char *top_wheel_cell(uint64_t n, uint64_t most, int utf8)
{
	static const char *const plain[] = {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
	static const char *const blocks[] = {" ", "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84",
	    "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88"};
	size_t top = utf8 ? sizeof blocks / sizeof *blocks - 1 : sizeof plain / sizeof *plain - 1;
	double height = most && n < most ? (double)n / (double)most * (double)top : (double)top;
	size_t level = n ? (size_t)height : 0;

	/* Rounded up: the lowest is for any job at all. */
	if (n && level < top && (double)level < height)
		level++;
	return utf8 ? blocks[level] : plain[level];
}

uint64_t top_wheel_most(const struct top_wheel *wheel)
{
	uint64_t most = 0;

	for (size_t i = 0; i < TOP_SLOTS; i++)
		most = wheel->slots[i] > most ? wheel->slots[i] : most;
	return most;
}

/* ---- Samples */

static int read_server(struct jobs *jobs, struct top_sample *sample)
{
	struct reply reply;
	const char *text;
	size_t size;

	if (client_expect(&jobs->client, &reply, "OK", "top", "stats"))
		return -1;
	text = reply.body;
	size = reply.body_size;
	tube_fill(&sample->all, &reply);
	yaml_text(text, size, "version", sample->all.name, sizeof sample->all.name);
	yaml_text(text, size, "oldest-ready", sample->oldest, sizeof sample->oldest);
	sample->uptime = yaml_whole(text, size, "uptime");
	sample->workers = yaml_whole(text, size, "current-workers");
	return 0;
}

int top_sample(struct jobs *jobs, struct top_sample *sample, struct top_wheels *wheels)
{
	memset(sample, 0, sizeof *sample);
	sample->taken = time_ms();
	if (read_server(jobs, sample) || tubes_read(jobs, &sample->tubes))
		return -1;
	wheels->overdue = sample->all.ready;
	wheels->reserved = sample->all.reserved;
	return read_wheels(jobs, wheels);
}

void top_sample_free(struct top_sample *sample)
{
	tubes_free(&sample->tubes);
}
