/* Opening and closing a store in Redis, and the table of its calls. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

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
	const char *sentence;
	int error = ww_redis_link_check_url(url, &sentence);

	if (error && why)
		*why = sentence;
	return error;
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
	    !is_between(config->connections, 1, 1000) || config->replicas > WW_REDIS_REPLICAS_MAX ||
	    config->body_max > WW_JOB_BODY_MAX || config->flags & ~(WW_REDIS_EXISTING | WW_REDIS_PASSIVE))
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
	if (time_cond_init(&store->heard))
		return WW_ESYSTEM;
	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->renewing, NULL);
	pthread_mutex_init(&store->looking, NULL);
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
	pthread_mutex_destroy(&store->looking);
	if (store->wake_fd >= 0)
		close(store->wake_fd);
	memory_give(allocator, store->tags, 2 * store->shards * sizeof *store->tags);
	memory_give(allocator, store, sizeof *store);
}

static int open_link(struct redis_store *store)
{
	const struct ww_jobs_redis_config *config = &store->config;
	struct redis_link_config link = {.url = config->url,
	    .timeout = config->timeout,
	    .backoff_max = config->backoff_max,
	    .connections = config->connections,
	    .replicas = config->replicas,
	    .reply_max = (size_t)256 << 20,
	    .allocator = store->allocator,
	    .aside = ww_redis_worker_wake,
	    .aside_context = store,
	    .slow = config->slow,
	    .report = config->report,
	    .context = config->context};

	return ww_redis_link_open(&store->link, &link);
}

/* Report settings of Redis that will lose jobs one day. A setting that INFO does not show is passed over. */
static void advise(struct redis_store *store)
{
	const char *argv[] = {"INFO"};
	struct redis_call call = {.key = store->tags[0], .argc = 1, .argv = argv, .flags = REDIS_CALL_AGAIN};

	if (ww_redis_link_run(store->link, &call, 1) == WW_OK && call.reply->type == REDIS_REPLY_STRING) {
		const char *info = call.reply->str;
		if (strstr(info, "\nmaxmemory_policy:") && !strstr(info, "\nmaxmemory:0\r") &&
		    !strstr(info, "\nmaxmemory_policy:noeviction"))
			ww_redis_link_log(store->link,
			    "Redis will throw away jobs when its memory is full: set maxmemory-policy to "
			    "noeviction");
		if (strstr(info, "\naof_enabled:0"))
			ww_redis_link_log(store->link,
			    "Redis keeps no log, and will have lost what came since its last snapshot when it "
			    "starts again: set appendonly to yes");
	}
	ww_redis_link_free(&call, 1);
}

static int open_store(struct redis_store *store)
{
	int error = name_it(store);

	store->wake_fd = is_alone(store) ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!is_alone(store) && store->wake_fd < 0)
		error = WW_ESYSTEM;
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
	int error = jobs && config ? check(config) : WW_EINVAL;

	if (error)
		return error;
	allocator = config->allocator ? config->allocator : ww_allocator_default();
	store = memory_take_zeroed(allocator, sizeof *store);
	if (!store)
		return WW_ENOMEM;
	error = make_locks(store);
	if (error) {
		memory_give(allocator, store, sizeof *store);
		return error;
	}
	store->base.backend = &ww_redis_backend;
	store->allocator = allocator;
	store->config = *config;
	store->config.prefix = memcpy(store->prefix, config->prefix, strlen(config->prefix) + 1);
	store->forks = ww_fork_watch();
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

	if (ww_fork_count() != store->forks)
		return WW_ECLOSED;
	ww_redis_worker_stop(store);
	release(store);
	return WW_OK;
}

/* ---- The table */

static int do_nothing(struct ww_jobs *jobs)
{
	return ww_fork_count() == store_of(jobs)->forks ? WW_OK : WW_ECLOSED;
}

static int now(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns)
{
	(void)flags;
	if (ww_fork_count() != store_of(jobs)->forks)
		return WW_ECLOSED;
	*ns = ww_redis_clock_now(store_of(jobs));
	return WW_OK;
}

const struct jobs_backend ww_redis_backend = {
    .close = close_store,
    .free = ww_redis_lease_free,
    .begin = do_nothing,
    .commit = do_nothing,
    .now = now,
    .put = ww_redis_put,
    .put_many = ww_redis_put_many,
    .move = ww_redis_put_move,
    .cancel = ww_redis_put_cancel,
    .reserve = ww_redis_reserve,
    .reserve_many = ww_redis_reserve_many,
    .wait = ww_redis_wait_reserve,
    .reserve_job = ww_redis_reserve_job,
    .finish = ww_redis_end_finish,
    .finish_many = ww_redis_end_finish_many,
    .release = ww_redis_end_release,
    .return_after = ww_redis_end_return,
    .bury = ww_redis_end_bury,
    .touch = ww_redis_end_touch,
    .report = ww_redis_history_report,
    .history = ww_redis_history_list,
    .kick = ww_redis_kick,
    .kick_job = ww_redis_kick_job,
    .pause = ww_redis_kick_pause,
    .limit_set = ww_redis_limit_set,
    .limit_get = ww_redis_limit_get,
    .limit_list = ww_redis_limit_list,
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
