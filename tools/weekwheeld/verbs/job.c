/* What the verbs that name a job have in common. */
#include "tools/weekwheeld/verbs/verbs.h"

int job_prepare(struct call *call)
{
	call->result = call->job.id || call->job.key_length ? WW_OK : WW_ENOTFOUND;
	return call->result == WW_OK;
}

int job_is_schedule(struct call *call)
{
	const struct ww_job_ref job = {.id = call->command->id};
	struct ww_job_info info;

	return job.id && ww_jobs_peek(call_jobs(call), &job, &info, NULL) == WW_OK && store_hides(info.tube);
}

int job_result(int error)
{
	return error == WW_EINUSE || error == WW_EINVAL ? WW_ENOTFOUND : error;
}
