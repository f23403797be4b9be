#ifndef LIB_JOBS_BACKEND_H
#define LIB_JOBS_BACKEND_H

/*
 * What a kind of store does; jobs.h says what each function means.
 *
 *     struct ww_jobs           struct jobs_backend, one a kind
 *     +---------+              +---------+
 *     | backend | -----------> | close   |
 *     +---------+              | free    |
 *     |  of the |              | begin   |
 *     |   kind  |              |   ...   |
 *
 * jobs.c checks what can be checked without the store, so that a kind need not: no pointer is NULL where jobs.h needs
 * an object, a tube's name has 1 to WW_TUBE_MAX bytes, each member of a spec but body_length is in its range, a delay
 * is at most WW_DRIVER_TIME_MAX, flags and states are known. A ref has an id, or a tube and a key. Where jobs.h says
 * "unless NULL", a pointer may be. A spec's body_length is for the kind to check, as is whether a due time overflows
 * its clock.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/jobs.h"

struct jobs_backend {
	int (*close)(struct ww_jobs *jobs);
	void (*free)(struct ww_jobs *jobs, void *body);
	int (*begin)(struct ww_jobs *jobs);
	int (*commit)(struct ww_jobs *jobs);
	int (*now)(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns);

	int (*put)(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version);
	/* Those whose result is WW_OK; the others have been refused. There is at least one to put. */
	int (*put_many)(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count);
	int (*move)(
	    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version);
	int (*cancel)(struct ww_jobs *jobs, const struct ww_job_ref *job);

	int (*reserve)(struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *lease);
	int (*reserve_many)(
	    struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *leases, size_t most);
	int (*wait)(
	    struct ww_jobs *jobs, const char *const *tubes, size_t count, uint64_t timeout, struct ww_lease *lease);
	int (*reserve_job)(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease);
	int (*finish)(struct ww_jobs *jobs, uint64_t id, uint64_t token);
	int (*finish_many)(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count);
	int (*release)(
	    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error);
	int (*back)(struct ww_jobs *jobs, uint64_t id, uint64_t token); /* ww_jobs_return */
	int (*bury)(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error);
	int (*touch)(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends);
	int (*kick)(struct ww_jobs *jobs, const char *tube, uint64_t bound, uint64_t *count);
	int (*kick_job)(struct ww_jobs *jobs, uint64_t id);
	int (*pause)(struct ww_jobs *jobs, const char *tube, uint64_t ns);

	int (*peek)(struct ww_jobs *jobs, const struct ww_job_ref *job, struct ww_job_info *info, void **body);
	int (*peek_next)(
	    struct ww_jobs *jobs, const char *tube, enum ww_job_state state, struct ww_job_info *info, void **body);
	int (*state)(struct ww_jobs *jobs, uint64_t id, enum ww_job_state *state);
	int (*list)(struct ww_jobs *jobs, const struct ww_job_filter *filter, size_t limit, ww_job_fn *fn,
	    void *context, uint64_t *next);
	int (*forecast)(struct ww_jobs *jobs, const char *tube, uint64_t span, uint64_t *counts, size_t count);
	int (*stats)(struct ww_jobs *jobs, struct ww_jobs_stats *stats);
	int (*tube)(struct ww_jobs *jobs, const char *tube, struct ww_tube_stats *stats);
	int (*tubes)(struct ww_jobs *jobs, ww_tube_fn *fn, void *context);
	int (*check)(struct ww_jobs *jobs, ww_jobs_problem_fn *problem, void *context);
};

/* The first member of what a kind has for each store. */
struct ww_jobs {
	const struct jobs_backend *backend;
};

#endif
