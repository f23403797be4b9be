/* Reserve: a job for whoever asks, and waiting for one. */
#include <string.h>

#include "lib/base/time.h"
#include "lib/jobs/body.h"
#include "lib/jobs/local/local_internal.h"

/* The lower bits of a token count deliveries, years of ten thousand a second; those above, openings of the store. */
enum { TOKEN_BITS = 40 };

void ww_jobs_local_free(struct ww_jobs *jobs, void *body)
{
	job_body_free(local_of(jobs)->allocator, body);
}

/* ---- Reserve */

struct reserve {
	const char *const *tubes;
	size_t count;
	uint64_t id; /* or this job */
	struct ww_lease *lease;
	int later; /* the call has leased one already */
};

/* Of a periodic job that skips: move it past what is too old. Returns 1 if it is then not due any more, 0 if it is. */
static int skip_old(struct jobs_local *jobs, uint64_t id, struct job_record *record, uint64_t now)
{
	struct job_record old = *record;

	if (!record->period || record->missed != WW_MISSED_SKIP || now <= record->base ||
	    now - record->base <= record->skip)
		return 0;
	uint64_t passed = (now - record->skip - record->base + record->period - 1) / record->period;
	record->base = time_after(record->base, passed * record->period);
	record->due = record->base;
	ww_jobs_merge(record, ww_jobs_find(jobs, id));
	int error = ww_jobs_write(jobs, id, &old, record);
	if (!error) {
		struct image image = ww_jobs_image(jobs, record);
		error = ww_jobs_place(jobs, id, &image);
	}
	if (!error)
		error = ww_jobs_read(jobs, id, record);
	return error ? error : record->due > now;
}

static void fill_lease(struct ww_lease *lease, uint64_t id, const struct image *image, const struct job_record *record)
{
	lease->id = id;
	lease->token = image->token;
	lease->ends = image->ends;
	lease->attempt = (uint32_t)(record->tries + image->tries) + 1;
	lease->missed = image->missed;
	lease->body_length = record->body.size;
	lease->backoff = record->backoff;
	lease->priority = image->priority;
	lease->key_length = record->key.size;
	memcpy(lease->tube, image->tube->name, sizeof lease->tube);
	if (record->key.size)
		memcpy(lease->key, record->key.data, record->key.size);
}

/* The job is ready, or meant by its id, and this is its record. */
static int lease_it(struct jobs_local *jobs, uint64_t id, const struct job_record *record, struct ww_lease *lease)
{
	const struct entry *entry = ww_jobs_find(jobs, id);
	struct image image = entry ? entry->is : ww_jobs_image(jobs, record);
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, image.wall));
	void *body = NULL;
	int error;

	image.state = WW_JOB_RESERVED;
	image.token = jobs->meta.epoch << TOKEN_BITS | ++jobs->tokens;
	image.ends = time_after(ww_jobs_time(&jobs->elapsed), record->run);
	image.reserves++;
	image.missed = 0;
	if (record->period && record->missed == WW_MISSED_ONCE && now > record->base)
		image.missed = (now - record->base) / record->period;
	if (record->body.size) {
		body = job_body_copy(jobs->allocator, record->body.data, record->body.size);
		if (!body)
			return ww_jobs_broken(jobs, WW_ENOMEM);
	}
	error = ww_jobs_place(jobs, id, &image);
	if (error) {
		job_body_free(jobs->allocator, body);
		return error;
	}
	fill_lease(lease, id, &image, record);
	lease->body = body;
	return 1;
}

static struct entry *best(struct jobs_local *jobs, const struct reserve *reserve)
{
	struct entry *best = NULL;

	for (size_t i = 0; i < reserve->count; i++) {
		const struct tube *tube = ww_jobs_tube_find(jobs, reserve->tubes[i]);
		if (!tube || !tube->ready || ww_jobs_tube_is_paused(tube))
			continue;
		struct entry *entry = tube->heap[0];
		if (!best || entry->is.priority < best->is.priority ||
		    (entry->is.priority == best->is.priority && entry->id < best->id))
			best = entry;
	}
	return best;
}

static int reserve(struct jobs_local *jobs, void *arguments)
{
	const struct reserve *call = arguments;
	const struct image none = {0};
	struct job_record record;
	const struct entry *entry;

	if (jobs->config.flags & WW_JOBS_READONLY)
		return WW_EDENIED;
	while ((entry = best(jobs, call))) {
		uint64_t id = entry->id;
		uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, entry->is.wall));
		int error = ww_jobs_read(jobs, id, &record);
		/* One that cannot be read must not keep others from being delivered, once that was told. */
		if (error && call->later)
			return 0;
		if (error) {
			(void)ww_jobs_place(jobs, id, &none);
			return error == WW_ENOTFOUND ? WW_ECORRUPT : error;
		}
		int skipped = skip_old(jobs, id, &record, now);
		if (skipped < 0)
			return skipped;
		if (!skipped)
			return lease_it(jobs, id, &record, call->lease);
	}
	return 0;
}

/* The write that it was in may have failed after it was leased. */
static int hand_out(struct jobs_local *jobs, int result, const struct ww_lease *got, struct ww_lease *lease)
{
	if (result == 1)
		*lease = *got;
	else
		job_body_free(jobs->allocator, got->body);
	return result;
}

