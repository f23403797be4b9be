/* Opens and closes a store in PostgreSQL. */
#include "weekwheel/jobs_postgres.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/jobs/backend.h"
#include "lib/postgres/far.h"
#include "lib/postgres/fence.h"
#include "lib/postgres/intake.h"
#include "lib/postgres/load.h"
#include "lib/postgres/postgres_internal.h"
#include "lib/postgres/schema.h"
#include "lib/postgres/state.h"
#include "lib/postgres/store.h"

enum { BODY_MAX = 256 << 20 }; /* as in functions.sql: a turn of several bodies must fit into a row */
/* How often the owner is looked at, while `waits` returns every 50 ms. */
enum { TRIES_A_LOOK = 10 };
/* How long a write may take: a standby that confirms it may be slow. */
enum { PATIENCE_MS = 30000 };
/* How long PostgreSQL may take to say who owns the store: meanwhile nobody else in this process goes on. */
enum { LOOK_MS = 10000 };
/* What an owner advertises, with an address in place of the '*'. */
enum { OWNER_MAX = 128 };

int ww_jobs_postgres_config_default(struct ww_jobs_postgres_config *config)
{
	if (!config)
		return WW_EINVAL;
	*config = (struct ww_jobs_postgres_config){.ring = 30 * WW_SECOND};
	return ww_jobs_config_default(&config->jobs);
}

/* ---- What differs from the engine's functions */

static int is_too_big(const struct postgres *postgres, const struct ww_job_spec *spec)
{
	return spec->body_length > postgres->body_max && !pthread_equal(pthread_self(), postgres->thread);
}

static int put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version)
{
	const struct postgres *postgres = ww_jobs_port_store(jobs);

	return is_too_big(postgres, spec) ? WW_ETOOBIG : postgres->engine.put(jobs, spec, id, version);
}

static int put_many(struct ww_jobs *jobs, struct ww_job_put *puts, const struct ww_job_info *const *was, size_t count)
{
	const struct postgres *postgres = ww_jobs_port_store(jobs);
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		if (puts[i].result == WW_OK && is_too_big(postgres, puts[i].spec))
			puts[i].result = WW_ETOOBIG;
		left += puts[i].result == WW_OK;
	}
	return left ? postgres->engine.put_many(jobs, puts, was, count) : WW_OK;
}

/* The thread uses the engine, so it ends first. */
static int close_jobs(struct ww_jobs *jobs)
{
	struct postgres *postgres = ww_jobs_port_store(jobs);
	int error = jobs->backend->begin(jobs);

	/* The thread belongs to another process, or waits for a batch of this thread. */
	if (error)
		return error;
	(void)jobs->backend->commit(jobs);
	ww_postgres_intake_stop(postgres);
	return postgres->engine.close(jobs);
}

/* ---- Opening */

/* Report why, unless there is nothing to say. */
static int refuse(const struct postgres *postgres, int error, const char *sentence)
{
	if (*sentence)
		ww_postgres_report(postgres, "%s", sentence);
	return error;
}

static const char earlier[] =
    "the tables are of an earlier weekwheel: \"weekwheel postgres setup\" brings them up to date";

/* Check that the tables are there, and of this version. */
static int check_tables(struct postgres *postgres)
{
	PGresult *result = NULL;
	int error = ww_postgres_link_ask(&postgres->writer,
	    "SELECT version, pg_is_in_recovery(), cluster = (SELECT system_identifier FROM pg_control_system()), "
	    "(" SCHEMA_IS_WHOLE ") FROM weekwheel.about",
	    NULL, 0, &result);
	int has_row = !error && PQntuples(result);
	int64_t version = has_row ? ww_postgres_link_number(result, 0, 0) : 0;
	int is_standby = has_row && ww_postgres_link_number(result, 0, 1);
	int is_here = has_row && ww_postgres_link_number(result, 0, 2);
	int is_whole = has_row && ww_postgres_link_number(result, 0, 3);

	PQclear(result);
	if (error == WW_ENOTFOUND)
		return refuse(postgres, error,
		    "the database has no tables of weekwheel: make them by \"weekwheel postgres setup\"");
	if (error)
		return refuse(postgres, error, postgres->writer.why);
	if (is_standby)
		return refuse(postgres, WW_EDENIED,
		    "the server is a standby: name the primary, or all servers and target_session_attrs=read-write");
	/* Another cluster numbers its transactions anew: numbers in the tables mean nothing there. */
	if (version == SCHEMA_VERSION && !is_here)
		return refuse(postgres, WW_EVERSION,
		    "the tables come from another cluster, by a dump: \"weekwheel postgres setup\" takes them over");
	if (version == SCHEMA_VERSION && !is_whole)
		return refuse(postgres, WW_EVERSION, earlier);
	return version == SCHEMA_VERSION
	           ? WW_OK
	           : refuse(postgres, WW_EVERSION,
	                 "another version of weekwheel made the tables: \"weekwheel postgres check\" says what "
	                 "to do");
}

