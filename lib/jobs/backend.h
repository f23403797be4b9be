#ifndef LIB_JOBS_BACKEND_H
#define LIB_JOBS_BACKEND_H

/*
 * The calls of jobs.c on a kind of store: the embedded one, or the one in Redis.
 *
 *     struct ww_jobs           struct jobs_backend, one for each kind
 *     +---------+              +---------+
 *     | backend | -----------> | close   |
 *     +---------+              |   ...   |
 *     | of the  |              | call    | <--- struct jobs_call: a function of jobs.h and its arguments
 *     | kind    |              +---------+
 *
 * A call is a struct, so that a kind can queue it and let another thread execute it. jobs.c checks what it can without
 * the store. A kind may therefore rely on this: no pointer is NULL where jobs.h needs an object, a tube's name has 1 to
 * WW_TUBE_MAX bytes, each member of a spec except body_length is in its range, a delay is at most WW_DRIVER_TIME_MAX,
 * flags and states are known, a ref has an id or a tube and a key, the members of a limit are in their range. A pointer
 * may be NULL where jobs.h says "unless NULL". The kind itself checks a spec's body_length, and whether a due time
 * overflows its clock.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/jobs.h"

/* JOBS_PUT is ww_jobs_put, and so on. */
enum jobs_op {
	JOBS_PUT,
	JOBS_PUT_MANY,
	JOBS_MOVE,
	JOBS_CANCEL,
	JOBS_RESERVE,
	JOBS_RESERVE_MANY,
	JOBS_WAIT,
	JOBS_RESERVE_JOB,
	JOBS_FINISH,
	JOBS_FINISH_MANY,
	JOBS_RELEASE,
	JOBS_RETURN,
	JOBS_BURY,
	JOBS_TOUCH,
	JOBS_REPORT,
	JOBS_HISTORY,
	JOBS_KICK,
	JOBS_KICK_JOB,
	JOBS_PAUSE,
	JOBS_LIMIT_SET,
	JOBS_LIMIT_GET,
	JOBS_LIMIT_LIST,
	JOBS_PEEK,
	JOBS_PEEK_NEXT,
	JOBS_STATE,
	JOBS_LIST,
	JOBS_FORECAST,
	JOBS_STATS,
	JOBS_TUBE,
	JOBS_TUBES,
	JOBS_CHECK
};

/* The arguments have the names of jobs.h, unless another name is given. Those that a function does not have are 0. */
struct jobs_call {
	enum jobs_op op;
	enum ww_job_state state;
	uint32_t flags;
	uint32_t priority;
	const struct ww_job_spec *spec;
	const struct ww_job_ref *job;
	uint64_t id;
	uint64_t token;
	uint64_t ns; /* due, delay, timeout or span */
	const char *error;
	const char *tube;
	const char *const *tubes;
	size_t count;  /* of tubes, puts, ends or counts */
	uint64_t most; /* leases, kicks (bound) or jobs of a list (limit) */
	const struct ww_job_filter *filter;
	ww_job_fn *job_fn;
	ww_tube_fn *tube_fn;
	const struct ww_limit_ref *ref;
	const struct ww_limit *limit;
	ww_limit_fn *limit_fn;
	const void *report; /* of `count` bytes */
	const struct ww_run_filter *runs;
	ww_run_fn *run_fn;
	ww_jobs_problem_fn *problem;
	void *context;

	/* Where the answer goes. */
	uint64_t *new_id;        /* of a put */
	uint64_t *answer;        /* version, ends, count or next */
	struct ww_job_put *puts; /* Put those whose result is WW_OK, at least one. The others were refused. */
	struct ww_job_end *ends;
	struct ww_lease *leases; /* `most` of them */
	struct ww_job_info *info;
	void **body;
	enum ww_job_state *state_now;
	uint64_t *counts;
	struct ww_jobs_stats *stats;
	struct ww_tube_stats *tube_stats;
	struct ww_limit_info *limit_info;

	/* For the kind, 0 at first: what it has handed out and must take back if the call fails later. */
	size_t leased;
	void *copy; /* of a body */
};

struct jobs_backend {
	int (*close)(struct ww_jobs *jobs);
	void (*free)(struct ww_jobs *jobs, void *body);
	int (*begin)(struct ww_jobs *jobs);
	int (*commit)(struct ww_jobs *jobs);
	int (*now)(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns);
	int (*call)(struct ww_jobs *jobs, struct jobs_call *call);
	int tells; /* all that becomes of jobs, by itself (tell.h); otherwise, what its calls have done is told */
};

/* The first member of the struct that a kind has for each store. */
struct ww_jobs {
	const struct jobs_backend *backend;
	_Atomic(ww_jobs_listen_fn *) listener; /* NULL: nobody listens */
	void *listener_context;
};

#endif