int ww_jobs_local_reserve(struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *lease)
{
	struct ww_lease got = {.body = NULL};
	struct reserve call = {.tubes = tubes, .count = count, .lease = &got};

	return hand_out(local_of(jobs), ww_jobs_submit(local_of(jobs), reserve, &call), &got, lease);
}

struct reserve_many {
	const char *const *tubes;
	size_t count;
	struct ww_lease *leases;
	size_t most;
	size_t got;
};

static int reserve_many(struct jobs_local *jobs, void *arguments)
{
	struct reserve_many *call = arguments;
	int result = 1;

	while (result == 1 && call->got < call->most) {
		struct reserve one = {.tubes = call->tubes,
		    .count = call->count,
		    .lease = &call->leases[call->got],
		    .later = call->got > 0};
		result = reserve(jobs, &one);
		call->got += result == 1;
	}
	if (result < 0)
		return call->got ? ww_jobs_broken(jobs, result) : result;
	return (int)call->got;
}

int ww_jobs_local_reserve_many(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *leases, size_t most)
{
	struct reserve_many call = {.tubes = tubes, .count = count, .leases = leases, .most = most};
	int result = ww_jobs_submit(local_of(jobs), reserve_many, &call);

	for (size_t i = 0; result < 0 && i < call.got; i++) {
		job_body_free(local_of(jobs)->allocator, leases[i].body);
		leases[i].body = NULL;
	}
	return result;
}

static int reserve_job(struct jobs_local *jobs, void *arguments)
{
	const struct reserve *call = arguments;
	struct job_record record;
	struct job_record old;
	int error = ww_jobs_read(jobs, call->id, &record);
	const struct entry *entry = ww_jobs_find(jobs, call->id);

	if (error)
		return error;
	if (jobs->config.flags & WW_JOBS_READONLY)
		return WW_EDENIED;
	if (entry && entry->is.state == WW_JOB_RESERVED)
		return WW_EINUSE;
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, (record.flags & WW_JOB_WALL) != 0));
	if (record.buried || record.due > now) {
		/* It waits no more: when the lease ends, by a crash too, it is ready. */
		old = record;
		record.buried = 0;
		record.due = now;
		if (old.buried)
			error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, record.tube), 1, -1, 0, 0);
		if (!error)
			error = ww_jobs_write(jobs, call->id, &old, &record);
		if (!error)
			error = ww_jobs_read(jobs, call->id, &record);
		if (error)
			return error;
	}
	return lease_it(jobs, call->id, &record, call->lease);
}

int ww_jobs_local_reserve_job(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease)
{
	struct ww_lease got = {.body = NULL};
	struct reserve call = {.id = id, .lease = &got};
	int result = hand_out(local_of(jobs), ww_jobs_submit(local_of(jobs), reserve_job, &call), &got, lease);

	return result > 0 ? WW_OK : result;
}

/* ---- Waiting for a job */

enum { LOOK_NS = 50000000 };

struct waiting {
	struct jobs_local *jobs;
	int over;
};

static void on_wait_over(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct waiting *waiting = user;

	(void)driver;
	(void)firing;
	pthread_mutex_lock(&waiting->jobs->lock);
	waiting->over = 1;
	pthread_cond_broadcast(&waiting->jobs->ready_cond);
	pthread_mutex_unlock(&waiting->jobs->lock);
}

/* Wait until something may be ready, the time is over, or long enough to see whether the driver was stopped. */
static void wait_a_while(struct jobs_local *jobs, const struct waiting *waiting, uint64_t seen)
{
	const uint64_t until = time_now(CLOCK_MONOTONIC) + LOOK_NS;

	pthread_mutex_lock(&jobs->lock);
	while (!waiting->over && jobs->readies == seen)
		if (time_wait(&jobs->ready_cond, &jobs->lock, until))
			break;
	pthread_mutex_unlock(&jobs->lock);
}

int ww_jobs_local_wait(
    struct ww_jobs *handle, const char *const *tubes, size_t count, uint64_t timeout, struct ww_lease *lease)
{
	struct jobs_local *jobs = local_of(handle);
	struct waiting waiting = {jobs, 0};
	uint64_t left;
	uint64_t seen;
	ww_handle timer = 0;
	int over = 0;
	int result = ww_jobs_local_reserve(handle, tubes, count, lease);

	if (result || !timeout)
		return result;
	if (ww_jobs_is_mine(jobs))
		return WW_EBUSY;
	result = ww_driver_schedule(jobs->elapsed.driver, timeout, on_wait_over, &waiting, &timer);
	while (!result && !over) {
		pthread_mutex_lock(&jobs->lock);
		seen = jobs->readies;
		over = waiting.over;
		pthread_mutex_unlock(&jobs->lock);
		result = ww_jobs_local_reserve(handle, tubes, count, lease);
		if (!result && !over)
			wait_a_while(jobs, &waiting, seen);
		if (!result && !over && ww_driver_time_left(jobs->elapsed.driver, timer, &left) == WW_ECLOSED)
			result = WW_ECLOSED;
	}
	(void)ww_driver_cancel_wait(jobs->elapsed.driver, timer);
	return result;
}
