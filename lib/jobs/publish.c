/*
 * Reports what calls have done, for a kind of store that does not report it by itself. Only the calls on this handle
 * are seen, and only what a call names is known of a job.
 */
#include "lib/jobs/publish.h"

void ww_jobs_publish_event(struct ww_jobs *jobs, const struct ww_job_event *event)
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

/* Whether a call that has returned this did something that is published here. */
static int publishes(struct ww_jobs *jobs, int result)
{
	return result >= 0 && !jobs->backend->publishes && ww_jobs_is_heard(jobs);
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
		ww_jobs_publish_event(jobs, &event);
}

int ww_jobs_publish_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t id, uint64_t version, int result)
{
	if (publishes(jobs, result))
		tell_put(jobs, spec, id, version, result);
	return result;
}

int ww_jobs_publish_puts(struct ww_jobs *jobs, const struct ww_job_put *puts, size_t count, int result)
{
	if (publishes(jobs, result))
		for (size_t i = 0; i < count; i++)
			if (puts[i].spec)
				tell_put(jobs, puts[i].spec, puts[i].id, puts[i].version, puts[i].result);
	return result;
}

static struct ww_job_event event_of(const struct ww_job_ref *job, enum ww_event_kind kind)
{
	struct ww_job_event event = {.kind = kind, .id = job->id, .tube = "", .left = WW_EVENT_UNKNOWN};

	if (!job->id) {
		event.tube = job->tube;
		event.key = job->key;
		event.key_length = job->key_length;
	}
	return event;
}

int ww_jobs_publish_moved(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t left, uint64_t version, int result)
{
	struct ww_job_event event = event_of(job, WW_EVENT_MOVED);

	event.version = version;
	event.left = left;
	if (publishes(jobs, result))
		ww_jobs_publish_event(jobs, &event);
	return result;
}

int ww_jobs_publish_cancelled(struct ww_jobs *jobs, const struct ww_job_ref *job, int result)
{
	const struct ww_job_event event = event_of(job, WW_EVENT_CANCELLED);

	if (publishes(jobs, result))
		ww_jobs_publish_event(jobs, &event);
	return result;
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

	ww_jobs_publish_event(jobs, &event);
}

int ww_jobs_publish_leases(struct ww_jobs *jobs, const struct ww_lease *leases, int result)
{
	if (publishes(jobs, result))
		for (int i = 0; i < result; i++)
			tell_lease(jobs, &leases[i]);
	return result;
}

int ww_jobs_publish_id(struct ww_jobs *jobs, enum ww_event_kind kind, uint64_t id, const char *error, int result)
{
	const struct ww_job_event event = {
	    .kind = kind, .id = id, .tube = "", .error = error, .left = WW_EVENT_UNKNOWN};

	if (publishes(jobs, result))
		ww_jobs_publish_event(jobs, &event);
	return result;
}

int ww_jobs_publish_ends(struct ww_jobs *jobs, const struct ww_job_end *ends, size_t count, int result)
{
	for (size_t i = 0; i < count && publishes(jobs, result); i++)
		(void)ww_jobs_publish_id(jobs, WW_EVENT_FINISHED, ends[i].id, NULL, ends[i].result);
	return result;
}

int ww_jobs_publish_kicks(struct ww_jobs *jobs, const char *tube, uint64_t count, int result)
{
	const struct ww_job_event event = {.kind = WW_EVENT_KICKED, .tube = tube};

	if (publishes(jobs, result) && count > 0)
		ww_jobs_publish_event(jobs, &event);
	return result;
}
