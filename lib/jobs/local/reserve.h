#ifndef LIB_JOBS_LOCAL_RESERVE_H
#define LIB_JOBS_LOCAL_RESERVE_H

/*
 * Leases jobs: the best ones of some tubes, or one by its id. Nothing is written, unless a job that is leased by its id
 * is not due yet (J4).
 *
 * A job whose record cannot be read is reported once and leaves memory: it is not delivered again. Complexity: O(tubes)
 * and O(log n) for each job.
 */

#include <stddef.h>
#include <stdint.h>

struct ww_jobs;
struct ww_lease;
struct ww_reserve;

/* WW_EIO, WW_ECORRUPT: also if the store cannot write what becomes of a lease. */
int ww_jobs_local_reserve(struct ww_jobs *handle, const struct ww_reserve *what, struct ww_lease *lease);
int ww_jobs_local_reserve_many(
    struct ww_jobs *handle, const struct ww_reserve *what, struct ww_lease *leases, size_t most);
int ww_jobs_local_reserve_job(struct ww_jobs *handle, uint64_t id, struct ww_lease *lease);

#endif
