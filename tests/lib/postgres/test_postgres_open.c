/* Opening a store in PostgreSQL: one owner at a time, and the end of a connection is the end of the store. */
/* tier: check, threads */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/postgres/postgres_internal.h"
#include "lib/postgres/state.h"
#include "tests/support/postgres/kind.h"

static struct world world;
static _Atomic int waited;
static _Atomic int lost;
static _Atomic int reports;

static struct postgres *store(void)
{
	return local_of(world.jobs)->store.self;
}

static int go_on(const char *owner, void *context)
{
	(void)owner;
	(void)context;
	(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	waited++;
	return 0;
}

static int give_up(const char *owner, void *context)
{
	(void)owner;
	(void)context;
	return ++waited == 2;
}

static char heard[100];

static int until_heard(const char *owner, void *context)
{
	(void)snprintf(heard, sizeof heard, "%s", owner);
	return go_on(owner, context) || *owner;
}

static void note_lost(void *context)
{
	(void)context;
	lost++;
}

static void note_report(const char *sentence, void *context)
{
	(void)context;
	reports += strlen(sentence) > 10;
}

static void end_connection(int pid)
{
	char sql[80];

	(void)snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d, 10000)", pid);
	(void)kind_postgres_ask(sql);
}

static void await(const _Atomic int *number, int at_least)
{
	for (int i = 0; *number < at_least; i++) {
		ck_assert_int_lt(i, 6000);
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
}

START_TEST(one_process_owns_the_store)
{
	struct ww_jobs_postgres_config config;
	struct ww_jobs *other = NULL;

	world_make(&world, KIND_POSTGRES);
	config = *kind_postgres_config(&world);
	ck_assert_int_eq(ww_jobs_postgres_open(&other, &config), WW_EINUSE);
	config.waits = give_up;
	ck_assert_int_eq(ww_jobs_postgres_open(&other, &config), WW_EINUSE);
	ck_assert_int_eq(waited, 2);
	ck_assert_ptr_null(other);
	world_end(&world);
}
END_TEST

START_TEST(others_hear_where_the_owner_is)
{
	struct ww_jobs_postgres_config config;
	struct ww_jobs *other = NULL;

	world_make(&world, KIND_POSTGRES);
	config = *kind_postgres_config(&world);
	config.waits = until_heard;
	OK(ww_jobs_close(world.jobs));
	/* The tests' server is on a Unix socket, so the owner is on its machine. */
	kind_postgres_config(&world)->advertise = "* 1 2 3";
	OK(world.kind->open(&world));
	ck_assert_int_eq(ww_jobs_postgres_open(&other, &config), WW_EINUSE);
	ck_assert_str_eq(heard, "127.0.0.1 1 2 3");
	config.advertise = "a name that is longer than what fits beside the word, 54";
	ck_assert_int_eq(ww_jobs_postgres_open(&other, &config), WW_EINVAL);
	world_end(&world);
}
END_TEST

/* Two sessions of a role that say what an owner and its reader say, and hold a lock. */
static void pretend(PGconn *sessions[2], const char *role, const char *lock)
{
	const char *place = strchr(kind_postgres_server()->url, '@');
	char sql[200];
	char url[sizeof kind_postgres_server()->url];

	(void)snprintf(url, sizeof url, "postgresql://%s%s", role, place);
	for (int i = 0; i < 2; i++)
		sessions[i] = PQconnectdb(url);
	(void)snprintf(sql, sizeof sql, "SET application_name = 'weekwheel spoof 1 2 3'; SELECT %s", lock);
	PQclear(PQexec(sessions[0], sql));
	(void)snprintf(sql, sizeof sql, "SET application_name = 'weekwheel reads for %d'", PQbackendPID(sessions[0]));
	PQclear(PQexec(sessions[1], sql));
}

static int hear_three(const char *owner, void *context)
{
	(void)until_heard(owner, context);
	return *heard || waited == 30;
}

START_TEST(others_believe_only_the_owner)
{
	static const char *const cases[][2] = {
	    {"app", "pg_advisory_lock(1463900017, 1)"}, {"postgres", "pg_advisory_lock(1463900017::bigint << 32 | 1)"}};
	struct ww_jobs_postgres_config config;
	struct ww_jobs *other = NULL;
	PGconn *sessions[2];

	world_make(&world, KIND_POSTGRES);
	config = *kind_postgres_config(&world);
	config.waits = hear_three;
	PQclear(PQexec(sessions[0] = PQconnectdb(kind_postgres_server()->url), "CREATE ROLE app LOGIN"));
	PQfinish(sessions[0]);
	for (int i = 0; i < 2; i++) {
		waited = 0;
		*heard = 0;
		if (i == 0)
			OK(ww_jobs_close(world.jobs));
		pretend(sessions, cases[i][0], cases[i][1]);
		ck_assert_int_eq(ww_jobs_postgres_open(&other, &config), WW_EINUSE);
		ck_assert_str_eq(heard, "");
		PQfinish(sessions[0]);
		PQfinish(sessions[1]);
		if (i == 0)
			OK(world.kind->open(&world));
	}
	world_end(&world);
}
END_TEST

START_TEST(a_store_that_is_closed_is_free_at_once)
{
	PGconn *connection;

	world_make(&world, KIND_POSTGRES);
	connection = PQconnectdb(kind_postgres_server()->url);
	for (int i = 0; i < 30; i++) {
		OK(ww_jobs_close(world.jobs));
		PGresult *result = PQexec(connection, "SELECT pg_try_advisory_xact_lock(1463900017, 1)");
		ck_assert_str_eq(PQgetvalue(result, 0, 0), "t");
		PQclear(result);
		OK(world.kind->open(&world));
	}
	PQfinish(connection);
	world_end(&world);
}
END_TEST

static void *open_other(void *context)
{
	struct ww_jobs **other = context;

	OK(ww_jobs_postgres_open(other, kind_postgres_config(&world)));
	return NULL;
}

START_TEST(who_waits_takes_over_with_all_jobs)
{
	struct ww_job_spec spec = spec_of("stays");
	struct ww_jobs *other = NULL;
	pthread_t thread;
	uint64_t id;

	world_make(&world, KIND_POSTGRES);
	kind_postgres_config(&world)->waits = go_on;
	id = put_job(&world, &spec);
	uint64_t token = reserve_job(&world).token;
	ck_assert_int_eq(pthread_create(&thread, NULL, open_other, &other), 0);
	await(&waited, 1);
	OK(ww_jobs_close(world.jobs));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	world.jobs = other;
	struct ww_lease lease = reserve_job(&world);
	ck_assert_uint_eq(lease.id, id);
	ck_assert_uint_gt(lease.token, token);
	world_end(&world);
}
END_TEST

START_TEST(a_store_whose_connection_is_ended_says_so_and_delivers_nothing)
{
	struct ww_job_spec spec = spec_of("not from memory");
	const char *tube = WW_TUBE_DEFAULT;
	struct ww_jobs_stats stats;
	struct ww_lease lease;

	for (int reader = 0; reader < 2; reader++) {
		world_make(&world, KIND_POSTGRES);
		kind_postgres_config(&world)->lost = note_lost;
		world_reopen(&world);
		lost = 0;
		(void)put_job(&world, &spec);
		end_connection(PQbackendPID((reader ? &store()->reader : &store()->writer)->connection));
		await(&lost, 1);
		ck_assert_int_eq(ww_jobs_reserve(world.jobs, &tube, 1, &lease), WW_EIO);
		ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EIO);
		OK(ww_jobs_stats(world.jobs, &stats));
		ck_assert_int_eq(stats.fault, WW_EIO);
		ck_assert_int_ne(*stats.fault_text, 0);
		ck_assert_int_eq(lost, 1);
		ck_assert_int_eq(ww_jobs_close(world.jobs), WW_EIO);
		OK(world.kind->open(&world));
		ww_jobs_free(world.jobs, reserve_job(&world).body);
		world_end(&world);
	}
}
END_TEST

