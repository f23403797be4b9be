#ifndef LIB_JOBS_LOCAL_LOCAL_INTERNAL_H
#define LIB_JOBS_LOCAL_LOCAL_INTERNAL_H

/*
 * The embedded store of jobs, from inside.
 *
 * What is stored tells everything about a job but its lease. Memory has an *entry* for each job that is ready or
 * reserved, and for each delayed one that is due before its timeline's *edge*:
 *
 *          overdue        now                 edge
 *     ------ready----------|----delayed--------|----------delayed, on disk alone------------->  due time
 *            heap of its tube   timer of the driver
 *
 * The edge moves on when few delayed jobs are left before it, or when time comes near: jobs_load reads on in the index
 * of due times. It goes back when a put makes them too many.
 *
 * All calls go through ww_jobs_submit, one at a time; what comes meanwhile is executed together and written together.
 * An entry is changed at once, and what it was before is noted: if the write fails, the notes are applied in reverse
 * (jobs_batch.c).
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Without memory it must not end the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "lib/base/slab.h"
#include "lib/base/table.h"
#include "lib/jobs/backend.h"
#include "lib/jobs/local/record.h"
#include "lib/jobs/store/store.h"

struct jobs_local;
struct tube;

/* Entries that are read at once. */
#define LOAD_BATCH 2048u
#define NO_PLACE UINT32_MAX

/* A clock and what lies on it. */
struct timeline {
	struct jobs_local *jobs;
	struct ww_driver *driver; /* NULL: this clock is not there */
	uint64_t offset;          /* the time of jobs minus the driver's */
	enum store_table table;
	uint64_t edge_due; /* every job that is due before, or then with at most that id, has an entry */
	uint64_t edge_id;
	uint64_t opened;  /* when the store was */
	size_t loaded;    /* delayed entries */
	int cut;          /* the edge lies where the last reading had enough */
	int wants;        /* it is time to read on */
	uint64_t planned; /* when it will be, or UINT64_MAX */
	ww_handle timer;  /* for that */
};

/* What memory knows of a job. */
struct image {
	struct tube *tube;
	uint64_t due;   /* of its timeline */
	uint64_t token; /* of its lease, 0: none */
	uint64_t ends;  /* when that ends, of elapsed time */
	uint64_t missed;
	uint32_t priority;
	uint32_t reserves; /* these are not stored until something else is */
	uint32_t timeouts;
	uint32_t tries;
	uint8_t state; /* enum ww_job_state, or 0: memory knows nothing of it */
	uint8_t wall;
};

struct entry {
	struct slab_unused unused; /* the slab's, while the entry is not taken */
	uint64_t id;
	ww_handle timer; /* of a delayed or reserved one */
	struct jobs_local *jobs;
	uint32_t index;
	uint32_t place; /* in its tube's heap */
	struct image is;
};

struct tube {
	UT_hash_handle hh; /* by name */
	struct jobs_local *jobs;
	uint32_t number;
	uint32_t name_length;
	char name[WW_TUBE_MAX + 1];
	struct entry **heap; /* ready entries: the least of (priority, id) first, four below each */
	uint32_t ready;
	uint32_t room;
	uint64_t urgent;
	uint64_t reserved;
	uint64_t waiting; /* stored, and not buried: delayed, ready and reserved */
	uint64_t buried;
	uint64_t puts;
	uint64_t finished;
	uint64_t pauses;
	uint64_t pause;
	uint64_t pause_ends; /* of elapsed time; 0: not paused */
	int dirty;           /* its counts are to be stored */
	int notify;          /* something may have become ready */
	struct tube *next_dirty;
	struct tube *next_notify;
};

/* What to do to take a change back. */
struct undo {
	enum { UNDO_ENTRY, UNDO_COUNTS } kind;
	uint64_t id;
	struct image was;
	struct tube *tube;
	int64_t waiting;
	int64_t buried;
	int64_t puts;
	int64_t finished;
};

