/*
 * Opens and closes the store, and reports what stands in the way. The commands call the store themselves (verbs/), through
 * include/weekwheel/jobs.h.
 */
#include "tools/common/command.h"
#include <string.h>

#include "tools/weekwheeld/run.h"

#include "tools/service/state/notify.h"

#ifdef HAVE_REDIS
#include "weekwheel/jobs_redis.h"
#endif
#ifdef HAVE_POSTGRES
#include "weekwheel/jobs_postgres.h"
#endif

/* What to do about an error of opening. */
struct cure {
	int error;
	const char *text;
};

static int report_not_opened(const char *where, const struct cure *cures, int error)
{
	while (cures->error && cures->error != error)
		cures++;
	message_error("cannot open %s: %s", where, cures->error ? cures->text : ww_strerror(error));
	return error;
}

/* ---- Opening */

static const struct cure local_cures[] = {
    {WW_EINUSE, "it is in use by another server: end that one, or give another --data"},
    {WW_EDENIED,
        "it cannot be used: make the folder above it, change its owner, mount it for writing, or give another --data"},
    {WW_ECORRUPT, "it is damaged, or is not a store of jobs; \"weekwheel fsck\" shows all that is wrong"},
    {WW_EVERSION,
        "it was written by another version: use that one, or carry the jobs over to a new directory: \"weekwheel "
        "export\" of that version, then \"weekwheel import\" of this one"},
    {WW_EFULL, "its disk is full: make room"},
    {0, NULL},
};

/* The file, and what to do about it. */
static void log_refusal(const char *sentence, void *context)
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

/* What the stores have in common that stand on the embedded engine. */
static void configure(struct server *server, struct ww_jobs_config *config)
{
	const struct settings *settings = server->settings;

	config->driver = server->elapsed;
	config->wall = server->wall;
	config->sync = (enum ww_jobs_sync)settings->sync;
	config->body_max = (size_t)settings->max_job_size;
	config->history_max = settings->max_history;
	config->ready = ready_heard;
	config->problem = log_refusal;
	config->context = server;
}

static int open_local(struct server *server)
{
	const struct settings *settings = server->settings;
	struct ww_jobs_config config;
	int error;

	(void)ww_jobs_config_default(&config);
	configure(server, &config);
	config.path = settings->data;
	config.sync_ns = settings->sync_interval;
	config.max_disk = settings->max_disk;
	/* Virtual time stands still while the server is down. */
	config.downtime_max = settings->is_virtual ? 0 : settings->max_downtime;
	config.flags = settings->is_memory ? WW_JOBS_MEMORY : 0;
	error = ww_jobs_open(&server->jobs, &config);
	if (error != WW_OK)
		return report_not_opened(settings->data ? settings->data : "memory", local_cures, error);
	warn_of_clock(server);
	return WW_OK;
}

#if defined HAVE_REDIS || defined HAVE_POSTGRES
static void store_reports(const char *sentence, void *context)
{
	(void)context;
	message_error("%s", sentence);
}
#endif

#ifdef HAVE_REDIS
/* lib/redis has reported the error itself. */
static const struct cure redis_cures[] = {
    {WW_EINVAL,
        "it does not match the URL of --store: check the files that this names, give a database that it has (its "
        "\"databases\"), and several hosts only for a cluster"},
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
	config.ready = ready_heard;
	config.report = store_reports;
	config.slow = tasks_slow;
	config.context = server;
	error = ww_jobs_redis_open(&server->jobs, &config);
	if (error != WW_OK)
		return report_not_opened("the store in Redis", redis_cures, error);
	warn_of_shards(server);
	return WW_OK;
}

#else
static int open_redis(struct server *server)
{
	(void)server;
	message_error("--store: this build has no Redis; install libhiredis-dev and configure again");
	return WW_ESYSTEM;
}
#endif

#ifdef HAVE_POSTGRES
/* lib/postgres has reported the error itself. */
static const struct cure postgres_cures[] = {
    {WW_EINVAL,
        "--store takes the URL of PostgreSQL itself, postgresql://HOST/DATABASE, and --postgres-replicas at most "
        "what PostgreSQL waits for"},
    {WW_ENOTFOUND, "it is not prepared: \"weekwheel postgres setup\" makes the tables"},
    {WW_EDENIED,
        "PostgreSQL refuses access: name the primary, and a role that owns the schema weekwheel; put its password "
        "into the password file (~/.pgpass)"},
    {WW_EVERSION,
        "another weekwheel made its tables: \"weekwheel postgres setup\" brings them up to date, and \"weekwheel "
        "postgres check\" says what is wrong"},
    {WW_EFULL, "PostgreSQL has no connection or no room left: raise max_connections, or make room"},
    {WW_EIO, "no answer: check that PostgreSQL runs, and that --store has its address"},
    {0, NULL},
};

/* Another server has the store: this one takes over when that ends. */
static int stand_by(const char *owner, void *context)
{
	struct server *server = context;

	if (!server->is_standby) {
		message_info("another server owns the store: standing by, to take over when it ends");
		server->is_standby = 1;
		run_signals(server);
		if (standby_begin(server->standby, server) != 0)
			return 1;
	}
	standby_wait(server->standby, owner);
	return server->is_stopping;
}

static void connection_lost(void *context)
{
	ready_lost(context);
}

static int open_postgres(struct server *server)
{
	struct ww_jobs_postgres_config config;
	const struct run *run = server->run;
	char tells[OWNER_TEXT];
	int error;

	if (owner_tell(server->settings->advertise, &run->listening, &run->http.site.listening, tells) != 0)
		return WW_EINVAL;
	(void)ww_jobs_postgres_config_default(&config);
	configure(server, &config.jobs);
	config.jobs.downtime_max = server->settings->max_downtime;
	config.url = server->settings->postgres;
	config.advertise = tells;
	config.replicas = (uint32_t)server->settings->postgres_replicas;
	config.report = store_reports;
	config.waits = stand_by;
	config.lost = connection_lost;
	error = ww_jobs_postgres_open(&server->jobs, &config);
	if (error != WW_OK)
		return server->is_stopping ? error
		                           : report_not_opened("the store in PostgreSQL", postgres_cures, error);
	if (server->is_standby)
		message_info("this server owns the store now");
	return WW_OK;
}
#else
static int open_postgres(struct server *server)
{
	(void)server;
	message_error("--store: this build has no PostgreSQL; install libpq-dev and configure again");
	return WW_ESYSTEM;
}
#endif

static int open_store(struct server *server)
{
	if (server->settings->postgres)
		return open_postgres(server);
	return server->is_shared ? open_redis(server) : open_local(server);
}

/*
 * Redis may change to fit the command line, so that it helps to start the server again. Files that the URL names do not,
 * nor does a URL of PostgreSQL that leads to a pool.
 */
static int is_wrong_for_good(const struct settings *settings)
{
	return settings->postgres || (settings->redis.url && strchr(settings->redis.url, '?'));
}

int store_start(struct server *server)
{
	int error;

	server->thread = pthread_self();
	server->is_shared = server->settings->redis.url != NULL;
	if (ready_start(server) != 0)
		return -1;
	error = open_store(server);
	if (error != WW_OK)
		return error == WW_EINVAL && is_wrong_for_good(server->settings) ? STATUS_USAGE : -1;
	if (tasks_start(server) != 0)
		return -1;
	ready_again(server);
	server->started = store_now(server);
	return 0;
}

int store_stop(struct server *server)
{
	int error = ww_jobs_close(server->jobs);

	server->jobs = NULL;
	ready_free(server);
	return error;
}
