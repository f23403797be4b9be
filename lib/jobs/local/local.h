#ifndef LIB_JOBS_LOCAL_LOCAL_H
#define LIB_JOBS_LOCAL_LOCAL_H

/*
 * The inside of the embedded store of jobs: struct jobs_local, which is one open store, and the rules of this folder.
 *
 * The stored record has everything about a job except its lease. Memory has an *entry* for each ready or reserved job,
 * and for each delayed job that is due before the *edge* of its timeline:
 *
 *          overdue        now                 edge
 *     ------ready----------|----delayed--------|----------delayed, only on disk----------------->  due time
 *            heap of its tube   timer of the driver
 *
 * A ready job that expires has a timer, too (expire.c).
 *
 * The edge advances when few delayed jobs are left before it, or when their time comes near: load.c then continues to
 * read the index of due times. The edge goes back when puts make too many entries.
 *
 * Each header of this folder says what its file does. These rules hold in all of them, unless a header says otherwise:
 *
 *   - Threads. Calls are executed one at a time (queue.h). Only the thread that executes them, the *owner*, calls
 *     functions and looks at structs. No function takes a lock.
 *   - Times and spans are in ns. A time is one of the jobs' elapsed clock; a due time is one of its job's clock
 *     (timeline.h).
 *   - Errors. A function that returns an int returns WW_OK or an error of error.h. Any function that reads or writes
 *     passes on an error of the store (store/store.h); any that makes something may return WW_ENOMEM. On error nothing
 *     has changed, or else the batch is broken, and everything that its calls have changed is taken back (writing.h).
 *   - Bytes that were read, such as the key and the body in a record, lie in the store. They are valid until its next
 *     change or the begin of a write.
 *
 * The paper of lib/jobs, DESIGN.md, has an order in which to read the files.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/slab.h"
#include "lib/base/table.h"
#include "lib/jobs/backend.h"
#include "lib/jobs/local/counts.h"
#include "lib/jobs/local/history.h"
#include "lib/jobs/local/meta.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/store/store.h"

struct coded_heap;
struct entry;
struct group;
struct queued_call;
struct run_report;
struct undo;

/*
 * The lower bits of a token count deliveries; they last for three years of ten thousand deliveries a second. The upper
 * bits count how often the store was opened.
 */
enum { TOKEN_BITS = 40 };

/* Pairs that a long walk reads before it lets go of them: a store keeps what was read. */
#define LOOKS_AT_ONCE 1024u

struct jobs_local {
	struct ww_jobs base;
	const struct ww_allocator *allocator;
	struct ww_jobs_config config;
	struct store store;
	uint32_t forks; /* when the store was opened; children may not use it */
	struct timeline elapsed;
	struct timeline wall;
	struct meta meta;
	struct meta meta_before; /* before the batch */

	pthread_mutex_t lock; /* of the members up to readies */
	pthread_cond_t idle;
	int (*commit)(struct jobs_local *jobs); /* ends a batch: what the queue calls */
	struct queued_call *first;
	struct queued_call **last;
	int busy;      /* a thread executes calls or has begun a batch: the owner */
	size_t inside; /* threads in ww_jobs_submit, except the owner's calls in its batch */
	pthread_t owner;
	pthread_cond_t ready_cond; /* a job may be ready */
	uint64_t readies;

	/* Only the owner uses what follows. */
	int writing;   /* the store has begun a write */
	int ending;    /* the last batch: the store is being closed in order */
	int must_sync; /* this batch has to be stable before it is answered, in every mode */
	int undoing;   /* a failed batch is being taken back */
	int broken;    /* the error for which this batch cannot be committed */
	struct undo *undo;
	size_t undo_count;
	size_t undo_room;
	struct tube *dirty;
	struct tube *notify;
	unsigned char *events; /* of this batch, for the listener (events.c) */
	size_t events_size;
	size_t events_room;
	int events_lost;
	unsigned char *buffer; /* for a record to write */
	size_t buffer_size;

	/* What becomes of an entry whose timer has fired: what entries.c calls. */
	int (*come_due)(struct jobs_local *jobs, struct entry *entry);
	int (*time_out)(struct jobs_local *jobs, struct entry *entry);
	int (*expire)(struct jobs_local *jobs, struct entry *entry);
	struct slab entries;
	struct table ids;
	struct tube *tubes;     /* hashed by name */
	struct tube **numbered; /* the same by number; NULL where there is none */
	uint32_t numbered_room;
	uint64_t tokens;
	uint32_t free_number;             /* no tube's; lower ones are taken */
	uint64_t limit_numbers;           /* the greatest that a limit had */
	STAILQ_HEAD(, group) idle_groups; /* those that may be forgotten */
	TAILQ_HEAD(, coded_heap) idle_coded;
	struct ended_runs runs;     /* of this batch */
	struct run_report *reports; /* of leases, hashed by id (history.c) */
	unsigned report_count;
	unsigned reports_swept; /* how many were left by the last sweep */
	struct totals all;
	struct counts counts;
	uint64_t taken_back; /* batches */
	uint64_t timeouts;
	uint64_t expired;
	uint64_t expired_before; /* the batch */
	uint64_t lateness[WW_LATE_CLASSES];
	uint64_t late_ns;
	uint64_t commits;
	uint64_t syncs;
	uint64_t sync_ns;
	uint64_t random;
	size_t bytes;          /* of memory (memory.h) */
	ww_handle clock_timer; /* when to write the clocks */
	ww_handle forget_timer;
	uint64_t forget_at; /* of that timer; UINT64_MAX: there is none */
	int64_t downtime;   /* by the wall clock, if the last write was in another boot */
	size_t late;        /* callbacks that still run for a timer that was cancelled */
	int closed;
};

/* The store behind a handle of this kind. */
static inline struct jobs_local *local_of(struct ww_jobs *jobs)
{
	return (struct jobs_local *)jobs; /* its first member */
}

#endif
