/* The functions of jobs.h: check what can be checked without the store, then call its kind. */
#include "weekwheel/jobs.h"

#include <limits.h>
#include <string.h>

#include "lib/base/time.h"
#include "lib/jobs/backend.h"
#include "lib/jobs/headers.h"
#include "lib/jobs/publish.h"
#include "lib/jobs/then.h"

/* ---- Checks */

static int is_tube(const char *name)
{
	size_t length = name ? strnlen(name, WW_TUBE_MAX + 1) : 0;

	return length > 0 && length <= WW_TUBE_MAX;
}

static int are_tubes(const char *const *names, size_t count)
{
	if (count && !names)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (!is_tube(names[i]))
			return 0;
	return 1;
}

static int check_key(const struct ww_job_spec *spec)
{
	int has_span = spec->key_mode == WW_KEY_DEBOUNCE || spec->key_mode == WW_KEY_UNIQUE;

	if (spec->key_length > WW_JOB_KEY_MAX || (spec->key_length && !spec->key) || spec->key_mode > WW_KEY_UNIQUE)
		return WW_EINVAL;
	if (spec->key_mode != WW_KEY_REPLACE && (!spec->key_length || spec->version))
		return WW_EINVAL;
	if (!has_span)
		return spec->key_span ? WW_EINVAL : WW_OK;
	return spec->period || spec->key_span < WW_MILLISECOND || spec->key_span > WW_DRIVER_TIME_MAX ? WW_EINVAL
	                                                                                              : WW_OK;
}

static int check_one(const struct ww_job_spec *spec)
{
	if (!spec || !is_tube(spec->tube) || check_key(spec))
		return WW_EINVAL;
	if (spec->body_length && !spec->body)
		return WW_EINVAL;
	if (!ww_job_headers_are_sound(spec->headers, spec->headers_length))
		return WW_EINVAL;
	if (spec->group_length > WW_JOB_GROUP_MAX || (spec->group_length && !spec->group))
		return WW_EINVAL;
	if (spec->run < WW_SECOND || spec->run > WW_DRIVER_TIME_MAX || (spec->period && spec->period < WW_MILLISECOND))
		return WW_EINVAL;
	if (spec->expire > WW_DRIVER_TIME_MAX || spec->expired > WW_EXPIRED_BURY)
		return WW_EINVAL;
	if (spec->keep > WW_DRIVER_TIME_MAX || spec->period > WW_DRIVER_TIME_MAX ||
	    spec->backoff > WW_DRIVER_TIME_MAX || spec->backoff_max > WW_DRIVER_TIME_MAX)
		return WW_EINVAL;
	if (spec->code > WW_JOB_CODE_MAX)
		return WW_EINVAL;
	if (spec->flags & ~(WW_JOB_WALL | WW_JOB_AT | WW_JOB_FUTURE) || spec->missed > WW_MISSED_SKIP)
		return WW_EINVAL;
	if (spec->body_length > WW_JOB_BODY_MAX || spec->then_length > WW_JOB_BODY_MAX)
		return WW_ETOOBIG;
	return !(spec->flags & WW_JOB_AT) && spec->due > WW_DRIVER_TIME_MAX ? WW_EOVERFLOW : WW_OK;
}

/* A job, and each that follows it. */
static int check_spec(const struct ww_job_spec *spec)
{
	struct ww_job_spec job;
	int error = check_one(spec);

	if (error || !spec->then_length)
		return error;
	job = *spec;
	for (int i = 0; !error && job.then_length; i++) {
		error = i < WW_JOB_CHAIN ? ww_job_then_follow(&job) : WW_EINVAL;
		if (!error)
			error = check_one(&job);
	}
	return error;
}

/* Copy a ref, with the default tube if it has none, and check it. */
static int refer(struct ww_job_ref *ref, const struct ww_job_ref *job)
{
	if (!job)
		return WW_EINVAL;
	*ref = *job;
	if (ref->id)
		return WW_OK;
	if (!ref->tube)
		ref->tube = WW_TUBE_DEFAULT;
	if (!is_tube(ref->tube) || !ref->key || !ref->key_length || ref->key_length > WW_JOB_KEY_MAX)
		return WW_EINVAL;
	return WW_OK;
}

/* ---- The store */

int ww_jobs_close(struct ww_jobs *jobs)
{
	return jobs ? jobs->backend->close(jobs) : WW_OK;
}

int ww_jobs_begin(struct ww_jobs *jobs)
{
	return jobs ? jobs->backend->begin(jobs) : WW_EINVAL;
}

int ww_jobs_commit(struct ww_jobs *jobs)
{
	return jobs ? jobs->backend->commit(jobs) : WW_EINVAL;
}

