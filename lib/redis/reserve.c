/*
 * Reserve, and wait for a job.
 *
 * A reserve goes to shards one after another:
 *   1. Choose the shard whose hints promise the most urgent job, and learn the priority of the best job elsewhere.
 *   2. Ask that shard for leases of jobs up to this priority, or else for its first job alone: so jobs come in order of
 *      priority although they lie in many shards. The reply also says what is first there now, which corrects hints.
 *   3. Go on until there are enough leases, or no hint promises anything.
 * If a hint is unknown, all shards are asked once for their first jobs. A shard that fails is left out for the rest of
 * this reserve, and its hint becomes HINT_PERHAPS: it is asked again, after the others.
 */
#include <string.h>
#include <unistd.h>

#include "lib/jobs/body.h"
#include "lib/redis/redis_internal.h"

/* Values of a lease in a reply; leases of one call. */
enum { LEASE_WORDS = 14, TAKE_BATCH = 256 };

/* A reserve under way. */
struct take {
	struct redis_store *store;
	const char *const *tubes;
	size_t count;
	struct ww_lease *leases;
	size_t most;
	size_t got;
	uint32_t begin;                            /* the shard that is asked first among equals */
	uint64_t end;                              /* from then on, elapsed ns, a failure or a lease ends the reserve */
	int error;                                 /* the first failure of a shard */
	uint64_t failed[WW_REDIS_SHARDS_MAX / 64]; /* a bit for each failed shard */
};

static int has_failed(const struct take *take, uint32_t shard)
{
	return take->failed[shard / 64] >> shard % 64 & 1;
}

static void note_failed(struct take *take, uint32_t shard, int error)
{
	take->failed[shard / 64] |= UINT64_C(1) << shard % 64;
	take->error = take->error ? take->error : error;
}

void ww_redis_reserve_free(struct ww_jobs *jobs, void *body)
{
	job_body_free(store_of(jobs)->allocator, body);
}

static int read_lease(struct redis_store *store, redisReply *const *of, struct ww_lease *lease)
{
	const redisReply *tube = of[5];
	const redisReply *body = of[6];
	const redisReply *key = of[8];

	if (key->type != REDIS_REPLY_STRING || key->len > WW_JOB_KEY_MAX)
		return WW_ECORRUPT;
	if (tube->type != REDIS_REPLY_STRING || tube->len > WW_TUBE_MAX || body->type != REDIS_REPLY_STRING)
		return WW_ECORRUPT;
	*lease = (struct ww_lease){.id = (uint64_t)ww_redis_call_value(of[0]),
	    .token = (uint64_t)ww_redis_call_value(of[1]),
	    .ends = (uint64_t)ww_redis_call_value(of[2]) * 1000,
	    .attempt = (uint32_t)ww_redis_call_value(of[3]),
	    .missed = (uint64_t)ww_redis_call_value(of[4]),
	    .body_length = body->len,
	    .backoff = (uint64_t)ww_redis_call_value(of[9]) * 1000,
	    .created = (uint64_t)ww_redis_call_value(of[10]) * 1000,
	    .scheduled = (uint64_t)ww_redis_call_value(of[11]) * 1000,
	    .attempts = (uint32_t)ww_redis_call_value(of[12]),
	    .kicks = (uint32_t)ww_redis_call_value(of[13]),
	    .priority = (uint32_t)ww_redis_call_value(of[7]),
	    .key_length = key->len};
	memcpy(lease->tube, tube->str, tube->len);
	memcpy(lease->key, key->str, key->len);
	if (!body->len)
		return WW_OK;
	lease->body = job_body_copy(store->allocator, body->str, body->len);
	return lease->body ? WW_OK : WW_ENOMEM;
}

/* ---- Hints */

/* Call it with the lock. NULL: no memory. */
static struct tube_hints *hints_of(const struct take *take, size_t tube)
{
	return ww_redis_hint(take->store, take->tubes[tube]);
}

/*
 * Returns the shard with the best job as far as hints tell, or -1: nothing is ready anywhere. *bound becomes the
 * priority of the best job in another shard; *is_unknown whether a hint is unknown.
 */
