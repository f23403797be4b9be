#ifndef LIB_JOBS_LOCAL_LOCAL_INTERNAL_H
#define LIB_JOBS_LOCAL_LOCAL_INTERNAL_H

/*
 * The inside of the embedded store of jobs.
 *
 * The stored record has everything about a job except its lease. Memory has an *entry* for each ready or reserved job,
 * and for each delayed job that is due before the *edge* of its timeline:
 *
 *          overdue        now                 edge
 *     ------ready----------|----delayed--------|----------delayed, only on disk----------------->  due time
 *            heap of its tube   timer of the driver
 *
 * The edge advances when few delayed jobs are left before it, or when their time comes near. ww_jobs_load then
 * continues to read the index of due times. The edge goes back when puts make too many entries.
 *
 * All calls go through ww_jobs_submit and are executed one at a time. Calls that arrive meanwhile are executed and
 * written together (queue.c). An entry changes at once, and a note keeps what it was before. If the write fails, the
 * notes are applied in reverse (batch.c).
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/seeded.h"
#include "lib/base/slab.h"
#include "lib/base/table.h"
#include "lib/jobs/backend.h"
#include "lib/jobs/local/meta.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/record.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/store/store.h"

struct jobs_local;
struct soonest;
struct tube;

/* Entries that are loaded at once. */
#define LOAD_BATCH 2048u
/* Pairs that a long walk reads before it lets go of them: a store keeps what was read. */
#define LOOKS_AT_ONCE 1024u
#define NO_PLACE UINT32_MAX
/* No tube has this number. */
#define ALL_TUBES UINT32_MAX

/* A job in memory. Only the members that job_record has are stored. */
struct image {
	struct tube *tube;
	uint64_t due;   /* of its timeline */
	uint64_t token; /* of its lease, 0: none */
	uint64_t ends;  /* when the lease ends, in elapsed time */
	uint64_t missed;
	uint32_t priority;
	uint32_t reserves; /* these counts are stored with the next change of the record */
	uint32_t timeouts;
	uint32_t tries;
	uint8_t state; /* enum ww_job_state, or 0: no entry */
	uint8_t wall;
	uint32_t group; /* its number in the tube; 0: none */
};

struct entry {
	struct slab_unused unused; /* of the slab, while the entry is free */
	uint64_t id;
	ww_handle timer; /* while delayed or reserved */
	struct jobs_local *jobs;
	uint32_t index;
	uint32_t place; /* in its tube's heap */
	struct image is;
};

/* Ready entries; the least (priority, id) comes first. */
struct ready_heap {
	struct entry **at;
	uint32_t count;
	uint32_t room;
};

/* A limit that was set. If both `running` and `starts` are 0, it was removed. */
struct rule {
	struct ww_limit limit;
	uint64_t number; /* of its pair in META; 0: it never had one */
};

/* How many starts there were in each of the last slices of time (window.c). */
enum { WINDOW_SLICES = 128 };
struct window {
	uint64_t slice; /* ns */
	uint64_t last;  /* the number of the latest slice */
	uint64_t total;
	uint32_t counts[WINDOW_SLICES + 1]; /* by number modulo */
};

/* Lets the jobs of a tube or of a group start as its limit says (limit.c). */
struct gate {
	struct tube *tube;
	struct group *group; /* NULL: the whole tube's */
	struct rule rule;
	uint64_t even;         /* when the next start comes at an even pace: the theoretical arrival time of GCRA */
	uint64_t brisk;        /* the same at twice the pace, at which lost time is made up */
	struct window *window; /* the starts of late; NULL: not counted */
	ww_handle timer;       /* of the moment when the next start is allowed, once a caller wants it */
	int waits;             /* jobs wait for that moment: lateness is made up */
};

/*
 * The jobs of a tube that name one group, or those that name none (group.c). Groups take turns: each that has ready jobs
 * stands in its tube's row, unless its limit holds it.
 *
 *     row:  first --> group --> group --> last     The first one starts a job and goes to the end.
 */
struct group {
	UT_hash_handle hh; /* by name */
	struct gate gate;
	struct ready_heap *heap; /* its own, or the tube's for those that name no group */
	struct ready_heap own;
	TAILQ_ENTRY(group) in_row;   /* while it is in the row */
	STAILQ_ENTRY(group) in_idle; /* while is_idle */
	enum { GROUP_OUT, GROUP_IN_ROW, GROUP_HELD } place;
	int is_idle;
	uint32_t number; /* in its tube; 0: names no group */
	uint32_t length;
	uint64_t running;
	uint64_t entries; /* in memory */
	char name[];
};

