#ifndef TOOLS_WEEKWHEEL_JOBS_TOP_H
#define TOOLS_WEEKWHEEL_JOBS_TOP_H

/* The command top: its wheels, what it asks the server for, and the frame it draws. */

#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/tubes.h"

/* The size of output to a file, and of a terminal that does not report its own. */
enum { TOP_ROWS = 24, TOP_COLUMNS = 80 };

/*
 * The command top shows four wheels: seconds, minutes, hours and days. Each wheel has a slot for the jobs that become
 * due in that second, minute, hour or weekday. The slots are those of a wall clock, and a hand points to the slot of
 * now: a job stays in its slot while the hand comes nearer. The slot before the hand is the last of this turn.
 *
 * The server counts jobs in spans from now on, which seldom begin where a slot begins. The wheels therefore ask for
 * spans shorter than a slot, and each span counts for the slot in which it ends. A job that is due on the minute is
 * always in the slot of that minute. A job that is due less than a span before it may be there, too.
 */

enum { TOP_WHEELS = 4, TOP_SLOTS = 60 };
enum { TOP_SECONDS, TOP_MINUTES, TOP_HOURS, TOP_DAYS };

/* The constants of a wheel. */
struct top_wheel_kind {
	const char *name;
	const char *ruler; /* a character a slot */
	const char *turn;  /* the length of a turn, for the heading */
	size_t slots;
	uint64_t span;  /* of the counts that the server is asked for, in ns */
	size_t count;   /* of spans in a turn */
	unsigned every; /* seconds between two questions to the server */
};

extern const struct top_wheel_kind top_wheel_kinds[TOP_WHEELS];

struct top_wheel {
	uint64_t slots[TOP_SLOTS];
	uint64_t sum; /* of a turn from now on, without overdue jobs */
	size_t hand;
	uint64_t asked; /* identifies the time of the last question; see top_wheel.c */
};

struct top_wheels {
	struct top_wheel at[TOP_WHEELS];
	uint64_t overdue; /* ready jobs; a reserved job is not overdue any more */
	uint64_t reserved;
	uint64_t now; /* Unix time in ns; the server's if its clock is virtual */
	int is_asked; /* the next two are known */
	int has_forecast, is_virtual;
};

/* Turn the hands to that time. */
void top_wheels_turn(struct top_wheels *wheels, uint64_t now);

/* Sort the counts of the kind's spans, from `now` on, into the slots. */
void top_wheel_fill(struct top_wheel *wheel, const struct top_wheel_kind *kind, uint64_t now, const uint64_t *counts);

/* Return one character for n jobs in a slot when the fullest slot has `most`. Only an empty slot is blank. */
const char *top_wheel_cell(uint64_t n, uint64_t most, int utf8);

/* Return the number of jobs in the fullest slot. */
uint64_t top_wheel_most(const struct top_wheel *wheel);

/* What the server reported at one moment. */
struct top_sample {
	int64_t taken; /* ms of time_ms */
	struct tube_rows tubes;
	struct tube_row all; /* sums, named after the server's version */
	uint64_t uptime, workers;
	char oldest[40]; /* how long the first ready job has been overdue, in seconds; "": unknown */
};

/* Ask the server, and update the wheels, which are zero at first. Return 0, or -1 after a message. */
int top_sample(struct jobs *jobs, struct top_sample *sample, struct top_wheels *wheels);
void top_sample_free(struct top_sample *sample);

/* Limits and schedules, as text: a title, and rows in the order of their next times. */
enum { TOP_LIMITS, TOP_SCHEDULES, TOP_PANELS };

struct top_panel {
	char *text; /* NULL: none */
	size_t rows;
	int has_more;   /* of the server's answer, which is a page */
	int is_refused; /* the server does not tell */
};

struct top_panels {
	struct top_panel at[TOP_PANELS];
	int64_t asked; /* ms of time_ms */
	int is_asked;
};

/* Ask the server, unless it was asked in the last seconds. Zero is a valid start. Return 0, or -1 after a message. */
int top_panels_read(struct jobs *jobs, struct top_panels *panels);
void top_panels_free(struct top_panels *panels);

/* What the terminal can do. */
struct top_look {
	int rows, columns;
	int colour, cursor, utf8;
};

/* What is drawn. */
struct top_view {
	struct jobs *jobs;
	struct top_sample now, previous;
	int has_previous; /* for rates */
	struct top_wheels wheels;
	struct top_panels panels;
};

/*
 * Write a frame: rows - 1 lines of less than `columns` and, where there is a cursor, a last one. Parts that do not fit
 * are left out.
 */
void top_frame(FILE *out, const struct top_view *view, const struct top_look *look);

/* Write the sample and the wheels as a JSON object in a line. */
void top_json(FILE *out, const struct top_view *view);

/* Write a page of the help instead, the first being 1. Return 0, having written nothing, if there is no such page. */
int top_help(FILE *out, int page, const struct top_look *look);

#endif
