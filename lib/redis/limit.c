/*
 * Limits of tubes over all shards. A tube with a limit has a home, the shard that counts (lua/part_permit.lua):
 *
 *     reserve    take permits at home -> lease so many jobs in a shard -> settle at home: by which jobs, and until when
 *     finish     end the lease in its shard -> free the permit at home, which tells those who were refused
 *
 * If a process dies between, its permits end with the leases, or soon if there are none.
 */
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/redis/redis_internal.h"

/* The longest time that a tube is not asked for because it was refused: a message may be lost. */
#define HOLD_MOST (5 * WW_SECOND)

enum { LIMIT_WORDS = 8 };

static uint32_t home_of(const struct redis_store *store, const char *tube)
{
	return (uint32_t)(XXH64(tube, strlen(tube), 0) % store->shards);
}

/* ---- Hints */

static void mark(struct redis_store *store, const char *name, int is_limited)
{
	pthread_mutex_lock(&store->lock);
	struct tube_hints *tube = ww_redis_hint(store, name);
	if (tube)
		tube->is_limited = is_limited;
	pthread_mutex_unlock(&store->lock);
}

static void hold(struct redis_store *store, const char *name, uint64_t until_us, uint64_t seen)
{
	uint64_t now = ww_redis_clock_now(store);
	uint64_t span = until_us > now / 1000 ? until_us * 1000 - now : 0;

	pthread_mutex_lock(&store->lock);
	struct tube_hints *tube = ww_redis_hint(store, name);
	if (tube && tube->let <= seen)
		tube->held_until = time_now(CLOCK_BOOTTIME) + (span < HOLD_MOST ? span : HOLD_MOST);
	pthread_mutex_unlock(&store->lock);
}

void ww_redis_limit_let(struct redis_store *store, const char *name)
{
	struct tube_hints *tube;

	pthread_mutex_lock(&store->lock);
	HASH_FIND(hh, store->tubes, name, (unsigned)strlen(name), tube);
	store->readies++;
	if (tube) {
		tube->held_until = 0;
		tube->let = store->readies;
	}
	pthread_cond_broadcast(&store->heard);
	pthread_mutex_unlock(&store->lock);
}

/* ---- Permits */

static struct words *begin(struct redis_store *store, struct few_words *few, const char *what, const char *tube)
{
	struct words *words = ww_redis_words_few(store, few);

	ww_redis_words_text(words, what);
	ww_redis_words_text(words, tube);
	return words;
}

int ww_redis_limit_take(
    struct redis_store *store, const char *tube, size_t most, uint64_t seen, struct redis_permits *permits)
{
	struct few_words few;
	struct words *words = begin(store, &few, "take", tube);
	redisReply *reply;

	ww_redis_words_number(words, most);
	ww_redis_words_number(words, us_up(2 * store->config.timeout));
	int error = ww_redis_call_list(
	    store, &ww_redis_script_shard_permit, home_of(store, tube), words, REDIS_CALL_SOON, 3, &reply);
	if (error)
		return error;
	int64_t number = ww_redis_call_value(reply->element[0]);
	/* Without a limit nothing is counted. A shard that has not heard of that yet still wants permits. */
	permits->number = number < 0 ? (uint32_t)most : (uint32_t)number;
	permits->first = (uint64_t)ww_redis_call_value(reply->element[1]);
	if (!number)
		hold(store, tube, (uint64_t)ww_redis_call_value(reply->element[2]), seen);
	else if (number < 0)
		mark(store, tube, 0);
	ww_redis_call_free(reply);
	return WW_OK;
}

void ww_redis_limit_settle(struct redis_store *store, const char *tube, const struct redis_permits *permits,
    const struct ww_lease *leases, size_t count)
{
	size_t room = 6 + 2 * count;
	struct words *words = ww_redis_words_many(store, room);

	/* Without memory the permits end by themselves. */
	if (!words)
		return;
	ww_redis_words_text(words, "settle");
	ww_redis_words_text(words, tube);
	ww_redis_words_number(words, permits->first);
	ww_redis_words_number(words, permits->number);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(leases[i].tube, tube) != 0)
			continue;
		ww_redis_words_number(words, leases[i].id);
		ww_redis_words_number(words, leases[i].ends / 1000);
	}
	(void)ww_redis_call_number(store, &ww_redis_script_shard_permit, home_of(store, tube), words, 0);
	ww_redis_words_free(store, words);
}