TAILQ_HEAD(row, group);
STAILQ_HEAD(idle_groups, group);

/* The limits and groups of a tube. */
struct limits {
	struct gate whole;
	struct rule each;    /* of each group that has none of its own */
	uint64_t each_used;  /* until then `each` had its bursts used up; 0: never */
	uint64_t rules;      /* that are set */
	uint64_t held;       /* ready jobs of groups that are GROUP_HELD */
	struct group *none;  /* the jobs that name no group */
	struct group *named; /* hashed */
	struct group **numbered;
	uint32_t numbered_room;
	uint32_t free_number; /* lower ones are taken */
	struct row row;
};

struct tube {
	UT_hash_handle hh; /* by name */
	struct jobs_local *jobs;
	uint32_t number;
	uint32_t name_length;
	char name[WW_TUBE_MAX + 1];
	struct ready_heap heap; /* ready jobs that name no group */
	uint64_t ready;         /* all of them */
	uint64_t urgent;
	uint64_t reserved;
	uint64_t waiting; /* delayed, ready and reserved jobs */
	uint64_t buried;
	uint64_t kept;        /* jobs that have ended */
	uint64_t buried_from; /* no job was buried with a lower number */
	uint64_t puts;
	uint64_t finished;
	uint64_t pauses;
	uint64_t pause;
	uint64_t pause_ends; /* in elapsed time; 0: not paused */
	ww_handle pause_timer;
	struct limits *limits;   /* NULL: it has had neither limits nor groups */
	struct soonest *soonest; /* one for each clock, once somebody has asked; or NULL */
	int dirty;               /* store its counts with the batch */
	int notify;              /* a job may have become ready */
	struct tube *next_dirty;
	struct tube *next_notify;
};

/* A value of TUBES. */
struct tube_value {
	uint64_t waiting;
	uint64_t buried;
	uint64_t kept;
	const char *name;
	size_t length;
};

/* The counts of all tubes, including tubes that were forgotten. */
struct totals {
	uint64_t waiting;
	uint64_t buried;
	uint64_t kept;
	uint64_t puts;
	uint64_t finished;
	uint64_t pauses;
	uint64_t ready;
	uint64_t urgent;
	uint64_t reserved;
	uint64_t tubes; /* that are not empty */
};

/* The counts that are in memory (counts.c). */
struct counts {
	struct count *all;
	uint32_t used;
	uint32_t room;
	uint32_t dirty; /* the first that is not stored, as its place in the array and 1; 0: none */
	struct table index;
};

/* Runs that ended in this batch, each behind its size (history.c). */
struct ended_runs {
	unsigned char *bytes;
	size_t size;
	size_t room;
};

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
	unsigned char *told; /* of this batch, for the listener (told.c) */
	size_t told_size;
	size_t told_room;
	int told_lost;
	unsigned char *buffer; /* for a record to write */
	size_t buffer_size;

	/* What becomes of an entry whose timer has fired: what entries.c calls. */
	int (*come_due)(struct jobs_local *jobs, struct entry *entry);
	int (*time_out)(struct jobs_local *jobs, struct entry *entry);
	struct slab entries;
	struct table ids;
	struct tube *tubes;
	struct tube **numbered;
	uint32_t numbered_room;
	uint64_t tokens;
	uint32_t free_number;   /* no tube's; lower ones are taken */
	uint64_t limit_numbers; /* the greatest that a limit had */
	struct idle_groups idle_groups;
	struct ended_runs runs;     /* of this batch */
	struct run_report *reports; /* of leases, hashed by id (history.c) */
	unsigned report_count;
	unsigned reports_swept; /* how many were left by the last sweep */
	struct totals all;
	struct counts counts;
	uint64_t taken_back; /* batches */
	uint64_t timeouts;
	uint64_t lateness[WW_LATE_CLASSES];
	uint64_t late_ns;
	uint64_t commits;
	uint64_t syncs;
	uint64_t sync_ns;
	uint64_t random;
	size_t bytes;
	ww_handle clock_timer; /* when to write the clocks */
	ww_handle forget_timer;
	uint64_t forget_at; /* of that timer, in elapsed time; UINT64_MAX: there is none */
	int64_t downtime;   /* by the wall clock, if the last write was in another boot */
	size_t late;        /* callbacks that still run for a timer that was cancelled */
	int closed;
};

