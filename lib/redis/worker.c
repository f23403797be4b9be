/*
 * The worker: a thread that knows when each shard that it watches has something due, and sweeps the shard then.
 *
 *     messages ---> earlier alarms ---> +-----------------+  reached   sweep all due shards
 *     sweeps   ---> next alarms ------> | an alarm for    | ---------> side by side
 *     heartbeat --> who watches what    | each shard      |
 *                                       +-----------------+
 *
 * A sweep passes over all shards anyway, so their alarms need no other order than the shards' numbers.
 *
 * Redis itself never acts on time: a script that runs on a shard moves what is due. An alarm is the time when a shard
 * has something due next. Its life:
 *   1. A put or a reserve that is due sooner than all else in the shard lowers the shard's alarm in Redis, and the
 *      script publishes "a shard time".
 *   2. The worker that watches the shard notes the shard's alarm. Other workers ignore the message.
 *   3. At the alarm the worker runs shard_sweep.lua. It moves what is due, publishes "r shard priority tube"
 *      for tubes with a new first job, and replies the next alarm.
 *
 * How workers share the shards:
 *   1. Each tells Redis at least every third of its lease that it lives, and gets the names of all workers alive.
 *   2. Of n workers in the order of their names, the i-th watches the shards whose number is i modulo n.
 *   3. A worker that comes or goes publishes "w name", and all others divide anew. A worker that dies is noticed when its
 *      time runs out: the others plan a heartbeat for that moment.
 *   4. A shard that is newly watched is swept at once, which gives its alarm.
 * For a moment two workers may watch a shard, or none: that costs a call, or lateness.
 *
 * Messages can be lost with a connection, and between the nodes of a cluster without a sign. After opening an ear, and
 * in a cluster once per lease, the worker therefore sweeps all its shards and makes all hints unknown. A missed message
 * costs lateness and nothing else.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/thread.h"
#include "lib/redis/redis_internal.h"

/* ns between attempts while a node or a slot is set aside. */
#define AGAIN_MAX (250 * WW_MILLISECOND)

/* A shard, and when it is due. */
struct shard_watch {
	uint64_t alarm; /* us of Redis's time; 0: sweep it at once */
	int is_watched;
	int is_failing; /* its sweep failed: try again at worker->retry */
};

struct redis_worker {
	struct redis_store *store;
	pthread_t thread;
	_Atomic int stops;
	struct redis_ear *ear;
	struct shard_watch *watches;
	uint64_t next_beat; /* elapsed ns */
	uint64_t next_doubt;
	uint64_t retry; /* when failed parts are tried again */
	uint64_t wait;  /* the pause before that, ns; 0: nothing fails */
	_Atomic uint64_t wakes;
	_Atomic uint32_t watched;
	_Atomic uint32_t workers;
};

/* When Redis's clock comes to that time, by the system's elapsed time. */
static int64_t elapsed_at(const struct redis_worker *worker, uint64_t redis_us)
{
	return (int64_t)(redis_us * 1000) - atomic_load(&worker->store->offset);
}

/* ---- Messages */

static void hear(const char *message, size_t length, void *context)
{
	struct redis_worker *worker = context;
	struct redis_store *store = worker->store;
	char text[WW_TUBE_MAX + 64];
	uint64_t shard;
	uint64_t number;
	int used = 0;

	atomic_fetch_add(&worker->wakes, 1);
	if (length >= sizeof text)
		return;
	memcpy(text, message, length);
	text[length] = 0;
	if (sscanf(text, "a %" SCNu64 " %" SCNu64, &shard, &number) == 2) {
		if (shard < store->shards && number < worker->watches[shard].alarm)
			worker->watches[shard].alarm = number;
	} else if (text[0] == 'w') {
		/* Another worker came or went: a heartbeat divides anew. */
		if (strcmp(text + 1 + (text[1] == ' '), store->name) != 0)
			worker->next_beat = 0;
	} else if (sscanf(text, "r %" SCNu64 " %" SCNu64 "%n", &shard, &number, &used) == 2 && text[used] == ' ') {
		/* The rest is the tube's name, which may begin with blanks. */
		ww_redis_hint_hear(store, text + used + 1, (uint32_t)shard, (int64_t)number);
		if (store->config.ready)
			store->config.ready(text + used + 1, store->config.context);
	} else if (text[0] == 'l' && text[1] == ' ') {
		ww_redis_permit_let(store, text + 2);
		if (store->config.ready)
			store->config.ready(text + 2, store->config.context);
	}
}

