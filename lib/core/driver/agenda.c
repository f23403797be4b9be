/* The agenda: a pairing heap of sources, and the list of those that have changed. */

#include "lib/core/driver/agenda.h"

#include <stdatomic.h>

void ww_agenda_init(struct agenda *agenda)
{
	pthread_mutex_init(&agenda->lock, NULL);
}

void ww_agenda_destroy(struct agenda *agenda)
{
	pthread_mutex_destroy(&agenda->lock);
}

void ww_agenda_note(struct agenda *agenda, struct timer_source *source)
{
	struct timer_source *head;

	if (source->changed)
		return;
	source->changed = 1;
	head = agenda->changed;
	do
		source->next_changed = head;
	while (!atomic_compare_exchange_weak(&agenda->changed, &head, source));
}

/* ---- Links. `link` is the pointer that points here: the heap's or a list's first, a parent's child, a sibling. */

static void link_source(struct timer_source **link, struct timer_source *source)
{
	source->link = link;
	source->sibling = *link;
	if (source->sibling)
		source->sibling->link = &source->sibling;
	*link = source;
}

static void unlink_source(struct timer_source *source)
{
	*source->link = source->sibling;
	if (source->sibling)
		source->sibling->link = source->link;
	source->link = NULL;
	source->sibling = NULL;
}

/* ---- The heap: no child is earlier than its parent. A tree's first has no sibling. */

/* Make one tree of two. */
static struct timer_source *meld(struct timer_source *one, struct timer_source *other)
{
	struct timer_source *first = one;

	if (!one || !other)
		return one ? one : other;
	if (other->at < one->at) {
		first = other;
		other = one;
	}
	link_source(&first->child, other);
	return first;
}

/* Make one tree of siblings: of pairs first, and then of all from the last to the first, which keeps it shallow. */
static struct timer_source *meld_siblings(struct timer_source *one)
{
	struct timer_source *pairs = NULL;
	struct timer_source *first = NULL;

	while (one) {
		struct timer_source *other = one->sibling;
		struct timer_source *rest = other ? other->sibling : NULL;
		one->sibling = NULL;
		if (other)
			other->sibling = NULL;
		one = meld(one, other);
		one->sibling = pairs;
		pairs = one;
		one = rest;
	}
	while (pairs) {
		struct timer_source *rest = pairs->sibling;
		pairs->sibling = NULL;
		first = meld(first, pairs);
		pairs = rest;
	}
	return first;
}

static void add_tree(struct agenda *agenda, struct timer_source *tree)
{
	struct timer_source *first = meld(agenda->first, tree);

	agenda->first = first;
	if (first)
		first->link = &agenda->first;
}

/* ---- In and out */

void ww_agenda_file(struct agenda *agenda, struct timer_source *source)
{
	source->at = source->next;
	source->place = source->at == WW_NEVER ? SOURCE_IDLE : SOURCE_FILED;
	if (source->place == SOURCE_FILED)
		add_tree(agenda, source);
}

void ww_agenda_take(struct agenda *agenda, struct timer_source *source)
{
	struct timer_source *children = source->child;

	source->place = SOURCE_HELD;
	if (source->link)
		unlink_source(source);
	source->child = NULL;
	if (children)
		add_tree(agenda, meld_siblings(children));
}

void ww_agenda_set_aside(struct timer_source **list, struct timer_source *source)
{
	link_source(list, source);
}

void ww_agenda_resume(struct agenda *agenda, struct timer_source **list)
{
	struct timer_source *source;

	while ((source = *list)) {
		unlink_source(source);
		ww_agenda_file(agenda, source);
	}
}

struct timer_source *ww_agenda_first(struct agenda *agenda)
{
	struct timer_source *source = agenda->changed ? atomic_exchange(&agenda->changed, NULL) : NULL;
	struct timer_source *rest;

	for (; source; source = rest) {
		rest = source->next_changed;
		/* From here on it can be listed again. Its next is read after this. */
		source->changed = 0;
		if (source->place == SOURCE_HELD || source->at == source->next)
			continue;
		ww_agenda_take(agenda, source);
		ww_agenda_file(agenda, source);
	}
	return agenda->first;
}