/* ---- put.c, reserve.c, end.c, kick.c, rule.c, look.c, check.c: what each jobs_op does */

call_fn ww_jobs_local_put, ww_jobs_local_put_many, ww_jobs_local_move, ww_jobs_local_cancel;
call_fn ww_jobs_local_reserve, ww_jobs_local_reserve_job;
call_fn ww_jobs_local_finish, ww_jobs_local_finish_many, ww_jobs_local_fail, ww_jobs_local_return, ww_jobs_local_touch;
call_fn ww_jobs_local_report, ww_jobs_local_history;
call_fn ww_jobs_local_kick, ww_jobs_local_kick_job, ww_jobs_local_pause;
call_fn ww_jobs_local_limit_set, ww_jobs_local_limit_get, ww_jobs_local_limit_list;
call_fn ww_jobs_local_peek, ww_jobs_local_peek_next, ww_jobs_local_state, ww_jobs_local_list, ww_jobs_local_forecast;
call_fn ww_jobs_local_stats, ww_jobs_local_tube, ww_jobs_local_tubes, ww_jobs_local_check;

/* ---- told.c: what the listener hears when the batch is written */

/* Whether there is one. */
int ww_jobs_listens(struct jobs_local *jobs);
/*
 * It will hear what becomes of a job, which has this record then; `attempt` is its delivery. Called before the change is
 * written, since bytes of the record may lie in the store: if the write fails, so does the batch.
 */
void ww_jobs_tell(
    struct jobs_local *jobs, enum ww_event_kind kind, uint64_t id, const struct job_record *record, uint64_t attempt);
/* The same for a job whose record is read only for this. */
void ww_jobs_tell_read(struct jobs_local *jobs, enum ww_event_kind kind, uint64_t id);
/* Tell it all. Or nothing: the batch has failed. */
void ww_jobs_told(struct jobs_local *jobs);
void ww_jobs_untold(struct jobs_local *jobs);

/* ---- entries.c: jobs in memory, and their timers */

struct entry *ww_jobs_find(const struct jobs_local *jobs, uint64_t id);
/*
 * Change what memory knows of a job; state 0: forget it. A delayed job beyond the edge is forgotten too. The change is
 * noted. On error nothing has changed.
 */
int ww_jobs_place(struct jobs_local *jobs, uint64_t id, const struct image *image);
/* The same without a note. */
int ww_jobs_set(struct jobs_local *jobs, uint64_t id, const struct image *image);
/* ---- heap.c */

/* Make room for one more. */
int ww_jobs_heap_reserve(struct jobs_local *jobs, struct ready_heap *heap);
void ww_jobs_heap_add(struct ready_heap *heap, struct entry *entry);
void ww_jobs_heap_remove(struct ready_heap *heap, struct entry *entry);

/* ---- clock.c */

/* Make both timelines. Let elapsed time go on where it was. */
void ww_jobs_clock_open(struct jobs_local *jobs, int is_new);
/* Note both clocks for the next opening. */
void ww_jobs_clock_save(struct jobs_local *jobs);
/* Unix time now; 0: an elapsed clock that is virtual is alone. */
uint64_t ww_jobs_clock_wall(const struct jobs_local *jobs);

/* ---- tube.c */

/* Returns NULL if there is none. */
struct tube *ww_jobs_tube_find(const struct jobs_local *jobs, const char *name);
/* Find it or make it. */
int ww_jobs_tube_get(struct jobs_local *jobs, const char *name, struct tube **tube);
struct tube *ww_jobs_tube_number(const struct jobs_local *jobs, uint64_t number);
/* Add to the counts, with a note. */
int ww_jobs_tube_count(
    struct jobs_local *jobs, struct tube *tube, int64_t waiting, int64_t buried, int64_t puts, int64_t finished);
