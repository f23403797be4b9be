#ifndef LIB_CORE_DRIVER_AGENDA_H
#define LIB_CORE_DRIVER_AGENDA_H

/*
 * Which source the driver must look at, and when: a heap, by tick, of the sources in which a timer waits. A source in
 * which no timer waits costs nothing, nor does one that is not due yet.
 *
 *     any thread, with the source's lock         the driver, with the agenda's lock
 *
 *     source->next = 5        (was 8)                                3
 *     source->changed = 1                                          /   \
 *             |                                  heap, by `at`:   7     4     aside: source <--> source
 *             v                         merge                    / \          (due, but not to be looked
 *     list of changed: source --> source ---->                  9   8          at until they are resumed)
 *
 * A schedule takes only its source's lock. It adds the source to the list if its timer becomes the first there to need
 * the driver, and the source is not on the list already. Only a pass makes a source's next tick later, while it holds
 * the source.
 *
 * Invariant: a source is idle, filed or held. A filed source is in the heap. Either its `at` is its next, or it is on
 * the list, or the thread that has its lock is about to put it there; in the last two cases next < at. An idle source
 * has WW_NEVER, or is on the list in the same way. A held source is aside, or belongs to a pass, which files it by the
 * next that it then has. Therefore, once the list is merged, no source needs a look before the heap's first.
 *
 * No change is lost between the two sides: a thread writes `next` and then reads `changed`, and the merge clears
 * `changed` and then reads `next`. At least one of the two sees what the other has written. A source is on the list at
 * most once. The list is only ever taken as a whole, so a push need not consider a source that leaves and comes back.
 *
 * The heap is a leftist heap (C. Crane, 1972): a binary tree whose links are in the sources, so that it allocates
 * nothing. Of a source's two subtrees, the right one has the shorter path to its right end. That path therefore never
 * has more than log2 n steps. File and take follow it and are O(log n), even the first one after many others.
 */

#include "lib/core/driver/source.h"

struct agenda {
	/* Written by all threads, on a line of its own. */
	_Alignas(64) _Atomic(struct timer_source *) changed;
	_Alignas(64) pthread_mutex_t lock; /* before those of sources; for all that follows, held during a pass */
	struct timer_source *first;        /* the heap's; NULL: nothing waits anywhere */
	struct timer_source *waiting;      /* aside, beyond a pass: due, but there is no room for their firings */
};

void ww_agenda_init(struct agenda *agenda);
void ww_agenda_destroy(struct agenda *agenda);

/* The source's lock is held, and its next has become earlier. */
void ww_agenda_note(struct agenda *agenda, struct timer_source *source);

/* In all that follow the agenda's lock is held. */

/* Merge what has changed. Returns the source that has to be looked at first, by its `at`, or NULL. */
struct timer_source *ww_agenda_first(struct agenda *agenda);
/* Take a source out, wherever it is. The caller holds it until it files it. */
void ww_agenda_take(struct agenda *agenda, struct timer_source *source);
/* File a source that is held by its next tick, if it has one. */
void ww_agenda_file(struct agenda *agenda, struct timer_source *source);
/* Put a source that is held on a list, agenda->waiting or a pass's own, and file all that are on one. */
void ww_agenda_set_aside(struct timer_source **list, struct timer_source *source);
void ww_agenda_resume(struct agenda *agenda, struct timer_source **list);

#endif