void ww_redis_limit_add(struct redis_store *store, const struct ww_lease *lease)
{
	struct few_words few;
	struct words *words = begin(store, &few, "add", lease->tube);

	mark(store, lease->tube, 1);
	ww_redis_words_number(words, lease->id);
	ww_redis_words_number(words, lease->ends / 1000);
	(void)ww_redis_call_number(store, &ww_redis_script_shard_permit, home_of(store, lease->tube), words, 0);
}

/* ---- Leases that end */

void ww_redis_limit_free(struct redis_store *store, const redisReply *of, uint64_t id, const char *what)
{
	char tube[WW_TUBE_MAX + 1] = "";
	struct few_words few;

	if (of->type != REDIS_REPLY_STRING || of->len > WW_TUBE_MAX)
		return;
	memcpy(tube, of->str, of->len);
	struct words *words = begin(store, &few, what, tube);
	ww_redis_words_number(words, id);
	(void)ww_redis_call_number(store, &ww_redis_script_shard_permit, home_of(store, tube), words, REDIS_CALL_AGAIN);
	ww_redis_limit_let(store, tube);
}

void ww_redis_limit_touch(struct redis_store *store, const redisReply *of, uint64_t id, uint64_t end_us)
{
	char tube[WW_TUBE_MAX + 1] = "";
	struct few_words few;

	if (of->type != REDIS_REPLY_STRING || of->len > WW_TUBE_MAX)
		return;
	memcpy(tube, of->str, of->len);
	struct words *words = begin(store, &few, "touch", tube);
	ww_redis_words_number(words, id);
	ww_redis_words_number(words, end_us);
	(void)ww_redis_call_number(store, &ww_redis_script_shard_permit, home_of(store, tube), words, REDIS_CALL_AGAIN);
}

/* ---- Set and told */

/* Tell the home of jobs that run already. */
static int seed(struct redis_store *store, const char *tube, const redisReply *running)
{
	struct words *words = running->elements ? ww_redis_words_many(store, 4 + running->elements) : NULL;
	int64_t result;

	if (!words)
		return running->elements ? WW_ENOMEM : WW_OK;
	ww_redis_words_text(words, "seed");
	ww_redis_words_text(words, tube);
	for (size_t i = 0; i < running->elements; i++)
		ww_redis_words_number(words, (uint64_t)ww_redis_call_value(running->element[i]));
	result =
	    ww_redis_call_number(store, &ww_redis_script_shard_permit, home_of(store, tube), words, REDIS_CALL_AGAIN);
	ww_redis_words_free(store, words);
	return (int)result;
}

static int set(struct redis_store *store, const char *tube, const struct ww_limit *limit, uint32_t shard)
{
	struct few_words few;
	struct words *words = begin(store, &few, "set", tube);
	redisReply *reply;

	ww_redis_words_number(words, limit->running);
	ww_redis_words_number(words, limit->starts);
	ww_redis_words_number(words, us_up(limit->per));
	ww_redis_words_number(words, limit->burst);
	ww_redis_words_number(words, shard == home_of(store, tube));
	int error = ww_redis_call_list(store, &ww_redis_script_shard_limit, shard, words, REDIS_CALL_AGAIN, 0, &reply);
	if (error)
		return error;
	error = seed(store, tube, reply);
	ww_redis_call_free(reply);
	return error;
}

int ww_redis_limit_set(struct ww_jobs *jobs, const struct ww_limit_ref *ref, const struct ww_limit *limit)
{
	struct redis_store *store = store_of(jobs);
	const int sets = limit->running || limit->starts;
	int error = WW_OK;

	if (ref->group_length || ref->each)
		return WW_EINVAL;
	/* A shard that asks for permits finds a home that has them: it is the first to know, and the last to forget. */
	for (uint32_t i = 0; i < store->shards && !error; i++)
		error = set(store, ref->tube, limit, (home_of(store, ref->tube) + i + !sets) % store->shards);
	if (error)
		return error;
	ww_redis_limit_let(store, ref->tube);
	for (uint32_t i = 0; i < store->shards; i++)
		ww_redis_hint_made(store, ref->tube, i, HINT_PERHAPS);
	return WW_OK;
}

