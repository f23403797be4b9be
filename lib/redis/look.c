/* Looking at jobs: peek, list, forecast. */
#include <string.h>

#include "lib/jobs/body.h"
#include "lib/jobs/filter.h"
#include "lib/redis/redis_internal.h"

/* Jobs that one call lists; jobs that a page with `next` passes over at most. */
enum { LIST_BATCH = 64, LOOKS = 2000, LIST_BYTES = 4 << 20 };

/* The words of part_show.lua. */
/* clang-format off */
enum {
	SHOW_ID, SHOW_NOW, SHOW_STATE, SHOW_VERSION, SHOW_FLAGS, SHOW_PRIORITY, SHOW_DUE, SHOW_BASE, SHOW_CREATED,
	SHOW_DELAY, SHOW_RUN, SHOW_PERIOD, SHOW_MISSED, SHOW_SKIP, SHOW_BACKOFF, SHOW_BACKOFF_MAX, SHOW_ATTEMPTS,
	SHOW_TRIES, SHOW_RESERVES, SHOW_TIMEOUTS, SHOW_RELEASES, SHOW_BURIES, SHOW_KICKS, SHOW_TOKEN, SHOW_ENDS,
	SHOW_FIRST, SHOW_HOLD, SHOW_KEEP, SHOW_TUBE, SHOW_KEY, SHOW_GROUP, SHOW_REASON, SHOW_BODY_LENGTH, SHOW_BODY,
	SHOW_HEADERS, SHOW_WORDS
};
/* clang-format on */

static int copy_text(const redisReply *reply, void *to, size_t most, size_t *length)
{
	if (reply->type != REDIS_REPLY_STRING || reply->len > most)
		return WW_ECORRUPT;
	memcpy(to, reply->str, reply->len);
	if (length)
		*length = reply->len;
	return WW_OK;
}

static uint64_t number_of(redisReply *const *of, int word)
{
	return (uint64_t)ww_redis_call_value(of[word]);
}

/* Leaves info->body to the caller. The headers stay in the reply. */
static int read_info(struct redis_store *store, const redisReply *reply, struct ww_job_info *info)
{
	int error = ww_redis_call_array(store, reply, SHOW_WORDS);

	if (error)
		return error;
	redisReply *const *of = reply->element;
	uint64_t state = number_of(of, SHOW_STATE);
	uint64_t now = number_of(of, SHOW_NOW);
	uint64_t end = number_of(of, state == WW_JOB_RESERVED || state == WW_JOB_ENDED ? SHOW_ENDS : SHOW_DUE);
	uint64_t first = number_of(of, SHOW_FIRST);
	*info = (struct ww_job_info){.id = number_of(of, SHOW_ID),
	    .version = number_of(of, SHOW_VERSION),
	    .state = (enum ww_job_state)state,
	    .flags = (uint32_t)number_of(of, SHOW_FLAGS),
	    .priority = (uint32_t)number_of(of, SHOW_PRIORITY),
	    .attempts = (uint32_t)number_of(of, SHOW_ATTEMPTS),
	    .body_length = number_of(of, SHOW_BODY_LENGTH),
	    .headers = of[SHOW_HEADERS]->str,
	    .headers_length = of[SHOW_HEADERS]->len,
	    .created = number_of(of, SHOW_CREATED) * 1000,
	    .due = number_of(of, SHOW_DUE) * 1000,
	    .left = state != WW_JOB_BURIED && end > now ? (end - now) * 1000 : 0,
	    .delay = number_of(of, SHOW_DELAY) * 1000,
	    .run = number_of(of, SHOW_RUN) * 1000,
	    .period = number_of(of, SHOW_PERIOD) * 1000,
	    .skip = number_of(of, SHOW_SKIP) * 1000,
	    .backoff = number_of(of, SHOW_BACKOFF) * 1000,
	    .backoff_max = number_of(of, SHOW_BACKOFF_MAX) * 1000,
	    .hold = number_of(of, SHOW_HOLD) * 1000,
	    .keep = number_of(of, SHOW_KEEP) * 1000,
	    .debounce = first && now > first ? (now - first) * 1000 : 0,
	    .missed = (enum ww_missed)number_of(of, SHOW_MISSED),
	    .token = state == WW_JOB_RESERVED ? number_of(of, SHOW_TOKEN) : 0,
	    .reserves = (uint32_t)number_of(of, SHOW_RESERVES),
	    .timeouts = (uint32_t)number_of(of, SHOW_TIMEOUTS),
	    .releases = (uint32_t)number_of(of, SHOW_RELEASES),
	    .buries = (uint32_t)number_of(of, SHOW_BURIES),
	    .kicks = (uint32_t)number_of(of, SHOW_KICKS),
	    .tries = (uint32_t)number_of(of, SHOW_TRIES)};
	error = copy_text(of[SHOW_TUBE], info->tube, WW_TUBE_MAX, NULL);
	if (!error)
		error = copy_text(of[SHOW_KEY], info->key, WW_JOB_KEY_MAX, &info->key_length);
	if (!error)
		error = copy_text(of[SHOW_GROUP], info->group, WW_JOB_GROUP_MAX, &info->group_length);
	return error ? error : copy_text(of[SHOW_REASON], info->error, WW_JOB_ERROR_MAX, NULL);
}

