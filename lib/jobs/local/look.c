/* Looks at jobs and tubes: peek, list, forecast, statistics. */
#include "lib/jobs/local/look.h"

#include <string.h>

#include "lib/jobs/body.h"
#include "lib/jobs/filter.h"
#include "lib/jobs/local/counts.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/limit.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/search.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/store/slot.h"

/* Bounds of one page of a list: the records that do not match, and the bytes. Other calls wait meanwhile. */
enum { PAGE_MISSES = 2000, PAGE_BYTES = 4 << 20 };

/* ---- One job */

static void fill_info(struct jobs_local *jobs, uint64_t id, const struct job_record *record, struct ww_job_info *info)
{
	const struct entry *entry = ww_jobs_find(jobs, id);
	struct image image = entry ? entry->is : ww_jobs_image(jobs, record);
	uint64_t ends = image.state == WW_JOB_RESERVED ? image.ends : record->ended ? record->ended : record->due;
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, image.state != WW_JOB_RESERVED && image.wall));

	uint64_t now_of = ww_jobs_time(ww_jobs_timeline(jobs, image.wall));

	*info = (struct ww_job_info){.id = id,
	    .version = record->version,
	    .state = image.state,
	    .flags = (uint32_t)record->flags,
	    .key_length = record->key.size,
	    .body_length = record->body.size,
	    .headers_length = record->headers.size,
	    .then_length = record->then.size,
	    .created = record->created,
	    .due = record->due,
	    .left = image.state != WW_JOB_BURIED && ends > now ? ends - now : 0,
	    .delay = record->delay,
	    .hold = record->hold,
	    .expires = record->expires,
	    .debounce = record->first ? now_of - record->first : 0,
	    .token = image.state == WW_JOB_RESERVED ? image.token : 0,
	    .reserves = (uint32_t)record->reserves + image.reserves,
	    .timeouts = (uint32_t)record->timeouts + image.timeouts,
	    .releases = (uint32_t)record->releases,
	    .buries = (uint32_t)record->buries,
	    .kicks = (uint32_t)record->kicks,
	    .tries = (uint32_t)record->tries + image.tries};
	ww_job_record_show(record, info);
	if (image.tube)
		memcpy(info->tube, image.tube->name, sizeof info->tube);
	if (record->key.size <= WW_JOB_KEY_MAX)
		memcpy(info->key, record->key.data, record->key.size);
	if (record->group.size <= WW_JOB_GROUP_MAX) {
		memcpy(info->group, record->group.data, record->group.size);
		info->group_length = record->group.size;
	}
	if (record->error.size <= WW_JOB_ERROR_MAX)
		memcpy(info->error, record->error.data, record->error.size);
}

/* A look at one job. */
struct look_call {
	const struct ww_job_ref *job; /* or NULL: the next one of a tube in a state */
	const char *tube;
	enum ww_job_state state;
	struct ww_job_info *info;
	int wants_body;
	void *copy;          /* of the body */
	const char *headers; /* there */
};

/* Fill in the info and a copy of the body, which the caller gets only if the batch succeeds. */
static int show(struct jobs_local *jobs, struct look_call *call, uint64_t id, const struct job_record *record)
{
	/* The follow-up lies behind the headers, here and there. */
	const size_t behind = record->headers.size + record->then.size;

	if (call->wants_body && record->body.size + behind) {
		call->headers = record->headers.data;
		call->copy =
		    job_body_copy(jobs->allocator, record->body.data, record->body.size, &call->headers, behind);
		if (!call->copy)
			return WW_ENOMEM;
	}
	fill_info(jobs, id, record, call->info);
	call->info->body = call->copy;
	call->info->headers = record->headers.size ? call->headers : NULL;
	call->info->then = record->then.size && call->headers ? call->headers + record->headers.size : NULL;
	if (!call->wants_body)
		call->info->headers_length = call->info->then_length = 0;
	return WW_OK;
}

