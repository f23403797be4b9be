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
/* Why, beside those of enum ww_gone: the key has expired or was deleted, and nobody knows which. */
enum { OUTBOX_GONE = 16 };

struct outbox_item {
	uint64_t id;  /* greater than those of all that came before, also before a restart */
	unsigned why; /* enum ww_gone, or OUTBOX_GONE */
	unsigned database;
	int64_t deadline_ms; /* OUTBOX_NEVER: an evicted key had none */
	int64_t since_ms;    /* when it had to be delivered */
	const void *key;
	size_t length;
	const void *value; /* NULL: it was left out */
	size_t size;       /* of the value, whether it is there or not; or OUTBOX_UNKNOWN */
	int is_type;       /* the value is the name of its type, as it is no string */
	uint32_t early_ms; /* by how much the value was read before the deadline; 0: it is that of the end */
};

/* At most this many bytes; an item counts with some 60 beside its key and value. NULL: there is no memory. */
struct outbox *outbox_open(uint64_t bytes_max);
void outbox_close(struct outbox *outbox);

/* Keep a copy; item->id is not read. Returns its id. Without memory it is dropped, and counted. */
uint64_t outbox_add(struct outbox *outbox, const struct outbox_item *item);

/* ---- For the journal */

/*
 * `waiting` and `delivered` only note, and `settle` waits until the notes are as stable as was asked. `waiting` is called
 * with the outbox locked, thus in the order of ids, and may not call the outbox.
 */
struct outbox_journal {
	void *context;
	void (*waiting)(void *context, const struct outbox_item *item);
	/* Of all items up to this id, none has to be delivered any more. */
	void (*delivered)(void *context, uint64_t id);
	/* 0 or a WW_E*: then nothing is sent now. */
	int (*settle)(void *context);
};

/* It hears of what was added before, too, unless that was restored. NULL: no more; what comes then is not noted. */
void outbox_set_journal(struct outbox *outbox, const struct outbox_journal *journal);
int outbox_has_journal(struct outbox *outbox);

/* At the start: an item that was waiting, as it was; one that is there already stays. 0 or WW_ENOMEM. */
int outbox_restore(struct outbox *outbox, const struct outbox_item *item);
/* One that was added at the start need not be delivered. */
void outbox_cancel(struct outbox *outbox, uint64_t id);
/* And all that were restored up to this id were delivered. Ids go on behind it. */
void outbox_restore_delivered(struct outbox *outbox, uint64_t id);

/* For a snapshot: call fn with some of those that wait or are in flight, with ids greater than *after, which moves on.
 * The outbox is locked meanwhile. Returns how many; 0 at the end. */
typedef void outbox_item_fn(const struct outbox_item *item, void *context);
size_t outbox_walk(struct outbox *outbox, uint64_t *after, outbox_item_fn *fn, void *context);

/* All items up to this id were delivered or dropped. */
uint64_t outbox_delivered(struct outbox *outbox);

/* ---- For the courier */

/* Called when there is something to take again. Any thread, with the outbox locked. */
void outbox_set_wake(struct outbox *outbox, void (*wake)(void *context), void *context);

/* Take the next item. Returns 1; its bytes stay until it is answered. 0: there is none now. */
int outbox_take(struct outbox *outbox, struct outbox_item *item);

enum outbox_answer {
	OUTBOX_DELIVERED,
	OUTBOX_AGAIN,  /* it has to be sent again */
	OUTBOX_TOO_BIG /* it has to be sent again without its value; without one it is given up, and counted */
};

/* The answer to the earliest in flight. Returns 1 if the item was given up. */
int outbox_answered(struct outbox *outbox, enum outbox_answer answer);

/* Nothing that is in flight will be answered: it has to be sent again. */
void outbox_recall(struct outbox *outbox);

/* Let the journal note what was delivered, and settle. */
int outbox_settle(struct outbox *outbox);

/* ---- Numbers */

struct outbox_stats {
	uint64_t waiting; /* those in flight, too */
	uint64_t in_flight;
	uint64_t bytes;
	uint64_t delivered;
	uint64_t shortened; /* their values were left out at the bound, or for the other server */
	uint64_t given_up;  /* the other server takes them in no form */
	uint64_t dropped;   /* at the bound, or without memory */
	int64_t oldest_ms;  /* since when the oldest waits, if there is one */
};

void outbox_stats(struct outbox *outbox, struct outbox_stats *stats);

#endif
