#ifndef TOOLS_WEEKWHEEL_SESSIOND_KEEP_KEEP_INTERNAL_H
#define TOOLS_WEEKWHEEL_SESSIOND_KEEP_KEEP_INTERNAL_H

/*
 * The inside of keep.h. A change takes this way:
 *
 *     data/ ---> note --> pending --> journal.7 | journal.8 | ...        before the answers of its turn are sent
 *                                        \
 *     maps ---- walked by the painter ----+--> sessions.new --> sessions  when the journal has become as large
 *                                              (then the files that it has are removed)
 */

#include <pthread.h>
#include <stdatomic.h>

#include "lib/journal/journal.h"
#include "tools/weekwheel-sessiond/keep/format.h"
#include "tools/weekwheel-sessiond/keep/keep.h"

/* The first of the pending entries. None of them belongs to a group with later ones. */
struct keep_part {
	size_t size;
	uint64_t noted;
};

/* An entry of the clocks. All in ms. */
struct keep_clock {
	uint64_t boot; /* of the machine, by its id; 0: unknown, or none */
	int64_t steady;
	int64_t wall;
	int64_t offset; /* steady time less elapsed time */
};

struct keep {
	struct data *data;
	struct data_keep hooks;
	struct keep_config config;
	char *path;
	int folder;
	struct outbox_journal outbox_hooks;
	struct journal_fault fault;
	struct journal journal; /* appended to under `writing` */
	int is_open;            /* the journal */
	uint64_t read_from;     /* the files above this number were read at the start */
	int found;              /* so many */

	pthread_mutex_t noting; /* of the next three */
	struct buffer pending;  /* entries that are not in the journal */
	struct buffer parts;    /* where it is divided, as it is too much for a record: struct keep_part */
	uint64_t noted;         /* entries, ever */

	pthread_mutex_t writing; /* of the next four; locked before `noting` */
	struct buffer batch;     /* a record that is written now, or could not be */
	uint64_t batched;        /* entries up to its end */
	int has_file;            /* the journal has one of this start */
	uint64_t boot;           /* the number of the machine's boot; 0: not known, or the clock is virtual */
	int64_t ahead;           /* of wall time before steady time, as the journal knows; KEEP_UNKNOWN */
	_Atomic uint64_t written;
	_Atomic uint64_t synced;
	_Atomic uint64_t grown; /* bytes of the journal since the image */
	_Atomic int is_full;    /* why a write has failed, the disk or else: a WW_E* */
	_Atomic uint64_t spare; /* bytes that the journal can still take */
	_Atomic int is_freed;   /* something was deleted since, so an image may make room */

	pthread_t thread;     /* syncs the journal, and tries for room */
	pthread_t painter;    /* writes images */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;  /* there is work, or some was done */
	int is_ending;
	int has_work;   /* something was written */
	int is_idle;    /* nothing was for long */
	uint64_t asked; /* images, each by its number */
	uint64_t done;
	int is_failing;               /* the last one failed */
	uint64_t again;               /* by the monotonic clock: no image before this, unless a client asks */
	int64_t last;                 /* s of wall time: when the last one was complete */
	_Atomic uint64_t image_bytes; /* of the last one; read without the lock */

	/* The painter's: an image begun but not complete. The next attempt continues in the same file. */
	int is_begun;
	uint64_t cut;
	uint64_t record;
	uint64_t cut_grown; /* bytes of `grown` that it replaces */
};

/* ---- clock.c */

#define KEEP_UNKNOWN INT64_MIN

/*
 * A deadline is never early by being rounded to ms. The driver's time begins with the machine's: a deadline on disk that
 * was earlier has this bit and its steady time instead.
 */
#define KEEP_BEFORE (UINT64_C(1) << 63)
uint64_t keep_ms_of(const struct keep *keep, uint64_t deadline);
uint64_t keep_disk_of(const struct keep *keep, uint64_t ms);
uint64_t keep_deadline_of(const struct keep *keep, uint64_t ms);

/* Add an entry of the clocks: always, or only if one was set since the last. Return 0, or -1 without memory. */
int keep_clock_add(struct keep *keep, struct buffer *to);
int keep_clock_add_step(struct keep *keep, struct buffer *to);
/* Whether one was set since the last. */
int keep_clock_is_stepped(const struct keep *keep);
/*
 * Let steady time go on from what was read: the last entry of the clocks, and the last moment at which something was written.
 * Nothing was restored yet.
 */
void keep_clock_go_on(struct keep *keep, const struct keep_clock *clock, uint64_t last);

/* ---- log.c */

void keep_log_hooks(struct keep *keep);
/* Write the notes into the journal. Returns 0 or a WW_E*: they then stay noted. */
int keep_log_write(struct keep *keep);
int keep_log_sync(struct keep *keep);
/* If the wall clock was set, or `must`, write a record of the clocks, and sync it. */
void keep_log_clock(struct keep *keep, int must);
/* Begin a new file if the last one has become large. */
void keep_log_turn(struct keep *keep);
/* Note this many whole entries now, whatever group the thread has begun. */
void keep_log_note(struct keep *keep, const struct buffer *entries, uint64_t count);
/* Wait until all notes of all threads are as durable as an answer requires. Returns 0 or a WW_E*. */
int keep_log_settle(struct keep *keep);
/*
 * Write what could not be written, and take room on the disk for what comes; without, changes are refused. At the start it
 * begins the journal's next file.
 */
void keep_log_room(struct keep *keep);
/* Why a write has failed, for the log. */
const char *keep_log_why(int error);

/* ---- outbox.c */

void keep_outbox_hooks(struct keep *keep);
/* Report expiries from here on, or not. */
void keep_outbox_mark(struct keep *keep);
/*
 * Add that, and what waits to be delivered with ids greater than *after, which moves on, some at a time. Calls `full` when much was
 * added. Returns 0, or -1 without memory.
 */
int keep_outbox_add(struct keep *keep, struct buffer *to, uint64_t *after, void (*full)(void *context), void *context);
/* Apply an entry that was read. Returns 0, or -1 if it is malformed. */
int keep_outbox_item(const struct keep_entry *entry, struct outbox_item *item);

/* ---- image.c */

/* Write an image, and cut the journal. is_last: nothing is changed any more. Returns 0 or a WW_E*. */
int keep_image_write(struct keep *keep, int is_last);

/* ---- load.c */

/* Read image and journal, and begin the journal's next file. Returns 0, or -1 after a message. */
int keep_load(struct keep *keep);

#endif