static int peek(struct jobs_local *jobs, void *arguments)
{
	struct look_call *call = arguments;
	struct job_record record;
	uint64_t id;
	int error = ww_jobs_refer(jobs, call->job, &id, &record);

	return error ? error : show(jobs, call, id, &record);
}

static int peek_next(struct jobs_local *jobs, void *arguments)
{
	struct look_call *call = arguments;
	struct tube *tube = ww_jobs_tube_find(jobs, call->tube);
	struct job_record record;
	uint64_t id = 0;
	int error = WW_ENOTFOUND;

	if (!tube)
		return WW_ENOTFOUND;
	if (call->state == WW_JOB_READY && tube->ready)
		id = ww_jobs_ready_first(tube)->id, error = WW_OK;
	else if (call->state == WW_JOB_DELAYED)
		error = ww_jobs_search_delayed(jobs, tube, &id);
	else if (call->state == WW_JOB_BURIED)
		error = ww_jobs_search_buried(jobs, tube, &id);
	if (!error)
		error = ww_jobs_read(jobs, id, &record);
	return error ? error : show(jobs, call, id, &record);
}

/* The caller gets the body, unless it wants none. */
static int look(struct ww_jobs *handle, call_fn *fn, struct look_call *call, void **body)
{
	struct jobs_local *jobs = local_of(handle);

	call->wants_body = body != NULL;
	int error = ww_jobs_submit(jobs, fn, call);
	if (error)
		job_body_free(jobs->allocator, call->copy);
	else if (body)
		*body = call->copy;
	return error;
}

int ww_jobs_local_peek(struct ww_jobs *handle, const struct ww_job_ref *job, struct ww_job_info *info, void **body)
{
	struct look_call call = {.job = job, .info = info};

	return look(handle, peek, &call, body);
}

int ww_jobs_local_peek_next(
    struct ww_jobs *handle, const char *tube, enum ww_job_state state, struct ww_job_info *info, void **body)
{
	struct look_call call = {.tube = tube, .state = state, .info = info};

	return look(handle, peek_next, &call, body);
}

struct state_call {
	uint64_t id;
	enum ww_job_state *state;
};

static int find_state(struct jobs_local *jobs, void *arguments)
{
	const struct state_call *call = arguments;
	const struct entry *entry = ww_jobs_find(jobs, call->id);
	struct job_record record;
	int error = entry ? WW_OK : ww_jobs_read(jobs, call->id, &record);

	if (!error)
		*call->state = entry ? entry->is.state : ww_jobs_image(jobs, &record).state;
	return error;
}

int ww_jobs_local_state(struct ww_jobs *handle, uint64_t id, enum ww_job_state *state)
{
	struct state_call call = {id, state};

	return ww_jobs_submit(local_of(handle), find_state, &call);
}

/* ---- Many */

struct list_call {
	const struct ww_job_filter *filter;
	size_t limit;
	ww_job_fn *fn;
	void *context;
	uint64_t *next; /* or NULL. It gets where the list ended, even if the callback ended it */
};

/* A list that continues in a later call ends a page early, so that others need not wait long. */
static int is_page_full(const struct list_call *call, size_t looks, size_t found, size_t bytes)
{
	return found >= call->limit || (call->next && (looks - found >= PAGE_MISSES || bytes >= PAGE_BYTES));
}

/* Read the pair of JOBS behind this id. Let go of what was read before, now and then. */
static int next_id(
    struct jobs_local *jobs, size_t looks, uint64_t id, struct store_bytes *key, struct store_bytes *value)
{
	const struct store_ops *ops = jobs->store.ops;
	unsigned char from[8];

	if (looks % LOOKS_AT_ONCE)
		return ops->next(jobs->store.self, STORE_JOBS, key, value);
	if (!jobs->writing)
		ops->rest(jobs->store.self);
	store_write64(from, id + 1);
	return ops->seek(jobs->store.self, STORE_JOBS, (struct store_bytes){from, sizeof from}, key, value);
}

