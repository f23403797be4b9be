/* The two clocks of jobs, and loading the jobs that come due next on each. */
#include "lib/jobs/local/local_internal.h"
#include "lib/jobs/local/timer.h"

/* ---- Clocks */

struct timeline *ww_jobs_timeline(struct jobs_local *jobs, int wall)
{
	return wall ? &jobs->wall : &jobs->elapsed;
}

uint64_t ww_jobs_time(const struct timeline *line)
{
	uint64_t now = 0;

	if (line->driver)
		(void)ww_driver_now(line->driver, &now);
	return now + line->offset;
}

void ww_jobs_time_open(struct jobs_local *jobs, int is_new)
{
	jobs->elapsed = (struct timeline){
	    .jobs = jobs, .driver = jobs->config.driver, .table = STORE_DUE, .wants = 1, .planned = UINT64_MAX};
	jobs->wall = (struct timeline){.jobs = jobs,
	    .driver = jobs->config.wall,
	    .table = STORE_WALL,
	    .wants = jobs->config.wall != NULL,
	    .planned = UINT64_MAX};
	ww_jobs_clock_open(jobs, is_new);
	jobs->elapsed.opened = ww_jobs_time(&jobs->elapsed);
	jobs->wall.opened = ww_jobs_time(&jobs->wall);
}

void ww_jobs_count_late(const struct timeline *line, uint64_t due)
{
	struct jobs_local *jobs = line->jobs;
	uint64_t now = ww_jobs_time(line);
	uint64_t late = now > due ? now - due : 0;
	uint64_t most = WW_MILLISECOND;
	int late_class = 0;

	if (due < line->opened)
		return;
	for (; late_class < WW_LATE_CLASSES - 1 && late > most; late_class++)
		most *= 10;
	jobs->lateness[late_class]++;
	jobs->late_ns += late;
}

/* ---- When to load */

int ww_jobs_is_near(const struct timeline *line, uint64_t due, uint64_t id)
{
	return due < line->edge_due || (due == line->edge_due && id <= line->edge_id);
}

static int want_more(struct jobs_local *jobs, struct jobs_call *firing)
{
	struct timeline *line = firing->context;

	if (!ww_jobs_take_firing(jobs, firing, &line->timer))
		return WW_OK;
	line->planned = UINT64_MAX;
	line->wants = 1;
	return WW_OK;
}

static void on_planned(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct timeline *line = user;

	(void)driver;
	ww_jobs_submit_firing(line->jobs, want_more, line, firing);
}

/* Load more at this time of the timeline or, if there is no timer to be had, at the end of the next call. */
static void plan_at(struct timeline *line, uint64_t at)
{
	struct jobs_local *jobs = line->jobs;

	if (at >= line->planned)
		return;
	ww_jobs_cancel_timer(jobs, line->driver, &line->timer);
	line->planned = at;
	at = at > line->offset ? at - line->offset : 0;
	if (ww_driver_schedule_at(line->driver, at, on_planned, line, &line->timer) != WW_OK) {
		line->planned = UINT64_MAX;
		line->wants = 1;
	}
}

void ww_jobs_plan(struct timeline *line, uint64_t due)
{
	uint64_t ahead = line->jobs->config.window / 2;

	if (line->driver && !line->cut)
		plan_at(line, due > ahead ? due - ahead : 0);
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
	image.due = *due;
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
		ww_jobs_tell(jobs, WW_EVENT_DUE, *id, &record, 0);
	}
	return ww_jobs_set(jobs, *id, &image);
}

/* Load up to LOAD_BATCH jobs. Returns 1 if there are more to load now. */
static int read_batch(struct timeline *line)
{
	struct jobs_local *jobs = line->jobs;
	const struct store_ops *ops = jobs->store.ops;
	uint64_t now = ww_jobs_time(line);
	uint64_t until = now + jobs->config.window;
	unsigned char from[16];
	struct store_bytes key;
	struct store_bytes value;
	uint64_t due = 0;
	uint64_t id;
	int error;

	store_write64(from, line->edge_due);
	store_write64(from + 8, line->edge_id + 1);
	error = ops->seek(jobs->store.self, line->table, (struct store_bytes){from, sizeof from}, &key, &value);
	for (unsigned i = 0; !error; i++) {
		due = key.size == 16 ? store_read64(key.data) : 0;
		if (due > until)
			break;
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
		error = ops->next(jobs->store.self, line->table, &key, &value);
	}
	/* Those behind it have not been seen: try again, but not at once. */
	if (error && error != WW_ENOTFOUND) {
		plan_at(line, time_after(now, WW_SECOND));
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
		plan_at(line, 0);
}
