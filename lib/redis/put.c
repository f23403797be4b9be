/* Put, move, cancel. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/redis/redis_internal.h"

/* For each job, the words that shard_put.lua takes without a group and headers, those that it takes of a past, and the values that it replies; jobs of one call. */
enum { PUT_WORDS = 15, PUT_PAST = 13, PUT_REPLIES = 3, PUT_BATCH = 32 };

/* Every process must find a key in the same shard: this hash may never change. */
static uint32_t shard_of_key(const struct redis_store *store, const char *tube, const void *key, size_t length)
{
	uint64_t hash = XXH64(tube, strlen(tube), 0);

	return (uint32_t)(XXH64(key, length, hash) % store->shards);
}

static uint32_t shard_of_spec(struct redis_store *store, const struct ww_job_spec *spec)
{
	if (spec->key_length)
		return shard_of_key(store, spec->tube, spec->key, spec->key_length);
	return atomic_fetch_add(&store->turn, 1) % store->shards;
}

static int check(const struct redis_store *store, const struct ww_job_spec *spec)
{
	if (spec->expire || spec->code || spec->then_length)
		return WW_EINVAL;
	if (spec->body_length > store->config.body_max)
		return WW_ETOOBIG;
	if (spec->flags & WW_JOB_AT && spec->due > WW_DRIVER_TIME_MAX) {
		uint64_t now = ww_redis_clock_now(store);
		return spec->due > now && spec->due - now > WW_DRIVER_TIME_MAX ? WW_EOVERFLOW : WW_OK;
	}
	return WW_OK;
}

/* How the due time is meant and, unless the mode of the key is the usual one, that mode and its span. */
static void add_kind(struct words *words, const struct ww_job_spec *spec)
{
	const char kind = !(spec->flags & WW_JOB_AT) ? 'd' : spec->flags & WW_JOB_FUTURE ? 'f' : 't';
	/* With a group, a capital. */
	const char letter = (char)(spec->group_length ? kind - 'a' + 'A' : kind);
	const char text[] = {letter, (char)('0' + spec->key_mode), 0};

	if (spec->key_mode != WW_KEY_REPLACE)
		ww_redis_words_joined(words, text, us_up(spec->key_span));
	else if (spec->group_length)
		ww_redis_words_text(words, kind == 'd' ? "D" : kind == 'f' ? "F" : "T");
	else
		ww_redis_words_text(words, kind == 'd' ? "d" : kind == 'f' ? "f" : "t");
}

/* The flags and, unless they are usual, whether the job has a past and headers, and how long its runs are kept. */
static void say_flags(struct words *words, const struct ww_job_spec *spec, const struct ww_job_info *was)
{
	char text[] = "wh0k";
	size_t begin = was ? 0 : spec->headers_length ? 1 : 2;

	if (!spec->headers_length && was)
		text[begin = 1] = 'w';
	text[2] = spec->flags & WW_JOB_WALL ? '1' : '0';
	if (begin < 2 || spec->keep)
		ww_redis_words_joined(words, text + begin, us_up(spec->keep));
	else
		ww_redis_words_number(words, spec->flags & WW_JOB_WALL);
}

/* PUT_PAST words. */
static void say_past(struct words *words, const struct ww_job_info *was)
{
	ww_redis_words_number(words, was->state);
	ww_redis_words_number(words, was->version ? was->version : 1);
	ww_redis_words_number(words, us_up(was->created));
	ww_redis_words_number(words, us_up(was->delay));
	ww_redis_words_number(words, us_up(was->left));
	ww_redis_words_number(words, us_up(was->debounce));
	ww_redis_words_number(words, was->tries);
	ww_redis_words_number(words, was->reserves);
	ww_redis_words_number(words, was->timeouts);
	ww_redis_words_number(words, was->releases);
	ww_redis_words_number(words, was->buries);
	ww_redis_words_number(words, was->kicks);
	ww_redis_words_text(words, was->error);
}

static void say(struct words *words, const struct ww_job_spec *spec, const struct ww_job_info *was)
{
	ww_redis_words_text(words, spec->tube);
	ww_redis_words_bytes(words, spec->key, spec->key_length);
	ww_redis_words_bytes(words, spec->body, spec->body_length);
	add_kind(words, spec);
	ww_redis_words_number(words, us_up(spec->due));
	ww_redis_words_number(words, spec->priority);
	ww_redis_words_number(words, us_up(spec->run));
	ww_redis_words_number(words, us_up(spec->period));
	ww_redis_words_number(words, (uint64_t)spec->missed);
	ww_redis_words_number(words, us_up(spec->skip));
	ww_redis_words_number(words, us_up(spec->backoff));
	ww_redis_words_number(words, us_up(spec->backoff_max));
	ww_redis_words_number(words, spec->attempts);
	say_flags(words, spec, was);
	ww_redis_words_number(words, spec->version);
	if (spec->group_length)
		ww_redis_words_bytes(words, spec->group, spec->group_length);
	if (spec->headers_length)
		ww_redis_words_bytes(words, spec->headers, spec->headers_length);
	if (was)
		say_past(words, was);
}

/* Whether it may be due at once. */
static int is_soon(const struct redis_store *store, const struct ww_job_spec *spec)
{
	return spec->flags & WW_JOB_AT ? spec->due <= ww_redis_clock_now(store) + WW_SECOND : !spec->due;
}