static int list(struct jobs_local *jobs, void *arguments)
{
	const struct list_call *call = arguments;
	struct ww_job_info info;
	struct job_record record;
	struct store_bytes key;
	struct store_bytes value;
	uint64_t id = call->filter->after;
	size_t looks = 0;
	size_t bytes = 0;
	size_t found = 0;
	int result = 0;

	int error = WW_OK;
	for (; !result && !is_page_full(call, looks, found, bytes); looks++) {
		error = next_id(jobs, looks, id, &key, &value);
		if (error)
			break;
		id = key.size == 8 ? store_read64(key.data) : 0;
		error = ww_jobs_read_any(jobs, id, &record);
		if (error)
			return error;
		bytes +=
		    record.key.size + record.error.size + record.body.size + record.headers.size + record.then.size;
		fill_info(jobs, id, &record, &info);
		info.body = record.body.data;
		info.headers = record.headers.size ? record.headers.data : NULL;
		info.then = record.then.size ? record.then.data : NULL;
		if (job_filter_takes(call->filter, &info)) {
			found++;
			result = call->fn(&info, call->context);
		}
	}
	if (call->next)
		*call->next = error == WW_ENOTFOUND ? 0 : id;
	return error && error != WW_ENOTFOUND ? error : result;
}

int ww_jobs_local_list(struct ww_jobs *handle, const struct ww_job_filter *filter, size_t limit, ww_job_fn *fn,
    void *context, uint64_t *next)
{
	struct list_call call = {filter, limit, fn, context, next};

	return ww_jobs_submit(local_of(handle), list, &call);
}

/* ---- Statistics */

static void fill_tube(const struct jobs_local *jobs, const struct tube *tube, struct ww_tube_stats *stats)
{
	uint64_t now = ww_jobs_time(&jobs->elapsed);
	uint64_t present = tube->ready + tube->reserved;

	*stats = (struct ww_tube_stats){.delayed = tube->waiting > present ? tube->waiting - present : 0,
	    .ready = tube->ready,
	    .urgent = tube->urgent,
	    .coded = tube->limits && tube->limits->coded ? tube->limits->coded->all : 0,
	    .reserved = tube->reserved,
	    .buried = tube->buried,
	    .puts = tube->puts,
	    .finished = tube->finished,
	    .pauses = tube->pauses,
	    .held = tube->limits ? ww_jobs_limit_held(tube) : 0,
	    .is_limited = tube->limits && tube->limits->rules};
	memcpy(stats->name, tube->name, sizeof stats->name);
	if (tube->pause_ends > now) {
		stats->pause = tube->pause;
		stats->pause_left = tube->pause_ends - now;
	}
}

struct tube_call {
	const char *tube;
	struct ww_tube_stats *stats;
};

static int show_tube(struct jobs_local *jobs, void *arguments)
{
	const struct tube_call *call = arguments;
	const struct tube *tube = ww_jobs_tube_find(jobs, call->tube);

	if (!tube)
		return WW_ENOTFOUND;
	fill_tube(jobs, tube, call->stats);
	return WW_OK;
}

int ww_jobs_local_tube(struct ww_jobs *handle, const char *tube, struct ww_tube_stats *stats)
{
	struct tube_call call = {tube, stats};

	return ww_jobs_submit(local_of(handle), show_tube, &call);
}

struct above_call {
	const char *tube;
	uint64_t code;
	uint64_t count;
	uint64_t lowest;
};

static int count_above(struct jobs_local *jobs, void *arguments)
{
	struct above_call *call = arguments;
	const struct tube *tube = ww_jobs_tube_find(jobs, call->tube);

	if (!tube)
		return WW_ENOTFOUND;
	if (tube->limits)
		call->count = ww_jobs_codes_above(tube->limits->coded, call->code, &call->lowest);
	return WW_OK;
}

int ww_jobs_local_above(struct ww_jobs *handle, const char *tube, uint32_t code, uint64_t *count, uint32_t *lowest)
{
	struct above_call call = {.tube = tube, .code = code};
	int error = ww_jobs_submit(local_of(handle), count_above, &call);

	if (error)
		return error;
	*count = call.count;
	if (call.count)
		*lowest = (uint32_t)call.lowest;
	return WW_OK;
}