/* Its commit makes all before it stable, which the others do not wait for. */
START_TEST(a_sync_waits_for_the_disk)
{
	struct ww_job_spec spec = spec_of("written, and then stable");

	world_make(&world, KIND_POSTGRES);
	OK(ww_jobs_close(world.jobs));
	world.config.sync = WW_SYNC_SYSTEM;
	OK(world.kind->open(&world));
	(void)kind_postgres_ask(
	    "CREATE TABLE commits (waits text, is_sync boolean); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
	    "'BEGIN INSERT INTO public.commits VALUES (current_setting(''synchronous_commit''), length(NEW.changes) = 0); RETURN NEW; "
	    "END'; CREATE TRIGGER note BEFORE INSERT ON weekwheel.turn FOR EACH ROW EXECUTE FUNCTION note()");
	(void)put_job(&world, &spec);
	OK(ww_jobs_begin(world.jobs));
	OK(local_of(world.jobs)->store.ops->sync(store()));
	OK(ww_jobs_commit(world.jobs));
	ck_assert_int_ge(kind_postgres_ask("SELECT count(*) FROM commits WHERE waits = 'off' AND NOT is_sync"), 1);
	ck_assert_int_eq(kind_postgres_ask("SELECT count(*) FROM commits WHERE waits = 'on' AND is_sync"), 1);
	ck_assert_int_eq(kind_postgres_ask("SELECT count(*) FROM commits WHERE waits <> 'on' AND is_sync"), 0);
	(void)kind_postgres_ask("DROP FUNCTION note() CASCADE; DROP TABLE commits");
	world_end(&world);
}
END_TEST