/* The one record of META. */
struct meta {
	uint64_t next_id;
	uint64_t accepted;
	uint64_t ended;
	uint64_t epoch;   /* how often it was opened */
	uint64_t burials; /* ever */
	uint64_t offset;  /* elapsed time of jobs minus that of the system, in the boot of boot_id */
	uint64_t elapsed; /* at the last write */
	uint64_t wall;    /* the same moment */
	unsigned char boot_id[16];
};

typedef int call_fn(struct jobs_local *jobs, void *arguments);

struct call {
	call_fn *fn;
	void *arguments;
	int result;
	int done;
	struct call *next;
};

struct jobs_local {
	struct ww_jobs base;
	const struct ww_allocator *allocator;
	struct ww_jobs_config config;
	struct store store;
	pid_t process; /* whose the store is; not its children's */
	struct timeline elapsed;
	struct timeline wall;
	struct meta meta;
	struct meta meta_before; /* the batch */

	pthread_mutex_t lock; /* of what follows, up to ready_cond */
	pthread_cond_t idle;
	struct call *first;
	struct call **last;
	int busy;      /* a thread executes calls, or has begun a batch */
	size_t inside; /* threads in ww_jobs_submit, but for calls of a batch */
	pthread_t owner;
	pthread_cond_t ready_cond; /* something may be ready */
	uint64_t readies;

	/* Of the thread that is busy. */
	int writing; /* the store has begun */
	int undoing; /* what has failed is put back */
	int broken;  /* a write has failed: this batch cannot be committed */
	struct undo *undo;
	size_t undo_count;
	size_t undo_room;
	struct tube *dirty;
	struct tube *notify;
	unsigned char *buffer; /* to write records in */
	size_t buffer_size;

	struct slab entries;
	struct table ids;
	struct tube *tubes;
	struct tube **numbered;
	uint32_t numbered_room;
	uint64_t tokens;
	uint64_t gone_puts; /* of tubes that are not remembered any more */
	uint64_t gone_finished;
	uint64_t timeouts;
	uint64_t lateness[WW_LATE_CLASSES];
	uint64_t late_ns;
	uint64_t commits;
	uint64_t syncs;
	uint64_t sync_ns;
	uint64_t random;
	size_t bytes;
	ww_handle pause_timer; /* for the next end of a pause */
	size_t late;           /* callbacks that run for a timer that nobody waits for any more */
	int closed;
};

/* ---- What struct jobs_backend asks for, each where the like of it is done */

int ww_jobs_local_close(struct ww_jobs *jobs);
int ww_jobs_local_begin(struct ww_jobs *jobs);
int ww_jobs_local_commit(struct ww_jobs *jobs);
int ww_jobs_local_now(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns);
int ww_jobs_local_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version);
int ww_jobs_local_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count);
int ww_jobs_local_move(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version);
int ww_jobs_local_cancel(struct ww_jobs *jobs, const struct ww_job_ref *job);
int ww_jobs_local_reserve(struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *lease);
int ww_jobs_local_reserve_many(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *leases, size_t most);
int ww_jobs_local_wait(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, uint64_t timeout, struct ww_lease *lease);
int ww_jobs_local_reserve_job(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease);
void ww_jobs_local_free(struct ww_jobs *jobs, void *body);
int ww_jobs_local_finish(struct ww_jobs *jobs, uint64_t id, uint64_t token);
int ww_jobs_local_finish_many(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count);
int ww_jobs_local_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error);
int ww_jobs_local_return(struct ww_jobs *jobs, uint64_t id, uint64_t token);
int ww_jobs_local_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error);
int ww_jobs_local_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends);
int ww_jobs_local_kick(struct ww_jobs *jobs, const char *tube, uint64_t bound, uint64_t *count);
int ww_jobs_local_kick_job(struct ww_jobs *jobs, uint64_t id);
int ww_jobs_local_pause(struct ww_jobs *jobs, const char *tube, uint64_t ns);
int ww_jobs_local_peek(struct ww_jobs *jobs, const struct ww_job_ref *job, struct ww_job_info *info, void **body);
int ww_jobs_local_peek_next(
    struct ww_jobs *jobs, const char *tube, enum ww_job_state state, struct ww_job_info *info, void **body);
