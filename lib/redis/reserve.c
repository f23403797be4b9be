/*
 * Reserve.
 *
 * A reserve goes to shards one after another:
 *   1. Choose the shard whose hints promise the most urgent job, and learn the priority of the best job elsewhere.
 *   2. Ask that shard, for the tubes that promise something there, for leases of jobs up to this priority, or else for
 *      its first job alone: so jobs come in order of priority although they lie in many shards. The reply also says
 *      what is first there now, which corrects hints.
 *   3. Go on until there are enough leases, or no hint promises anything.
 * If a hint is unknown, all shards are asked once for their first jobs. A shard that fails is left out for the rest of
 * this reserve, and its hint becomes HINT_PERHAPS: it is asked again, after the others.
 */
#include <stdio.h>
#include <string.h>

#include "lib/redis/redis_internal.h"

/* Leases of one call. */
enum { TAKE_BATCH = 256 };
/* So often one reserve takes leases, if all that it took were over. */
enum { ROUNDS_MAX = 4 };
/*
 * How many sets Redis looks into for one call: it does nothing else meanwhile. A call for more than LOOK_MANY tubes
 * waits for others of its kind.
 */
enum { LOOK_PIECE = 1024, LOOK_MANY = 100 };
/* What a shard replies of a tube with a limit that was asked for without permits, or without those for its groups. */
enum { NEEDS_PERMITS = -3, NEEDS_GROUPS = -4 };

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

/* Leave out the leases that are over. */
static void drop_over(struct take *take, uint64_t began)
{
	size_t got = take->got;
	int asked = WW_OK;

	take->got = 0;
	for (size_t i = 0; i < got; i++) {
		if (ww_redis_lease_is_over(take->store, &take->leases[i], began, &asked))
			ww_redis_lease_free(&take->store->base, take->leases[i].body);
		else
			take->leases[take->got++] = take->leases[i];
	}
}

/* ---- Hints */

/* Call it with the lock. NULL: no memory. */
static struct tube_hints *hints_of(const struct take *take, size_t tube)
{
	return ww_redis_hint(take->store, take->tubes[tube]);
}

/* What the hints say, and when. */
struct view {
	int64_t best;   /* the shard with the best job by the hints; -1: nothing is ready anywhere */
	int64_t bound;  /* the priority of the best job in another shard */
	int is_unknown; /* whether a hint is unknown */
	uint64_t seen;  /* how much was heard */
	size_t count;   /* tubes that promise something */
};

/* Of a tube with groups, the shards take turns, too: only the next one that promises something is looked at. */
static int is_grouped(const struct redis_store *store, const struct tube_hints *tube)
{
	for (uint32_t i = 0; i < store->shards; i++)
		if (tube->of[i].is_grouped)
			return 1;
	return 0;
}

static void view_tube(const struct take *take, const struct tube_hints *tube, struct view *view, int64_t *least)
{
	const int in_turn = is_grouped(take->store, tube);
	uint32_t begin = in_turn ? tube->turn : take->begin;
	int has_seen = 0;

	for (uint32_t i = 0; i < take->store->shards; i++) {
		uint32_t shard = (begin + i) % take->store->shards;
		int64_t first = tube->of[shard].first;
		if (has_failed(take, shard))
			continue;
		view->is_unknown |= first == HINT_UNKNOWN;
		if (first < 0 || (in_turn && has_seen))
			continue;
		has_seen = 1;
		if (first < *least) {
			if (shard != view->best && view->best >= 0)
				view->bound = *least;
			*least = first, view->best = shard;
		} else if (shard != view->best && first < view->bound)
			view->bound = first;
	}
}

