/* Statistics: those of all shards added up, by tube; and those of the connection to Redis. */
#include <string.h>

#include "lib/redis/redis_internal.h"

/* The words of shard_tubes.lua: of each tube, and of the shard. */
/* clang-format off */
enum {
	TUBE_NAME, TUBE_ALL, TUBE_READY, TUBE_URGENT, TUBE_RESERVED, TUBE_BURIED, TUBE_PAUSE, TUBE_PAUSE_LEFT,
	TUBE_AGE, TUBE_LIMITED, TUBE_HELD, TUBE_WORDS
};
enum {
	SUM_ACCEPTED, SUM_ENDED, SUM_TIMEOUTS, SUM_LATE, SUM_LATE_CLASSES,
	SUM_KEPT = SUM_LATE_CLASSES + WW_LATE_CLASSES, SUM_RUNS, SUM_WORDS,
	SUM_CURSOR = SUM_WORDS, SUM_REPLIES
};
/* clang-format on */

/*
 * How many tubes a script looks at, and all shards of a fan together. A tube takes 30 to 40 us of Redis, which does
 * nothing else meanwhile.
 */
enum { PIECE = 32, PIECE_LEAST = 2, CURSOR_SIZE = WW_TUBE_MAX + 2 };

/* A tube, added up over the shards. */
struct sum {
	UT_hash_handle hh;
	struct ww_tube_stats stats;
	uint64_t age;
	uint32_t shards; /* the last one whose part was added, plus 1 */
};

struct sums {
	struct redis_store *store;
	struct sum *tubes;
	uint64_t words[SUM_WORDS];
};

static void sums_free(struct sums *sums)
{
	struct sum *sum;
	struct sum *next;

	HASH_ITER(hh, sums->tubes, sum, next) {
		HASH_DEL(sums->tubes, sum);
		memory_give(sums->store->allocator, sum, sizeof *sum);
	}
}

static struct sum *sum_of(struct sums *sums, const char *name, size_t length)
{
	const struct ww_allocator *allocator = sums->store->allocator;
	struct sum *sum;

	HASH_FIND(hh, sums->tubes, name, (unsigned)length, sum);
	if (sum)
		return sum;
	sum = memory_take_zeroed(allocator, sizeof *sum);
	if (!sum)
		return NULL;
	memcpy(sum->stats.name, name, length);
	HASH_ADD_KEYPTR(hh, sums->tubes, sum->stats.name, (unsigned)length, sum);
	if (!sum->hh.tbl) {
		memory_give(allocator, sum, sizeof *sum);
		return NULL;
	}
	return sum;
}

static int add_tube(struct sums *sums, const redisReply *reply, uint32_t shard)
{
	uint64_t of[TUBE_WORDS] = {0};
	int error = ww_redis_call_array(sums->store, reply, TUBE_WORDS);

	if (error)
		return error;
	const redisReply *name = reply->element[TUBE_NAME];
	if (name->type != REDIS_REPLY_STRING || name->len > WW_TUBE_MAX)
		return WW_ECORRUPT;
	struct sum *sum = sum_of(sums, name->str, name->len);
	if (!sum)
		return WW_ENOMEM;
	/* A cursor may find a tube twice. */
	if (sum->shards == shard + 1)
		return WW_OK;
	sum->shards = shard + 1;
	for (int i = 1; i < TUBE_WORDS; i++)
		of[i] = (uint64_t)ww_redis_call_value(reply->element[i]);
	uint64_t present = of[TUBE_READY] + of[TUBE_RESERVED] + of[TUBE_BURIED];
	sum->stats.delayed += of[TUBE_ALL] > present ? of[TUBE_ALL] - present : 0;
	sum->stats.ready += of[TUBE_READY];
	sum->stats.urgent += of[TUBE_URGENT];
	sum->stats.reserved += of[TUBE_RESERVED];
	sum->stats.buried += of[TUBE_BURIED];
	sum->stats.pause = of[TUBE_PAUSE] ? of[TUBE_PAUSE] * 1000 : sum->stats.pause;
	sum->stats.pause_left = of[TUBE_PAUSE] ? of[TUBE_PAUSE_LEFT] * 1000 : sum->stats.pause_left;
	sum->stats.is_limited |= of[TUBE_LIMITED] != 0;
	sum->stats.held += of[TUBE_HELD];
	sum->age = of[TUBE_AGE] > sum->age ? of[TUBE_AGE] : sum->age;
	return WW_OK;
}

/* Add the counters that only this process has. */
static void add_own(struct redis_store *store, struct ww_tube_stats *stats)
{
	struct tube_hints *hints;

	pthread_mutex_lock(&store->lock);
	HASH_FIND(hh, store->tubes, stats->name, (unsigned)strlen(stats->name), hints);
	if (hints) {
		stats->puts = hints->puts;
		stats->finished = hints->finished;
		stats->pauses = hints->pauses;
	}
	pthread_mutex_unlock(&store->lock);
}

static int add_tubes(struct sums *sums, const redisReply *reply, uint32_t shard)
{
	int error = WW_OK;

	for (size_t k = 1; !error && k < reply->elements; k++)
		error = add_tube(sums, reply->element[k], shard);
	return error;
}