int ww_jobs_local_state(struct ww_jobs *jobs, uint64_t id, enum ww_job_state *state);
int ww_jobs_local_list(struct ww_jobs *jobs, const struct ww_job_filter *filter, size_t limit, ww_job_fn *fn,
    void *context, uint64_t *next);
int ww_jobs_local_forecast(struct ww_jobs *jobs, const char *tube, uint64_t span, uint64_t *counts, size_t count);
int ww_jobs_local_stats(struct ww_jobs *jobs, struct ww_jobs_stats *stats);
int ww_jobs_local_tube(struct ww_jobs *jobs, const char *tube, struct ww_tube_stats *stats);
int ww_jobs_local_tubes(struct ww_jobs *jobs, ww_tube_fn *fn, void *context);
int ww_jobs_local_check(struct ww_jobs *jobs, ww_jobs_problem_fn *problem, void *context);

/* ---- jobs_batch.c: calls, one at a time; what is written together; taking back */

int ww_jobs_submit(struct jobs_local *jobs, call_fn *fn, void *arguments);
/* See to it that the store takes changes. */
int ww_jobs_writing(struct jobs_local *jobs);
/* Returns the error, and remembers that the batch has failed if there is one. */
int ww_jobs_broken(struct jobs_local *jobs, int error);
int ww_jobs_note(struct jobs_local *jobs, const struct undo *undo);
/* Begin and end what this thread does alone; commit applies or takes back everything. */
int ww_jobs_enter(struct jobs_local *jobs);
/* Whether this thread has begun. */
int ww_jobs_is_mine(struct jobs_local *jobs);
void ww_jobs_leave(struct jobs_local *jobs);
int ww_jobs_commit_batch(struct jobs_local *jobs);

/* ---- jobs_memory.c: entries, heaps, timers */

struct entry *ww_jobs_find(const struct jobs_local *jobs, uint64_t id);
/*
 * Let memory know this of a job; state 0: nothing. A delayed job beyond the edge is forgotten. Noted, to be taken back.
 * On error nothing has changed.
 */
int ww_jobs_place(struct jobs_local *jobs, uint64_t id, const struct image *image);
/* The same for taking back: not noted. */
int ww_jobs_set(struct jobs_local *jobs, uint64_t id, const struct image *image);
void *ww_jobs_allocate(struct jobs_local *jobs, size_t size);
void ww_jobs_give(struct jobs_local *jobs, void *block, size_t size);
/* Cancel a timer; a callback of it that runs already will find that it is not meant. */
void ww_jobs_cancel_timer(struct jobs_local *jobs, struct ww_driver *driver, ww_handle *timer);
/* A callback finds that its timer is not the one that is waited for. */
void ww_jobs_late(struct jobs_local *jobs);

/* ---- jobs_heap.c */

/* See to it that one more can be added. */
int ww_jobs_heap_reserve(struct tube *tube);
void ww_jobs_heap_add(struct tube *tube, struct entry *entry);
void ww_jobs_heap_remove(struct tube *tube, struct entry *entry);

/* ---- jobs_time.c: timelines, reading ahead */

uint64_t ww_jobs_time(const struct timeline *line);
struct timeline *ww_jobs_timeline(struct jobs_local *jobs, int wall);
/* Whether a job that is due then lies before the edge. */
int ww_jobs_is_near(const struct timeline *line, uint64_t due, uint64_t id);
/* Count a job that becomes ready now, unless it came due while the store was closed. */
void ww_jobs_count_late(const struct timeline *line, uint64_t due);
/* A job that is due then, beyond the edge, is stored: see to it that it is read in time. */
void ww_jobs_plan(struct timeline *line, uint64_t due);
/* With nothing to be written: read on if that is wanted, and forget the last ones if they are too many. */
void ww_jobs_load(struct timeline *line);
int ww_jobs_time_open(struct jobs_local *jobs, int is_new);
void ww_jobs_time_save(struct jobs_local *jobs);

