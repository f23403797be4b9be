#ifndef TESTS_TOOLS_WEEKWHEEL_FIXTURE_H
#define TESTS_TOOLS_WEEKWHEEL_FIXTURE_H

/* Shared by the tests of the program's parts: a format with its context, its events, and the last problem. */

#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/weekwheel/input/events.h"
#include "tools/weekwheel/input/format.h"

struct reading {
	const struct format *format;
	struct format_context context;
	struct events events;
	struct line_problem problem;
};

static inline void reading_begin(struct reading *reading, const struct format *format)
{
	memset(reading, 0, sizeof *reading);
	reading->format = format;
	reading->context.timeout.seconds = 1800;
	events_init(&reading->events);
}

static inline enum line_result reading_take(struct reading *reading, const char *text, size_t size)
{
	/* A copy without a 0 at its end, on which an access checker notices a reader that goes too far. */
	char *copy = malloc(size ? size : 1);
	struct input_line line = {copy, size};
	enum line_result result;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, size);
	result = reading->format->read(&reading->context, line, &reading->events, &reading->problem);
	free(copy);
	return result;
}

static inline enum line_result reading_line(struct reading *reading, const char *text)
{
	return reading_take(reading, text, strlen(text));
}

static inline const char *key_of(const struct events *events, uint32_t id)
{
	size_t size;

	return keys_text(events->keys, id, &size);
}

/* Append an event of whole seconds to key 'k', whose name is that one letter. */
static inline void add(struct events *events, enum event_kind kind, char key, uint64_t time, uint64_t timeout)
{
	struct moment at = {time, 0};
	struct moment due = {time + timeout, 0};
	uint32_t id = keys_intern(events->keys, &key, 1);

	if (kind == EVENT_CANCEL)
		events_add_cancel(events, id, at);
	else
		events_add(events, kind, id, at, due);
}

#endif
