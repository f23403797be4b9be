/* The list of events, and a merge sort, because qsort would not keep the order of events of the same time. */
#include "tools/weekwheel/input/events.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"

void events_init(struct events *events)
{
	memset(events, 0, sizeof *events);
	events->keys = keys_new();
}

void events_free(struct events *events)
{
	free(events->at);
	keys_free(events->keys);
	memset(events, 0, sizeof *events);
}

void events_add(struct events *events, enum event_kind kind, uint32_t id, struct moment time, struct moment due)
{
	struct event *event;

	events->at = memory_grow(events->at, &events->capacity, events->count, sizeof *events->at);
	event = &events->at[events->count++];
	event->time_seconds = time.seconds;
	event->time_ns = time.ns;
	event->due_seconds = due.seconds;
	event->due_ns = due.ns;
	event->id = id;
	event->kind = kind;
}

void events_add_cancel(struct events *events, uint32_t id, struct moment time)
{
	events_add(events, EVENT_CANCEL, id, time, time);
}

static int event_is_before(const struct event *a, const struct event *b)
{
	if (a->time_seconds != b->time_seconds)
		return a->time_seconds < b->time_seconds;
	return a->time_ns < b->time_ns;
}

static size_t events_disorder(const struct events *events)
{
	size_t count = 0;
	size_t i;

	for (i = 1; i < events->count; i++)
		count += event_is_before(&events->at[i], &events->at[i - 1]) ? 1u : 0u;
	return count;
}

static void merge(struct event *out, const struct event *left, size_t lefts, const struct event *right, size_t rights)
{
	while (lefts && rights) {
		if (event_is_before(right, left)) {
			*out++ = *right++;
			rights--;
		} else {
			*out++ = *left++;
			lefts--;
		}
	}
	memcpy(out, left, lefts * sizeof *out);
	memcpy(out + lefts, right, rights * sizeof *out);
}

/* Merge runs of `width` events of `from` in pairs into `to`. */
static void merge_runs(struct event *to, const struct event *from, size_t count, size_t width)
{
	size_t at = 0;

	while (at < count) {
		size_t left = count - at < width ? count - at : width;
		size_t right = count - at - left < width ? count - at - left : width;

		merge(to + at, from + at, left, from + at + left, right);
		at += left + right;
	}
}

size_t events_sort(struct events *events)
{
	size_t disorder = events_disorder(events);
	struct event *spare;
	size_t width;

	if (disorder == 0)
		return 0;
	spare = memory_resize(NULL, events->count, sizeof *spare);
	for (width = 1; width < events->count; width *= 2) {
		struct event *sorted = spare;

		merge_runs(sorted, events->at, events->count, width);
		spare = events->at;
		events->at = sorted;
	}
	events->capacity = events->count;
	free(spare);
	return disorder;
}

struct moment event_time(const struct event *event)
{
	struct moment time = {event->time_seconds, event->time_ns};

	return time;
}

struct moment event_due(const struct event *event)
{
	struct moment due = {event->due_seconds, event->due_ns};

	return due;
}

const char *event_kind_name(enum event_kind kind)
{
	static const char *const names[] = {"set", "refresh", "cancel"};

	return names[kind];
}
