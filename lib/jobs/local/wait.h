#ifndef LIB_JOBS_LOCAL_WAIT_H
#define LIB_JOBS_LOCAL_WAIT_H

/*
 * A reserve that waits until there is a job. Any thread may wait, also several at once; meanwhile none of them holds
 * the store.
 */

#include <stddef.h>
#include <stdint.h>

struct ww_jobs;
struct ww_lease;
struct ww_reserve;

/* Wait for up to `timeout` ns. Returns as ww_jobs_wait. WW_EBUSY: in a batch of this thread. */
int ww_jobs_local_wait(struct ww_jobs *handle, const struct ww_reserve *what, uint64_t timeout, struct ww_lease *lease);

#endif
