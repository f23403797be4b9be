/* The store: where it is, what it tells, and what follows when one that is shared does not answer. */
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/server.h"

#ifdef HAVE_REDIS
#include "weekwheel/jobs_redis.h"
#endif

/*
 * So often those who wait are looked after, should a message have been missed; errors of one kind are said so often at
 * most.
 */
enum { AGAIN_MS = 250, SAY_AGAIN_MS = 10000, TOLD_MAX = 65536 };

/* ---- What it tells */

static void told_note(struct told *told, const char *name)
{
	pthread_mutex_lock(&told->lock);
	/* Where names do not fit, all tubes are looked at. */
	if (told->is_all || told->tubes.size > TOLD_MAX || buffer_append(&told->tubes, name, strlen(name) + 1) != 0)
		told->is_all = 1;
	if (told->is_open)
		uv_async_send(&told->async);
	pthread_mutex_unlock(&told->lock);
}

static void told_take(uv_async_t *async)
{
	struct server *server = async->data;
	struct told *told = &server->told;
	struct buffer tubes;
	size_t at;
	int is_all;

	pthread_mutex_lock(&told->lock);
	tubes = told->tubes;
	is_all = told->is_all;
	told->tubes = (struct buffer){0};
	told->is_all = 0;
	pthread_mutex_unlock(&told->lock);
	for (at = 0; at < tubes.size && !is_all; at += strlen(tubes.data + at) + 1) {
		struct tube *tube = tube_find(server, tubes.data + at);

		if (tube)
			tube_ready(server, tube);
	}
	if (is_all)
		tube_ready_all(server);
	buffer_free(&tubes);
}

/* Called with the store locked, or by a thread that is not the loop's: it is only noted. */
static void store_ready(const char *name, void *context)
{
	struct server *server = context;
	struct tube *tube;

	push_ready(server, name);
	if (!pthread_equal(pthread_self(), server->thread)) {
		told_note(&server->told, name);
		return;
	}
	tube = tube_find(server, name);
	if (tube)
		tube_ready(server, tube);
}

/* A message may have been missed, or the store be back: asking where nothing is known to be ready costs nothing. */
static void store_again(uv_timer_t *timer)
{
	struct server *server = timer->data;

	if (server->waiting > 0)
		tube_ready_all(server);
}

void store_hush(struct server *server)
{
	pthread_mutex_lock(&server->told.lock);
	server->told.is_open = 0;
	pthread_mutex_unlock(&server->told.lock);
}

/* ---- What fails */

void store_failed(struct server *server, int error)
{
	uint64_t now = uv_now(&server->loop);

	server->store_errors++;
	/* That Redis is lost and back it says itself, once each. */
	if (server->is_shared && (error == WW_EIO || error == WW_EAGAIN))
		return;
	if (error == server->said_error && now - server->said_at < SAY_AGAIN_MS)
		return;
	server->said_error = error;
	server->said_at = now;
	server_say("a command failed: %s", ww_strerror(error));
}

int store_answers(struct server *server)
{
	enum ww_job_state state;
	int error = server->is_shared ? ww_jobs_state(server->jobs, 1, &state) : WW_OK;

	return error == WW_ENOTFOUND ? WW_OK : error;
}

static void say_failed(const char *path, int error)
{
	switch (error) {
	case WW_EINUSE:
		server_say("%s is in use by another server: end that one, or give another --data", path);
		break;
	case WW_EDENIED:
		server_say(
		    "cannot write in %s: make the folder above it, change its owner, or give another --data", path);
		break;
	case WW_ECORRUPT:
		server_say("%s is damaged, or is no store of jobs: \"weekwheel fsck\" tells what is wrong; "
		           "put back a copy, or give an empty --data",
		    path);
		break;
	case WW_EVERSION:
		server_say("%s was written by a later version: use that one", path);
		break;
	case WW_EFULL:
		server_say("the disk of %s is full: make room", path);
		break;
	default:
		server_say("cannot open %s: %s", path, ww_strerror(error));
	}
}

/* ---- Opening */

