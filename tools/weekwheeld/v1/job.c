/* What a token may do, and the operations on one job. */
#include <inttypes.h>

#include "tools/weekwheeld/v1/v1.h"

/* The job that the path names. */
static struct ww_job_ref job_of(const struct v1_request *request)
{
	return (struct ww_job_ref){
	    .id = request->id,
	    .tube = request->tube,
	    .key = request->key,
	    .key_length = request->key_length,
	    .version = request->version,
	};
}

int v1_may(const struct v1_request *request, const char *tube)
{
	return !request->who.token || token_may(request->who.token, request->operation->right, tube);
}

int v1_refuse_tube(struct v1_request *request, const char *tube)
{
	return v1_problem(request, 403, tube ? "tube" : NULL, "use a token that grants it",
	    "the token does not grant '%s' in %s%s", tokens_right_name(request->operation->right),
	    tube ? "the tube " : "all tubes", tube ? tube : "");
}

/* To those who may not look at it, there is no such job. */
int v1_may_job(struct v1_request *request)
{
	return v1_may(request, NULL)
	           ? WW_OK
	           : auth_may(v1_jobs(request), request->who.token, request->operation->right, request->id);
}

int v1_prepare_tube(struct v1_request *request)
{
	return v1_may(request, request->tube) ? 0 : v1_refuse_tube(request, request->tube);
}

/* The same, and the job is no schedule, which a client reaches by its name alone. */
static int may_change(struct v1_request *request)
{
	const struct ww_job_ref job = {.id = request->id};
	struct ww_job_info info;
	int error = v1_may_job(request);

	if (error < 0 || ww_jobs_peek(v1_jobs(request), &job, &info, NULL) != WW_OK)
		return error;
	return store_hides(info.tube) ? WW_ENOTFOUND : WW_OK;
}

static int prepare_object(struct v1_request *request)
{
	return v1_read(request, 0);
}

int v1_prepare_tube_object(struct v1_request *request)
{
	return v1_prepare_tube(request) != 0 ? -1 : v1_read(request, 0);
}

int v1_end(struct v1_request *request, int error)
{
	if (error >= 0)
		request->status = 204;
	return error;
}

/* ---- One job */

static int run_get(struct v1_request *request)
{
	struct ww_job_ref job = job_of(request);
	struct field_moment now;
	struct ww_job_info info;
	void *body = NULL;
	int error = request->id ? may_change(request) : WW_OK;

	job.version = 0;
	if (error == WW_OK)
		error = ww_jobs_peek(v1_jobs(request), &job, &info, &body);
	if (error < 0)
		return error;
	v1_moment_now(v1_jobs(request), &now);
	request->etag = info.version;
	v1_write(request, job_fields, JOB_SHOWN | JOB_BODY, &info, &now);
	ww_jobs_free(v1_jobs(request), body);
	return WW_OK;
}

/* "at" means Unix time, whichever clock the job has. */
static int move_at(struct v1_request *request, struct ww_job_ref *job, uint64_t *version)
{
	const struct ww_job_spec *spec = &request->fields->job.spec;
	struct field_moment now;
	struct ww_job_info info;
	int error = ww_jobs_peek(v1_jobs(request), job, &info, NULL);

	if (error < 0)
		return error;
	if (info.flags & WW_JOB_WALL)
		return ww_jobs_move(v1_jobs(request), job, spec->due, WW_JOB_AT, version);
	v1_moment_now(v1_jobs(request), &now);
	return ww_jobs_move(v1_jobs(request), job, spec->due > now.wall ? spec->due - now.wall : 0, 0, version);
}

static int run_move(struct v1_request *request)
{
	const struct ww_job_spec *spec = &request->fields->job.spec;
	struct ww_job_ref job = job_of(request);
	uint64_t version = 0;
	int error = request->id ? may_change(request) : WW_OK;

	if (error == WW_OK)
		error = spec->flags & WW_JOB_AT ? move_at(request, &job, &version)
		                                : ww_jobs_move(v1_jobs(request), &job, spec->due, 0, &version);
	if (error < 0)
		return error;
	request->etag = version;
	v1_add(request, "{\"version\":%" PRIu64 "}", version);
	return WW_OK;
}

/* A job that is being delivered is gone after that delivery. */
static int run_cancel(struct v1_request *request)
{
	struct ww_job_ref job = job_of(request);
	int error = request->id ? may_change(request) : WW_OK;

	return v1_end(request, error == WW_OK ? ww_jobs_cancel(v1_jobs(request), &job) : error);
}

/* The library kicks any version. Between the look and the kick, only another server of a shared store can change it. */
static int run_kick_job(struct v1_request *request)
{
	const struct ww_job_ref job = job_of(request);
	enum ww_job_state state;
	struct ww_job_info info;
	int error = may_change(request);

	if (error < 0)
		return error;
	if (request->version)
		error = ww_jobs_peek(v1_jobs(request), &job, &info, NULL);
	if (error == WW_OK)
		error = ww_jobs_kick_job(v1_jobs(request), request->id);
	if (error != WW_ENOTFOUND || ww_jobs_state(v1_jobs(request), request->id, &state) != WW_OK)
		return v1_end(request, error);
	(void)v1_problem(
	    request, 409, NULL, NULL, "the job is %s: only buried and delayed ones can be kicked", job_states[state]);
	return WW_OK;
}

const struct v1_operation v1_job_operations[] = {
    {"GET", "jobs/*", RIGHT_READ, 0, 0, NULL, run_get},
    {"PATCH", "jobs/*", RIGHT_WORK, V1_OF_MOVE, 1, prepare_object, run_move},
    {"DELETE", "jobs/*", RIGHT_WORK, 0, 1, NULL, run_cancel},
    {"POST", "jobs/*/kick", RIGHT_WORK, 0, 1, NULL, run_kick_job},
    {"GET", "tubes/*/keys/*", RIGHT_READ, 0, 0, v1_prepare_tube, run_get},
    {"PATCH", "tubes/*/keys/*", RIGHT_PUT | RIGHT_WORK, V1_OF_MOVE, 1, v1_prepare_tube_object, run_move},
    {"DELETE", "tubes/*/keys/*", RIGHT_PUT | RIGHT_WORK, 0, 1, v1_prepare_tube, run_cancel},
    {NULL, NULL, 0, 0, 0, NULL, NULL},
};