static int64_t best_shard(const struct take *take, int64_t *bound, int *is_unknown)
{
	struct redis_store *store = take->store;
	int64_t best = -1;
	int64_t least = HINT_PERHAPS + 1;

	*bound = HINT_PERHAPS;
	*is_unknown = 0;
	for (size_t t = 0; t < take->count; t++) {
		const struct tube_hints *tube = hints_of(take, t);
		if (!tube)
			return WW_ENOMEM - 1;
		for (uint32_t i = 0; i < store->shards; i++) {
			uint32_t shard = (take->begin + i) % store->shards;
			int64_t first = tube->of[shard].first;
			if (has_failed(take, shard))
				continue;
			*is_unknown |= first == HINT_UNKNOWN;
			if (first < 0)
				continue;
			if (first < least) {
				if (shard != best && best >= 0)
					*bound = least;
				least = first, best = shard;
			} else if (shard != best && first < *bound)
				*bound = first;
		}
	}
	return best;
}

/* Returns how much was heard, after all tubes have hints. */
static uint64_t see(const struct take *take)
{
	uint64_t seen;

	pthread_mutex_lock(&take->store->lock);
	for (size_t t = 0; t < take->count; t++)
		(void)hints_of(take, t);
	seen = take->store->readies;
	pthread_mutex_unlock(&take->store->lock);
	return seen;
}

/* Take over an answer, unless something newer was heard. */
static void learn(const struct take *take, size_t t, uint32_t shard, int64_t first, uint64_t seen)
{
	struct tube_hints *tube = hints_of(take, t);

	if (tube && tube->of[shard].heard <= seen)
		tube->of[shard].first = first;
}

/* Learn from all shards; those without an answer have failed. */
static void learn_all(struct take *take, const struct fan *fan, uint64_t seen)
{
	struct redis_store *store = take->store;

	for (uint32_t i = 0; i < store->shards; i++) {
		const struct redis_call *call = &fan->calls[i];
		int error = call->error ? call->error : ww_redis_call_array(store, call->reply, 2 * take->count);
		if (error)
			note_failed(take, i, error);
	}
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < store->shards; i++)
		for (size_t t = 0; t < take->count; t++)
			learn(take, t, i,
			    has_failed(take, i) ? HINT_PERHAPS
			                        : ww_redis_call_value(fan->calls[i].reply->element[2 * t]),
			    seen);
	pthread_mutex_unlock(&store->lock);
}

/* Ask all shards for the first of each tube. */
static int look(struct take *take)
{
	struct redis_store *store = take->store;
	struct words *words = ww_redis_words_many(store, 3 + take->count);
	uint64_t seen = see(take);
	struct fan fan;
	int error;

	if (!words)
		return WW_ENOMEM;
	ww_redis_words_text(words, "ready");
	for (size_t t = 0; t < take->count; t++)
		ww_redis_words_text(words, take->tubes[t]);
	error = ww_redis_call_each(
	    store, &ww_redis_script_shard_first, words, NULL, store->shards, REDIS_CALL_AGAIN | REDIS_CALL_SOON, &fan);
	if (fan.calls) {
		error = WW_OK;
		learn_all(take, &fan, seen);
		ww_redis_call_fan_free(store, &fan);
	}
	ww_redis_words_free(store, words);
	return error;
}

/* ---- One shard */

static int read_leases(struct take *take, const redisReply *reply)
{
	struct redis_store *store = take->store;
	const redisReply *leases;
	int error = ww_redis_call_array(store, reply, 1 + take->count);

	if (!error)
		error = ww_redis_call_array(store, reply->element[0], 0);
	if (error)
		return error;
	leases = reply->element[0];
	for (size_t i = 0; i + LEASE_WORDS <= leases->elements && take->got < take->most && !error; i += LEASE_WORDS) {
		error = read_lease(store, &leases->element[i], &take->leases[take->got]);
		take->got += !error;
	}
	/* A lease that cannot be handed out runs out, and its job is ready again. */
	return error;
}

