#ifndef LIB_JOBS_LOCAL_ENTRIES_H
#define LIB_JOBS_LOCAL_ENTRIES_H

/*
 * The jobs in memory: an entry for each, found by its id. A ready one is in the heap of its tube, group or code, and a
 * delayed or reserved one has a timer, which makes it ready or ends its lease. The timer of a ready one that expires
 * ends it.
 *
 *     ids ---> slab of entries, each with an image     timer: delayed, reserved, ready and expires
 *                                                      place: ready
 *
 * Complexity: O(1), and O(log n) in the ready jobs of the heap.
 */

#include <stdint.h>

#include "lib/base/slab.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs.h"

struct jobs_local;
struct tube;

/* What memory knows of a job. Only the members that job_record has are stored. */
struct image {
	struct tube *tube;
	uint64_t due;     /* of its timeline */
	uint64_t token;   /* of its lease, 0: none */
	uint64_t ends;    /* when the lease ends, in elapsed time */
	uint64_t expires; /* of its timeline; 0: never */
	uint64_t missed;
	uint32_t priority;
	uint32_t reserves; /* these counts are stored with the next change of the record */
	uint32_t timeouts;
	uint32_t tries;
	uint8_t state; /* enum ww_job_state, or 0: no entry */
	uint8_t wall;
	uint8_t waits;   /* how often the end of this lease was waited for (end.c) */
	uint8_t is_over; /* it has expired while it was ready, and is in no heap: its timer, which is late, ends it */
	uint32_t group;  /* its number in the tube; 0: none */
	uint32_t code;   /* 0: any worker may take it */
};

/* The clock of its timer. Leases end in elapsed time. */
static inline int image_is_on_wall(const struct image *image)
{
	return image->state != WW_JOB_RESERVED && image->wall;
}

struct entry {
	struct slab_unused unused; /* of the slab, while the entry is free */
	uint64_t id;
	ww_handle timer; /* while delayed or reserved, or ready if it expires */
	struct jobs_local *jobs;
	uint32_t index;
	uint32_t place; /* in its heap while ready, or NO_PLACE */
	struct image is;
};

/* The entry of a job, or NULL. It is valid until the job's image is set. */
struct entry *ww_jobs_find(const struct jobs_local *jobs, uint64_t id);
/*
 * Change what memory knows of a job; state 0: forget it. A buried job is forgotten too, and so is a delayed one beyond
 * the edge. The change is noted. On error nothing has changed, and the batch is broken. Errors also: those of
 * ww_driver_schedule_at.
 */
int ww_jobs_place(struct jobs_local *jobs, uint64_t id, const struct image *image);
/* The same without a note, whatever the edge. On error the batch is not broken. To forget a job never fails. */
int ww_jobs_set(struct jobs_local *jobs, uint64_t id, const struct image *image);

#endif
