/*
 * Limits of tubes and of their groups over all shards: set, spread and shown. A tube with a limit has a home, the
 * shard that counts (lua/part_permit.lua). permit.c keeps them.
 */
#include <string.h>

#include "lib/redis/redis_internal.h"

/* The reply of shard_limit.lua about a limit. */
/* clang-format off */
enum {
	LIMIT_TUBE, LIMIT_WHOSE, LIMIT_GROUP, LIMIT_RUNNING_MOST, LIMIT_STARTS, LIMIT_PER, LIMIT_BURST, LIMIT_RUNNING,
	LIMIT_IS_CLOSED, LIMIT_LEFT, LIMIT_WORDS
};
/* clang-format on */
/* How many leases are read in one piece, and how many words each has. */
enum { RUNNING_PIECE = 512, RUNNING_WORDS = 3 };

static const char *whose_is(const struct ww_limit_ref *ref)
{
	return ref->group_length ? "group" : ref->each ? "each" : "tube";
}

/* ---- Calls of shard_limit.lua */

static struct words *begin(struct redis_store *store, struct few_words *few, const char *what, const char *tube)
{
	struct words *words = ww_redis_words_few(store, few);

	ww_redis_words_text(words, what);
	ww_redis_words_text(words, tube);
	return words;
}

static int64_t ask_number(struct redis_store *store, uint32_t shard, struct words *words)
{
	return ww_redis_call_number(store, &ww_redis_script_shard_limit, shard, words, REDIS_CALL_AGAIN);
}

static int ask_list(struct redis_store *store, uint32_t shard, struct words *words, size_t least, redisReply **reply)
{
	return ww_redis_call_list(store, &ww_redis_script_shard_limit, shard, words, REDIS_CALL_AGAIN, least, reply);
}

/* ---- Set */

/* Tell the home of these jobs, which run already. */
static int seed(struct redis_store *store, const char *tube, redisReply *const *running, size_t count)
{
	struct words *words = count ? ww_redis_words_many(store, 4 + count) : NULL;

	if (!words)
		return count ? WW_ENOMEM : WW_OK;
	ww_redis_words_text(words, "seed");
	ww_redis_words_text(words, tube);
	for (size_t i = 0; i < count; i++)
		ww_redis_words_bytes(words, running[i]->str, running[i]->len);
	int64_t result = ww_redis_call_number(
	    store, &ww_redis_script_shard_permit, ww_redis_permit_home(store, tube), words, REDIS_CALL_AGAIN);
	ww_redis_words_free(store, words);
	return (int)result;
}

static int are_texts(redisReply *const *of, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (of[i]->type != REDIS_REPLY_STRING)
			return 0;
	return 1;
}

/*
 * Count the jobs of the tube that run in a shard, piece by piece, in the order in which their leases end: a lease
 * that is lengthened meanwhile comes again.
 */
static int count_running(struct redis_store *store, const char *tube, uint32_t shard)
{
	int64_t from = 0;
	uint64_t most = RUNNING_PIECE;
	int error = WW_OK;

	while (from >= 0 && !error) {
		struct few_words few;
		struct words *words = begin(store, &few, "running", tube);
		redisReply *reply;
		ww_redis_words_signed(words, from);
		ww_redis_words_number(words, most);
		error = ask_list(store, shard, words, 1, &reply);
		if (error)
			return error;
		int64_t next = ww_redis_call_value(reply->element[0]);
		size_t count = reply->elements - 1;
		if (count % RUNNING_WORDS || !are_texts(reply->element + 1, count))
			error = WW_ECORRUPT;
		else
			error = seed(store, tube, reply->element + 1, count);
		/* All of them end at the same time. */
		most = next == from ? 2 * most : RUNNING_PIECE;
		from = next;
		ww_redis_call_free(reply);
	}
	return error;
}

/* Groups that a former limit held ask anew. */
static int let_all(struct redis_store *store, const char *tube, uint32_t shard)
{
	int64_t number;

	do {
		struct few_words few;
		number = ask_number(store, shard, begin(store, &few, "let", tube));
	} while (number > 0);
	return (int)number;
}

/* Forget what was counted of groups that have no limit any more. */
static int drop_all(struct redis_store *store, const char *tube)
{
	int64_t from = 0;

	while (from >= 0) {
		struct few_words few;
		struct words *words = begin(store, &few, "drop", tube);
		ww_redis_words_number(words, (uint64_t)from);
		from = ask_number(store, ww_redis_permit_home(store, tube), words);
	}
	return from == -1 ? WW_OK : (int)from;
}

