/* What became of runs, and what workers report of them. */
#include "tools/weekwheeld/v1/v1.h"

enum { LIMIT = 100 };

struct v1_runs {
	struct v1_request *request;
	size_t count;
};

static int add_one(const struct ww_job_run *run, void *context)
{
	struct v1_runs *runs = context;
	struct v1_request *request = runs->request;

	if (!v1_may(request, run->tube))
		return 0;
	if (runs->count++ > 0)
		v1_add(request, ",");
	v1_write(request, job_run_fields, JOB_BODY, run, NULL);
	return !request->status;
}

static int prepare_list(struct v1_request *request)
{
	if (!request->filter.tube)
		return 0;
	return v1_may(request, request->filter.tube) ? 0 : v1_refuse_tube(request, request->filter.tube);
}

/* The runs of a job, or of all. The job may be gone: then its runs say which tube it had. */
static int run_list(struct v1_request *request)
{
	const struct ww_run_filter filter = {.tube = request->filter.tube,
	    .job = request->id,
	    .prefix = request->filter.prefix,
	    .prefix_length = request->filter.prefix_length,
	    .before = request->filter.after};
	struct v1_runs runs = {request, 0};
	uint64_t next = 0;
	int error;

	v1_add(request, "{\"runs\":[");
	error =
	    ww_jobs_history(v1_jobs(request), &filter, request->limit ? request->limit : LIMIT, add_one, &runs, &next);
	return v1_listed(request, error, runs.count, next);
}

static int prepare_report(struct v1_request *request)
{
	if (v1_read(request, 0) != 0)
		return -1;
	if (request->fields->token == 0)
		return v1_problem(request, 422, "token", NULL, "give the token of the lease");
	if (request->fields->job.spec.body_length > WW_JOB_REPORT_MAX)
		return v1_problem(
		    request, 422, "body", "send the end of it", "a report has %d bytes at most", WW_JOB_REPORT_MAX);
	return 0;
}

static int run_report(struct v1_request *request)
{
	const struct v1_fields *fields = request->fields;
	int error = v1_may_job(request);

	if (error == WW_OK)
		error = ww_jobs_report(
		    v1_jobs(request), request->id, fields->token, fields->job.spec.body, fields->job.spec.body_length);
	return v1_end(request, error);
}

const struct v1_operation v1_history_operations[] = {
    {"GET", "history", RIGHT_READ, V1_BY_TUBE | V1_BY_PREFIX | V1_BY_AFTER | V1_BY_LIMIT, 0, prepare_list, run_list},
    {"GET", "jobs/*/history", RIGHT_READ, V1_BY_AFTER | V1_BY_LIMIT, 0, NULL, run_list},
    {"POST", "jobs/*/report", RIGHT_WORK, V1_OF_REPORT, 1, prepare_report, run_report},
    {NULL, NULL, 0, 0, 0, NULL, NULL},
};