static int read_put(struct redis_store *store, redisReply *const *reply, const struct ww_job_spec *spec, uint64_t *id,
    uint64_t *version)
{
	int result = (int)ww_redis_call_value(reply[0]);

	if (result < 0)
		return result;
	*id = (uint64_t)ww_redis_call_value(reply[1]);
	*version = (uint64_t)ww_redis_call_value(reply[2]);
	if (result >= WW_PUT_KEPT)
		return result;
	ww_redis_hint_count(store, spec->tube, 1, 0, 0);
	if (is_soon(store, spec) || (result && spec->key_mode == WW_KEY_DEBOUNCE))
		ww_redis_hint_made(store, spec->tube, shard_of(store, *id), spec->priority);
	return result;
}

int ww_redis_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	redisReply *reply;
	uint64_t got[2];
	int result = check(store, spec);

	if (result)
		return result;
	say(ww_redis_words_few(store, &few), spec, NULL);
	result = ww_redis_call_list(store, &ww_redis_script_shard_put, shard_of_spec(store, spec), &few.words,
	    REDIS_CALL_SAFE | (spec->key_length ? 0 : REDIS_CALL_SOON | REDIS_CALL_ANY_SHARD), PUT_REPLIES, &reply);
	if (result)
		return result;
	result = read_put(store, reply->element, spec, &got[0], &got[1]);
	ww_redis_call_free(reply);
	if (result >= 0 && id)
		*id = got[0];
	if (result >= 0 && version)
		*version = got[1];
	return result;
}

/* ---- Many */

/* Send the valid jobs to their shards: those with a key to its shard, the others in batches, a shard each. */
static void sort(struct gather *gather, struct ww_job_put *puts, size_t count)
{
	struct redis_store *store = gather->store;
	uint32_t shard = 0;
	size_t keyless = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ww_job_spec *spec = puts[i].spec;
		if (puts[i].result == WW_OK)
			puts[i].result = check(store, spec);
		if (puts[i].result)
			continue;
		if (!spec->key_length && keyless++ % PUT_BATCH == 0)
			shard = shard_of_spec(store, spec);
		/* In one shard there is no other, and jobs come in the order in which they were put. */
		ww_redis_gather_add(gather, i, spec->key_length ? shard_of_spec(store, spec) : shard,
		    !spec->key_length && store->shards > 1);
	}
}

int ww_redis_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, const struct ww_job_info *const *was, size_t count)
{
	struct redis_store *store = store_of(jobs);
	struct gather gather;
	struct words *words;
	redisReply *const *reply;
	int error = ww_redis_gather_make(&gather, store, count, PUT_BATCH);

	if (!error) {
		sort(&gather, puts, count);
		error = ww_redis_gather_begin(&gather, PUT_WORDS + 2 + (was ? PUT_PAST : 0));
	}
	if (!error) {
		for (size_t i = 0; i < count; i++)
			if ((words = ww_redis_gather_words(&gather, i)) != NULL)
				say(words, puts[i].spec, was ? was[i] : NULL);
		error = ww_redis_gather_run(&gather, &ww_redis_script_shard_put, REDIS_CALL_SAFE);
		for (size_t i = 0; i < count; i++) {
			if (!ww_redis_gather_words(&gather, i))
				continue;
			puts[i].result = ww_redis_gather_reply(&gather, i, PUT_REPLIES, &reply);
			if (!puts[i].result)
				puts[i].result = read_put(store, reply, puts[i].spec, &puts[i].id, &puts[i].version);
		}
	}
	ww_redis_gather_free(&gather);
	return error;
}

/* ---- Move, cancel */

uint32_t ww_redis_put_refer(struct redis_store *store, struct words *words, const struct ww_job_ref *job)
{
	ww_redis_words_number(words, job->id);
	ww_redis_words_text(words, job->id ? "" : job->tube);
	ww_redis_words_bytes(words, job->key, job->id ? 0 : job->key_length);
	ww_redis_words_number(words, job->version);
	return job->id ? shard_of(store, job->id) : shard_of_key(store, job->tube, job->key, job->key_length);
}

int ww_redis_put_move(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	uint32_t shard = ww_redis_put_refer(store, words, job);
	uint64_t now = ww_redis_clock_now(store);

	if (flags & WW_JOB_AT && due > now && due - now > WW_DRIVER_TIME_MAX)
		return WW_EOVERFLOW;
	ww_redis_words_text(words, flags & WW_JOB_AT ? "t" : "d");
	ww_redis_words_number(words, us_up(due));
	int64_t result = ww_redis_call_number(store, &ww_redis_script_shard_move, shard, words, REDIS_CALL_SAFE);
	if (result < 0)
		return (int)result;
	if (flags & WW_JOB_AT ? due <= now + WW_SECOND : !due)
		ww_redis_hint_made(store, NULL, shard, HINT_PERHAPS);
	if (version)
		*version = (uint64_t)result;
	return WW_OK;
}

int ww_redis_put_cancel(struct ww_jobs *jobs, const struct ww_job_ref *job)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	uint32_t shard = ww_redis_put_refer(store, ww_redis_words_few(store, &few), job);
	redisReply *reply;
	int result = ww_redis_call_list(store, &ww_redis_script_shard_cancel, shard, &few.words, 0, 5, &reply);

	if (result)
		return result;
	ww_redis_hint_finished(store, reply->element[1]);
	result = (int)ww_redis_call_value(reply->element[0]);
	/* Its lease has ended, whichever worker had it. */
	if (!result && ww_redis_call_value(reply->element[3]))
		ww_redis_permit_end(store, reply->element[1], reply->element[4],
		    (uint64_t)ww_redis_call_value(reply->element[2]), "free");
	ww_redis_call_free(reply);
	return result;
}
