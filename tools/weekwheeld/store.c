/*
 * Opens and closes the store, takes its messages about ready tubes, and reports its errors. The commands call the store
 * themselves (commands.c), through include/weekwheel/jobs.h.
 */
#include <stdio.h>
#include <string.h>

#include "tools/weekwheeld/schedules.h"
#include "tools/weekwheeld/server.h"

#ifdef HAVE_REDIS
#include "weekwheel/jobs_redis.h"
#endif

enum {
	AGAIN_MS = 250, /* how often clients that wait are served in case a message was missed */
	INBOX_MAX = 65536
};

/* ---- Tubes that become ready */

static void inbox_add(struct inbox *inbox, const char *name)
{
	pthread_mutex_lock(&inbox->lock);
	/* If the names do not fit, all tubes are tried. */
	if (inbox->is_all || inbox->tubes.size > INBOX_MAX || buffer_append(&inbox->tubes, name, strlen(name) + 1) != 0)
		inbox->is_all = 1;
	if (inbox->is_open)
		uv_async_send(&inbox->async);
	pthread_mutex_unlock(&inbox->lock);
}

static void inbox_take(uv_async_t *async)
{
	struct server *server = async->data;
	struct inbox *inbox = &server->inbox;
	struct buffer tubes;
	size_t at;
	int is_all;

	pthread_mutex_lock(&inbox->lock);
	tubes = inbox->tubes;
	is_all = inbox->is_all;
	inbox->tubes = (struct buffer){0};
	inbox->is_all = 0;
	pthread_mutex_unlock(&inbox->lock);
	for (at = 0; at < tubes.size && !is_all; at += strlen(tubes.data + at) + 1) {
		struct server_tube *tube = tube_find(server, tubes.data + at);

		if (tube)
			tube_ready(server, tube);
		else if (schedules_is_hidden(tubes.data + at))
			schedules_ready(server);
	}
	if (is_all) {
		tube_ready_all(server);
		schedules_ready(server);
	}
	buffer_free(&tubes);
}

/* The store may be locked, or the thread not be the loop's: only note the tube. */
static void store_ready(const char *name, void *context)
{
	struct server *server = context;
	struct server_tube *tube;

	push_ready(server, name);
	if (server->is_shared)
		events_ready(server, name);
	if (server->is_shared || !pthread_equal(pthread_self(), server->thread)) {
		inbox_add(&server->inbox, name);
		return;
	}
	tube = tube_find(server, name);
	if (tube)
		tube_ready(server, tube);
	else if (schedules_is_hidden(name))
		schedules_ready(server);
}

/* A message may have been missed, or the store may be back. To ask for a job costs little if none is ready. */
static void store_again(uv_timer_t *timer)
{
	struct server *server = timer->data;

	if (server->waiting > 0)
		tube_ready_all(server);
	schedules_ready(server);
}

void store_hush(struct server *server)
{
	pthread_mutex_lock(&server->inbox.lock);
	server->inbox.is_open = 0;
	pthread_mutex_unlock(&server->inbox.lock);
}

/* ---- Errors */

int store_fault(struct server *server, char text[WW_FAULT_MAX])
{
	struct ww_jobs_stats stats;

	if (server->is_shared || ww_jobs_stats(server->jobs, &stats) != WW_OK)
		return WW_OK;
	if (text)
		memcpy(text, stats.fault_text, WW_FAULT_MAX);
	if (stats.fault == server->said_fault)
		return stats.fault;
	server->said_fault = stats.fault;
	if (stats.fault == WW_OK)
		state_end("disk", "there is room again: jobs are accepted");
	else if (stats.fault == WW_EFULL)
		state_begin("disk", STATE_STOPS_WRITING,
		    "%s: no jobs are accepted until there is room; those that are stored go on", stats.fault_text);
	else if (stats.fault == WW_ECORRUPT)
		state_begin("disk", STATE_STOPS_WRITING,
		    "%s: every change is refused from now on; end the server, save what can be read with "
		    "'weekwheel recover', and start it on that",
		    stats.fault_text);
	else
		state_begin("disk", STATE_STOPS_WRITING,
		    "%s: every change is refused from now on; check the disk, then start the server again, which "
		    "checks what the disk has",
		    stats.fault_text);
	return stats.fault;
}