/* Fill in *view and, of `promising`, the tubes that promise something in some shard. */
static int look_at_hints(const struct take *take, struct view *view, uint32_t *promising)
{
	const uint64_t now = time_now(CLOCK_BOOTTIME);
	int64_t least = HINT_PERHAPS + 1;
	int error = WW_OK;

	*view = (struct view){.best = -1, .bound = HINT_PERHAPS};
	pthread_mutex_lock(&take->store->lock);
	for (size_t t = 0; t < take->count && !error; t++) {
		const struct tube_hints *tube = hints_of(take, t);
		if (!tube) {
			error = WW_ENOMEM;
		} else if (tube->promises && tube->held_until <= now) {
			view_tube(take, tube, view, &least);
			promising[view->count++] = (uint32_t)t;
		}
	}
	view->seen = take->store->readies;
	pthread_mutex_unlock(&take->store->lock);
	return error;
}

static int is_unknown(const struct redis_store *store, const struct tube_hints *tube)
{
	for (uint32_t i = 0; i < store->shards && tube->promises; i++)
		if (tube->of[i].first == HINT_UNKNOWN)
			return 1;
	return 0;
}

/* Tubes of a take, by their places in it. */
struct some {
	uint32_t *tubes;
	size_t count;
	uint64_t seen; /* how many messages had come when they were chosen */
};

/* Choose the tubes with unknown hints, or without a worker all. */
static int choose(const struct take *take, struct some *some)
{
	struct redis_store *store = take->store;
	int error = WW_OK;

	some->count = 0;
	pthread_mutex_lock(&store->lock);
	for (size_t t = 0; t < take->count && !error; t++) {
		const struct tube_hints *tube = hints_of(take, t);
		if (!tube)
			error = WW_ENOMEM;
		else if (is_alone(store) || is_unknown(store, tube))
			some->tubes[some->count++] = (uint32_t)t;
	}
	some->seen = store->readies;
	pthread_mutex_unlock(&store->lock);
	return error;
}

/* Take over an answer, unless a message is newer. */
static void learn(const struct take *take, size_t t, uint32_t shard, int64_t first, uint64_t seen)
{
	struct tube_hints *tube = hints_of(take, t);

	if (tube && (first == NEEDS_PERMITS || first == NEEDS_GROUPS)) {
		tube->is_limited = first == NEEDS_PERMITS ? LIMITED_TUBE : LIMITED_GROUPS;
		first = HINT_PERHAPS;
	}
	if (tube && tube->of[shard].heard <= seen)
		ww_redis_hint_set(tube, shard, first);
}

/* The same from a shard that has had its turn. */
static void learn_turn(const struct take *take, size_t t, uint32_t shard, int64_t first, uint64_t seen)
{
	struct tube_hints *tube = hints_of(take, t);

	learn(take, t, shard, first, seen);
	if (tube)
		tube->turn = (shard + 1) % take->store->shards;
}

/* Learn from all shards; those without an answer have failed. */
static void learn_all(struct take *take, const struct fan *fan, const struct some *some)
{
	struct redis_store *store = take->store;

	for (uint32_t i = 0; i < store->shards; i++) {
		const struct redis_call *call = &fan->calls[i];
		int error = call->error ? call->error : ww_redis_call_array(store, call->reply, 2 * some->count);
		if (error)
			note_failed(take, i, error);
	}
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < store->shards; i++)
		for (size_t k = 0; k < some->count; k++)
			learn(take, some->tubes[k], i,
			    has_failed(take, i) ? HINT_PERHAPS
			                        : ww_redis_call_value(fan->calls[i].reply->element[2 * k]),
			    some->seen);
	pthread_mutex_unlock(&store->lock);
}

/* Ask all shards for the first job of some tubes. */
static int look_at(struct take *take, const struct some *some)
{
	struct redis_store *store = take->store;
	struct words *words = ww_redis_words_many(store, 3 + some->count);
	struct fan fan;
	int error;

	if (!words)
		return WW_ENOMEM;
	ww_redis_words_text(words, "ready");
	for (size_t k = 0; k < some->count; k++)
		ww_redis_words_text(words, take->tubes[some->tubes[k]]);
	error = ww_redis_call_each(
	    store, &ww_redis_script_shard_first, words, NULL, store->shards, REDIS_CALL_AGAIN | REDIS_CALL_SOON, &fan);
	if (fan.calls) {
		error = WW_OK;
		learn_all(take, &fan, some);
		ww_redis_call_fan_free(store, &fan);
	}
	ww_redis_words_free(store, words);
	return error;
}