int ww_jobs_tube_keep(struct jobs_local *jobs, struct tube *tube, int64_t kept);
void ww_jobs_tube_change(const struct undo *undo, int sign);
int ww_jobs_tubes_open(struct jobs_local *jobs);
/* Find the counts and the name in a value of TUBES. Returns WW_OK or WW_ECORRUPT. */
int ww_jobs_tube_read(struct store_bytes value, struct tube_value *tube);
/* Write the counts that have changed. */
int ww_jobs_tubes_store(struct jobs_local *jobs);
/* After the commit: forget empty tubes if there are too many. */
void ww_jobs_tubes_settle(struct jobs_local *jobs);
void ww_jobs_tubes_close(struct jobs_local *jobs);
void ww_jobs_tube_notify(struct tube *tube);
/* Its counts or its pause have changed. */
void ww_jobs_tube_touch(struct tube *tube);
int ww_jobs_tube_is_paused(const struct tube *tube);

/* ---- group.c: the groups of a tube, and which job of it is next */

/* Make a tube's `limits`, unless it has them. */
int ww_jobs_limits_make(struct tube *tube, struct limits **limits);
void ww_jobs_limits_free(struct tube *tube);
/* Find the group of this name. NULL: there is none. */
struct group *ww_jobs_group_find(const struct tube *tube, struct store_bytes name);
/* Find or make it, and store its number; 0 for the empty name. */
int ww_jobs_group_get(struct tube *tube, struct store_bytes name, uint32_t *number);
/* The group of an entry. NULL: its tube has no `limits`. */
struct group *ww_jobs_group_of(const struct image *image);
/* Make room for one more ready job. */
int ww_jobs_ready_reserve(const struct image *image);
void ww_jobs_ready_add(struct entry *entry);
void ww_jobs_ready_remove(struct entry *entry);
/* It may start jobs again: let it into the row, if it has ready ones. */
void ww_jobs_group_let(struct group *group);
/* Its limit holds its ready jobs. */
void ww_jobs_group_hold(struct group *group);
/* It stands at the end of the row now. */
void ww_jobs_group_turn(struct group *group);
/* A group may have neither entries nor a limit any more. */
void ww_jobs_group_idle(struct group *group);
/* After a batch: forget some groups of which nothing is left. */
void ww_jobs_groups_settle(struct jobs_local *jobs);

/* ---- window.c */

/* For spans of that many ns. NULL: no memory. */
struct window *ww_jobs_window_make(struct jobs_local *jobs, uint64_t per);
void ww_jobs_window_free(struct jobs_local *jobs, struct window *window);
void ww_jobs_window_add(struct window *window, uint64_t now);
/* One start was none. */
void ww_jobs_window_take(struct window *window);
/* From when on there are at most so many in the last span. */
uint64_t ww_jobs_window_below(const struct window *window, uint64_t most);

/* ---- rule.c */

#define LIMIT_KEY "limit" /* the keys of limits in META begin so */

static inline int rule_is_set(const struct rule *rule)
{
	return rule->limit.running || rule->limit.starts;
}

/* Set a rule of a tube as it was before a batch that failed. */
void ww_jobs_rule_undo(struct tube *tube, struct rule *rule, const struct rule *was);
/* Read all limits. The clocks are known. */
int ww_jobs_rules_open(struct jobs_local *jobs);
/* The store is being closed: write what they have counted. */
int ww_jobs_rules_store(struct jobs_local *jobs);
/* Whether a pair of META is a limit. */
int ww_jobs_is_limit(struct store_bytes key);

/* ---- counts.c */

/* The jobs of a tube that wait in a slot, and the first of them, or a place before it. */
struct slot_count {
	uint32_t tube; /* or ALL_TUBES, without the first */
	int wall;
	uint64_t slot;
	uint64_t jobs;
	uint64_t due;
	uint64_t id;
};

int ww_jobs_counts_open(struct jobs_local *jobs);
void ww_jobs_counts_close(struct jobs_local *jobs);
/* Count a job where it waits, or no more. O(1). */
int ww_jobs_counts_change(struct jobs_local *jobs, uint64_t id, const struct job_record *record, int sign);
/* Write the counts that have changed. */
int ww_jobs_counts_store(struct jobs_local *jobs);
/* After a batch: forget all counts if it has failed or they are many. */
void ww_jobs_counts_settle(struct jobs_local *jobs, int failed);
/* Read the count of the tube's first slot from this due time on, or the next one. WW_ENOTFOUND: there is none. */
int ww_jobs_counts_seek(struct jobs_local *jobs, uint32_t tube, int wall, uint64_t due, struct slot_count *count);
int ww_jobs_counts_next(struct jobs_local *jobs, struct slot_count *count);
/* Read how many jobs of all tubes wait in the same slot. */
int ww_jobs_counts_all(struct jobs_local *jobs, const struct slot_count *count, uint64_t *number);
/* The count of a pair of COUNTS. */
int ww_jobs_counts_read(struct store_bytes key, struct store_bytes value, struct slot_count *count);

