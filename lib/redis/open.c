/* Opening and closing a store in Redis, its time, and the table of its calls. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "lib/redis/link/url.h"
#include "lib/redis/redis_internal.h"

int ww_jobs_redis_config_default(struct ww_jobs_redis_config *config)
{
	if (!config)
		return WW_EINVAL;
	*config = (struct ww_jobs_redis_config){.prefix = "weekwheel",
	    .shards = 16,
	    .slice = 600 * WW_SECOND,
	    .lease = 6 * WW_SECOND,
	    .timeout = 2 * WW_SECOND,
	    .backoff_max = 5 * WW_SECOND,
	    .connections = 16,
	    .body_max = 65535};
	return WW_OK;
}

int ww_jobs_redis_check_url(const char *url, const char **why)
{
	struct redis_url parts;
	const char *sentence;
	int error = ww_redis_url_parse(&parts, url, &sentence);

	if (error && why)
		*why = sentence;
	return error;
}

/* ---- Time and chance */

uint64_t ww_redis_elapsed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * WW_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t ww_redis_now(const struct redis_store *store)
{
	if (store->config.now)
		return store->config.now(store->config.context);
	return (uint64_t)((int64_t)ww_redis_elapsed() + atomic_load(&store->offset));
}

/*
 * Redis's time was that somewhere between `began` and now; taken for now, so that an alarm comes late by a round trip
 * rather than early.
 */
void ww_redis_clock(struct redis_store *store, uint64_t redis_us, uint64_t began)
{
	uint64_t now = ww_redis_elapsed();

	/* An answer that took long says little. */
	if (now - began < 100 * WW_MILLISECOND || atomic_load(&store->offset) == 0)
		atomic_store(&store->offset, (int64_t)(redis_us * 1000) - (int64_t)now);
}