/* Messages may have been missed: clients that wait for a tube must ask again. */
static void notify_all(struct redis_store *store)
{
	struct tube_hints *tube;
	struct tube_hints *next;
	char(*names)[WW_TUBE_MAX + 1] = NULL;
	size_t count = 0;
	size_t i = 0;

	ww_redis_hint_forget(store);
	if (!store->config.ready)
		return;
	pthread_mutex_lock(&store->lock);
	count = HASH_COUNT(store->tubes);
	if (count)
		names = memory_take(store->allocator, count * sizeof *names);
	if (names)
		HASH_ITER(hh, store->tubes, tube, next)
			memcpy(names[i++], tube->name, sizeof *names);
	pthread_mutex_unlock(&store->lock);
	for (size_t k = 0; k < i; k++)
		store->config.ready(names[k], store->config.context);
	memory_give(store->allocator, names, count * sizeof *names);
}

/* ---- Redis */

/* Redis did not answer: double the pause, less up to a quarter at random: workers do not come back all at once. */
static void back_off(struct redis_worker *worker, int is_later)
{
	uint64_t most = worker->store->config.backoff_max;

	/* Where a node or a slot is set aside, to ask costs nothing until its next probe. */
	if (is_later && most > AGAIN_MAX)
		most = AGAIN_MAX;
	worker->wait = worker->wait ? worker->wait * 2 : 50 * WW_MILLISECOND;
	if (worker->wait > most)
		worker->wait = most;
	worker->wait -= random_next_shared(&worker->store->random) % (worker->wait / 4 + 1);
	worker->retry = time_now(CLOCK_BOOTTIME) + worker->wait;
}

/* Divide the shards among the workers that a heartbeat replies. */
static void divide(struct redis_worker *worker, const redisReply *reply)
{
	struct redis_store *store = worker->store;
	size_t workers = (reply->elements - 2) / 2;
	size_t mine = 0;
	int is_there = 0;
	uint32_t watched = 0;

	for (size_t i = 2; i + 1 < reply->elements; i += 2) {
		int order =
		    reply->element[i]->type == REDIS_REPLY_STRING ? strcmp(reply->element[i]->str, store->name) : 1;
		mine += order < 0;
		is_there |= order == 0;
	}
	if (!is_there)
		mine = workers;
	for (uint32_t i = 0; i < store->shards; i++) {
		struct shard_watch *watch = &worker->watches[i];
		int is_mine = mine < workers && i % workers == mine;
		if (is_mine && !watch->is_watched)
			watch->alarm = 0;
		watch->is_watched = is_mine;
		watched += (uint32_t)is_mine;
	}
	atomic_store(&worker->watched, watched);
	atomic_store(&worker->workers, (uint32_t)workers);
}

/* The next heartbeat is in a third of the lease, or when the time of the first of the other workers runs out. */
static void plan_beat(struct redis_worker *worker, const redisReply *reply, uint64_t lease)
{
	uint64_t now = time_now(CLOCK_BOOTTIME);
	uint64_t first = REDIS_NEVER;

	for (size_t i = 2; i + 1 < reply->elements; i += 2) {
		uint64_t end = (uint64_t)ww_redis_call_value(reply->element[i + 1]);
		if (reply->element[i]->type == REDIS_REPLY_STRING &&
		    strcmp(reply->element[i]->str, worker->store->name) != 0 && end < first)
			first = end;
	}
	int64_t end = elapsed_at(worker, first + 1000);
	worker->next_beat = now + lease / 3;
	if (end > (int64_t)now && (uint64_t)end < worker->next_beat)
		worker->next_beat = (uint64_t)end;
}

/* Redis may have lost the store between two calls. */
static int make_sure(struct redis_store *store, const redisReply *identity)
{
	char known[REDIS_IDENTITY_SIZE];

	copy_identity(store, known);
	if (identity->type == REDIS_REPLY_STRING && strcmp(identity->str, known) == 0)
		return WW_OK;
	return ww_redis_make_anew(store, known);
}