static int open_local(struct server *server)
{
	const struct settings *settings = server->settings;
	struct ww_jobs_config config;
	int error;

	(void)ww_jobs_config_default(&config);
	config.path = settings->data;
	config.driver = server->elapsed;
	config.wall = server->wall;
	config.sync = settings->sync;
	config.sync_ns = settings->sync_ns;
	config.body_max = (size_t)settings->max_job_size;
	config.flags = settings->is_memory ? WW_JOBS_MEMORY : 0;
	config.ready = store_ready;
	config.context = server;
	error = ww_jobs_open(&server->jobs, &config);
	if (error != WW_OK)
		say_failed(settings->data ? settings->data : "memory", error);
	return error;
}

#ifdef HAVE_REDIS
static void store_reports(const char *sentence, void *context)
{
	(void)context;
	server_say("%s", sentence);
}

/* What is wrong with Redis has been reported. */
static void say_redis_failed(int error)
{
	switch (error) {
	case WW_EINVAL:
		server_say(
		    "Redis is not what the URL of --store says: give a database that it has (its \"databases\"), "
		    "and several hosts only of a cluster");
		break;
	case WW_EDENIED:
		server_say("Redis does not let it in: put its password into the file of --store-file, as "
		           "redis://:PASSWORD@HOST:PORT/, and give the user the rights for the keys and for EVALSHA; "
		           "of several servers name the primary");
		break;
	case WW_ECORRUPT:
		server_say(
		    "what answers there is no Redis, or the store in it is not whole: see that --store has the right "
		    "port, put back a copy, or give another --redis-prefix");
		break;
	case WW_EVERSION:
		server_say(
		    "the store in Redis was made by a later version: use that one, or give another --redis-prefix");
		break;
	case WW_EFULL:
		server_say("Redis has no memory left: raise its maxmemory");
		break;
	case WW_EIO:
		server_say("cannot open the store in Redis: see that Redis runs, and that --store has its address");
		break;
	default:
		server_say("cannot open the store in Redis: %s", ww_strerror(error));
	}
}

/* A store that is there keeps what it has. */
static void warn_of_shards(struct server *server)
{
	unsigned long long wanted = server->settings->redis.shards;
	struct ww_jobs_redis_stats stats;

	if (!wanted || ww_jobs_redis_stats(server->jobs, &stats) != WW_OK || stats.shards == wanted)
		return;
	server_say(
	    "warning: --redis-shards %llu changes nothing: the store was made with %u; leave it out or, to have %llu, "
	    "\"weekwheel export\" the jobs, \"weekwheel import\" them with --redis-shards %llu and another "
	    "--redis-prefix, and give all servers that one",
	    wanted, stats.shards, wanted, wanted);
}

static int open_redis(struct server *server)
{
	const struct settings *settings = server->settings;
	struct ww_jobs_redis_config config;
	int error;

	(void)ww_jobs_redis_config_default(&config);
	config.url = settings->redis.url;
	config.prefix = settings->redis.prefix;
	if (settings->redis.shards)
		config.shards = (uint32_t)settings->redis.shards;
	config.lease = settings->redis.lease;
	config.timeout = settings->redis.timeout;
	config.body_max = (size_t)settings->max_job_size;
	config.ready = store_ready;
	config.report = store_reports;
	config.context = server;
	error = ww_jobs_redis_open(&server->jobs, &config);
	if (error != WW_OK)
		say_redis_failed(error);
	else
		warn_of_shards(server);
	return error;
}
#else
static int open_redis(struct server *server)
{
	(void)server;
	server_say("--store: this build has no Redis; install libhiredis-dev and configure again");
	return WW_ESYSTEM;
}
#endif

int store_start(struct server *server)
{
	server->thread = pthread_self();
	server->is_shared = server->settings->redis.url != NULL;
	if (pthread_mutex_init(&server->told.lock, NULL) != 0 ||
	    uv_async_init(&server->loop, &server->told.async, told_take) != 0 ||
	    uv_timer_init(&server->loop, &server->again) != 0) {
		server_say("no event loop: the limit of open files (\"ulimit -n\") may be reached");
		return -1;
	}
	server->told.async.data = server->again.data = server;
	server->told.is_open = 1;
	if ((server->is_shared ? open_redis(server) : open_local(server)) != WW_OK)
		return -1;
	if (server->is_shared)
		uv_timer_start(&server->again, store_again, AGAIN_MS, AGAIN_MS);
	server->started = server_now(server);
	return 0;
}

int store_stop(struct server *server)
{
	int error = ww_jobs_close(server->jobs);

	server->jobs = NULL;
	buffer_free(&server->told.tubes);
	return error;
}