/* ---- One job */

int ww_redis_look_peek(struct ww_jobs *jobs, const struct ww_job_ref *job, struct ww_job_info *info, void **body)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	uint32_t shard = ww_redis_put_refer(store, words, job);
	struct ww_job_info got;
	redisReply *reply;
	void *copy = NULL;

	ww_redis_words_text(words, body ? "1" : "0");
	int error = ww_redis_call(store, &ww_redis_script_shard_peek, shard, words, REDIS_CALL_AGAIN, &reply);
	if (error)
		return error;
	error = read_info(store, reply, &got);
	if (!error && body && got.body_length + got.headers_length) {
		const redisReply *bytes = reply->element[SHOW_BODY];
		copy = bytes->type == REDIS_REPLY_STRING && bytes->len == got.body_length
		           ? job_body_copy(store->allocator, bytes->str, bytes->len, &got.headers, got.headers_length)
		           : NULL;
		error = copy ? WW_OK : WW_ENOMEM;
	}
	if (!copy)
		got.headers = NULL;
	ww_redis_call_free(reply);
	if (error)
		return error;
	got.body = copy;
	*info = got;
	if (body)
		*body = copy;
	return WW_OK;
}

/* The first job of all shards, by priority or order of burying, then by id. */
static int first(struct redis_store *store, const char *tube, const char *state, uint64_t *id)
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	int64_t least = INT64_MAX;
	struct fan fan;

	*id = 0;
	ww_redis_words_text(words, state);
	ww_redis_words_text(words, tube);
	int error = ww_redis_call_all(store, &ww_redis_script_shard_first, words, 2, &fan);
	if (error)
		return error;
	for (size_t i = 0; i < fan.count; i++) {
		int64_t order = ww_redis_call_value(fan.calls[i].reply->element[0]);
		uint64_t one = (uint64_t)ww_redis_call_value(fan.calls[i].reply->element[1]);
		if (order >= 0 && (order < least || (order == least && one < *id)))
			least = order, *id = one;
	}
	ww_redis_call_fan_free(store, &fan);
	return *id ? WW_OK : WW_ENOTFOUND;
}

int ww_redis_look_next(
    struct ww_jobs *jobs, const char *tube, enum ww_job_state state, struct ww_job_info *info, void **body)
{
	struct redis_store *store = store_of(jobs);
	struct ww_job_ref ref = {.id = 0};
	int error = WW_ENOTFOUND;

	if (state == WW_JOB_READY)
		error = first(store, tube, "next", &ref.id);
	else if (state == WW_JOB_BURIED)
		error = first(store, tube, "buried", &ref.id);
	else if (state == WW_JOB_DELAYED)
		error = ww_redis_kick_soonest(store, tube, &ref.id);
	return error ? error : ww_redis_look_peek(jobs, &ref, info, body);
}

int ww_redis_look_state(struct ww_jobs *jobs, uint64_t id, enum ww_job_state *state)
{
	struct ww_job_ref ref = {.id = id};
	struct ww_job_info info;
	int error = ww_redis_look_peek(jobs, &ref, &info, NULL);

	if (!error)
		*state = info.state;
	return error;
}

/*
 * ---- Many
 *
 * A list's `next` holds a shard, a cursor of HSCAN, and a place among the jobs that the cursor leads to, since these
 * may be more than the caller wants:
 *
 *     ((place << MARK_BITS | mark) << CURSOR_BITS | cursor) * shards + shard
 *
 * A cursor has no more bits than the number of jobs in a shard. A place is a job's number modulo the places that there
 * is room for; two jobs with the same place and cursor are too far apart to meet.
 *
 * How a page continues:
 *   1. Ask for the cursor again. Redis returns its jobs and the cursor that comes next.
 *   2. If Redis has shrunk its table, the cursor leads to other jobs, and the place means nothing. The mark, a hash of
 *      the cursor that comes next, tells that: then show all jobs of the cursor, some of them for the second time.
 *   3. Otherwise show those from the place on.
 * A page ends between two cursors where it can.
 */
