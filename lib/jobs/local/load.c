/* Jobs that come near, which are loaded, and jobs that come due: when they are loaded, or when their timers fire. */
#include "lib/jobs/local/load.h"

#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/events.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"

/* ---- Due */

int ww_jobs_come_due(struct jobs_local *jobs, struct entry *entry)
{
	struct image image = entry->is;

	ww_jobs_count_late(ww_jobs_timeline(jobs, image.wall), image.due);
	ww_jobs_note_event_of(jobs, WW_EVENT_DUE, entry->id);
	image.state = WW_JOB_READY;
	return ww_jobs_place(jobs, entry->id, &image);
}

/* ---- Loading */

static int read_pair(
    struct timeline *line, struct store_bytes key, struct store_bytes value, uint64_t now, uint64_t *due, uint64_t *id)
{
	struct jobs_local *jobs = line->jobs;
	struct image image = {0};
	struct job_record record;
	int error = ww_jobs_read_pair(line->table, key, value, id, &record);

	if (error)
		return error;
	*due = record.due;
	image.tube = ww_jobs_tube_number(jobs, record.tube);
	image.priority = (uint32_t)record.priority;
	image.code = (uint32_t)record.code;
	image.due = *due;
	image.expires = record.expires;
	image.wall = line == &jobs->wall;
	image.state = *due <= now ? WW_JOB_READY : WW_JOB_DELAYED;
	if (!image.tube)
		return WW_ECORRUPT;
	/* A reserved job has its entry already, and so has one that was put meanwhile. */
	if (ww_jobs_find(jobs, *id))
		return WW_OK;
	error = ww_jobs_group_get(image.tube, record.group, &image.group);
	if (error)
		return error;
	if (image.state == WW_JOB_READY) {
		ww_jobs_count_late(line, *due);
		ww_jobs_note_event(jobs, WW_EVENT_DUE, *id, &record, 0);
	}
	return ww_jobs_set(jobs, *id, &image);
}

/* Read the pair behind the edge, unless it is due later than that: then only *due is known, or how late it is at least. */
static int read_next(struct timeline *line, int is_first, uint64_t until, uint64_t *due, struct store_bytes *key,
    struct store_bytes *value)
{
	const struct store *store = &line->jobs->store;
	const struct store_ops *ops = store->ops;
	unsigned char bytes[16];
	const struct store_bytes from = {bytes, sizeof bytes};
	int error;

	store_write64(bytes, line->edge_due);
	store_write64(bytes + 8, line->edge_id + 1);
	if (ops->quiet) {
		*due = ops->quiet(store->self, line->table, from);
		if (*due > until)
			return *due == UINT64_MAX ? WW_ENOTFOUND : WW_OK;
	}
	error = is_first ? ops->seek(store->self, line->table, from, key, value)
	                 : ops->next(store->self, line->table, key, value);
	if (!error)
		*due = key->size == 16 ? store_read64(key->data) : 0;
	return error;
}

/* Load up to LOAD_BATCH jobs. Returns 1 if there are more to load now. */
static int read_batch(struct timeline *line)
{
	struct jobs_local *jobs = line->jobs;
	uint64_t now = ww_jobs_time(line);
	uint64_t until = now + jobs->config.window;
	struct store_bytes key;
	struct store_bytes value;
	uint64_t due = 0;
	uint64_t id;
	int error = read_next(line, 1, until, &due, &key, &value);

	for (unsigned i = 0; !error && due <= until; i++) {
		line->cut = line->loaded >= jobs->config.window_jobs;
		if (line->cut)
			return 0;
		if (i == LOAD_BATCH)
			return 1;
		error = read_pair(line, key, value, now, &due, &id);
		if (error == WW_ENOMEM)
			return 1;
		/* Skip a pair that cannot be read; ww_jobs_check reports it. */
		if (key.size == 16) {
			line->edge_due = store_read64(key.data);
			line->edge_id = store_read64((const char *)key.data + 8);
		}
		error = read_next(line, 0, until, &due, &key, &value);
	}
	/* Those behind it have not been seen: try again, but not at once. */
	if (error && error != WW_ENOTFOUND) {
		ww_jobs_plan_at(line, time_after(now, WW_SECOND));
		return 0;
	}
	line->cut = 0;
	if (line->edge_due < until) {
		line->edge_due = until;
		line->edge_id = UINT64_MAX;
	}
	if (!error)
		ww_jobs_plan(line, due);
	return 0;
}

static void unload_last(struct timeline *line)
{
	struct jobs_local *jobs = line->jobs;
	const struct image none = {0};
	struct store_bytes key;
	struct store_bytes value;
	unsigned char to[16];

	while (line->loaded > jobs->config.window_jobs) {
		store_write64(to, line->edge_due);
		store_write64(to + 8, line->edge_id + (line->edge_id != UINT64_MAX));
		if (jobs->store.ops->before(
		        jobs->store.self, line->table, (struct store_bytes){to, sizeof to}, &key, &value) ||
		    key.size != 16)
			return;
		line->edge_due = store_read64(key.data);
		line->edge_id = store_read64((const char *)key.data + 8);
		/* Forget the job at the edge, and set the edge just before it. */
		const struct entry *entry = ww_jobs_find(jobs, line->edge_id);
		if (entry && entry->is.state == WW_JOB_DELAYED)
			(void)ww_jobs_set(jobs, entry->id, &none);
		line->edge_id--;
		line->cut = 1;
	}
}

void ww_jobs_load(struct timeline *line)
{
	struct jobs_local *jobs = line->jobs;
	size_t most = jobs->config.window_jobs;

	if (!line->driver || jobs->closed || jobs->config.flags & WW_JOBS_READONLY)
		return;
	if (line->loaded > 2 * most)
		unload_last(line);
	if (line->cut && line->loaded < most / 2 + 1)
		line->wants = 1;
	if (!line->wants)
		return;
	line->wants = 0;
	/* A timer for now lets waiting calls go first. */
	if (read_batch(line))
		ww_jobs_plan_at(line, 0);
}