int ww_jobs_now(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns)
{
	if (!jobs || !ns || flags & ~WW_JOB_WALL)
		return WW_EINVAL;
	return jobs->backend->now(jobs, flags, ns);
}

/* ---- Putting jobs */

int ww_jobs_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version)
{
	int error = jobs ? check_spec(spec) : WW_EINVAL;
	uint64_t new_id = 0;
	uint64_t new_version = 0;

	if (error)
		return error;
	id = id ? id : &new_id;
	version = version ? version : &new_version;
	int result = jobs->backend->put(jobs, spec, id, version);
	return ww_jobs_publish_put(jobs, spec, *id, *version, result);
}

/* A store in Redis counts in double precision. */
#define VERSION_END (UINT64_C(1) << 53)

static int check_past(const struct ww_job_spec *spec, const struct ww_job_info *was)
{
	const int has_key = was->state != WW_JOB_ENDED || spec->key_mode == WW_KEY_UNIQUE;

	return was->state <= WW_JOB_ENDED && was->version < VERSION_END && has_key ? WW_OK : WW_EINVAL;
}

int ww_jobs_put_again(struct ww_jobs *jobs, struct ww_job_put *puts, const struct ww_job_info *const *was, size_t count)
{
	size_t sound = 0;

	if (!jobs || (count && !puts))
		return WW_EINVAL;
	for (size_t i = 0; i < count; i++) {
		puts[i].result = check_spec(puts[i].spec);
		if (!puts[i].result && was && was[i])
			puts[i].result = check_past(puts[i].spec, was[i]);
		sound += puts[i].result == WW_OK;
	}
	return sound ? ww_jobs_publish_puts(jobs, puts, count, jobs->backend->put_many(jobs, puts, was, count)) : WW_OK;
}

int ww_jobs_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count)
{
	return ww_jobs_put_again(jobs, puts, NULL, count);
}

int ww_jobs_move(struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version)
{
	struct ww_job_ref ref;
	uint64_t new_version = 0;

	if (!jobs || refer(&ref, job) || flags & ~WW_JOB_AT)
		return WW_EINVAL;
	if (!(flags & WW_JOB_AT) && due > WW_DRIVER_TIME_MAX)
		return WW_EOVERFLOW;
	version = version ? version : &new_version;
	int result = jobs->backend->move(jobs, &ref, due, flags, version);
	return ww_jobs_publish_moved(jobs, &ref, flags & WW_JOB_AT ? WW_EVENT_UNKNOWN : due, *version, result);
}

int ww_jobs_cancel(struct ww_jobs *jobs, const struct ww_job_ref *job)
{
	struct ww_job_ref ref;

	if (!jobs || refer(&ref, job))
		return WW_EINVAL;
	return ww_jobs_publish_cancelled(jobs, &ref, jobs->backend->cancel(jobs, &ref));
}

/* ---- Delivering jobs */

static int is_reserve(const struct ww_reserve *what)
{
	return what && what->code <= WW_JOB_CODE_MAX && are_tubes(what->tubes, what->count);
}

int ww_jobs_reserve(struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *lease)
{
	const struct ww_reserve what = {tubes, count, WW_JOB_CODE_MAX};

	if (!jobs || !lease || !is_reserve(&what))
		return WW_EINVAL;
	return ww_jobs_publish_leases(jobs, lease, jobs->backend->reserve(jobs, &what, lease));
}

int ww_jobs_reserve_many(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *leases, size_t most)
{
	const struct ww_reserve what = {tubes, count, WW_JOB_CODE_MAX};

	return ww_jobs_reserve_known(jobs, &what, leases, most);
}

int ww_jobs_reserve_known(struct ww_jobs *jobs, const struct ww_reserve *what, struct ww_lease *leases, size_t most)
{
	if (!jobs || (most && !leases) || most > INT_MAX || !is_reserve(what))
		return WW_EINVAL;
	if (!most)
		return 0;
	return ww_jobs_publish_leases(jobs, leases, jobs->backend->reserve_many(jobs, what, leases, most));
}

int ww_jobs_wait(struct ww_jobs *jobs, const char *const *tubes, size_t count, uint64_t timeout, struct ww_lease *lease)
{
	const struct ww_reserve what = {tubes, count, WW_JOB_CODE_MAX};

	return ww_jobs_wait_known(jobs, &what, timeout, lease);
}

int ww_jobs_wait_known(struct ww_jobs *jobs, const struct ww_reserve *what, uint64_t timeout, struct ww_lease *lease)
{
	if (!jobs || !lease || !is_reserve(what))
		return WW_EINVAL;
	return ww_jobs_publish_leases(jobs, lease, jobs->backend->wait(jobs, what, timeout, lease));
}

int ww_jobs_reserve_job(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease)
{
	if (!jobs || !lease)
		return WW_EINVAL;
	int error = jobs->backend->reserve_job(jobs, id, lease);
	(void)ww_jobs_publish_leases(jobs, lease, error < 0 ? error : 1);
	return error;
}