/* What a commit waits for. */
struct waiting {
	char by_default[32]; /* synchronous_commit of new sessions in this database */
	long long wanted;    /* standbys that synchronous_standby_names asks for */
	long long connected; /* standbys, synchronous ones or not */
};

static int read_waiting(struct postgres *postgres, struct waiting *waiting)
{
	PGresult *result = NULL;
	size_t size = 0;
	int error = ww_postgres_link_ask(&postgres->writer,
	    "SELECT reset_val, CASE WHEN names ~ '^[[:space:]]*$' THEN 0 ELSE coalesce(substring(names FROM "
	    "'(?i)^[[:space:]]*(?:(?:first|any)[[:space:]]+)?([0-9]+)[[:space:]]*[(]'), '1')::bigint END, "
	    "(SELECT count(*) FROM pg_stat_replication) "
	    "FROM pg_settings, current_setting('synchronous_standby_names') AS names WHERE name = 'synchronous_commit'",
	    NULL, 0, &result);

	if (error)
		return refuse(postgres, error, postgres->writer.why);
	(void)snprintf(waiting->by_default, sizeof waiting->by_default, "%s",
	    (const char *)ww_postgres_link_bytes(result, 0, 0, &size));
	waiting->wanted = ww_postgres_link_number(result, 0, 1);
	waiting->connected = ww_postgres_link_number(result, 0, 2);
	PQclear(result);
	return WW_OK;
}

/* Check that puts wait for the standbys that are asked for, those by SQL too. */
static int check_replicas(struct postgres *postgres)
{
	unsigned replicas = postgres->config.replicas;
	struct waiting waiting = {.wanted = 0};
	int error = replicas ? read_waiting(postgres, &waiting) : WW_OK;

	if (error || !replicas)
		return error;
	if (strcmp(waiting.by_default, "on") != 0) {
		ww_postgres_report(postgres,
		    "puts by SQL do not wait for %u replicas as they should: synchronous_commit is %s in this database%s; set "
		    "it to on, in postgresql.conf and for this database and this role",
		    replicas, waiting.by_default,
		    strcmp(waiting.by_default, "remote_apply") == 0
		        ? ", and a report on a standby then holds up each put"
		        : "");
		return WW_EINVAL;
	}
	if (waiting.wanted >= replicas)
		return WW_OK;
	ww_postgres_report(postgres,
	    "PostgreSQL waits for %lld replicas, and %u are wanted: set synchronous_standby_names = 'ANY %u (...)' with the "
	    "names of the standbys, on each server that may become the primary, and reload",
	    waiting.wanted, replicas, replicas);
	return WW_EINVAL;
}

/* A primary without its standbys, such as one just promoted, lets each commit wait, and says nothing. */
static int warn_of_standbys(struct postgres *postgres)
{
	struct waiting waiting = {.wanted = 0};
	int error = read_waiting(postgres, &waiting);

	if (!error && waiting.wanted > waiting.connected && strcmp(waiting.by_default, "off") != 0 &&
	    strcmp(waiting.by_default, "local") != 0)
		ww_postgres_report(postgres,
		    "each put waits: synchronous_standby_names asks for %lld standbys, and %lld are connected; start one, or "
		    "take it out of there",
		    waiting.wanted, waiting.connected);
	return error;
}

/* One process at a time. */
static int try_to_own(struct postgres *postgres)
{
	PGresult *result = NULL;
	int error =
	    ww_postgres_link_ask(&postgres->writer, "SELECT pg_try_advisory_lock(1463900017, 1)", NULL, 0, &result);

	if (!error && !ww_postgres_link_number(result, 0, 0))
		error = WW_EINUSE;
	PQclear(result);
	return error;
}

/*
 * An owner that hangs holds the lock and does nothing. It uses one of its two connections at least every second. If
 * both have been idle for long, end them, which fences it. While PostgreSQL works for one of them, it does not hang.
 */
