#ifndef TOOLS_SERVICE_OUTBOX_OUTBOX_H
#define TOOLS_SERVICE_OUTBOX_OUTBOX_H

/*
 * Items: keys that have expired or were evicted, and that wait to be delivered to another server (--expired-to), in the
 * order in which they came. Times are in ms, of a clock of the program's.
 *
 *     an end -------> outbox_add ---> | delivered | in flight | waiting | <--- outbox_restore <--- journal, at the start
 *                                       ^head       ^answered   ^next     ^tail
 *
 * courier.c takes items from `next` on and sends them; an answer is for the earliest in flight. An item that the other
 * server could not take stays at its place. When nothing is in flight any more, all items are taken again from the head
 * on. Items are therefore delivered at least once, and in order, except those that had to be sent again.
 *
 * The outbox has a bound. When it is three quarters full, new items are kept without their values. At the bound, the
 * oldest waiting item is dropped for a new one, and counted.
 *
 * The journal gets a note of each item before it is sent, and later of all that were delivered. After a crash it gives back
 * the items that are not noted as delivered. Any thread may call these functions, unless a comment says otherwise.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/session.h"

struct outbox;

#define OUTBOX_NEVER INT64_MAX
/* The size of a value that nobody knows. */
#define OUTBOX_UNKNOWN UINT32_MAX
/* Beside the reasons of enum ww_gone: the key has expired or was deleted, and it is not known which. */
enum { OUTBOX_GONE = 16 };

struct outbox_item {
	uint64_t id;  /* greater than all earlier ids, also those before a restart */
	unsigned why; /* enum ww_gone, or OUTBOX_GONE */
	unsigned database;
	int64_t deadline_ms; /* OUTBOX_NEVER: an evicted key had none */
	int64_t since_ms;    /* when delivery was due */
	const void *key;
	size_t length;
	const void *value; /* NULL: it was left out */
	size_t size;       /* of the value, whether it is there or not; or OUTBOX_UNKNOWN */
	int is_type;       /* the value is the name of its type, as it is no string */
	uint32_t early_ms; /* how long before the deadline the value was read; 0: it is the final value */
};

/* The most bytes; an item counts its key, its value and about 60 more. NULL without memory. */
struct outbox *outbox_open(uint64_t bytes_max);
void outbox_close(struct outbox *outbox);

/* Keep a copy; item->id is not read. Returns its id. Without memory it is dropped, and counted. */
uint64_t outbox_add(struct outbox *outbox, const struct outbox_item *item);

/* ---- For the journal */

/*
 * `waiting` and `delivered` only note; `settle` waits until the notes are as durable as the settings ask. `waiting` is
 * called with the outbox locked, so in the order of ids, and may not call the outbox.
 */
struct outbox_journal {
	void *context;
	void (*waiting)(void *context, const struct outbox_item *item);
	/* No item up to this id has to be delivered any more. */
	void (*delivered)(void *context, uint64_t id);
	/* 0 or a WW_E*: nothing is sent now. */
	int (*settle)(void *context);
};

/* Set the journal, which also gets items added before, except restored ones. NULL: none; later items are not noted. */
void outbox_set_journal(struct outbox *outbox, const struct outbox_journal *journal);
int outbox_has_journal(struct outbox *outbox);

/* At the start: restore an item that was waiting; one that is there already stays. 0 or WW_ENOMEM. */
int outbox_restore(struct outbox *outbox, const struct outbox_item *item);
/* An item added during the start need not be delivered. */
void outbox_cancel(struct outbox *outbox, uint64_t id);
/* All restored items up to this id were delivered. New ids follow it. */
void outbox_restore_delivered(struct outbox *outbox, uint64_t id);

/*
 * For a snapshot: call fn with some of the waiting items, those in flight included, with ids greater than *after,
 * which moves on. The outbox is locked meanwhile. Returns how many; 0 at the end.
 */
typedef void outbox_item_fn(const struct outbox_item *item, void *context);
size_t outbox_walk(struct outbox *outbox, uint64_t *after, outbox_item_fn *fn, void *context);

/* All items up to this id were delivered or dropped. */
uint64_t outbox_delivered(struct outbox *outbox);

/* ---- For the courier */

/* Called when there is something to take again. Any thread, with the outbox locked. */
void outbox_set_wake(struct outbox *outbox, void (*wake)(void *context), void *context);

/* Take the next item. Returns 1, and its bytes stay until it is answered; or 0 if there is none now. */
int outbox_take(struct outbox *outbox, struct outbox_item *item);

enum outbox_answer {
	OUTBOX_DELIVERED,
	OUTBOX_AGAIN,  /* it has to be sent again */
	OUTBOX_TOO_BIG /* send it again without its value; an item without one is given up, and counted */
};

/* Answer the earliest item in flight. Returns 1 if it was given up. */
int outbox_answered(struct outbox *outbox, enum outbox_answer answer);

/* Nothing in flight will be answered: all of it has to be sent again. */
void outbox_recall(struct outbox *outbox);

/* Let the journal note what was delivered, and wait until it is durable. */
int outbox_settle(struct outbox *outbox);

/* ---- Numbers */

struct outbox_stats {
	uint64_t waiting; /* those in flight, too */
	uint64_t in_flight;
	uint64_t bytes;
	uint64_t delivered;
	uint64_t shortened; /* their values were left out at the bound, or because the other server refused them */
	uint64_t given_up;  /* the other server refuses them in any form */
	uint64_t dropped;   /* at the bound, or without memory */
	int64_t oldest_ms;  /* how long the oldest has waited, if there is one */
};

void outbox_stats(struct outbox *outbox, struct outbox_stats *stats);

#endif