void ww_jobs_free(struct ww_jobs *jobs, void *body)
{
	if (jobs && body)
		jobs->backend->free(jobs, body);
}

int ww_jobs_finish(struct ww_jobs *jobs, uint64_t id, uint64_t token)
{
	if (!jobs)
		return WW_EINVAL;
	return ww_jobs_publish_id(jobs, WW_EVENT_FINISHED, id, NULL, jobs->backend->finish(jobs, id, token));
}

int ww_jobs_finish_many(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count)
{
	if (!jobs || (count && !ends))
		return WW_EINVAL;
	return count ? ww_jobs_publish_ends(jobs, ends, count, jobs->backend->finish_many(jobs, ends, count)) : WW_OK;
}

int ww_jobs_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error)
{
	if (!jobs || (delay > WW_DRIVER_TIME_MAX && delay != WW_JOB_BACKOFF))
		return WW_EINVAL;
	int result = jobs->backend->release(jobs, id, token, priority, delay, error);
	return ww_jobs_publish_id(jobs, result ? WW_EVENT_BURIED : WW_EVENT_RELEASED, id, error, result);
}

int ww_jobs_return(struct ww_jobs *jobs, uint64_t id, uint64_t token)
{
	return ww_jobs_return_after(jobs, id, token, 0);
}

int ww_jobs_return_after(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t delay)
{
	if (!jobs || delay > WW_DRIVER_TIME_MAX)
		return WW_EINVAL;
	return ww_jobs_publish_id(
	    jobs, WW_EVENT_RETURNED, id, NULL, jobs->backend->return_after(jobs, id, token, delay));
}

int ww_jobs_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error)
{
	if (!jobs)
		return WW_EINVAL;
	int result = jobs->backend->bury(jobs, id, token, priority, error);
	return ww_jobs_publish_id(jobs, WW_EVENT_BURIED, id, error, result);
}

int ww_jobs_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends)
{
	return jobs ? jobs->backend->touch(jobs, id, token, ends) : WW_EINVAL;
}

int ww_jobs_kick(struct ww_jobs *jobs, const char *tube, uint64_t bound, uint64_t *count)
{
	uint64_t kicked = 0;

	if (!jobs || !is_tube(tube))
		return WW_EINVAL;
	count = count ? count : &kicked;
	int result = jobs->backend->kick(jobs, tube, bound, count);
	return ww_jobs_publish_kicks(jobs, tube, *count, result);
}

int ww_jobs_kick_job(struct ww_jobs *jobs, uint64_t id)
{
	return jobs ? ww_jobs_publish_id(jobs, WW_EVENT_KICKED, id, NULL, jobs->backend->kick_job(jobs, id))
	            : WW_EINVAL;
}

int ww_jobs_pause(struct ww_jobs *jobs, const char *tube, uint64_t ns)
{
	if (!jobs || !is_tube(tube) || ns > WW_DRIVER_TIME_MAX)
		return WW_EINVAL;
	return jobs->backend->pause(jobs, tube, ns);
}

/* ---- Limits */

int ww_jobs_report(struct ww_jobs *jobs, uint64_t id, uint64_t token, const void *report, size_t length)
{
	if (!jobs || (length && !report) || length > WW_JOB_REPORT_MAX)
		return WW_EINVAL;
	return jobs->backend->report(jobs, id, token, report, length);
}

int ww_jobs_history(struct ww_jobs *jobs, const struct ww_run_filter *filter, size_t limit, ww_run_fn *fn,
    void *context, uint64_t *next)
{
	static const struct ww_run_filter all = {.tube = NULL};

	if (!filter)
		filter = &all;
	if (!jobs || !fn || limit == 0 || (filter->prefix_length && !filter->prefix))
		return WW_EINVAL;
	if (filter->tube && !is_tube(filter->tube))
		return WW_EINVAL;
	return jobs->backend->history(jobs, filter, limit, fn, context, next);
}

int ww_jobs_limit_default(struct ww_limit *limit)
{
	if (!limit)
		return WW_EINVAL;
	*limit = (struct ww_limit){.per = WW_SECOND, .burst = 1, .weight = 1};
	return WW_OK;
}

static int is_limit(const struct ww_limit *limit)
{
	if (limit->per < WW_MILLISECOND || limit->per > WW_LIMIT_PER_MAX)
		return 0;
	/* At most one in a microsecond. */
	return limit->starts <= limit->per / 1000 && limit->burst >= 1 && limit->burst <= WW_LIMIT_BURST_MAX &&
	       limit->weight <= WW_LIMIT_WEIGHT_MAX;
}