/* What was written before may not be stable: as with a disk, there is no second try. */
START_TEST(a_sync_that_fails_is_the_end)
{
	struct ww_job_spec spec = spec_of("written, and perhaps not stable");
	struct ww_jobs_stats stats;
	uint64_t id;

	world_make(&world, KIND_POSTGRES);
	kind_postgres_config(&world)->lost = note_lost;
	world_reopen(&world);
	lost = 0;
	id = put_job(&world, &spec);
	/* A sync writes a turn without changes. */
	(void)kind_postgres_ask(
	    "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
	    "'BEGIN RAISE SQLSTATE ''53100''; END'; CREATE TRIGGER fail BEFORE INSERT ON weekwheel.turn "
	    "FOR EACH ROW WHEN (length(NEW.changes) = 0) EXECUTE FUNCTION fail()");
	OK(ww_jobs_begin(world.jobs));
	ck_assert_int_eq(local_of(world.jobs)->store.ops->sync(store()), WW_EIO);
	(void)ww_jobs_commit(world.jobs);
	(void)kind_postgres_ask("DROP FUNCTION fail() CASCADE");
	ck_assert_int_eq(lost, 1);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EIO);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_int_eq(stats.fault, WW_EIO);
	ck_assert_int_eq(ww_jobs_close(world.jobs), WW_EIO);
	OK(world.kind->open(&world));
	ck_assert_uint_eq(info_of(&world, id).id, id);
	world_end(&world);
}
END_TEST

START_TEST(an_owner_that_was_stopped_asks_before_it_delivers)
{
	struct ww_job_spec spec = spec_of("ended elsewhere");
	const char *tube = WW_TUBE_DEFAULT;
	struct ww_lease lease;

	world_make(&world, KIND_POSTGRES);
	(void)put_job(&world, &spec);
	/* As if it had been stopped, and others had taken over, a moment ago. */
	OK(ww_jobs_begin(world.jobs));
	store()->alive -= 3 * WW_SECOND;
	end_connection(PQbackendPID(store()->writer.connection));
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, &tube, 1, &lease), WW_EIO);
	ck_assert_int_eq(ww_jobs_commit(world.jobs), WW_OK);
	ck_assert_int_eq(ww_jobs_close(world.jobs), WW_EIO);
	OK(world.kind->open(&world));
	world_end(&world);
}
END_TEST

START_TEST(what_was_committed_outlives_a_crash_of_postgres)
{
	static struct postgres_server server;
	struct ww_job_spec spec = spec_of("safe");
	uint64_t id;

	/* Only a server of this process can be killed by it. */
	postgres_server_start(&server);
	world_make(&world, KIND_POSTGRES);
	OK(ww_jobs_close(world.jobs));
	kind_postgres_config(&world)->url = server.url;
	world.config.sync = WW_SYNC_ALWAYS;
	OK(world.kind->open(&world));
	id = put_job(&world, &spec);
	postgres_server_crash(&server);
	while (ww_jobs_put(world.jobs, &spec, NULL, NULL) != WW_EIO)
		;
	ck_assert_int_eq(ww_jobs_close(world.jobs), WW_EIO);
	OK(world.kind->open(&world));
	ck_assert_uint_eq(info_of(&world, id).id, id);
	world_end(&world);
}
END_TEST

