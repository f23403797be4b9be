#ifndef TOOLS_WEEKWHEEL_INPUT_EVENTS_H
#define TOOLS_WEEKWHEEL_INPUT_EVENTS_H

/*
 * What happens to timers, in the order of the replay. Every input becomes a list of events, and the replay does not know
 * where an event came from.
 */

#include "tools/common/moment.h"
#include "tools/weekwheel/input/keys.h"

enum event_kind {
	EVENT_SET,     /* start the timer anew, whether it is pending or not */
	EVENT_REFRESH, /* move a pending timer, start an idle one */
	EVENT_CANCEL
};

/* Half a cache line, because seconds and nanoseconds are separate. The deadline of a cancel has no meaning. */
struct event {
	uint64_t time_seconds;
	uint64_t due_seconds;
	uint32_t time_ns;
	uint32_t due_ns;
	uint32_t id; /* of its key */
	uint32_t kind;
};

struct events {
	struct event *at;
	size_t count, capacity;
	struct keys *keys;
};

void events_init(struct events *events);
void events_free(struct events *events);

/* Append a set or a refresh that is due at `due`, which is not before `time`. */
void events_add(struct events *events, enum event_kind kind, uint32_t id, struct moment time, struct moment due);

/* Append a cancel. */
void events_add_cancel(struct events *events, uint32_t id, struct moment time);

/*
 * Put the events in order of time. Events of the same time keep their order. Return how many followed a later one: 0 if
 * they were in order.
 */
size_t events_sort(struct events *events);

struct moment event_time(const struct event *event);
struct moment event_due(const struct event *event);

/* The tick in which a set or refresh is due, rounded up. */
static inline uint64_t event_deadline(const struct event *event)
{
	return event->due_seconds + (event->due_ns != 0);
}

/* "set", "refresh" or "cancel". */
const char *event_kind_name(enum event_kind kind);

#endif