void store_failed(struct server *server, int error)
{
	char key[STATE_KEY_MAX];

	server->store_errors++;
	if (server->said_fault == WW_EIO || server->said_fault == WW_ECORRUPT || store_fault(server, NULL) != WW_OK) {
		state_met("disk");
		return;
	}
	/* lib/redis reports once that Redis is lost, and once that it is back. */
	if (server->is_shared && (error == WW_EIO || error == WW_EAGAIN))
		return;
	const char *why =
	    error == WW_ECORRUPT && !server->is_shared
	        ? "a record of the store is damaged: the jobs that it concerns are not served, and all "
	          "others are; 'weekwheel fsck' tells which, and 'weekwheel recover' saves what can be read"
	        : ww_strerror(error);
	snprintf(key, sizeof key, "failed commands: %d", error);
	state_seen(key, "a command failed: %s", why);
}

/* What to do about an error of opening. */
struct cure {
	int error;
	const char *text;
};

static int say_not_opened(const char *where, const struct cure *cures, int error)
{
	while (cures->error && cures->error != error)
		cures++;
	message_error("cannot open %s: %s", where, cures->error ? cures->text : ww_strerror(error));
	return error;
}

/* ---- Opening */

static const struct cure local_cures[] = {
    {WW_EINUSE, "it is in use by another server: end that one, or give another --data"},
    {WW_EDENIED, "it cannot be written: make the folder above it, change its owner, or give another --data"},
    {WW_ECORRUPT, "it is damaged, or is not a store of jobs; \"weekwheel fsck\" tells all that is wrong"},
    {WW_EVERSION,
        "it was written by another version: use that one, or carry the jobs over to a new directory: \"weekwheel "
        "export\" of that version, then \"weekwheel import\" of this one"},
    {WW_EFULL, "its disk is full: make room"},
    {0, NULL},
};

/* The file, and what to do about it. */
static void tell_refusal(const char *sentence, void *context)
{
	(void)context;
	message_error("%s", sentence);
}

/* The message gives whole hours, whatever the clock says. */
static void warn_of_clock(struct server *server)
{
	const long long hour = 3600 * (long long)WW_SECOND;
	struct ww_jobs_stats stats;

	if (server->settings->is_virtual || ww_jobs_stats(server->jobs, &stats) != WW_OK)
		return;
	if (stats.downtime < 0)
		message_warning(
		    "the clock is %lld h behind the last write of the store, so how long the machine was off is "
		    "not known: jobs may be late by that; let the server start when the clock has been set",
		    -stats.downtime / hour);
	else if ((uint64_t)stats.downtime > server->settings->max_downtime)
		message_warning(
		    "the clock says that the machine was off for %lld h, more than --max-downtime: it is not "
		    "believed, and jobs may be late by the time off; let the server start when the clock has been set",
		    (long long)stats.downtime / hour);
}

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
	config.max_disk = settings->max_disk;
	config.history_max = settings->max_history;
	/* Virtual time stands still while the server is down. */
	config.downtime_max = settings->is_virtual ? 0 : settings->max_downtime;
	config.flags = settings->is_memory ? WW_JOBS_MEMORY : 0;
	config.ready = store_ready;
	config.problem = tell_refusal;
	config.context = server;
	error = ww_jobs_open(&server->jobs, &config);
	if (error != WW_OK)
		return say_not_opened(settings->data ? settings->data : "memory", local_cures, error);
	warn_of_clock(server);
	return WW_OK;
}

#ifdef HAVE_REDIS
static void store_reports(const char *sentence, void *context)
{
	(void)context;
	message_error("%s", sentence);
}