/* Fill *info and `name`, without what is held. Returns whether nothing may start, or an error. */
static int read_limit(
    struct redis_store *store, const redisReply *reply, char name[WW_TUBE_MAX + 1], struct ww_limit_info *info)
{
	uint64_t of[LIMIT_WORDS] = {0};
	int error = ww_redis_call_array(store, reply, LIMIT_WORDS);

	if (error)
		return error;
	if (reply->element[0]->type != REDIS_REPLY_STRING || reply->element[0]->len > WW_TUBE_MAX)
		return WW_ECORRUPT;
	memcpy(name, reply->element[0]->str, reply->element[0]->len);
	name[reply->element[0]->len] = 0;
	for (int i = 1; i < LIMIT_WORDS; i++)
		of[i] = (uint64_t)ww_redis_call_value(reply->element[i]);
	*info = (struct ww_limit_info){.ref = {.tube = name},
	    .limit = {of[1], of[2], of[3] * 1000, of[4]},
	    .running = of[5],
	    .left = of[7] * 1000};
	return of[6] != 0;
}

static int tell(struct redis_store *store, const redisReply *reply, ww_limit_fn *fn, void *context)
{
	char name[WW_TUBE_MAX + 1];
	struct ww_limit_info info;
	uint64_t ready = 0;
	int result = read_limit(store, reply, name, &info);

	if (result == 1)
		result = ww_redis_stats_ready(store, name, &ready);
	info.held = ready;
	return result < 0 ? result : fn(&info, context);
}

int ww_redis_limit_list(struct ww_jobs *jobs, const char *tube, ww_limit_fn *fn, void *context)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	uint32_t home = tube ? home_of(store, tube) : 0;
	struct fan fan;
	int result;

	ww_redis_words_text(words, "list");
	if (tube)
		ww_redis_words_text(words, tube);
	result = ww_redis_call_each(store, &ww_redis_script_shard_limit, words, tube ? &home : NULL,
	    tube ? 1 : store->shards, REDIS_CALL_AGAIN, &fan);
	for (size_t i = 0; fan.calls && i < fan.count && !result; i++) {
		const redisReply *reply = fan.calls[i].reply;
		result = fan.calls[i].error ? fan.calls[i].error : ww_redis_call_array(store, reply, 0);
		for (size_t k = 0; !result && k < reply->elements; k++)
			result = tell(store, reply->element[k], fn, context);
	}
	if (fan.calls)
		ww_redis_call_fan_free(store, &fan);
	return result;
}

static int copy(const struct ww_limit_info *info, void *context)
{
	*(struct ww_limit_info *)context = *info;
	return 1;
}

int ww_redis_limit_get(struct ww_jobs *jobs, const struct ww_limit_ref *ref, struct ww_limit_info *info)
{
	struct ww_limit_info found;
	int result = ref->group_length || ref->each ? 0 : ww_redis_limit_list(jobs, ref->tube, copy, &found);

	if (result <= 0)
		return result < 0 ? result : WW_ENOTFOUND;
	*info = found;
	info->ref = *ref;
	return WW_OK;
}

int ww_redis_limit_held(struct redis_store *store, const char *tube, uint64_t ready, uint64_t *held)
{
	struct few_words few;
	struct words *words = begin(store, &few, "list", tube);
	redisReply *reply;
	struct ww_limit_info info;
	char name[WW_TUBE_MAX + 1];
	int result = ww_redis_call_list(
	    store, &ww_redis_script_shard_limit, home_of(store, tube), words, REDIS_CALL_AGAIN, 0, &reply);

	if (result)
		return result;
	result = reply->elements ? read_limit(store, reply->element[0], name, &info) : 0;
	ww_redis_call_free(reply);
	*held = result == 1 ? ready : 0;
	return result < 0 ? result : WW_OK;
}