/* ---- jobs_tube.c */

/* Find a tube, or NULL. */
struct tube *ww_jobs_tube_find(const struct jobs_local *jobs, const char *name);
/* Find it or make it. */
int ww_jobs_tube_get(struct jobs_local *jobs, const char *name, struct tube **tube);
struct tube *ww_jobs_tube_number(const struct jobs_local *jobs, uint64_t number);
/* Noted, to be taken back. */
int ww_jobs_tube_count(
    struct jobs_local *jobs, struct tube *tube, int64_t waiting, int64_t buried, int64_t puts, int64_t finished);
void ww_jobs_tube_change(struct jobs_local *jobs, const struct undo *undo, int sign);
int ww_jobs_tubes_open(struct jobs_local *jobs);
/* Write the counts of those that have changed. */
int ww_jobs_tubes_store(struct jobs_local *jobs);
/* Forget those that are empty, once that is certain. */
void ww_jobs_tubes_settle(struct jobs_local *jobs);
void ww_jobs_tubes_close(struct jobs_local *jobs);
void ww_jobs_tube_notify(struct tube *tube);
/* It may be empty and not paused any more. */
void ww_jobs_tube_touch(struct tube *tube);
int ww_jobs_tube_is_paused(const struct tube *tube);

/* ---- jobs_store.c: records and indices */

int ww_jobs_read(struct jobs_local *jobs, uint64_t id, struct job_record *record);
/*
 * Store a job and its indices in place of what was there; before NULL: nothing. Bytes of the record may lie in the
 * store.
 */
int ww_jobs_write(struct jobs_local *jobs, uint64_t id, const struct job_record *before, struct job_record *after);
int ww_jobs_erase(struct jobs_local *jobs, uint64_t id, const struct job_record *before);
/* The id of a key, or WW_ENOTFOUND. */
int ww_jobs_key(struct jobs_local *jobs, const struct tube *tube, struct store_bytes key, uint64_t *id);
/* Find the job that is meant, and its record. */
int ww_jobs_refer(struct jobs_local *jobs, const struct ww_job_ref *ref, uint64_t *id, struct job_record *record);
int ww_jobs_meta_read(struct jobs_local *jobs, int *is_new);
int ww_jobs_meta_write(struct jobs_local *jobs);
/* The image of a stored job without a lease, ready if it is due. */
struct image ww_jobs_image(struct jobs_local *jobs, const struct job_record *record);
/* The same with what memory alone knows: counts. */
void ww_jobs_merge(struct job_record *record, const struct entry *entry);

/* ---- jobs_lease.c, jobs_again.c, jobs_kick.c */

/* A lease has run out. */
int ww_jobs_time_out(struct jobs_local *jobs, struct entry *entry);
/* Store a job and let memory know it as it is stored. */
int ww_jobs_settle(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record);
/*
 * The soonest delayed job of a tube, of those due on each timeline at from[] or later, where to go on from the next
 * time. WW_ENOTFOUND: it has none.
 */
int ww_jobs_soonest(struct jobs_local *jobs, const struct tube *tube, uint64_t from[2], uint64_t *id);

/* The store behind a handle of this kind. */
static inline struct jobs_local *local_of(struct ww_jobs *jobs)
{
	return (struct jobs_local *)jobs; /* its first member */
}

/* A time that much later, as far as times go. */
static inline uint64_t time_after(uint64_t time, uint64_t span)
{
	const uint64_t end = WW_DRIVER_TIME_MAX * 2;

	return span > end || time > end - span ? end : time + span;
}

#endif