/* lib/redis has reported the error itself. */
static const struct cure redis_cures[] = {
    {WW_EINVAL, "Redis does not match the URL of --store: give a database that it has (its \"databases\"), and several "
                "hosts only for a cluster"},
    {WW_EDENIED, "Redis refuses access: put its password into the file of --store-file, as "
                 "redis://:PASSWORD@HOST:PORT/, and grant the user the rights for the keys and for EVALSHA; of several "
                 "servers name the primary"},
    {WW_ECORRUPT,
        "this is not Redis, or the store in it is damaged: check the port in --store, put back a copy, or give "
        "another --redis-prefix"},
    {WW_EVERSION, "it was made by a later version: use that one, or give another --redis-prefix"},
    {WW_EFULL, "Redis has no memory left: raise its maxmemory"},
    {WW_EIO, "no answer: check that Redis runs, and that --store has its address"},
    {0, NULL},
};

/* An existing store keeps its number of shards. */
static void warn_of_shards(struct server *server)
{
	unsigned long long wanted = server->settings->redis.shards;
	struct ww_jobs_redis_stats stats;

	if (!wanted || ww_jobs_redis_stats(server->jobs, &stats) != WW_OK || stats.shards == wanted)
		return;
	message_warning(
	    "--redis-shards %llu changes nothing: the store was made with %u; leave it out or, to have %llu, "
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
	config.replicas = (uint32_t)settings->redis.replicas;
	config.lease = settings->redis.lease;
	config.timeout = settings->redis.timeout;
	config.body_max = (size_t)settings->max_job_size;
	config.ready = store_ready;
	config.report = store_reports;
	config.slow = tasks_slow;
	config.context = server;
	error = ww_jobs_redis_open(&server->jobs, &config);
	if (error != WW_OK)
		return say_not_opened("the store in Redis", redis_cures, error);
	warn_of_shards(server);
	return WW_OK;
}

int store_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	struct ww_jobs_redis_stats stats;

	if (!server->is_shared || ww_jobs_redis_stats(server->jobs, &stats) != WW_OK)
		return 0;
	return add(out, "redis-nodes", 0, "Nodes of Redis.", stats.nodes) ||
	       add(out, "redis-shards", 0, "Shards of the store.", stats.shards) ||
	       add(out, "redis-shards-watched", 0, "Shards that this server watches.", stats.watched) ||
	       add(out, "redis-workers", 0, "Processes that share the store.", stats.workers) ||
	       add(out, "redis-commands", 1, "Commands sent to Redis.", stats.commands) ||
	       add(out, "redis-round-trips", 1, "Waits for its answers.", stats.round_trips) ||
	       add(out, "redis-reconnects", 1, "Connections lost or refused.", stats.reconnects) ||
	       add(out, "redis-redirections", 1, "MOVED and ASK.", stats.redirections) ||
	       add(out, "redis-wakes", 1, "Messages heard.", stats.wakes) ||
	       add(out, "redis-resets", 1, "Times that the store was found gone.", stats.resets);
}
#else
static int open_redis(struct server *server)
{
	(void)server;
	message_error("--store: this build has no Redis; install libhiredis-dev and configure again");
	return WW_ESYSTEM;
}

int store_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	(void)server;
	(void)out;
	(void)add;
	return 0;
}
#endif

int store_start(struct server *server)
{
	server->thread = pthread_self();
	server->is_shared = server->settings->redis.url != NULL;
	if (pthread_mutex_init(&server->inbox.lock, NULL) != 0 ||
	    uv_async_init(&server->loop, &server->inbox.async, inbox_take) != 0 ||
	    uv_timer_init(&server->loop, &server->again) != 0)
		return server_no_loop();
	server->inbox.async.data = server->again.data = server;
	server->inbox.is_open = 1;
	if ((server->is_shared ? open_redis(server) : open_local(server)) != WW_OK)
		return -1;
	if (tasks_start(server) != 0)
		return -1;
	if (server->is_shared)
		uv_timer_start(&server->again, store_again, AGAIN_MS, AGAIN_MS);
	server->started = store_now(server);
	return 0;
}

int store_stop(struct server *server)
{
	int error = ww_jobs_close(server->jobs);

	server->jobs = NULL;
	buffer_free(&server->inbox.tubes);
	return error;
}

uint64_t store_now(struct server *server)
{
	uint64_t now = 0;

	(void)ww_jobs_now(server->jobs, 0, &now);
	return now;
}

uint64_t store_uptime(struct server *server)
{
	uint64_t now = store_now(server);

	return now > server->started ? now - server->started : 0;
}