static void end_stuck_owner(struct postgres *postgres)
{
	PGresult *result = NULL;
	int error = ww_postgres_link_ask(&postgres->writer,
	    "SELECT pg_terminate_backend(w.pid), pg_terminate_backend(r.pid) FROM pg_locks AS l "
	    "JOIN pg_stat_activity AS w ON w.pid = l.pid "
	    "JOIN pg_stat_activity AS r ON r.application_name = 'weekwheel reads for ' || l.pid "
	    "WHERE l.locktype = 'advisory' AND l.classid = 1463900017 AND l.objid = 1 AND l.granted "
	    "AND w.datname = current_database() "
	    "AND (w.state <> 'active' OR w.wait_event_type = 'Client') AND (r.state <> 'active' OR r.wait_event_type = 'Client') "
	    "AND clock_timestamp() - greatest(w.state_change, r.state_change) > interval '3 seconds'",
	    NULL, 0, &result);

	if (!error && PQntuples(result))
		ww_postgres_report(
		    postgres, "the owner of the store has been silent for 3 s: its connection was ended");
	PQclear(result);
}

/*
 * What the owner advertises is the name of its session, which costs no row and goes with the session. It is complete when
 * the owner's second session is there. A '*' stands for the owner's address. If that came by a Unix socket, it is on
 * PostgreSQL's machine. Any role can take an advisory lock, this one or one of a single number that looks like it: tokens
 * go only to a role that may write the store.
 */
static void look_at_owner(struct postgres *postgres, char owner[OWNER_MAX])
{
	PGresult *result = NULL;
	size_t size = 0;
	const char *name;
	int error = ww_postgres_link_ask(&postgres->writer,
	    "SELECT CASE WHEN left(name, 1) = '*' THEN coalesce(host(client_addr), host(inet_server_addr()), '127.0.0.1') || "
	    "substr(name, 2) ELSE name END FROM (SELECT w.client_addr, substr(w.application_name, 11) AS name "
	    "FROM pg_locks AS l JOIN pg_stat_activity AS w ON w.pid = l.pid "
	    "JOIN pg_stat_activity AS r ON r.application_name = 'weekwheel reads for ' || l.pid "
	    "WHERE l.locktype = 'advisory' AND l.classid = 1463900017 AND l.objid = 1 AND l.objsubid = 2 AND l.granted "
	    "AND w.datname = current_database() AND w.application_name LIKE 'weekwheel %' AND pg_has_role(w.usesysid, "
	    "(SELECT nspowner FROM pg_namespace WHERE nspname = 'weekwheel'), 'USAGE')) AS owner",
	    NULL, 0, &result);

	owner[0] = 0;
	if (!error && PQntuples(result)) {
		name = ww_postgres_link_bytes(result, 0, 0, &size);
		if (name && size < OWNER_MAX) {
			memcpy(owner, name, size);
			owner[size] = 0;
		}
	}
	PQclear(result);
}

static int advertise(struct postgres *postgres)
{
	char name[64];
	struct link_argument argument = {.type = LINK_TEXT, .bytes = name};

	if (!postgres->config.advertise)
		return WW_OK;
	argument.size = (size_t)snprintf(name, sizeof name, "weekwheel %s", postgres->config.advertise);
	return ww_postgres_link_ask(
	    &postgres->writer, "SELECT set_config('application_name', $1, false)", &argument, 1, NULL);
}

static int own(struct postgres *postgres)
{
	const struct ww_jobs_postgres_config *config = &postgres->config;
	char owner[OWNER_MAX];
	int error;

	postgres->writer.patience = LOOK_MS;
	error = try_to_own(postgres);
	for (unsigned i = 0; error == WW_EINUSE && config->waits; i++) {
		if (i % TRIES_A_LOOK == 0) {
			end_stuck_owner(postgres);
			look_at_owner(postgres, owner);
		}
		if (config->waits(owner, config->jobs.context))
			break;
		error = try_to_own(postgres);
	}
	postgres->writer.patience = -1;
	return error ? error : advertise(postgres);
}

/* PostgreSQL's clock, before the first reading of the inbox, and its timeline. */
static int read_clock(struct postgres *postgres)
{
	PGresult *result = NULL;
	int error = ww_postgres_link_ask(&postgres->writer,
	    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, "
	    "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int",
	    NULL, 0, &result);

	if (!error)
		ww_postgres_state_clock(postgres, ww_postgres_link_number(result, 0, 0));
	postgres->timeline = error ? 1 : (uint64_t)ww_postgres_link_number(result, 0, 1);
	PQclear(result);
	return error;
}