static int beat(struct redis_worker *worker, uint64_t lease)
{
	struct redis_store *store = worker->store;
	char span[24];
	const char *argv[] = {store->name, span};
	struct redis_call call = {.script = &ww_redis_script_store_beat,
	    .key = store->tag,
	    .also = store->key,
	    .argc = 2,
	    .argv = argv,
	    .flags = REDIS_CALL_AGAIN | REDIS_CALL_SOON};
	uint64_t began = time_now(CLOCK_BOOTTIME);

	snprintf(span, sizeof span, "%" PRIu64, lease / 1000);
	int error = ww_redis_link_run(store->link, &call, 1);
	if (!error)
		error = ww_redis_call_array(store, call.reply, 2);
	if (!error) {
		ww_redis_clock_learn(store, (uint64_t)ww_redis_call_value(call.reply->element[1]), began);
		divide(worker, call.reply);
		plan_beat(worker, call.reply, lease);
	}
	if (!error && lease)
		error = make_sure(store, call.reply->element[0]);
	ww_redis_link_free(&call, 1);
	return error;
}

static int sweep_some(struct redis_worker *worker, const uint32_t *shards, size_t count)
{
	struct redis_store *store = worker->store;
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	struct fan fan;
	uint64_t began = time_now(CLOCK_BOOTTIME);
	int error = ww_redis_call_each(
	    store, &ww_redis_script_shard_sweep, words, shards, count, REDIS_CALL_AGAIN | REDIS_CALL_SOON, &fan);

	for (size_t i = 0; fan.calls && i < count; i++) {
		struct shard_watch *watch = &worker->watches[shards[i]];
		const redisReply *reply = fan.calls[i].reply;
		/* Without an answer the shard stays due. */
		watch->is_failing = fan.calls[i].error || ww_redis_call_array(store, reply, 2);
		if (watch->is_failing)
			continue;
		ww_redis_clock_learn(store, (uint64_t)ww_redis_call_value(reply->element[0]), began);
		watch->alarm = (uint64_t)ww_redis_call_value(reply->element[1]);
	}
	ww_redis_call_fan_free(store, &fan);
	return error;
}

/* When a shard must be swept next, us of Redis's time. */
static uint64_t due(const struct shard_watch *watch)
{
	return watch->is_watched && !watch->is_failing ? watch->alarm : REDIS_NEVER;
}

/* Sweep all due shards; one whose node fails does not hold up the others. */
static int sweep(struct redis_worker *worker)
{
	uint32_t shards[64];
	size_t count = 0;
	uint64_t now = ww_redis_clock_now(worker->store) / 1000;
	int error = WW_OK;

	for (uint32_t i = 0; i < worker->store->shards; i++) {
		if (due(&worker->watches[i]) <= now)
			shards[count++] = i;
		if (count && (count == sizeof shards / sizeof shards[0] || i + 1 == worker->store->shards)) {
			int swept = sweep_some(worker, shards, count);
			error = error ? error : swept;
			count = 0;
		}
	}
	return error;
}

/* ---- The thread */

static void watch_again(struct redis_worker *worker)
{
	for (uint32_t i = 0; i < worker->store->shards; i++)
		worker->watches[i].alarm = 0;
	notify_all(worker->store);
}

static int listen_again(struct redis_worker *worker)
{
	char channel[REDIS_TAG_SIZE];
	int error;

	if (worker->ear)
		return WW_OK;
	snprintf(channel, sizeof channel, "%s:wake", worker->store->config.prefix);
	error = ww_redis_ear_open(&worker->ear, worker->store->link, channel);
	if (!error)
		watch_again(worker);
	return error;
}

/* In a cluster a message may be lost without a sign: once per lease, act as if one was. */
static void doubt(struct redis_worker *worker)
{
	uint64_t now = time_now(CLOCK_BOOTTIME);
	struct redis_link_stats link;

	if (now < worker->next_doubt)
		return;
	ww_redis_link_stats(worker->store->link, &link);
	if (worker->next_doubt && worker->ear && link.nodes > 1)
		watch_again(worker);
	worker->next_doubt = now + worker->store->config.lease;
}

static int is_later(int error)
{
	return error == WW_OK || error == WW_EAGAIN;
}