uint64_t ww_redis_random(struct redis_store *store)
{
	uint64_t mixed = atomic_fetch_add(&store->random, UINT64_C(0x9e3779b97f4a7c15)) + UINT64_C(0x9e3779b97f4a7c15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ mixed >> 31;
}

void ww_redis_report(const struct redis_store *store, const char *sentence)
{
	if (store->config.report)
		store->config.report(sentence, store->config.context);
}

/* ---- Opening */

static int is_prefix(const char *prefix)
{
	size_t length = prefix ? strnlen(prefix, WW_REDIS_PREFIX_MAX + 1) : 0;

	if (length < 1 || length > WW_REDIS_PREFIX_MAX)
		return 0;
	return strspn(prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}

static int is_between(uint64_t number, uint64_t least, uint64_t most)
{
	return number >= least && number <= most;
}

static int check(const struct ww_jobs_redis_config *config)
{
	if (!config->url || !is_prefix(config->prefix))
		return WW_EINVAL;
	if (config->name && (!*config->name || strnlen(config->name, 128) == 128))
		return WW_EINVAL;
	if (!is_between(config->shards, 1, WW_REDIS_SHARDS_MAX) ||
	    !is_between(config->slice, WW_SECOND, 86400 * WW_SECOND) ||
	    !is_between(config->lease, WW_SECOND, 3600 * WW_SECOND) ||
	    !is_between(config->timeout, 10 * WW_MILLISECOND, 3600 * WW_SECOND) ||
	    !is_between(config->backoff_max, 10 * WW_MILLISECOND, 3600 * WW_SECOND) ||
	    !is_between(config->connections, 1, 1000) || config->body_max > WW_JOB_BODY_MAX ||
	    config->flags & ~(WW_REDIS_EXISTING | WW_REDIS_PASSIVE))
		return WW_EINVAL;
	const struct ww_allocator *allocator = config->allocator;
	return allocator && (!allocator->allocate || !allocator->free) ? WW_EINVAL : WW_OK;
}

static int name_it(struct redis_store *store)
{
	char host[64] = "";
	uint64_t random[2];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return WW_ESYSTEM;
	atomic_store(&store->random, random[0]);
	atomic_store(&store->turn, (uint32_t)random[1]);
	snprintf(store->identity, sizeof store->identity, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
	gethostname(host, sizeof host - 1);
	if (store->config.name)
		snprintf(store->name, sizeof store->name, "%s", store->config.name);
	else
		snprintf(
		    store->name, sizeof store->name, "%s-%ld-%08" PRIx32, host, (long)getpid(), (uint32_t)random[0]);
	snprintf(store->tag, sizeof store->tag, "{%s}", store->config.prefix);
	snprintf(store->key, sizeof store->key, "{%s}:store", store->config.prefix);
	return WW_OK;
}

static int make_locks(struct redis_store *store)
{
	pthread_condattr_t attributes;
	int error = pthread_condattr_init(&attributes);

	if (error)
		return WW_ESYSTEM;
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	error = pthread_cond_init(&store->heard, &attributes);
	pthread_condattr_destroy(&attributes);
	if (error)
		return WW_ESYSTEM;
	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->renewing, NULL);
	return WW_OK;
}

static void release(struct redis_store *store)
{
	const struct ww_allocator *allocator = store->allocator;

	ww_redis_hint_free(store);
	ww_redis_link_close(store->link);
	pthread_cond_destroy(&store->heard);
	pthread_mutex_destroy(&store->lock);
	pthread_mutex_destroy(&store->renewing);
	if (store->tags)
		allocator->free(allocator->user, store->tags, 2 * store->shards * sizeof *store->tags);
	if (store->config.prefix)
		allocator->free(
		    allocator->user, (void *)(uintptr_t)store->config.prefix, strlen(store->config.prefix) + 1);
	allocator->free(allocator->user, store, sizeof *store);
}

static int open_link(struct redis_store *store)
{
	struct redis_link_config link;

	ww_redis_link_config_default(&link);
	link.url = store->config.url;
	link.timeout = store->config.timeout;
	link.backoff_max = store->config.backoff_max;
	link.connections = store->config.connections;
	link.allocator = store->allocator;
	link.report = store->config.report;
	link.context = store->config.context;
	return ww_redis_link_open(&store->link, &link);
}

/*
 * What in Redis's configuration will lose jobs one day; better said at the beginning. What it does not show is not
 * said.
 */
static void advise(struct redis_store *store)
{
	const char *argv[] = {"INFO"};
	struct redis_call call = {.key = store->tags[0], .argc = 1, .argv = argv, .flags = REDIS_CALL_AGAIN};

	if (ww_redis_link_run(store->link, &call, 1) == WW_OK && call.reply->type == REDIS_REPLY_STRING) {
		const char *info = call.reply->str;
		if (strstr(info, "\nmaxmemory_policy:") && !strstr(info, "\nmaxmemory:0\r") &&
		    !strstr(info, "\nmaxmemory_policy:noeviction"))
			ww_redis_report(store,
			    "Redis will throw away jobs when its memory is full: set maxmemory-policy to "
			    "noeviction");
		if (strstr(info, "\naof_enabled:0"))
			ww_redis_report(store,
			    "Redis keeps no log, and will have lost what came since its last snapshot when it "
			    "starts again: set appendonly to yes");
	}
	ww_redis_link_free(&call, 1);
}

static int open_store(struct redis_store *store)
{
	int error = name_it(store);

	if (!error)
		error = open_link(store);
	if (!error)
		error = ww_redis_make(store, NULL);
	if (!error && !is_alone(store))
		error = ww_redis_worker_start(store);
	if (!error && !is_alone(store))
		advise(store);
	return error;
}

int ww_jobs_redis_open(struct ww_jobs **jobs, const struct ww_jobs_redis_config *config)
{
	const struct ww_allocator *allocator;
	struct redis_store *store;
	char *prefix;
	int error = jobs && config ? check(config) : WW_EINVAL;

	if (error)
		return error;
	allocator = config->allocator ? config->allocator : ww_allocator_default();
	store = allocator->allocate(allocator->user, sizeof *store);
	if (!store)
		return WW_ENOMEM;
	memset(store, 0, sizeof *store);
	prefix = allocator->allocate(allocator->user, strlen(config->prefix) + 1);
	error = prefix ? make_locks(store) : WW_ENOMEM;
	if (error) {
		if (prefix)
			allocator->free(allocator->user, prefix, strlen(config->prefix) + 1);
		allocator->free(allocator->user, store, sizeof *store);
		return error;
	}
	store->base.backend = &ww_redis_backend;
	store->allocator = allocator;
	store->config = *config;
	store->config.prefix = memcpy(prefix, config->prefix, strlen(config->prefix) + 1);
	store->process = getpid();
	error = open_store(store);
	store->config.url = store->config.name = NULL;
	if (error) {
		release(store);
		return error;
	}
	*jobs = &store->base;
	return WW_OK;
}

static int close_store(struct ww_jobs *jobs)
{
	struct redis_store *store = store_of(jobs);

	if (getpid() != store->process)
		return WW_ECLOSED;
	ww_redis_worker_stop(store);
	release(store);
	return WW_OK;
}

/* ---- The table */

static int do_nothing(struct ww_jobs *jobs)
{
	return getpid() == store_of(jobs)->process ? WW_OK : WW_ECLOSED;
}

static int now(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns)
{
	(void)flags;
	if (getpid() != store_of(jobs)->process)
		return WW_ECLOSED;
	*ns = ww_redis_now(store_of(jobs));
	return WW_OK;
}

int ww_jobs_redis_stats(struct ww_jobs *jobs, struct ww_jobs_redis_stats *stats)
{
	struct redis_link_stats link;
	struct timespec wall;

	if (!jobs || !stats || jobs->backend != &ww_redis_backend)
		return WW_EINVAL;
	struct redis_store *store = store_of(jobs);
	ww_redis_link_stats(store->link, &link);
	clock_gettime(CLOCK_REALTIME, &wall);
	*stats = (struct ww_jobs_redis_stats){.commands = link.commands,
	    .round_trips = link.round_trips,
	    .reconnects = link.failures,
	    .redirections = link.redirections,
	    .resets = atomic_load(&store->resets),
	    .nodes = link.nodes,
	    .shards = store->shards,
	    .skew = (int64_t)((uint64_t)wall.tv_sec * WW_SECOND + (uint64_t)wall.tv_nsec - ww_redis_now(store)),
	    .bytes = sizeof *store + 2 * store->shards * sizeof *store->tags};
	pthread_mutex_lock(&store->lock);
	stats->bytes += store->bytes;
	pthread_mutex_unlock(&store->lock);
	ww_redis_worker_stats(store, stats);
	return WW_OK;
}

const struct jobs_backend ww_redis_backend = {
    .close = close_store,
    .free = ww_redis_take_free,
    .begin = do_nothing,
    .commit = do_nothing,
    .now = now,
    .put = ww_redis_put,
    .put_many = ww_redis_put_many,
    .move = ww_redis_put_move,
    .cancel = ww_redis_put_cancel,
    .reserve = ww_redis_take,
    .reserve_many = ww_redis_take_many,
    .wait = ww_redis_take_wait,
    .reserve_job = ww_redis_take_job,
    .finish = ww_redis_end_finish,
    .finish_many = ww_redis_end_finish_many,
    .release = ww_redis_end_release,
    .back = ww_redis_end_return,
    .bury = ww_redis_end_bury,
    .touch = ww_redis_end_touch,
    .kick = ww_redis_kick,
    .kick_job = ww_redis_kick_job,
    .pause = ww_redis_kick_pause,
    .peek = ww_redis_look_peek,
    .peek_next = ww_redis_look_next,
    .state = ww_redis_look_state,
    .list = ww_redis_look_list,
    .forecast = ww_redis_look_forecast,
    .stats = ww_redis_stats,
    .tube = ww_redis_stats_tube,
    .tubes = ww_redis_stats_tubes,
    .check = ww_redis_check,
};
