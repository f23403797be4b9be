/* The list of events, and how they are put in order of time. */
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
	events->at = memory_grow(events->at, &events->capacity, events->count, sizeof *events->at);
	events->at[events->count++] = (struct event){time.seconds, due.seconds, time.ns, due.ns, id, kind};
}

void events_add_cancel(struct events *events, uint32_t id, struct moment time)
{
	events_add(events, EVENT_CANCEL, id, time, time);
}

/* An event and where it stood, because qsort need not keep the order of equal ones. */
struct placed {
	struct event event;
	size_t place;
};

static int compare_placed(const void *left, const void *right)
{
	const struct placed *a = left;
	const struct placed *b = right;
	int order = moment_compare(event_time(&a->event), event_time(&b->event));

	return order ? order : (a->place > b->place) - (a->place < b->place);
}

static size_t events_disorder(const struct events *events)
{
	size_t count = 0;

	for (size_t i = 1; i < events->count; i++)
		count += moment_compare(event_time(&events->at[i]), event_time(&events->at[i - 1])) < 0;
	return count;
}

size_t events_sort(struct events *events)
{
	size_t disorder = events_disorder(events);
	struct placed *placed;

	if (disorder == 0)
		return 0;
	placed = memory_resize(NULL, events->count, sizeof *placed);
	for (size_t i = 0; i < events->count; i++)
		placed[i] = (struct placed){events->at[i], i};
	qsort(placed, events->count, sizeof *placed, compare_placed);
	for (size_t i = 0; i < events->count; i++)
		events->at[i] = placed[i].event;
	free(placed);
	return disorder;
}

struct moment event_time(const struct event *event)
{
	return (struct moment){event->time_seconds, event->time_ns};
}

struct moment event_due(const struct event *event)
{
	return (struct moment){event->due_seconds, event->due_ns};
}

const char *event_kind_name(enum event_kind kind)
{
	static const char *const names[] = {"set", "refresh", "cancel"};

	return names[kind];
}
