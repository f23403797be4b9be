/* Limits of tubes and of their groups. */
#include "tools/weekwheeld/v1/v1.h"

static int prepare_set(struct v1_request *request)
{
	if (v1_prepare_tube_object(request) != 0)
		return -1;
	const struct v1_fields *fields = request->fields;
	const uint64_t weight = fields->limit.weight;

	if (fields->limit.running == 0 && fields->limit.starts == 0 && weight <= 1)
		return v1_problem(request, 422, "running", "DELETE ends a limit", "give running, starts, or both");
	if (fields->each && fields->job.spec.group_length > 0)
		return v1_problem(request, 422, "each", NULL, "give either each or group");
	if (weight > 1 && fields->job.spec.group_length == 0)
		return v1_problem(request, 422, "weight", NULL, "a weight is of one group; give that, too");
	if (weight > 1 && request->task.server->is_shared)
		return v1_problem(request, 422, "weight", V1_STORE_REMEDY, "groups in Redis have no weights");
	return 0;
}

/* Which limit: of the tube, of a group, or of each. */
static struct ww_limit_ref ref_of(const struct v1_request *request)
{
	const struct v1_fields *fields = request->fields;

	return (struct ww_limit_ref){
	    request->tube, fields->job.spec.group, fields->job.spec.group_length, fields->each};
}

static int run_set(struct v1_request *request)
{
	const struct ww_limit_ref ref = ref_of(request);
	int error = ww_jobs_limit_set(v1_jobs(request), &ref, &request->fields->limit);

	if (error != WW_EINVAL)
		return v1_end(request, error);
	(void)v1_problem(request, 422, "starts", NULL,
	    "at most a million starts a second, per from 0.001 s to 7 days, burst up to 1,000,000");
	return WW_OK;
}

static int run_end(struct v1_request *request)
{
	const struct ww_limit_ref ref = ref_of(request);
	const struct ww_limit none = {0, 0, WW_SECOND, 1, 1};

	return v1_end(request, ww_jobs_limit_set(v1_jobs(request), &ref, &none));
}

struct v1_limits {
	struct v1_request *request;
	size_t count;
};

static int list_one(const struct ww_limit_info *info, void *context)
{
	struct v1_limits *limits = context;

	if (!v1_may(limits->request, info->ref.tube))
		return 0;
	if (limits->count++ > 0)
		v1_add(limits->request, ",");
	v1_write(limits->request, job_limit_fields, JOB_SHOWN, info, NULL);
	return !limits->request->status;
}

static int run_list(struct v1_request *request)
{
	struct v1_limits limits = {request, 0};
	int error;

	v1_add(request, "{\"limits\":[");
	error = ww_jobs_limit_list(v1_jobs(request), request->filter.tube, list_one, &limits);
	v1_add(request, "]}");
	return error;
}

const struct v1_operation v1_limit_operations[] = {
    {"GET", "limits", RIGHT_READ, V1_BY_TUBE, 0, NULL, run_list},
    {"PUT", "tubes/*/limit", RIGHT_ADMIN, V1_OF_LIMIT, 1, prepare_set, run_set},
    {"DELETE", "tubes/*/limit", RIGHT_ADMIN, V1_OF_LIMIT, 1, v1_prepare_tube_object, run_end},
    {NULL, NULL, 0, 0, 0, NULL, NULL},
};