/* Copy the cursor out of a reply. */
static int read_cursor(struct sums *sums, const redisReply *reply, char cursor[CURSOR_SIZE])
{
	int error = ww_redis_call_array(sums->store, reply->element[0], SUM_REPLIES);
	const redisReply *word = error ? NULL : reply->element[0]->element[SUM_CURSOR];

	if (error)
		return error;
	if (word->type != REDIS_REPLY_STRING || word->len >= CURSOR_SIZE)
		return WW_ECORRUPT;
	memcpy(cursor, word->str, word->len + 1);
	return WW_OK;
}

/* Ask a shard for its tubes from the cursor on, piece by piece. */
static int collect_shard(struct sums *sums, uint32_t shard, char cursor[CURSOR_SIZE])
{
	struct redis_store *store = sums->store;
	int error = WW_OK;

	while (!error && cursor[0]) {
		struct few_words few;
		struct words *words = ww_redis_words_few(store, &few);
		redisReply *reply;

		ww_redis_words_text(words, "");
		ww_redis_words_number(words, PIECE);
		ww_redis_words_text(words, cursor);
		error = ww_redis_call_list(
		    store, &ww_redis_script_shard_tubes, shard, words, REDIS_CALL_AGAIN | REDIS_CALL_SOON, 1, &reply);
		if (error)
			return error;
		error = read_cursor(sums, reply, cursor);
		if (!error)
			error = add_tubes(sums, reply, shard);
		ww_redis_call_free(reply);
	}
	return error;
}

/* A shard's counters and tubes, or, if they are many, the first of its tubes and those that follow. */
static int add_shard(struct sums *sums, const redisReply *reply, uint32_t shard)
{
	char cursor[CURSOR_SIZE];
	int error = read_cursor(sums, reply, cursor);

	for (size_t k = 0; k < SUM_WORDS && !error; k++)
		sums->words[k] += (uint64_t)ww_redis_call_value(reply->element[0]->element[k]);
	if (!error)
		error = add_tubes(sums, reply, shard);
	return error ? error : collect_shard(sums, shard, cursor);
}

/* Collect one tube, or all with NULL: one shard after the other if they are many. */
static int collect(struct redis_store *store, const char *tube, struct sums *sums)
{
	uint32_t piece = PIECE / store->shards > PIECE_LEAST ? PIECE / store->shards : PIECE_LEAST;
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	struct sum *sum;
	struct sum *next;
	struct fan fan;

	*sums = (struct sums){.store = store};
	ww_redis_words_text(words, tube ? tube : "");
	if (!tube)
		ww_redis_words_number(words, piece);
	int error = ww_redis_call_all(store, &ww_redis_script_shard_tubes, words, 1, &fan);
	if (error)
		return error;
	for (uint32_t i = 0; i < fan.count && !error; i++)
		error = add_shard(sums, fan.calls[i].reply, i);
	ww_redis_call_fan_free(store, &fan);
	HASH_ITER(hh, sums->tubes, sum, next)
		add_own(store, &sum->stats);
	if (error)
		sums_free(sums);
	return error;
}

static int is_empty(const struct ww_tube_stats *stats)
{
	return !(stats->delayed + stats->ready + stats->reserved + stats->buried);
}

static int fill_held(struct redis_store *store, struct ww_tube_stats *stats)
{
	return stats->is_limited ? ww_redis_limit_held(store, stats->name, stats->ready, &stats->held) : WW_OK;
}

int ww_redis_stats_counts(struct redis_store *store, const char *tube, uint64_t *ready, uint64_t *reserved)
{
	struct sums sums;
	int error = collect(store, tube, &sums);

	if (error)
		return error;
	*ready = sums.tubes ? sums.tubes->stats.ready : 0;
	*reserved = sums.tubes ? sums.tubes->stats.reserved : 0;
	sums_free(&sums);
	return WW_OK;
}

int ww_redis_stats_tube(struct ww_jobs *jobs, const char *tube, struct ww_tube_stats *stats)
{
	struct redis_store *store = store_of(jobs);
	struct sums sums;
	int error = collect(store, tube, &sums);

	if (error)
		return error;
	if (!sums.tubes)
		error = WW_ENOTFOUND;
	else if (is_empty(&sums.tubes->stats) && !sums.tubes->stats.pause && !sums.tubes->stats.puts &&
	         !sums.tubes->stats.finished && !sums.tubes->stats.pauses)
		error = WW_ENOTFOUND;
	else
		error = fill_held(store, &sums.tubes->stats);
	if (!error)
		*stats = sums.tubes->stats;
	sums_free(&sums);
	return error;
}

int ww_redis_stats_tubes(struct ww_jobs *jobs, ww_tube_fn *fn, void *context)
{
	struct sums sums;
	struct sum *sum;
	struct sum *next;
	int result = collect(store_of(jobs), NULL, &sums);

	if (result)
		return result;
	HASH_ITER(hh, sums.tubes, sum, next) {
		if (is_empty(&sum->stats))
			continue;
		result = fill_held(store_of(jobs), &sum->stats);
		if (!result)
			result = fn(&sum->stats, context);
		if (result)
			break;
	}
	sums_free(&sums);
	return result;
}