static int refer_limit(struct ww_limit_ref *ref, const struct ww_limit_ref *from)
{
	if (!from)
		return WW_EINVAL;
	*ref = *from;
	if (!ref->tube)
		ref->tube = WW_TUBE_DEFAULT;
	if (ref->group_length > WW_JOB_GROUP_MAX || (ref->group_length && (!ref->group || ref->each)))
		return WW_EINVAL;
	return is_tube(ref->tube) ? WW_OK : WW_EINVAL;
}

int ww_jobs_limit_set(struct ww_jobs *jobs, const struct ww_limit_ref *from, const struct ww_limit *limit)
{
	struct ww_limit_ref ref;
	struct ww_limit made;

	if (!jobs || refer_limit(&ref, from) || !limit)
		return WW_EINVAL;
	(void)ww_jobs_limit_default(&made);
	if (limit->running || limit->starts)
		made = *limit;
	made.weight = limit->weight ? limit->weight : 1;
	if (!is_limit(&made) || (made.weight > 1 && !ref.group_length))
		return WW_EINVAL;
	return jobs->backend->limit_set(jobs, &ref, &made);
}

int ww_jobs_limit_get(struct ww_jobs *jobs, const struct ww_limit_ref *from, struct ww_limit_info *info)
{
	struct ww_limit_ref ref;

	if (!jobs || refer_limit(&ref, from) || !info)
		return WW_EINVAL;
	return jobs->backend->limit_get(jobs, &ref, info);
}

int ww_jobs_limit_list(struct ww_jobs *jobs, const char *tube, ww_limit_fn *fn, void *context)
{
	if (!jobs || (tube && !is_tube(tube)) || !fn)
		return WW_EINVAL;
	return jobs->backend->limit_list(jobs, tube, fn, context);
}

/* ---- Looking at jobs */

int ww_jobs_peek(struct ww_jobs *jobs, const struct ww_job_ref *job, struct ww_job_info *info, void **body)
{
	struct ww_job_ref ref;

	if (!jobs || !info || refer(&ref, job))
		return WW_EINVAL;
	return jobs->backend->peek(jobs, &ref, info, body);
}

int ww_jobs_peek_next(
    struct ww_jobs *jobs, const char *tube, enum ww_job_state state, struct ww_job_info *info, void **body)
{
	if (!jobs || !is_tube(tube) || !info || state < WW_JOB_DELAYED || state > WW_JOB_BURIED)
		return WW_EINVAL;
	return jobs->backend->peek_next(jobs, tube, state, info, body);
}

int ww_jobs_state(struct ww_jobs *jobs, uint64_t id, enum ww_job_state *state)
{
	return jobs && state ? jobs->backend->state(jobs, id, state) : WW_EINVAL;
}

int ww_jobs_list(struct ww_jobs *jobs, const struct ww_job_filter *filter, size_t limit, ww_job_fn *fn, void *context,
    uint64_t *next)
{
	if (!jobs || !filter || !fn || limit == 0 || (filter->prefix_length && !filter->prefix))
		return WW_EINVAL;
	if (filter->tube && !is_tube(filter->tube))
		return WW_EINVAL;
	return jobs->backend->list(jobs, filter, limit, fn, context, next);
}

int ww_jobs_forecast(struct ww_jobs *jobs, const char *tube, uint64_t span, uint64_t *counts, size_t count)
{
	if (!jobs || (tube && !is_tube(tube)) || !counts || !span)
		return WW_EINVAL;
	return jobs->backend->forecast(jobs, tube, span, counts, count);
}

int ww_jobs_stats(struct ww_jobs *jobs, struct ww_jobs_stats *stats)
{
	return jobs && stats ? jobs->backend->stats(jobs, stats) : WW_EINVAL;
}

int ww_jobs_tube(struct ww_jobs *jobs, const char *tube, struct ww_tube_stats *stats)
{
	if (!jobs || !is_tube(tube) || !stats)
		return WW_EINVAL;
	return jobs->backend->tube(jobs, tube, stats);
}

int ww_jobs_tubes(struct ww_jobs *jobs, ww_tube_fn *fn, void *context)
{
	return jobs && fn ? jobs->backend->tubes(jobs, fn, context) : WW_EINVAL;
}

int ww_jobs_above(struct ww_jobs *jobs, const char *tube, uint32_t code, uint64_t *count, uint32_t *lowest)
{
	if (!jobs || !is_tube(tube) || !count || !lowest)
		return WW_EINVAL;
	*count = 0;
	return jobs->backend->above ? jobs->backend->above(jobs, tube, code, count, lowest) : WW_OK;
}

int ww_jobs_check(struct ww_jobs *jobs, ww_jobs_problem_fn *problem, void *context)
{
	if (!jobs)
		return WW_EINVAL;
	return jobs->backend->check(jobs, problem, context);
}
