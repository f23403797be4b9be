#ifndef LIB_JOBS_LOCAL_COUNTS_H
#define LIB_JOBS_LOCAL_COUNTS_H

/*
 * How many jobs wait, by tube and slot of their due time, and which of them is the first (J7). counts.c has the format.
 *
 * Changes are in memory until the batch ends or somebody reads; the functions that read write them first. What is in
 * memory is also a cache of what is stored.
 */

#include <stdint.h>

#include "lib/base/table.h"
#include "lib/jobs/local/record.h"
#include "lib/jobs/store/store.h"

struct jobs_local;

/* The counts that are in memory. */
struct counts {
	struct count *all;
	uint32_t used;
	uint32_t room;
	uint32_t dirty; /* the first that is not stored, as its place in the array and 1; 0: none */
	struct table index;
};

/* The jobs of a tube that wait in a slot, and the first of them, or a place before it. */
struct slot_count {
	uint32_t tube; /* or ALL_TUBES, without the first */
	int wall;
	uint64_t slot; /* store/slot.h */
	uint64_t jobs;
	uint64_t due;
	uint64_t id;
};

int ww_jobs_counts_open(struct jobs_local *jobs);
void ww_jobs_counts_close(struct jobs_local *jobs);
/* Count a job where it waits, or no more: sign is 1 or -1. On error the batch must fail. O(1) */
int ww_jobs_counts_change(struct jobs_local *jobs, uint64_t id, const struct job_record *record, int sign);
/* Write the counts that have changed. On error the batch is broken. */
int ww_jobs_counts_store(struct jobs_local *jobs);
/* After a batch: forget all counts if it has failed or they are many. */
void ww_jobs_counts_settle(struct jobs_local *jobs, int failed);
/* Read the count of the tube's first slot from this due time on, or the next one. WW_ENOTFOUND: there is none. */
int ww_jobs_counts_seek(struct jobs_local *jobs, uint32_t tube, int wall, uint64_t due, struct slot_count *count);
/* Read the one after it. Only if nothing has changed since. WW_ENOTFOUND: there is none. */
int ww_jobs_counts_next(struct jobs_local *jobs, struct slot_count *count);
/* Read how many jobs of all tubes wait in the same slot. WW_ECORRUPT: that is not counted. */
int ww_jobs_counts_all(struct jobs_local *jobs, const struct slot_count *count, uint64_t *number);

#endif
