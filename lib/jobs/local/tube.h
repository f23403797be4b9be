#ifndef LIB_JOBS_LOCAL_TUBE_H
#define LIB_JOBS_LOCAL_TUBE_H

/*
 * Tubes: their names and numbers, how many jobs of each kind they have, which of them have something new, and pauses.
 *
 * A tube is made when its name is first used. Its number stands in the records of its jobs; TUBES has the name and the
 * counts of each number that is in use. Of empty tubes, memory keeps a thousand for their statistics.
 *
 *     dirty:   tube -> tube     their counts are written with the batch
 *     notify:  tube -> tube     callers that wait are notified after the batch
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/base/seeded.h"
#include "lib/jobs/local/heap.h"
#include "lib/jobs/store/store.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs.h"

struct jobs_local;
struct limits;
struct soonest;
struct undo;

/* No tube has this number. */
#define ALL_TUBES UINT32_MAX

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
	uint64_t pause;      /* how long, as it was asked for */
	uint64_t pause_ends; /* 0: not paused */
	ww_handle pause_timer;
	struct limits *limits;   /* NULL: it has had neither limits nor groups */
	struct soonest *soonest; /* one for each clock, once asked for; or NULL */
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
	const char *name; /* in the value; nothing ends it */
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

/* ---- By name and number, O(1). A tube is valid until the end of the batch */

/* NULL: there is none of that name. */
struct tube *ww_jobs_tube_find(const struct jobs_local *jobs, const char *name);
/* Find it or make it. WW_ENOMEM: also if there are too many. */
int ww_jobs_tube_get(struct jobs_local *jobs, const char *name, struct tube **tube);
/* NULL: there is none of that number. */
struct tube *ww_jobs_tube_number(const struct jobs_local *jobs, uint64_t number);

/* ---- Counts */

/* Add to the counts of a tube, and note that. On error the batch is broken. */
int ww_jobs_tube_count(
    struct jobs_local *jobs, struct tube *tube, int64_t waiting, int64_t buried, int64_t puts, int64_t finished);
int ww_jobs_tube_keep(struct jobs_local *jobs, struct tube *tube, int64_t kept);
/* Add what a note says, or with -1 take it back. */
void ww_jobs_tube_change(const struct undo *undo, int sign);
/* Its counts or its pause have changed: they are written with the batch. */
void ww_jobs_tube_touch(struct tube *tube);

/* ---- All tubes of a store */

/* Read them. WW_ECORRUPT */
int ww_jobs_tubes_open(struct jobs_local *jobs);
/* Read the counts and the name in a value of TUBES. WW_ECORRUPT */
int ww_jobs_tube_read(struct store_bytes value, struct tube_value *tube);
/* Write the counts that have changed. */
int ww_jobs_tubes_store(struct jobs_local *jobs);
/* After the batch: forget empty tubes if there are too many. */
void ww_jobs_tubes_settle(struct jobs_local *jobs);
void ww_jobs_tubes_close(struct jobs_local *jobs);

/* ---- What callers wait for */

/* Something may be ready: wake waiting callers after the batch. */
void ww_jobs_tube_notify(struct tube *tube);
int ww_jobs_tube_is_paused(const struct tube *tube);

#endif