static int look_at_all(struct take *take, uint32_t *room)
{
	size_t piece = LOOK_PIECE / take->store->shards ? LOOK_PIECE / take->store->shards : 1;
	struct some some = {.tubes = room};
	int error = choose(take, &some);
	size_t left = some.count;

	while (left && !error) {
		some.count = left < piece ? left : piece;
		error = look_at(take, &some);
		left -= some.count;
		some.tubes += some.count;
	}
	return error;
}

/*
 * Ask all shards for the first job of each tube that is not known. `room` has room for all tubes. Threads that have
 * many do so one after the other: they mostly want to know the same.
 */
static int look(struct take *take, uint32_t *room)
{
	struct redis_store *store = take->store;
	int error;

	if (take->count <= LOOK_MANY)
		return look_at_all(take, room);
	pthread_mutex_lock(&store->looking);
	error = look_at_all(take, room);
	pthread_mutex_unlock(&store->looking);
	return error;
}

/* ---- One shard */

static int read_leases(struct take *take, const redisReply *reply)
{
	struct redis_store *store = take->store;
	const redisReply *leases;
	int error = ww_redis_call_array(store, reply->element[0], 0);

	if (error)
		return error;
	leases = reply->element[0];
	for (size_t i = 0; i + LEASE_WORDS <= leases->elements && take->got < take->most && !error; i += LEASE_WORDS) {
		error = ww_redis_lease_read(store, &leases->element[i], &take->leases[take->got]);
		take->got += !error;
	}
	/* A lease that cannot be handed out runs out, and its job is ready again. */
	return error;
}

/* Keep, of the promising tubes, those that promise something in the shard that is asked. */
static size_t narrow(const struct take *take, const struct view *view, uint32_t *promising)
{
	size_t count = 0;

	pthread_mutex_lock(&take->store->lock);
	for (size_t i = 0; i < view->count; i++) {
		const struct tube_hints *tube = hints_of(take, promising[i]);
		if (tube && tube->of[view->best].first != HINT_NONE)
			promising[count++] = promising[i];
	}
	pthread_mutex_unlock(&take->store->lock);
	return count;
}

/* A tube's word of permits, after how many jobs at most. */
static int write_most(char *text, size_t most, const struct redis_permits *permits, size_t count)
{
	int used = snprintf(text, 24, "%zu", most);

	for (size_t i = 0; permits && i < count; i++)
		used += permits[i].row ? snprintf(text + used, 24, " g%zu", permits[i].row->elements / 2)
		                       : snprintf(text + used, 24, " %u", (unsigned)permits[i].number);
	return used;
}

static struct words *take_words(struct take *take, const struct view *view, const uint32_t *promising, size_t count,
    const char *most, const struct redis_permits *permits)
{
	size_t room = 4 + count;

	for (size_t i = 0; permits && i < count; i++)
		room += ww_redis_permit_words(&permits[i]);
	struct words *words = ww_redis_words_many(take->store, room);
	if (!words)
		return NULL;
	ww_redis_words_text(words, most);
	ww_redis_words_number(words, (uint64_t)view->bound);
	for (size_t i = 0; i < count; i++)
		ww_redis_words_text(words, take->tubes[promising[i]]);
	for (size_t i = 0; permits && i < count; i++)
		ww_redis_permit_fill(words, &permits[i]);
	return words;
}

/*
 * Lease as many as there is room for, with priorities up to the bound; if there are none, the first job alone. The
 * call names only the tubes that promise something there: watching a thousand costs as much as watching one. permits:
 * of each tube; or NULL.
 */