static int read_store(struct postgres *postgres)
{
	const char *synchronous = postgres->config.jobs.sync == WW_SYNC_ALWAYS ? "on" : "off";
	int error = ww_postgres_link_open(&postgres->writer, postgres->config.url, synchronous);

	if (error)
		return refuse(postgres, error, postgres->writer.why);
	error = check_tables(postgres);
	if (!error)
		error = check_replicas(postgres);
	if (!error)
		error = own(postgres);
	/* They may have been made anew, and settings changed, meanwhile. */
	if (!error)
		error = check_tables(postgres);
	if (!error)
		error = check_replicas(postgres);
	if (!error)
		error = warn_of_standbys(postgres);
	if (error)
		return error;
	error = read_clock(postgres);
	if (!error)
		error = ww_postgres_store_prepare(postgres);
	if (!error)
		error = ww_jobs_port_memory(&postgres->memory, &postgres->config.jobs);
	if (!error)
		error = ww_postgres_load(postgres);
	if (error)
		(void)refuse(postgres, error, postgres->writer.why);
	postgres->began = time_now(CLOCK_MONOTONIC);
	postgres->alive = time_now(CLOCK_BOOTTIME);
	postgres->writer.patience = PATIENCE_MS;
	return error;
}

static int check(const struct ww_jobs_postgres_config *config)
{
	if (!config->url || !config->jobs.driver)
		return WW_EINVAL;
	if (config->advertise && strlen(config->advertise) > WW_JOBS_POSTGRES_ADVERTISE_MAX)
		return WW_EINVAL;
	if (config->replicas && config->jobs.sync != WW_SYNC_ALWAYS)
		return WW_EINVAL;
	return config->ring < WW_MILLISECOND || config->ring > 3600 * WW_SECOND ? WW_EINVAL : WW_OK;
}

static struct postgres *make(const struct ww_jobs_postgres_config *config)
{
	const struct ww_allocator *allocator = config->jobs.allocator ? config->jobs.allocator : ww_allocator_default();
	struct postgres *postgres = memory_take_zeroed(allocator, sizeof *postgres);

	if (!postgres)
		return NULL;
	postgres->allocator = allocator;
	postgres->config = *config;
	postgres->config.jobs.allocator = allocator;
	postgres->body_max = config->jobs.body_max;
	postgres->config.jobs.body_max = BODY_MAX;
	postgres->stop[0] = postgres->stop[1] = -1;
	postgres->is_first = 1;
	for (unsigned part = 0; part < PARTS; part++)
		ww_postgres_far_clear(postgres, part);
	postgres->needs_image = 1;
	return postgres;
}

/* Jobs that a former owner delivered may have been finished by SQL: these ends are read before anything is delivered. */
static int begin_delivery(struct postgres *postgres)
{
	int error = ww_postgres_fence_open(postgres);

	if (error == WW_ENOTFOUND)
		return refuse(postgres, error, earlier);
	if (error)
		return refuse(postgres, error, postgres->writer.why);
	error = ww_postgres_intake_start(postgres);
	while (!error && !postgres->has_ends) {
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		error = postgres->lost;
	}
	return error;
}

int ww_jobs_postgres_open(struct ww_jobs **jobs, const struct ww_jobs_postgres_config *config)
{
	struct postgres *postgres;
	struct store store;
	int error = jobs && config ? check(config) : WW_EINVAL;

	if (error)
		return error;
	postgres = make(config);
	if (!postgres)
		return WW_ENOMEM;
	error = read_store(postgres);
	if (error) {
		(void)ww_postgres_state_end(postgres);
		return error;
	}
	store = (struct store){config->is_virtual ? &ww_postgres_store_ops_virtual : &ww_postgres_store_ops, postgres};
	error = ww_jobs_port_open(&postgres->jobs, &postgres->config.jobs, &store);
	if (error)
		return error;
	postgres->backend = postgres->engine = *postgres->jobs->backend;
	postgres->backend.put = put;
	postgres->backend.put_many = put_many;
	postgres->backend.close = close_jobs;
	postgres->jobs->backend = &postgres->backend;
	error = begin_delivery(postgres);
	if (error) {
		(void)ww_jobs_close(postgres->jobs);
		return error;
	}
	*jobs = postgres->jobs;
	return WW_OK;
}