enum { CURSOR_BITS = 30, MARK_BITS = 8 };

struct page {
	struct redis_store *store;
	const struct ww_job_filter *filter;
	ww_job_fn *fn;
	void *context;
	uint32_t shard;
	uint64_t cursor;
	int bodies; /* are wanted */
	uint64_t places;
	uint64_t place;
	unsigned mark;
	size_t batch; /* jobs that were asked for at the cursor */
	size_t limit;
	int goes_on; /* the caller takes `next` */
	size_t looks;
	size_t found;
	size_t bytes; /* of bodies that were looked at */
	int result;
	int damaged; /* WW_ECORRUPT: a record could not be read and was passed over */
};

static void pass_by(struct page *page, uint64_t id)
{
	page->looks++;
	page->place = id / page->store->shards % page->places + 1;
}

static int show_one(struct page *page, const redisReply *reply)
{
	struct ww_job_info info;

	/* The bare id of a job that cannot be read. */
	if (reply->type == REDIS_REPLY_STRING) {
		page->damaged = WW_ECORRUPT;
		pass_by(page, (uint64_t)ww_redis_call_value(reply));
		return WW_OK;
	}
	int error = read_info(page->store, reply, &info);
	if (error)
		return error;
	pass_by(page, info.id);
	page->bytes += info.body_length + info.headers_length;
	if (!job_filter_takes(page->filter, &info))
		return WW_OK;
	page->found++;
	if (reply->element[SHOW_BODY]->type == REDIS_REPLY_STRING)
		info.body = reply->element[SHOW_BODY]->str;
	page->result = page->fn(&info, page->context);
	return WW_OK;
}

static int is_enough(const struct page *page)
{
	return page->result || page->found >= page->limit;
}

/* So many jobs or bytes were read that others would have to wait, and the page can end between two cursors. */
static int is_long(const struct page *page)
{
	return page->goes_on && (page->looks - page->found >= LOOKS || (page->bytes >= LIST_BYTES && page->place == 0));
}

/* How many jobs of a reply the filter takes. */
static size_t count_wanted(const struct page *page, const redisReply *reply)
{
	struct ww_job_info info;
	size_t count = 0;

	for (size_t i = 2; i < reply->elements; i++)
		count += reply->element[i]->type == REDIS_REPLY_ARRAY &&
		         !read_info(page->store, reply->element[i], &info) && job_filter_takes(page->filter, &info);
	return count;
}

/* Show the jobs of a reply that the filter takes, and find where to go on. */
static int show_some(struct page *page, const redisReply *reply)
{
	int error = WW_OK;
	size_t i = 2;

	if (page->goes_on && page->found && count_wanted(page, reply) > page->limit - page->found) {
		page->limit = page->found;
		return WW_OK;
	}
	while (!error && i < reply->elements && !is_enough(page))
		error = show_one(page, reply->element[i++]);
	if (error || i < reply->elements || ww_redis_call_value(reply->element[1]))
		return error;
	page->place = page->mark = 0;
	page->cursor = (uint64_t)ww_redis_call_value(reply->element[0]);
	page->shard += page->cursor == 0;
	return WW_OK;
}

static unsigned mark_of(const redisReply *reply)
{
	uint64_t next = (uint64_t)ww_redis_call_value(reply->element[0]);

	return (unsigned)((next + 1) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MARK_BITS));
}

/* Ask for the cursor's jobs from the place on, or from the beginning if the mark differs. */
static int ask_page(struct page *page, redisReply **reply)
{
	struct redis_store *store = page->store;

	for (;;) {
		struct few_words few;
		struct words *words = ww_redis_words_few(store, &few);
		ww_redis_words_number(words, page->cursor);
		ww_redis_words_number(words, page->batch);
		ww_redis_words_text(words, page->bodies ? "1" : "0");
		ww_redis_words_number(words, page->places);
		ww_redis_words_number(words, page->place);
		int error = ww_redis_call_list(
		    store, &ww_redis_script_shard_list, page->shard, words, REDIS_CALL_AGAIN, 2, reply);
		if (error)
			return error;
		if (!page->place || page->mark == mark_of(*reply)) {
			page->mark = mark_of(*reply);
			return WW_OK;
		}
		ww_redis_call_free(*reply);
		page->place = 0;
	}
}

/* Show the next few jobs of the shard; after its last job, step to the next shard. */
static int page_on(struct page *page)
{
	size_t left = page->goes_on ? (page->limit - page->found + 1) / 2 : LIST_BATCH;
	redisReply *reply;

	if (!page->place || !page->batch)
		page->batch = left < LIST_BATCH ? left : LIST_BATCH;
	int error = ask_page(page, &reply);
	if (error)
		return error;
	error = show_some(page, reply);
	ww_redis_call_free(reply);
	return error;
}

