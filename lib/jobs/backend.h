#ifndef LIB_JOBS_BACKEND_H
#define LIB_JOBS_BACKEND_H

/*
 * The functions of jobs.h on a kind of store: the embedded one, or the one in Redis.
 *
 *     struct ww_jobs           struct jobs_backend, one for each kind
 *     +---------+              +---------+
 *     | backend | -----------> | close   |
 *     +---------+              | put     |
 *     | of the  |              |   ...   |
 *     | kind    |              +---------+
 *
 * Arguments, results, errors and threads are those of jobs.h. jobs.c checks what it can without the store. A kind may
 * therefore rely on this: no pointer is NULL where jobs.h needs an object, a tube's name has 1 to WW_TUBE_MAX bytes,
 * each member of a spec except body_length is in its range, a delay is at most WW_DRIVER_TIME_MAX, flags and states are
 * known, a ref has an id or a tube and a key, the members of a limit are in their range, and a filter is one. A pointer
 * may be NULL where jobs.h says "unless NULL". The kind itself checks a spec's body_length, and whether a due time
 * overflows its clock.
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
	/* Put those whose result is WW_OK, at least one. The others were refused. was NULL: they are all new. */
	int (*put_many)(
	    struct ww_jobs *jobs, struct ww_job_put *puts, const struct ww_job_info *const *was, size_t count);
	int (*move)(
	    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version);
	int (*cancel)(struct ww_jobs *jobs, const struct ww_job_ref *job);

	int (*reserve)(struct ww_jobs *jobs, const struct ww_reserve *what, struct ww_lease *lease);
	/* At least one. */
	int (*reserve_many)(struct ww_jobs *jobs, const struct ww_reserve *what, struct ww_lease *leases, size_t most);
	int (*wait)(struct ww_jobs *jobs, const struct ww_reserve *what, uint64_t timeout, struct ww_lease *lease);
	int (*reserve_job)(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease);

	int (*finish)(struct ww_jobs *jobs, uint64_t id, uint64_t token);
	/* At least one. */
	int (*finish_many)(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count);
	int (*release)(
	    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error);
	int (*return_after)(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t delay);
	int (*bury)(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error);
	int (*touch)(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends);
	int (*report)(struct ww_jobs *jobs, uint64_t id, uint64_t token, const void *report, size_t length);
	int (*history)(struct ww_jobs *jobs, const struct ww_run_filter *filter, size_t limit, ww_run_fn *fn,
	    void *context, uint64_t *next);

	int (*kick)(struct ww_jobs *jobs, const char *tube, uint64_t bound, uint64_t *count);
	int (*kick_job)(struct ww_jobs *jobs, uint64_t id);
	int (*pause)(struct ww_jobs *jobs, const char *tube, uint64_t ns);

	int (*limit_set)(struct ww_jobs *jobs, const struct ww_limit_ref *ref, const struct ww_limit *limit);
	int (*limit_get)(struct ww_jobs *jobs, const struct ww_limit_ref *ref, struct ww_limit_info *info);
	int (*limit_list)(struct ww_jobs *jobs, const char *tube, ww_limit_fn *fn, void *context);

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
	/* NULL: no job of this kind has a code. */
	int (*above)(struct ww_jobs *jobs, const char *tube, uint32_t code, uint64_t *count, uint32_t *lowest);
	int (*check)(struct ww_jobs *jobs, ww_jobs_problem_fn *problem, void *context);

	int publishes; /* all that becomes of jobs, by itself (publish.h); otherwise, what its calls have done is published */
};

/* The first member of the struct that a kind has for each store. */
struct ww_jobs {
	const struct jobs_backend *backend;
	_Atomic(ww_jobs_listen_fn *) listener; /* NULL: nobody listens */
	void *listener_context;
};

#endif