static int take_tubes(struct take *take, const struct view *view, const uint32_t *promising, size_t count,
    const char *most, const struct redis_permits *permits)
{
	struct redis_store *store = take->store;
	struct words *words = take_words(take, view, promising, count, most, permits);
	uint32_t shard = (uint32_t)view->best;
	redisReply *reply = NULL;
	int error;

	if (!words)
		return WW_ENOMEM;
	error = ww_redis_call(store, &ww_redis_script_shard_reserve, shard, words, REDIS_CALL_SOON, &reply);
	if (!error)
		error = ww_redis_call_array(store, reply, (permits ? 2 : 1) * count + 1);
	/* Also of leases that cannot be handed out. */
	for (size_t i = 0; permits && i < count && !error; i++)
		ww_redis_permit_settle(store, &permits[i], reply->element[1 + count + i]);
	if (!error)
		error = read_leases(take, reply);
	/* A shard that failed is asked after the others, until it answers or a message comes. */
	pthread_mutex_lock(&store->lock);
	for (size_t i = 0; i < count; i++)
		learn_turn(take, promising[i], shard, error ? HINT_PERHAPS : ww_redis_call_value(reply->element[1 + i]),
		    view->seen);
	pthread_mutex_unlock(&store->lock);
	ww_redis_call_free(reply);
	ww_redis_words_free(store, words);
	return error;
}

/* ---- Tubes with limits: permits come first */

static int kind_of(const struct take *take, uint32_t tube)
{
	pthread_mutex_lock(&take->store->lock);
	const struct tube_hints *hints = hints_of(take, tube);
	int kind = hints ? hints->is_limited : LIMITED_NOT;
	pthread_mutex_unlock(&take->store->lock);
	return kind;
}

static int is_any_limited(const struct take *take, const uint32_t *promising, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (kind_of(take, promising[i]))
			return 1;
	return 0;
}

/* Leave out the tubes that get none. */
static size_t leave_out(uint32_t *promising, struct redis_permits *permits, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (permits[i].kind < 0)
			continue;
		permits[kept] = permits[i];
		promising[kept++] = promising[i];
	}
	return kept;
}

static int take_permitted(struct take *take, const struct view *view, uint32_t *promising, size_t count, size_t most,
    struct redis_permits *permits, char *text)
{
	redisReply *row = NULL;

	for (size_t i = 0; i < count; i++)
		permits[i] =
		    (struct redis_permits){.tube = take->tubes[promising[i]], .kind = kind_of(take, promising[i])};
	/* If this fails, permits that were taken end by themselves. */
	int error = ww_redis_permit_take(take->store, (uint32_t)view->best, most, view->seen, permits, count, &row);
	count = leave_out(promising, permits, count);
	if (!error && count) {
		(void)write_most(text, most, permits, count);
		error = take_tubes(take, view, promising, count, text, permits);
	}
	ww_redis_permit_free(permits, count, row);
	return error;
}

static int take_from(struct take *take, const struct view *view, uint32_t *promising)
{
	const struct ww_allocator *allocator = take->store->allocator;
	size_t left = take->most - take->got;
	size_t most = left < TAKE_BATCH ? left : TAKE_BATCH;
	size_t count = narrow(take, view, promising);
	size_t size = count * (sizeof(struct redis_permits) + 24) + 24;
	char text[24];
	int error;

	/* Another thread has taken what was promised. */
	if (!count)
		return WW_OK;
	if (!is_any_limited(take, promising, count)) {
		(void)write_most(text, most, NULL, 0);
		return take_tubes(take, view, promising, count, text, NULL);
	}
	struct redis_permits *permits = memory_take(allocator, size);
	if (!permits)
		return WW_ENOMEM;
	error = take_permitted(take, view, promising, count, most, permits, (char *)(permits + count));
	memory_give(allocator, permits, size);
	return error;
}

