#ifndef TOOLS_WEEKWHEEL_INPUT_FORMAT_H
#define TOOLS_WEEKWHEEL_INPUT_FORMAT_H

/*
 * The file formats. A format is a function that turns one line into events. It gets all that it needs as arguments, and
 * a test or a fuzzer can call it on any memory.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/common/moment.h"
#include "tools/weekwheel/input/events.h"

/* What a file's lines have in common. Zeroed, with `timeout` set, before the first line of each file. */
struct format_context {
	struct moment timeout;        /* of a session in an access log */
	struct moment limit;          /* swf: the longest run time that the header allows; 0: it names none */
	uint64_t jobs_without_limit;  /* swf: jobs for which no timer could be set */
	uint64_t jobs_in_parts;       /* swf: lines that repeat a part of a job that has a line of its own */
	uint64_t jobs_without_finish; /* swf: jobs of unknown run time, whose timer nothing cancels */
};

struct input_line {
	const char *text;
	size_t size;
};

/* What is wrong with a line, and what was expected. */
struct line_problem {
	char text[200];
};

enum line_result {
	LINE_UNREADABLE = -1, /* *problem says why; no event was added */
	LINE_EVENTS,          /* read; it may have had no event */
	LINE_COMMENT,         /* a header or a comment of this format */
	LINE_BLANK
};

struct format {
	const char *name;  /* for --format and JSON */
	const char *title; /* for a person */
	const char *suffix;
	int has_sessions; /* its keys are sessions rather than jobs */
	enum line_result (*read)(struct format_context *, struct input_line, struct events *, struct line_problem *);
};

extern const struct format format_swf;
extern const struct format format_log;
extern const struct format format_csv;
/* For a file of no known format: it can read no line. */
extern const struct format format_unknown;

/* Return the format of this name, or NULL. */
const struct format *format_by_name(const char *name);

/*
 * Return the format whose line this is, or NULL if no format knows it. Comments count only where `comments` allows them,
 * because one character is all that tells them.
 */
const struct format *format_of_line(struct input_line line, int comments);

/* Return the format that a file's name suggests, or format_unknown. */
const struct format *format_of_name(const char *file_name);

/* Describe what is wrong, for the formats. Return LINE_UNREADABLE. */
enum line_result line_problem_set(struct line_problem *problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Read the time or length `what` from a field. Return 0, or LINE_UNREADABLE with *problem set. */
int line_number(struct input_line field, const char *what, struct moment *moment, struct line_problem *problem);

/* Return 1 for a space or a tab. */
int is_blank(char c);

/* Return the line without blanks at both ends. */
struct input_line line_trim(struct input_line line);

/* Return 1 if the line is this text, in upper or lower case. */
int line_equals(struct input_line line, const char *text);

#endif