/* A turn. A part that fails does not keep the others from running, and is tried again after a pause. */
static void work(struct redis_worker *worker)
{
	int is_retry = !worker->wait || time_now(CLOCK_BOOTTIME) >= worker->retry;
	int error = is_retry ? listen_again(worker) : WW_OK;
	int beaten = WW_OK;
	int swept;

	for (uint32_t i = 0; i < worker->store->shards && is_retry; i++)
		worker->watches[i].is_failing = 0;
	if (time_now(CLOCK_BOOTTIME) >= worker->next_beat)
		beaten = beat(worker, worker->store->config.lease);
	doubt(worker);
	swept = sweep(worker);
	if (error || beaten || swept)
		back_off(worker, is_later(error) && is_later(beaten) && is_later(swept));
	else if (is_retry)
		worker->wait = 0;
	if (beaten)
		worker->next_beat = worker->retry;
}

/* How long there is nothing to do, ns. */
static uint64_t idle(const struct redis_worker *worker)
{
	uint64_t now = time_now(CLOCK_BOOTTIME);
	uint64_t until = worker->next_beat;
	uint64_t alarm = REDIS_NEVER;

	if (worker->wait && worker->retry < until)
		until = worker->retry;
	for (uint32_t i = 0; i < worker->store->shards; i++)
		if (due(&worker->watches[i]) < alarm)
			alarm = due(&worker->watches[i]);
	int64_t at = elapsed_at(worker, alarm);
	if (at < (int64_t)until)
		until = at > 0 ? (uint64_t)at : 0;
	return until > now ? until - now : 0;
}

static void forget_wakes(struct redis_store *store)
{
	uint64_t count;

	(void)!read(store->wake_fd, &count, sizeof count);
}

static void sleep_for(struct redis_worker *worker, uint64_t span)
{
	struct pollfd fd = {.fd = worker->store->wake_fd, .events = POLLIN};
	int heard = 0;

	if (!worker->ear) {
		(void)poll(&fd, 1, (int)(span / WW_MILLISECOND + 1));
		forget_wakes(worker->store);
		return;
	}
	heard = ww_redis_ear_wait(worker->ear, worker->store->wake_fd, span, hear, worker);
	if (heard < 0) {
		ww_redis_ear_close(worker->ear);
		worker->ear = NULL;
	}
	forget_wakes(worker->store);
}

static void *run(void *argument)
{
	struct redis_worker *worker = argument;

	while (!atomic_load(&worker->stops)) {
		work(worker);
		sleep_for(worker, idle(worker));
	}
	ww_redis_ear_close(worker->ear);
	worker->ear = NULL;
	(void)beat(worker, 0);
	return NULL;
}

/* ---- Beginning and end */

static void release(struct redis_worker *worker)
{
	struct redis_store *store = worker->store;

	memory_give(store->allocator, worker->watches, store->shards * sizeof *worker->watches);
	memory_give(store->allocator, worker, sizeof *worker);
}

int ww_redis_worker_start(struct redis_store *store)
{
	struct redis_worker *worker = memory_take_zeroed(store->allocator, sizeof *worker);
	int error;

	if (!worker)
		return WW_ENOMEM;
	worker->store = store;
	worker->watches = memory_take_zeroed(store->allocator, store->shards * sizeof *worker->watches);
	error = worker->watches ? WW_OK : WW_ENOMEM;
	/* Listen before anybody asks: then nothing that becomes ready from now on is missed. */
	if (!error)
		error = listen_again(worker);
	if (!error && thread_start(&worker->thread, run, worker))
		error = WW_ESYSTEM;
	if (error) {
		ww_redis_ear_close(worker->ear);
		release(worker);
		return error;
	}
	store->worker = worker;
	return WW_OK;
}

void ww_redis_worker_wake(void *context)
{
	const struct redis_store *store = context;
	uint64_t one = 1;

	while (store->wake_fd >= 0 && write(store->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void ww_redis_worker_stop(struct redis_store *store)
{
	struct redis_worker *worker = store->worker;

	if (!worker)
		return;
	atomic_store(&worker->stops, 1);
	ww_redis_worker_wake(store);
	thread_join(worker->thread);
	store->worker = NULL;
	release(worker);
}

void ww_redis_worker_stats(struct redis_store *store, struct ww_jobs_redis_stats *stats)
{
	const struct redis_worker *worker = store->worker;

	if (!worker)
		return;
	stats->wakes = atomic_load(&worker->wakes);
	stats->watched = atomic_load(&worker->watched);
	stats->workers = atomic_load(&worker->workers);
	stats->bytes += sizeof *worker + store->shards * sizeof *worker->watches;
}
