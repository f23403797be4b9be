#ifndef TOOLS_WEEKWHEEL_JOBS_TOP_WHEEL_H
#define TOOLS_WEEKWHEEL_JOBS_TOP_WHEEL_H

/*
 * The four wheels that weekwheel top shows: seconds, minutes, hours and days, each with a slot for what becomes due
 * then. The slots are those of a clock on the wall, and a hand stands at the one that is now: a job stays in its slot
 * while the hand comes nearer. The slot behind the hand is the last of this turn.
 *
 * The server counts in spans from now, which seldom begin where a slot does. So it is asked for shorter ones, and each
 * counts for the slot in which it ends: what is due on the minute is always in that minute, and what is due a part of a
 * span before it may be, too.
 */

#include "tools/weekwheel/jobs/jobs.h"

enum { TOP_WHEELS = 4, TOP_SLOTS = 60 };
enum { TOP_SECONDS, TOP_MINUTES, TOP_HOURS, TOP_DAYS };

/* What is the same of a wheel always. */
struct top_wheel_kind {
	const char *name;
	const char *ruler; /* a character a slot */
	const char *turn;  /* how far it reaches */
	size_t slots;
	uint64_t span;  /* ns that the server is asked for */
	size_t count;   /* of these spans: a turn */
	unsigned every; /* seconds between two questions */
};

extern const struct top_wheel_kind top_wheel_kinds[TOP_WHEELS];

struct top_wheel {
	uint64_t slots[TOP_SLOTS];
	uint64_t sum; /* of a whole turn from now on, without what is overdue */
	size_t hand;
	uint64_t asked; /* the turns of its `every`, by both clocks, when the server was asked; 0: not yet */
};

struct top_wheels {
	struct top_wheel at[TOP_WHEELS];
	uint64_t overdue; /* ready; what a worker has is not overdue any more */
	uint64_t reserved;
	uint64_t now; /* Unix time in ns, of the server where its clock is virtual */
	int is_asked; /* then the next two are known */
	int has_forecast, is_virtual;
};

/*
 * Ask the server for what is not fresh any more, and turn the hands. `overdue` and `reserved` are just known. Otherwise
 * zeroed wheels are new ones. Return 0, or -1 after a message.
 */
int top_wheels_read(struct jobs *jobs, struct top_wheels *wheels);

/* Turn the hands to that time. */
void top_wheels_turn(struct top_wheels *wheels, uint64_t now);

/* Sort spans from `now` on, of the wheel's kind, into its slots. */
void top_wheel_fill(struct top_wheel *wheel, const struct top_wheel_kind *kind, uint64_t now, const uint64_t *counts);

/* Return what the slot's height looks like beside the fullest; a slot that is not empty is seen. One character. */
const char *top_wheel_cell(uint64_t n, uint64_t most, int utf8);

/* Return the fullest slot's number. */
uint64_t top_wheel_most(const struct top_wheel *wheel);

#endif