START_TEST(a_database_without_tables_of_this_version_is_refused)
{
	static const struct {
		const char *before;
		int error;
		const char *after;
	} cases[] = {{"ALTER SCHEMA weekwheel RENAME TO away", WW_ENOTFOUND, "ALTER SCHEMA away RENAME TO weekwheel"},
	    {"UPDATE weekwheel.about SET version = version + 98", WW_EVERSION,
	        "UPDATE weekwheel.about SET version = version - 98"},
	    {"UPDATE weekwheel.about SET cluster = cluster + 1", WW_EVERSION,
	        "UPDATE weekwheel.about SET cluster = cluster - 1"},
	    /* A table that is missing is no table without rows. */
	    {"ALTER TABLE weekwheel.turn RENAME TO away", WW_ENOTFOUND, "ALTER TABLE weekwheel.away RENAME TO turn"},
	    {"ALTER TABLE weekwheel.job RENAME TO away", WW_ENOTFOUND, "ALTER TABLE weekwheel.away RENAME TO job"},
	    {"ALTER TABLE weekwheel.gone RENAME TO away", WW_ENOTFOUND, "ALTER TABLE weekwheel.away RENAME TO gone"}};
	struct ww_jobs_postgres_config config;
	struct ww_jobs *other = NULL;

	world_make(&world, KIND_POSTGRES);
	config = *kind_postgres_config(&world);
	config.report = note_report;
	OK(ww_jobs_close(world.jobs));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		reports = 0;
		(void)kind_postgres_ask(cases[i].before);
		ck_assert_int_eq(ww_jobs_postgres_open(&other, &config), cases[i].error);
		ck_assert_int_eq(reports, 1);
		(void)kind_postgres_ask(cases[i].after);
	}
	OK(ww_jobs_postgres_open(&world.jobs, &config));
	world_end(&world);
}
END_TEST

START_TEST(a_config_out_of_range_is_refused)
{
	struct ww_jobs_postgres_config config;
	struct ww_jobs *jobs = NULL;

	ck_assert_int_eq(ww_jobs_postgres_config_default(NULL), WW_EINVAL);
	OK(ww_jobs_postgres_config_default(&config));
	ck_assert_int_eq(ww_jobs_postgres_open(&jobs, &config), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_postgres_open(NULL, &config), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_postgres_open(&jobs, NULL), WW_EINVAL);
	world_make(&world, KIND_POSTGRES);
	config = *kind_postgres_config(&world);
	config.ring = WW_MILLISECOND - 1;
	ck_assert_int_eq(ww_jobs_postgres_open(&jobs, &config), WW_EINVAL);
	config.ring = WW_MILLISECOND;
	config.jobs.window = 0;
	OK(ww_jobs_close(world.jobs));
	ck_assert_int_eq(ww_jobs_postgres_open(&jobs, &config), WW_EINVAL);
	ck_assert_ptr_null(jobs);
	OK(world.kind->open(&world));
	world_end(&world);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {one_process_owns_the_store, others_hear_where_the_owner_is,
	    others_believe_only_the_owner, a_store_that_is_closed_is_free_at_once, who_waits_takes_over_with_all_jobs,
	    a_store_whose_connection_is_ended_says_so_and_delivers_nothing, a_sync_waits_for_the_disk,
	    a_sync_that_fails_is_the_end, an_owner_that_was_stopped_asks_before_it_delivers,
	    what_was_committed_outlives_a_crash_of_postgres, a_database_without_tables_of_this_version_is_refused,
	    a_config_out_of_range_is_refused};

	if (!postgres_server_is_there())
		return EXIT_SUCCESS;
	return suite_run_with("postgres/open", tests, sizeof tests / sizeof *tests, kind_postgres.begin);
}
