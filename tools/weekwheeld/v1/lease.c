/* Reserving jobs, and how their leases end. */
#include <stdlib.h>

#include "tools/weekwheeld/v1/v1.h"

/* An answer with leases of a store in this process has more bytes than this by the last of them alone. */
enum { ANSWER_MAX = 4 << 20 };

static int prepare_end(struct v1_request *request)
{
	if (v1_read(request, 0) != 0)
		return -1;
	if (request->fields->token == 0)
		return v1_problem(request, 422, "token", NULL, "give the token of the lease");
	return 0;
}

static int run_finish(struct v1_request *request)
{
	int error = v1_may_job(request);

	request->ended = COUNT_DONE;
	if (error == WW_OK)
		error = ww_jobs_finish(v1_jobs(request), request->id, request->fields->token);
	return v1_end(request, error);
}

static int run_release(struct v1_request *request)
{
	const struct v1_fields *fields = request->fields;
	const struct ww_job_spec *spec = &fields->job.spec;
	int result = v1_may_job(request);

	if (result == WW_OK)
		result = ww_jobs_release(v1_jobs(request), request->id, fields->token, spec->priority,
		    v1_has(fields, "delay") ? spec->due : WW_JOB_BACKOFF,
		    *fields->job.error ? fields->job.error : NULL);
	if (result < 0)
		return result;
	request->ended = result ? COUNT_BURIED : COUNT_FAILED;
	if (result)
		burial_log(v1_jobs(request), request->id);
	v1_add(request, "{\"buried\":%s}", result ? "true" : "false");
	return WW_OK;
}

static int run_bury(struct v1_request *request)
{
	const struct v1_fields *fields = request->fields;
	int error = v1_may_job(request);

	if (error == WW_OK)
		error = ww_jobs_bury(v1_jobs(request), request->id, fields->token, fields->job.spec.priority,
		    *fields->job.error ? fields->job.error : NULL);
	request->ended = COUNT_BURIED;
	if (error == WW_OK)
		burial_log(v1_jobs(request), request->id);
	return v1_end(request, error);
}

static int run_return(struct v1_request *request)
{
	int error = v1_may_job(request);

	request->ended = COUNTS;
	if (error == WW_OK)
		error = ww_jobs_return(v1_jobs(request), request->id, request->fields->token);
	return v1_end(request, error);
}

static int run_touch(struct v1_request *request)
{
	int error = v1_may_job(request);

	if (error == WW_OK)
		error = ww_jobs_touch(v1_jobs(request), request->id, request->fields->token, NULL);
	return v1_end(request, error);
}

static int prepare_reserve(struct v1_request *request)
{
	struct v1_fields *fields;

	if (v1_read(request, 0) != 0)
		return -1;
	fields = request->fields;
	if (request->tube_count == 0)
		request->tubes[request->tube_count++] = WW_TUBE_DEFAULT;
	if (fields->most == 0)
		fields->most = 1;
	if (fields->span > V1_WAIT_MAX * WW_SECOND)
		return v1_problem(request, 422, "wait", "ask again after each answer without a job",
		    "a request waits %d seconds at most", V1_WAIT_MAX);
	for (size_t i = 0; i < request->tube_count; i++)
		if (!v1_may(request, request->tubes[i]))
			return v1_refuse_tube(request, request->tubes[i]);
	for (size_t i = 0; i < request->tube_count; i++)
		tube_asked(request->task.server, request->tubes[i], fields->code);
	return 0;
}

void v1_no_leases(struct v1_request *request)
{
	buffer_drop(&request->out, request->out.size);
	request->status = 200;
	request->type = NULL;
	request->got = 0;
	v1_add(request, "{\"leases\":[]}");
}

static void write_lease(struct v1_request *request, const struct ww_lease *lease)
{
	struct job_counts *counts = &request->task.server->counts;
	struct field_moment now;

	v1_moment_now(v1_jobs(request), &now);
	counts_deliver(counts, counts_of(counts, lease->tube), lease->attempt, lease->kicks, lease->late);
	v1_write(request, job_lease_fields, 0, lease, &now);
	ww_jobs_free(v1_jobs(request), lease->body);
}

/* One by one, until the answer is large, for all of their bodies may be many times that. A shared store is asked once. */
static int lease_some(struct v1_request *request)
{
	const struct ww_reserve what = {request->tubes, request->tube_count, request->fields->code};
	int is_shared = request->task.server->is_shared;
	int most = (int)request->fields->most;
	int got = 0;
	int more;

	do {
		more = ww_jobs_reserve_known(
		    v1_jobs(request), &what, request->leases + got, (size_t)(is_shared ? most : 1));
		for (int i = 0; i < more; i++) {
			v1_add(request, got + i > 0 ? "," : "");
			write_lease(request, &request->leases[got + i]);
		}
		got += more > 0 ? more : 0;
	} while (!is_shared && more > 0 && got < most && request->status && request->out.size < ANSWER_MAX);
	return got > 0 ? got : more;
}

/* A request without a job waits if it asks for that: see serve.c. */
static int run_reserve(struct v1_request *request)
{
	int got = WW_ENOMEM;

	if (!request->leases)
		request->leases = calloc(request->fields->most, sizeof *request->leases);
	v1_add(request, "{\"leases\":[");
	if (request->leases)
		got = lease_some(request);
	v1_add(request, "]}");
	/* Without memory for the answer, no client knows of the leases. */
	for (int i = 0; i < got && !request->status; i++)
		(void)ww_jobs_return(v1_jobs(request), request->leases[i].id, request->leases[i].token);
	request->got = got;
	return got;
}

const struct v1_operation v1_lease_operations[] = {
    {"POST", "jobs/*/finish", RIGHT_WORK, V1_OF_END, 1, prepare_end, run_finish},
    {"POST", "jobs/*/release", RIGHT_WORK, V1_OF_END | V1_OF_RELEASE, 1, prepare_end, run_release},
    {"POST", "jobs/*/bury", RIGHT_WORK, V1_OF_END | V1_OF_RELEASE, 1, prepare_end, run_bury},
    {"POST", "jobs/*/return", RIGHT_WORK, V1_OF_END, 1, prepare_end, run_return},
    {"POST", "jobs/*/touch", RIGHT_WORK, V1_OF_END, 1, prepare_end, run_touch},
    {"POST", "leases", RIGHT_WORK, V1_OF_RESERVE, 0, prepare_reserve, run_reserve},
    {NULL, NULL, 0, 0, 0, NULL, NULL},
};