static void add_puts(struct redis_store *store, struct ww_tube_stats *all)
{
	struct tube_hints *tube;
	struct tube_hints *next;

	pthread_mutex_lock(&store->lock);
	HASH_ITER(hh, store->tubes, tube, next) {
		all->puts += tube->puts;
		all->finished += tube->finished;
		all->pauses += tube->pauses;
	}
	all->puts += store->gone_puts;
	all->finished += store->gone_finished;
	pthread_mutex_unlock(&store->lock);
}

/* Other threads learn of tubes meanwhile. */
static uint64_t bytes_of(struct redis_store *store)
{
	uint64_t bytes = sizeof *store + 2 * store->shards * sizeof *store->tags;

	pthread_mutex_lock(&store->lock);
	bytes += store->bytes;
	pthread_mutex_unlock(&store->lock);
	return bytes;
}

int ww_redis_stats(struct ww_jobs *jobs, struct ww_jobs_stats *stats)
{
	struct redis_store *store = store_of(jobs);
	struct sums sums;
	struct sum *sum;
	struct sum *next;
	int error = collect(store, NULL, &sums);

	if (error)
		return error;
	*stats = (struct ww_jobs_stats){.timeouts = sums.words[SUM_TIMEOUTS],
	    .accepted = sums.words[SUM_ACCEPTED],
	    .kept = sums.words[SUM_KEPT],
	    .runs = sums.words[SUM_RUNS],
	    .ended = sums.words[SUM_ENDED],
	    .late_ns = sums.words[SUM_LATE] * 1000};
	memcpy(stats->late, &sums.words[SUM_LATE_CLASSES], sizeof stats->late);
	HASH_ITER(hh, sums.tubes, sum, next) {
		stats->all.delayed += sum->stats.delayed;
		stats->all.ready += sum->stats.ready;
		stats->all.urgent += sum->stats.urgent;
		stats->all.reserved += sum->stats.reserved;
		stats->all.buried += sum->stats.buried;
		stats->tubes += !is_empty(&sum->stats);
		stats->oldest = sum->age * 1000 > stats->oldest ? sum->age * 1000 : stats->oldest;
	}
	add_puts(store, &stats->all);
	stats->bytes = bytes_of(store);
	sums_free(&sums);
	return WW_OK;
}

int ww_jobs_redis_stats(struct ww_jobs *jobs, struct ww_jobs_redis_stats *stats)
{
	struct redis_link_stats link;

	if (!jobs || !stats || jobs->backend != &ww_redis_backend)
		return WW_EINVAL;
	struct redis_store *store = store_of(jobs);
	ww_redis_link_stats(store->link, &link);
	*stats = (struct ww_jobs_redis_stats){.commands = link.commands,
	    .round_trips = link.round_trips,
	    .reconnects = link.failures,
	    .redirections = link.redirections,
	    .resets = atomic_load(&store->resets),
	    .nodes = link.nodes,
	    .shards = store->shards,
	    .skew = (int64_t)(time_now(CLOCK_REALTIME) - ww_redis_clock_now(store)),
	    .bytes = bytes_of(store)};
	ww_redis_worker_stats(store, stats);
	return WW_OK;
}

/* ---- Nodes */

static const char *tag_at(size_t i, void *context)
{
	return ((struct redis_store *)context)->tags[i];
}

static struct ww_jobs_redis_node node_of(const struct redis_node_report *report)
{
	static const enum ww_redis_node_state states[] = {[REDIS_NODE_SERVES] = WW_REDIS_NODE_SERVES,
	    [REDIS_NODE_ASIDE] = WW_REDIS_NODE_ASIDE,
	    [REDIS_NODE_LOST] = WW_REDIS_NODE_LOST};
	struct ww_jobs_redis_node node = {.state = states[report->state],
	    .shards = report->keys,
	    .since = report->since,
	    .probe = report->probe,
	    .refused = report->refused};

	snprintf(node.address, sizeof node.address, "%s", report->place);
	snprintf(node.why, sizeof node.why, "%s", report->why);
	return node;
}

int ww_jobs_redis_nodes(struct ww_jobs *jobs, struct ww_jobs_redis_node *nodes, size_t room, size_t *count)
{
	struct redis_node_report *reports = NULL;
	size_t found;

	if (!jobs || !count || (room && !nodes) || jobs->backend != &ww_redis_backend || room > WW_REDIS_NODES_MAX)
		return WW_EINVAL;
	struct redis_store *store = store_of(jobs);
	if (ww_fork_count() != store->forks)
		return WW_ECLOSED;
	if (room && !(reports = memory_take_zeroed(store->allocator, room * sizeof *reports)))
		return WW_ENOMEM;
	found = ww_redis_link_nodes(store->link, reports, room, tag_at, store->shards, store);
	for (size_t i = 0; i < found && i < room; i++)
		nodes[i] = node_of(&reports[i]);
	memory_give(store->allocator, reports, room * sizeof *reports);
	*count = found;
	return WW_OK;
}