/* ---- records.c */

/* WW_ENOTFOUND: also if it has ended and is kept. The second function reads that too. */
int ww_jobs_read(struct jobs_local *jobs, uint64_t id, struct job_record *record);
int ww_jobs_read_any(struct jobs_local *jobs, uint64_t id, struct job_record *record);
/* The same for a job that is then written: the begin of a write ends what was read before it. */
int ww_jobs_read_to_write(struct jobs_local *jobs, uint64_t id, struct job_record *record);
/*
 * Store a job and its indices in place of those of `before`, unless that is NULL. Bytes of the record may lie in the
 * store.
 */
int ww_jobs_write(struct jobs_local *jobs, uint64_t id, const struct job_record *before, struct job_record *after);
/* The same, and let memory know the job as it is stored. */
int ww_jobs_settle(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record);
int ww_jobs_erase(struct jobs_local *jobs, uint64_t id, const struct job_record *before);
/* The job of a pair of DUE, WALL or BURIED. */
int ww_jobs_read_pair(
    enum store_table table, struct store_bytes key, struct store_bytes value, uint64_t *id, struct job_record *record);
/* Whether the value of a pair of JOBS says that the job lies there. */
int ww_jobs_is_place(uint64_t id, enum store_table table, struct store_bytes key, struct store_bytes value);
/* The job of a key, which may have ended, or WW_ENOTFOUND. */
int ww_jobs_key(
    struct jobs_local *jobs, const struct tube *tube, struct store_bytes key, uint64_t *id, struct job_record *record);
/* Find the job of a ref, and its record. */
int ww_jobs_refer(struct jobs_local *jobs, const struct ww_job_ref *ref, uint64_t *id, struct job_record *record);
/* The image of a stored job without a lease, ready if it is due. Its group is not filled in. */
struct image ww_jobs_image(struct jobs_local *jobs, const struct job_record *record);
/* Add the counts that only memory knows. The entry may be NULL. */
void ww_jobs_merge(struct job_record *record, const struct entry *entry);

/* ---- history.c: what became of runs */

#define RUN_KEY "run" /* the keys of runs in META begin so */

/* A lease that ends. */
struct ended_run {
	enum ww_event_kind outcome;
	uint64_t id;
	uint64_t token;
	uint64_t attempt;
	const struct job_record *record; /* as it becomes */
};

/* Tell how a lease ends, and let that be kept for as long as the job asks for. */
void ww_jobs_end_run(struct jobs_local *jobs, const struct ended_run *run);
/* Find the first and the last. */
int ww_jobs_history_open(struct jobs_local *jobs);
/* Put what this batch has ended. */
int ww_jobs_history_store(struct jobs_local *jobs);
void ww_jobs_history_close(struct jobs_local *jobs);
/* Whether a pair of META is a run. */
int ww_jobs_is_run(struct store_bytes key);

/* ---- ended.c: jobs that have ended, and are kept for their keys */

/* Keep a job, which has just ended and has this record, instead of erasing it. */
int ww_jobs_keep(struct jobs_local *jobs, uint64_t id, const struct job_record *old);
/* Erase a job that has ended. */
int ww_jobs_forget(struct jobs_local *jobs, uint64_t id, const struct job_record *old);
/* Whether its time is over. */
int ww_jobs_is_forgotten(const struct jobs_local *jobs, const struct job_record *record);
/* Forget those whose time is over, from this time on. */
void ww_jobs_plan_forget(struct jobs_local *jobs, uint64_t at);
/* The store is open: plan what is to be forgotten. A callback may come at once, so this is a call, as callbacks are. */
call_fn ww_jobs_ended_open;

/* The store behind a handle of this kind. */
static inline struct jobs_local *local_of(struct ww_jobs *jobs)
{
	return (struct jobs_local *)jobs; /* its first member */
}

#endif