/* Lease as many as there is room for, with priorities up to `bound`; if there are none, the first job alone. */
static int take_from(struct take *take, uint32_t shard, int64_t bound)
{
	struct redis_store *store = take->store;
	struct words *words = ww_redis_words_many(store, 4 + take->count);
	uint64_t seen = see(take);
	redisReply *reply = NULL;
	size_t left = take->most - take->got;
	int error;

	if (!words)
		return WW_ENOMEM;
	ww_redis_words_number(words, left < TAKE_BATCH ? left : TAKE_BATCH);
	ww_redis_words_number(words, (uint64_t)bound);
	for (size_t t = 0; t < take->count; t++)
		ww_redis_words_text(words, take->tubes[t]);
	error = ww_redis_call(store, &ww_redis_script_shard_reserve, shard, words, REDIS_CALL_SOON, &reply);
	if (!error)
		error = read_leases(take, reply);
	/* A shard that failed is asked after the others, until it answers or a message comes. */
	pthread_mutex_lock(&store->lock);
	for (size_t t = 0; t < take->count; t++)
		learn(take, t, shard, error ? HINT_PERHAPS : ww_redis_call_value(reply->element[1 + t]), seen);
	pthread_mutex_unlock(&store->lock);
	ww_redis_call_free(reply);
	ww_redis_words_free(store, words);
	return error;
}

int ww_redis_reserve_many(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *leases, size_t most)
{
	struct redis_store *store = store_of(jobs);
	struct take take = {.store = store, .tubes = tubes, .count = count, .leases = leases, .most = most};
	int has_looked = 0;
	int error = WW_OK;

	if (getpid() != store->process)
		return WW_ECLOSED;
	if (!count)
		return 0;
	ww_redis_hint_bound(store, count);
	take.begin = (uint32_t)(random_next_shared(&store->random) % store->shards);
	/* Without a worker, hints hear of nothing. */
	if (is_alone(store))
		error = look(&take), has_looked = 1;
	take.end = time_now(CLOCK_BOOTTIME) + store->config.timeout;
	while (!error && take.got < most) {
		int64_t bound;
		int is_unknown;
		int failed;
		pthread_mutex_lock(&store->lock);
		int64_t shard = best_shard(&take, &bound, &is_unknown);
		pthread_mutex_unlock(&store->lock);
		if (shard < -1)
			error = WW_ENOMEM;
		else if (is_unknown && !has_looked)
			error = look(&take), has_looked = 1,
			take.end = time_now(CLOCK_BOOTTIME) + store->config.timeout;
		else if (shard < 0)
			break;
		else if ((failed = take_from(&take, (uint32_t)shard, bound)) != WW_OK)
			note_failed(&take, (uint32_t)shard, failed);
		if (take.error == WW_ENOMEM || ((take.error || take.got) && time_now(CLOCK_BOOTTIME) >= take.end))
			break;
	}
	error = error ? error : take.error;
	return take.got ? (int)take.got : error;
}

int ww_redis_reserve(struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *lease)
{
	struct ww_lease got;
	int result = ww_redis_reserve_many(jobs, tubes, count, &got, 1);

	if (result == 1)
		*lease = got;
	return result;
}

int ww_redis_reserve_job(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease)
{
	struct redis_store *store = store_of(jobs);
	struct ww_lease got;
	struct few_words few;
	redisReply *reply;
	int error;

	ww_redis_words_number(ww_redis_words_few(store, &few), id);
	error = ww_redis_call_list(
	    store, &ww_redis_script_shard_reserve_job, shard_of(store, id), &few.words, 0, LEASE_WORDS, &reply);
	if (error)
		return error;
	error = read_lease(store, reply->element, &got);
	ww_redis_call_free(reply);
	if (!error)
		*lease = got;
	return error;
}

/* ---- Waiting */

static uint64_t readies(struct redis_store *store)
{
	uint64_t readies;

	pthread_mutex_lock(&store->lock);
	readies = store->readies;
	pthread_mutex_unlock(&store->lock);
	return readies;
}

/* Wait until something is heard, or until that time. */
static void wait_until(struct redis_store *store, uint64_t seen, uint64_t until)
{
	pthread_mutex_lock(&store->lock);
	while (store->readies == seen)
		if (time_wait(&store->heard, &store->lock, until))
			break;
	pthread_mutex_unlock(&store->lock);
}

int ww_redis_reserve_wait(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, uint64_t timeout, struct ww_lease *lease)
{
	struct redis_store *store = store_of(jobs);
	uint64_t end = time_add(time_now(CLOCK_MONOTONIC), timeout);
	int result;

	for (;;) {
		uint64_t seen = readies(store);
		result = ww_redis_reserve(jobs, tubes, count, lease);
		if (result || is_alone(store))
			return result;
		if (time_now(CLOCK_MONOTONIC) >= end)
			return 0;
		wait_until(store, seen, end);
	}
}