/* Set it at home. *text becomes the tube's limit, which the other shards have to know. */
static int set_home(
    struct redis_store *store, const struct ww_limit_ref *ref, const struct ww_limit *limit, redisReply **text)
{
	struct few_words few;
	struct words *words = begin(store, &few, "set", ref->tube);

	ww_redis_words_text(words, whose_is(ref));
	ww_redis_words_bytes(words, ref->group, ref->group_length);
	ww_redis_words_number(words, limit->running);
	ww_redis_words_number(words, limit->starts);
	ww_redis_words_number(words, us_up(limit->per));
	ww_redis_words_number(words, limit->burst);
	int error = ww_redis_call(
	    store, &ww_redis_script_shard_limit, ww_redis_permit_home(store, ref->tube), words, REDIS_CALL_AGAIN, text);
	if (!error && (*text)->type != REDIS_REPLY_STRING) {
		ww_redis_call_free(*text);
		error = WW_ECORRUPT;
	}
	return error;
}

static int set_others(struct redis_store *store, const char *tube, const redisReply *text)
{
	int64_t error = WW_OK;

	for (uint32_t i = 0; i < store->shards && !error; i++) {
		struct few_words few;
		struct words *words = begin(store, &few, "tell", tube);
		ww_redis_words_bytes(words, text->str, text->len);
		if (i != ww_redis_permit_home(store, tube))
			error = ask_number(store, i, words);
	}
	return (int)error;
}

int ww_redis_limit_set(struct ww_jobs *jobs, const struct ww_limit_ref *ref, const struct ww_limit *limit)
{
	struct redis_store *store = store_of(jobs);
	const int sets = limit->running || limit->starts;
	redisReply *text;
	int error = limit->weight > 1 ? WW_EINVAL : set_home(store, ref, limit, &text);

	if (error)
		return error;
	/* From then on no shard starts a job of the tube without a permit, and what runs already can be counted. */
	error = set_others(store, ref->tube, text);
	ww_redis_call_free(text);
	for (uint32_t i = 0; i < store->shards && !error; i++) {
		error = sets ? count_running(store, ref->tube, i) : WW_OK;
		if (!error)
			error = let_all(store, ref->tube, i);
	}
	if (!error && !sets && (ref->group_length || ref->each))
		error = drop_all(store, ref->tube);
	if (error)
		return error;
	ww_redis_permit_let(store, ref->tube);
	for (uint32_t i = 0; i < store->shards; i++)
		ww_redis_hint_made(store, ref->tube, i, HINT_PERHAPS);
	return WW_OK;
}

/* ---- Shown */

/* A limit that a script showed. */
struct shown_limit {
	struct ww_limit_info info;
	int is_closed;    /* nothing may start */
	int is_uncounted; /* what runs: only the shards know it */
	char tube[WW_TUBE_MAX + 1];
	unsigned char group[WW_JOB_GROUP_MAX];
};

static int read_limit(struct redis_store *store, const redisReply *reply, struct shown_limit *shown)
{
	uint64_t of[LIMIT_WORDS] = {0};
	int error = ww_redis_call_array(store, reply, LIMIT_WORDS);

	if (error)
		return error;
	redisReply *const *texts = reply->element;
	if (!are_texts(texts, 3) || texts[LIMIT_TUBE]->len > WW_TUBE_MAX || texts[LIMIT_GROUP]->len > WW_JOB_GROUP_MAX)
		return WW_ECORRUPT;
	*shown = (struct shown_limit){.info.ref.tube = shown->tube};
	memcpy(shown->tube, texts[LIMIT_TUBE]->str, texts[LIMIT_TUBE]->len);
	memcpy(shown->group, texts[LIMIT_GROUP]->str, texts[LIMIT_GROUP]->len);
	for (int i = LIMIT_RUNNING_MOST; i < LIMIT_WORDS; i++)
		of[i] = (uint64_t)ww_redis_call_value(texts[i]);
	shown->info.ref.group_length = texts[LIMIT_GROUP]->len;
	shown->info.ref.group = shown->info.ref.group_length ? shown->group : NULL;
	shown->info.ref.each = strcmp(texts[LIMIT_WHOSE]->str, "each") == 0;
	shown->info.limit =
	    (struct ww_limit){of[LIMIT_RUNNING_MOST], of[LIMIT_STARTS], of[LIMIT_PER] * 1000, of[LIMIT_BURST], 1};
	shown->is_uncounted = ww_redis_call_value(texts[LIMIT_RUNNING]) < 0;
	shown->info.running = shown->is_uncounted ? 0 : of[LIMIT_RUNNING];
	shown->info.left = of[LIMIT_LEFT] * 1000;
	shown->is_closed = of[LIMIT_IS_CLOSED] != 0;
	return WW_OK;
}