struct tubes_call {
	ww_tube_fn *fn;
	void *context;
};

static int show_tubes(struct jobs_local *jobs, void *arguments)
{
	const struct tubes_call *call = arguments;
	struct ww_tube_stats stats;
	struct tube *tube;
	struct tube *next;
	int result = 0;

	HASH_ITER(hh, jobs->tubes, tube, next) {
		if (tube->waiting + tube->buried == 0)
			continue;
		fill_tube(jobs, tube, &stats);
		result = call->fn(&stats, call->context);
		if (result)
			break;
	}
	return result;
}

int ww_jobs_local_tubes(struct ww_jobs *handle, ww_tube_fn *fn, void *context)
{
	struct tubes_call call = {fn, context};

	return ww_jobs_submit(local_of(handle), show_tubes, &call);
}

/* The time since the first ready or reserved job came due. */
static uint64_t oldest(struct jobs_local *jobs)
{
	uint64_t age = 0;

	for (int wall = 0; wall < 2; wall++) {
		struct timeline *line = ww_jobs_timeline(jobs, wall);
		uint64_t now = ww_jobs_time(line);
		unsigned char from[8];
		struct store_bytes key;
		struct store_bytes value;
		struct slot_count count;
		store_write64(from, line->first);
		/* Do not search an hour to come for its first job. */
		if (!line->driver || ww_jobs_counts_seek(jobs, ALL_TUBES, wall, 0, &count) ||
		    slot_start(count.slot) > now ||
		    jobs->store.ops->seek(
		        jobs->store.self, line->table, (struct store_bytes){from, sizeof from}, &key, &value) ||
		    key.size != 16)
			continue;
		line->first = store_read64(key.data);
		if (line->first < now && now - line->first > age)
			age = now - line->first;
	}
	return age;
}

static int show_all(struct jobs_local *jobs, void *arguments)
{
	struct ww_jobs_stats *stats = arguments;
	const struct totals *all = &jobs->all;
	uint64_t present = all->ready + all->reserved;

	*stats = (struct ww_jobs_stats){.timeouts = jobs->timeouts,
	    .expired = jobs->expired,
	    .kept = jobs->all.kept,
	    .runs = jobs->meta.last_run + 1 - jobs->meta.first_run,
	    .accepted = jobs->meta.accepted,
	    .last_id = jobs->meta.next_id - 1,
	    .ended = jobs->meta.ended,
	    .loaded = table_count(&jobs->ids),
	    .oldest = oldest(jobs),
	    .late_ns = jobs->late_ns,
	    .commits = jobs->commits,
	    .syncs = jobs->syncs,
	    .sync_ns = jobs->sync_ns,
	    .downtime = jobs->downtime,
	    .bytes = sizeof *jobs + jobs->bytes + ww_slab_bytes(&jobs->entries) + ww_table_bytes(&jobs->ids) +
	             ww_table_bytes(&jobs->counts.index),
	    .disk = jobs->store.ops->disk(jobs->store.self)};
	if (jobs->config.flags & WW_JOBS_MEMORY)
		stats->bytes += ww_store_memory_bytes(&jobs->store);
	stats->fault = jobs->store.ops->fault(jobs->store.self, stats->fault_text);
	memcpy(stats->late, jobs->lateness, sizeof stats->late);
	stats->tubes = all->tubes;
	stats->all = (struct ww_tube_stats){.delayed = all->waiting > present ? all->waiting - present : 0,
	    .ready = all->ready,
	    .urgent = all->urgent,
	    .reserved = all->reserved,
	    .buried = all->buried,
	    .puts = all->puts,
	    .finished = all->finished,
	    .pauses = all->pauses};
	return WW_OK;
}

int ww_jobs_local_stats(struct ww_jobs *handle, struct ww_jobs_stats *stats)
{
	return ww_jobs_submit(local_of(handle), show_all, stats);
}
