#ifndef LIB_JOBS_LOCAL_SEARCH_H
#define LIB_JOBS_LOCAL_SEARCH_H

/*
 * The first delayed job of a tube, and the first buried one, in indices that have the jobs of all tubes. Only the owner
 * of the batch searches. Both functions return WW_ENOTFOUND if the tube has no such job, or an error of the store.
 */

#include <stdint.h>

struct jobs_local;
struct tube;

/*
 * Find the delayed job that is due soonest, on whichever clock. WW_ENOMEM: also if what is known of the tube has no
 * memory. O(1) while the job is known (soonest.h); otherwise O(log n) and, if the first one that was counted in its
 * hour has left, the jobs of other tubes that are due before it in that hour.
 */
int ww_jobs_search_delayed(struct jobs_local *jobs, struct tube *tube, uint64_t *id);
/* Find the job that was buried first. O(log n) */
int ww_jobs_search_buried(struct jobs_local *jobs, struct tube *tube, uint64_t *id);

#endif
