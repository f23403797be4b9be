/*
 * Reports what calls have done, for a kind of store that does not report it by itself. Only the calls on this handle
 * are seen, and only what a call names is known of a job.
 */
#include "lib/jobs/tell.h"

#include <string.h>

void ww_jobs_tell_event(struct ww_jobs *jobs, const struct ww_job_event *event)
{
	ww_jobs_listen_fn *listener = atomic_load_explicit(&jobs->listener, memory_order_acquire);

	if (listener)
		listener(event, jobs->listener_context);
}

int ww_jobs_listen(struct ww_jobs *jobs, ww_jobs_listen_fn *fn, void *context)
{
	if (!jobs)
		return WW_EINVAL;
	if (fn)
		jobs->listener_context = context;
	atomic_store_explicit(&jobs->listener, fn, memory_order_release);
	return WW_OK;
}

static void tell_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t id, uint64_t version, int result)
{
	struct ww_job_event event = {.kind = WW_EVENT_PUT,
	    .id = id,
	    .version = version,
	    .tube = spec->tube,
	    .key = spec->key,
	    .key_length = spec->key_length,
	    .left = spec->flags & WW_JOB_AT ? WW_EVENT_UNKNOWN : spec->due};

	if (result == WW_PUT_NEW || result == WW_PUT_REPLACED)
		ww_jobs_tell_event(jobs, &event);
}

static void tell_ref(struct ww_jobs *jobs, const struct jobs_call *call, enum ww_event_kind kind)
{
	const struct ww_job_ref *job = call->job;
	struct ww_job_event event = {.kind = kind, .id = job->id, .tube = "", .left = WW_EVENT_UNKNOWN};

	if (!job->id) {
		event.tube = job->tube;
		event.key = job->key;
		event.key_length = job->key_length;
	}
	if (kind == WW_EVENT_MOVED) {
		event.version = *call->answer;
		event.left = call->flags & WW_JOB_AT ? WW_EVENT_UNKNOWN : call->ns;
	}
	ww_jobs_tell_event(jobs, &event);
}

static void tell_lease(struct ww_jobs *jobs, const struct ww_lease *lease)
{
	struct ww_job_event event = {.kind = WW_EVENT_STARTED,
	    .id = lease->id,
	    .tube = lease->tube,
	    .key = lease->key,
	    .key_length = lease->key_length,
	    .attempt = lease->attempt,
	    .left = WW_EVENT_UNKNOWN};

	ww_jobs_tell_event(jobs, &event);
}

static void tell_id(struct ww_jobs *jobs, enum ww_event_kind kind, uint64_t id, const char *error)
{
	struct ww_job_event event = {.kind = kind, .id = id, .tube = "", .error = error, .left = WW_EVENT_UNKNOWN};

	ww_jobs_tell_event(jobs, &event);
}

static void tell_kicks(struct ww_jobs *jobs, const struct jobs_call *call)
{
	struct ww_job_event event = {.kind = WW_EVENT_KICKED, .tube = call->tube};

	if (*call->answer > 0)
		ww_jobs_tell_event(jobs, &event);
}

static void tell(struct ww_jobs *jobs, const struct jobs_call *call, int result)
{
	switch (call->op) {
	case JOBS_PUT:
		tell_put(jobs, call->spec, *call->new_id, *call->answer, result);
		break;
	case JOBS_PUT_MANY:
		for (size_t i = 0; i < call->count; i++)
			tell_put(
			    jobs, call->puts[i].spec, call->puts[i].id, call->puts[i].version, call->puts[i].result);
		break;
	case JOBS_MOVE:
		tell_ref(jobs, call, WW_EVENT_MOVED);
		break;
	case JOBS_CANCEL:
		tell_ref(jobs, call, WW_EVENT_CANCELLED);
		break;
	case JOBS_RESERVE:
	case JOBS_RESERVE_MANY:
	case JOBS_WAIT:
		for (int i = 0; i < result; i++)
			tell_lease(jobs, &call->leases[i]);
		break;
	case JOBS_RESERVE_JOB:
		tell_lease(jobs, call->leases);
		break;
	case JOBS_FINISH:
		tell_id(jobs, WW_EVENT_FINISHED, call->id, NULL);
		break;
	case JOBS_FINISH_MANY:
		for (size_t i = 0; i < call->count; i++)
			if (call->ends[i].result >= 0)
				tell_id(jobs, WW_EVENT_FINISHED, call->ends[i].id, NULL);
		break;
	case JOBS_RELEASE:
		tell_id(jobs, result ? WW_EVENT_BURIED : WW_EVENT_RELEASED, call->id, call->error);
		break;
	case JOBS_RETURN:
		tell_id(jobs, WW_EVENT_RETURNED, call->id, NULL);
		break;
	case JOBS_BURY:
		tell_id(jobs, WW_EVENT_BURIED, call->id, call->error);
		break;
	case JOBS_KICK:
		tell_kicks(jobs, call);
		break;
	case JOBS_KICK_JOB:
		tell_id(jobs, WW_EVENT_KICKED, call->id, NULL);
		break;
	default:
		break;
	}
}

int ww_jobs_tell_call(struct ww_jobs *jobs, struct jobs_call *call)
{
	uint64_t id = 0;
	uint64_t answer = 0;
	int result;

	if (!call->new_id)
		call->new_id = &id;
	if (!call->answer)
		call->answer = &answer;
	result = jobs->backend->call(jobs, call);
	if (result >= 0)
		tell(jobs, call, result);
	return result;
}
