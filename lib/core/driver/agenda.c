/* The agenda: a leftist heap of sources, and the list of the sources that have changed. */

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

/* ---- The heap */

static uint16_t rank_of(const struct timer_source *tree)
{
	return tree ? tree->rank : 0;
}

/* Hang two trees below a source, the higher rank on the left. */
static void adopt(struct timer_source *top, struct timer_source *one, struct timer_source *other)
{
	int ordered = rank_of(one) >= rank_of(other);

	top->left = ordered ? one : other;
	top->right = ordered ? other : one;
	if (one)
		one->parent = top;
	if (other)
		other->parent = top;
	top->rank = (uint16_t)(rank_of(top->right) + 1);
}

/* Make one tree of two. It goes down to the right, where no path is longer than the rank. */
static struct timer_source *meld(struct timer_source *one, struct timer_source *other)
{
	struct timer_source *first = one;

	if (!one || !other)
		return one ? one : other;
	if (other->at < one->at) {
		first = other;
		other = one;
	}
	adopt(first, first->left, meld(first->right, other));
	return first;
}

static void set_first(struct agenda *agenda, struct timer_source *first)
{
	agenda->first = first;
	if (first)
		first->parent = NULL;
}

/* What was below the source takes its place, and ranks are set right as far up as one changes. */
static void remove_from_heap(struct agenda *agenda, const struct timer_source *source)
{
	struct timer_source *below = meld(source->left, source->right);
	struct timer_source *top = source->parent;

	if (!top) {
		set_first(agenda, below);
		return;
	}
	if (top->left == source)
		top->left = below;
	else
		top->right = below;
	for (int changed = 1; top && changed; top = top->parent) {
		uint16_t rank = top->rank;
		adopt(top, top->left, top->right);
		changed = top->rank != rank;
	}
}

/* ---- Lists: `sibling` is the next and `parent` the one before */

static void remove_from_list(struct agenda *agenda, const struct timer_source *source)
{
	if (source->parent)
		source->parent->sibling = source->sibling;
	else if (agenda->waiting == source)
		agenda->waiting = source->sibling;
	if (source->sibling)
		source->sibling->parent = source->parent;
}

/* ---- In and out */

void ww_agenda_file(struct agenda *agenda, struct timer_source *source)
{
	source->at = source->next;
	source->place = source->at == WW_NEVER ? SOURCE_IDLE : SOURCE_FILED;
	source->left = source->right = source->parent = NULL;
	source->rank = 1;
	if (source->place == SOURCE_FILED)
		set_first(agenda, meld(agenda->first, source));
}

void ww_agenda_take(struct agenda *agenda, struct timer_source *source)
{
	if (source->place == SOURCE_FILED)
		remove_from_heap(agenda, source);
	else if (source->place == SOURCE_HELD)
		remove_from_list(agenda, source);
	source->left = source->right = source->parent = NULL;
	source->place = SOURCE_HELD;
}

void ww_agenda_set_aside(struct timer_source **list, struct timer_source *source)
{
	source->sibling = *list;
	source->parent = NULL;
	if (source->sibling)
		source->sibling->parent = source;
	*list = source;
}

void ww_agenda_resume(struct agenda *agenda, struct timer_source **list)
{
	struct timer_source *source;

	while ((source = *list)) {
		*list = source->sibling;
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