/* How many jobs of a group are ready. */
static int ready_of_group(struct redis_store *store, const struct shown_limit *shown, uint64_t *ready)
{
	struct few_words few;
	struct words *words = begin(store, &few, "ready", shown->tube);
	struct fan fan;

	ww_redis_words_bytes(words, shown->group, shown->info.ref.group_length);
	int error = ww_redis_call_all(store, &ww_redis_script_shard_limit, words, 0, &fan);
	if (error)
		return error;
	for (size_t i = 0; i < fan.count; i++)
		*ready += (uint64_t)ww_redis_call_value(fan.calls[i].reply);
	ww_redis_call_fan_free(store, &fan);
	return WW_OK;
}

/* Fill in what it holds, and what runs. */
static int fill_in(struct redis_store *store, struct shown_limit *shown)
{
	uint64_t ready = 0;
	uint64_t reserved = 0;
	int error = WW_OK;

	if (shown->is_closed && shown->info.ref.group_length)
		return ready_of_group(store, shown, &shown->info.held);
	if (shown->is_closed || shown->is_uncounted)
		error = ww_redis_stats_counts(store, shown->tube, &ready, &reserved);
	if (shown->is_closed)
		shown->info.held = ready;
	if (shown->is_uncounted)
		shown->info.running = reserved;
	return error;
}

static int show_one(
    struct redis_store *store, const char *tube, const redisReply *reply, ww_limit_fn *fn, void *context)
{
	struct shown_limit shown;
	int error = read_limit(store, reply, &shown);

	if (error || (tube && strcmp(tube, shown.tube) != 0))
		return error;
	error = fill_in(store, &shown);
	return error ? error : fn(&shown.info, context);
}

/* The limits whose home is a shard. */
static int list_shard(struct redis_store *store, uint32_t shard, const char *tube, ww_limit_fn *fn, void *context)
{
	char cursor[32] = "0";
	int result = WW_OK;

	do {
		struct few_words few;
		redisReply *reply;
		result = ask_list(store, shard, begin(store, &few, "list", cursor), 1, &reply);
		if (result)
			return result;
		if (!are_texts(reply->element, 1) || reply->element[0]->len >= sizeof cursor)
			result = WW_ECORRUPT;
		else
			memcpy(cursor, reply->element[0]->str, reply->element[0]->len + 1);
		for (size_t i = 1; i < reply->elements && !result; i++)
			result = show_one(store, tube, reply->element[i], fn, context);
		ww_redis_call_free(reply);
	} while (!result && strcmp(cursor, "0") != 0);
	return result;
}

int ww_redis_limit_list(struct ww_jobs *jobs, const char *tube, ww_limit_fn *fn, void *context)
{
	struct redis_store *store = store_of(jobs);
	int result = WW_OK;

	if (tube)
		return list_shard(store, ww_redis_permit_home(store, tube), tube, fn, context);
	for (uint32_t i = 0; i < store->shards && !result; i++)
		result = list_shard(store, i, NULL, fn, context);
	return result;
}

/* Without what it holds. Errors: WW_ENOTFOUND. */
static int show(struct redis_store *store, const struct ww_limit_ref *ref, struct shown_limit *shown)
{
	struct few_words few;
	struct words *words = begin(store, &few, "show", ref->tube);
	redisReply *reply;

	ww_redis_words_text(words, whose_is(ref));
	ww_redis_words_bytes(words, ref->group, ref->group_length);
	int error = ask_list(store, ww_redis_permit_home(store, ref->tube), words, 0, &reply);
	if (error)
		return error;
	error = reply->elements ? read_limit(store, reply->element[0], shown) : WW_ENOTFOUND;
	ww_redis_call_free(reply);
	return error;
}

int ww_redis_limit_get(struct ww_jobs *jobs, const struct ww_limit_ref *ref, struct ww_limit_info *info)
{
	struct shown_limit shown;
	int error = show(store_of(jobs), ref, &shown);

	if (!error)
		error = fill_in(store_of(jobs), &shown);
	if (error)
		return error;
	*info = shown.info;
	info->ref = *ref;
	return WW_OK;
}

int ww_redis_limit_held(struct redis_store *store, const char *tube, uint64_t ready, uint64_t *held)
{
	struct shown_limit shown;
	int error = show(store, &(struct ww_limit_ref){.tube = tube}, &shown);

	if (!error && shown.is_closed)
		*held = ready;
	return error == WW_ENOTFOUND ? WW_OK : error;
}