static struct page page_from(struct redis_store *store, uint64_t after)
{
	uint64_t at = after / store->shards;

	return (struct page){.store = store,
	    .shard = (uint32_t)(after % store->shards),
	    .cursor = at & ((UINT64_C(1) << CURSOR_BITS) - 1),
	    .mark = (unsigned)(at >> CURSOR_BITS & ((1u << MARK_BITS) - 1)),
	    .place = at >> (CURSOR_BITS + MARK_BITS),
	    .places = (UINT64_C(1) << (64 - CURSOR_BITS - MARK_BITS)) / store->shards - 1};
}

/* Never 0, the beginning: something was shown. */
static uint64_t where(const struct page *page)
{
	uint64_t at = page->place << MARK_BITS | (page->place ? page->mark : 0);

	return (at << CURSOR_BITS | page->cursor) * page->store->shards + page->shard;
}

static int list(struct redis_store *store, const struct ww_job_filter *filter, size_t limit, int bodies, ww_job_fn *fn,
    void *context, uint64_t *next)
{
	struct page page = page_from(store, filter->after);
	int error = WW_OK;

	page.filter = filter;
	page.fn = fn;
	page.context = context;
	page.bodies = bodies;
	page.limit = limit;
	page.goes_on = next != NULL;
	while (!error && page.shard < store->shards && !is_enough(&page) && !is_long(&page))
		error = page_on(&page);
	if (error)
		return error;
	if (next)
		*next = page.shard < store->shards ? where(&page) : 0;
	return page.result ? page.result : page.damaged;
}

int ww_redis_look_list(struct ww_jobs *jobs, const struct ww_job_filter *filter, size_t limit, ww_job_fn *fn,
    void *context, uint64_t *next)
{
	return list(store_of(jobs), filter, limit, 1, fn, context, next);
}

/* ---- Forecast */

enum { FORECAST_AT_ONCE = 64 };

struct redis_forecast {
	uint64_t now;
	uint64_t span;
	uint64_t *counts;
	size_t count;
};

static int tally_one(const struct ww_job_info *info, void *context)
{
	struct redis_forecast *forecast = context;
	uint64_t i = 0;

	if (info->state == WW_JOB_DELAYED)
		i = info->due > forecast->now ? (info->due - forecast->now) / forecast->span : 0;
	if (i < forecast->count && info->state != WW_JOB_BURIED)
		forecast->counts[i]++;
	return 0;
}

/* Ask those shards at once, or all with NULL. */
static int forecast_some(struct redis_store *store, struct words *words, const uint32_t *shards, size_t shard_count,
    uint64_t *counts, size_t count)
{
	struct fan fan;
	/* Reading all jobs takes time: long silence is no sign. */
	int error = ww_redis_call_each(
	    store, &ww_redis_script_shard_forecast, words, shards, shard_count, REDIS_CALL_AGAIN, &fan);

	for (size_t i = 0; i < fan.count && !error; i++)
		error = ww_redis_call_array(store, fan.calls[i].reply, count);
	for (size_t i = 0; i < fan.count && !error; i++)
		for (size_t k = 0; k < count; k++)
			counts[k] += (uint64_t)ww_redis_call_value(fan.calls[i].reply->element[k]);
	ww_redis_call_fan_free(store, &fan);
	return error;
}

/* Many spans are asked of one shard after the other: a node would do nothing else before it has answered for all. */
static int forecast_all(struct redis_store *store, uint64_t span, uint64_t *counts, size_t count)
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	int error = WW_OK;

	ww_redis_words_number(words, us_up(span));
	ww_redis_words_number(words, count);
	if (count <= FORECAST_AT_ONCE)
		return forecast_some(store, words, NULL, store->shards, counts, count);
	for (uint32_t shard = 0; shard < store->shards && !error; shard++)
		error = forecast_some(store, words, &shard, 1, counts, count);
	return error;
}

int ww_redis_look_forecast(struct ww_jobs *jobs, const char *tube, uint64_t span, uint64_t *counts, size_t count)
{
	struct redis_store *store = store_of(jobs);
	struct redis_forecast forecast = {ww_redis_clock_now(store), span, counts, count};
	struct ww_job_filter filter = {.tube = tube};

	memset(counts, 0, count * sizeof *counts);
	if (!count)
		return WW_OK;
	if (!tube)
		return forecast_all(store, span, counts, count);
	return list(store, &filter, SIZE_MAX, 0, tally_one, &forecast, NULL);
}