/* Without a worker no message says when a limit lets jobs start. */
static void ask_anew(struct take *take)
{
	pthread_mutex_lock(&take->store->lock);
	for (size_t t = 0; t < take->count; t++) {
		struct tube_hints *tube = hints_of(take, t);
		if (tube)
			tube->held_until = 0;
	}
	pthread_mutex_unlock(&take->store->lock);
}

/* Take from one shard after another, until there are enough leases or no hint promises anything. */
static int take_all(struct take *take, uint32_t *promising)
{
	struct redis_store *store = take->store;
	/* Without a worker, no messages update the hints. */
	int has_looked = is_alone(store);
	int error = has_looked ? look(take, promising) : WW_OK;

	if (has_looked)
		ask_anew(take);
	take->end = time_now(CLOCK_BOOTTIME) + store->config.timeout;
	while (!error && take->got < take->most) {
		struct view view;
		int failed;
		error = look_at_hints(take, &view, promising);
		if (error)
			break;
		if (view.is_unknown && !has_looked) {
			error = look(take, promising), has_looked = 1;
			take->end = time_now(CLOCK_BOOTTIME) + store->config.timeout;
		} else if (view.best < 0) {
			break;
		} else if ((failed = take_from(take, &view, promising)) != WW_OK) {
			note_failed(take, (uint32_t)view.best, failed);
		}
		if (take->error == WW_ENOMEM || ((take->error || take->got) && time_now(CLOCK_BOOTTIME) >= take->end))
			break;
	}
	return error ? error : take->error;
}

/* Other jobs may be ready when all leases were over. On a link so slow that each round's are, the rounds end. */
static int take_live(struct take *take, uint32_t *promising)
{
	int error = WW_OK;
	size_t had = 1;

	for (int round = 0; round < ROUNDS_MAX && had && !take->got && !error; round++) {
		uint64_t began = time_now(CLOCK_BOOTTIME);
		error = take_all(take, promising);
		had = take->got;
		drop_over(take, began);
	}
	return error;
}

int ww_redis_reserve_many(struct ww_jobs *jobs, const struct ww_reserve *what, struct ww_lease *leases, size_t most)
{
	struct redis_store *store = store_of(jobs);
	const size_t count = what->count;
	struct take take = {.store = store, .tubes = what->tubes, .count = count, .leases = leases, .most = most};
	uint32_t few[16];
	uint32_t *promising = few;
	int error;

	if (ww_fork_count() != store->forks)
		return WW_ECLOSED;
	if (!count)
		return 0;
	if (count > sizeof few / sizeof *few && !(promising = memory_take(store->allocator, count * sizeof *promising)))
		return WW_ENOMEM;
	ww_redis_hint_bound(store, count);
	take.begin = (uint32_t)(random_next_shared(&store->random) % store->shards);
	error = take_live(&take, promising);
	if (promising != few)
		memory_give(store->allocator, promising, count * sizeof *promising);
	return take.got ? (int)take.got : error;
}

int ww_redis_reserve(struct ww_jobs *jobs, const struct ww_reserve *what, struct ww_lease *lease)
{
	struct ww_lease got;
	int result = ww_redis_reserve_many(jobs, what, &got, 1);

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
	uint64_t began = time_now(CLOCK_BOOTTIME);
	int asked = WW_OK;
	int error;

	ww_redis_words_number(ww_redis_words_few(store, &few), id);
	error = ww_redis_call_list(
	    store, &ww_redis_script_shard_reserve_job, shard_of(store, id), &few.words, 0, LEASE_WORDS + 2, &reply);
	if (error)
		return error;
	error = ww_redis_lease_read(store, reply->element, &got);
	if (!error && ww_redis_call_value(reply->element[LEASE_WORDS]))
		ww_redis_permit_add(store, &got, reply->element[LEASE_WORDS + 1]);
	ww_redis_call_free(reply);
	if (!error && ww_redis_lease_is_over(store, &got, began, &asked)) {
		ww_redis_lease_free(jobs, got.body);
		error = WW_ENOTFOUND;
	}
	if (!error)
		*lease = got;
	return error;
}
