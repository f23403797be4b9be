#ifndef TESTS_FUZZ_FUZZ_LINES_H
#define TESTS_FUZZ_FUZZ_LINES_H

/*
 * Shared by the fuzz targets of the file formats: any bytes are read as lines of a format, and the result is replayed
 * and compared with the oracle. A difference ends the program.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel/input/events.h"
#include "tools/weekwheel/input/format.h"
#include "tools/weekwheel/replay/replay.h"
#include "tools/weekwheel/replay/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_REQUIRE(condition)                                                                                        \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

static inline void fuzz_check_events(const struct events *events, size_t from)
{
	size_t i;

	for (i = from; i < events->count; i++) {
		const struct event *event = &events->at[i];

		FUZZ_REQUIRE(event->id < keys_count(events->keys));
		FUZZ_REQUIRE(event->time_ns < 1000000000 && event->due_ns < 1000000000);
		FUZZ_REQUIRE(event->kind <= EVENT_CANCEL);
		FUZZ_REQUIRE(moment_compare(event_time(event), event_due(event)) <= 0);
	}
}

static inline void fuzz_line(
    const struct format *format, struct format_context *context, struct input_line line, struct events *events)
{
	struct line_problem problem = {""};
	size_t before = events->count;
	enum line_result result = format->read(context, line, events, &problem);

	FUZZ_REQUIRE(result == LINE_EVENTS || events->count == before);
	FUZZ_REQUIRE((result == LINE_UNREADABLE) == (problem.text[0] != 0));
	fuzz_check_events(events, before);
}

static inline void fuzz_replay(struct events *events, int to_end)
{
	struct replay_options options = {0, to_end, 1, 1, 1};
	struct difference difference = {""};
	struct replay_result result;
	struct outcome oracle;

	events_sort(events);
	FUZZ_REQUIRE(replay_run(events, &options, &result) == 0);
	oracle_run(events, to_end, &oracle);
	if (verify_compare(&result.outcome, &oracle, events->keys, &difference)) {
		fprintf(stderr, "%s\n", difference.text);
		abort();
	}
	FUZZ_REQUIRE(result.max_late_ticks == 0);
	outcome_free(&oracle);
	outcome_free(&result.outcome);
}

static inline void fuzz_lines(const struct format *format, const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct format_context context;
	struct events events;

	memset(&context, 0, sizeof context);
	context.timeout.seconds = 1800;
	events_init(&events);
	while (size > 0) {
		const char *end = memchr(text, '\n', size);
		struct input_line line = {text, end ? (size_t)(end - text) : size};

		fuzz_line(format, &context, line, &events);
		size -= line.size + (end != NULL);
		text += line.size + (end != NULL);
	}
	fuzz_replay(&events, 0);
	fuzz_replay(&events, 1);
	events_free(&events);
}

#endif
