/* What SQL puts reaches the engine when it commits, once, whatever comes between. */
/* tier: check, threads */
#include "lib/postgres/intake.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/postgres/postgres_internal.h"
#include "tests/support/postgres/kind.h"
#include "tests/support/seed.h"

static struct world world;

static struct postgres *store(void)
{
	return local_of(world.jobs)->store.self;
}

static PGconn *session(const char *sql)
{
	PGconn *connection = PQconnectdb(kind_postgres_server()->url);
	PGresult *result = PQexec(connection, sql);

	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK, "%s",
	    PQerrorMessage(connection));
	PQclear(result);
	return connection;
}

static void end_session(PGconn *connection, const char *sql)
{
	PGresult *result = PQexec(connection, sql);

	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK, "%s", PQerrorMessage(connection));
	PQclear(result);
	PQfinish(connection);
}

/* The next job, which must come. */
static struct ww_lease take(const char *body)
{
	const char *tube = WW_TUBE_DEFAULT;
	struct ww_lease lease;

	for (int i = 0; i < 6000; i++) {
		int result = ww_jobs_reserve(world.jobs, &tube, 1, &lease);
		ck_assert_int_ge(result, 0);
		if (result) {
			ck_assert_uint_eq(lease.body_length, strlen(body));
			ck_assert_int_eq(memcmp(lease.body, body, strlen(body)), 0);
			ww_jobs_free(world.jobs, lease.body);
			return lease;
		}
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	ck_abort_msg("'%s' never came", body);
	return lease;
}

static void take_and_finish(const char *body)
{
	struct ww_lease lease = take(body);

	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
}

/* All that has committed so far was taken. */
static void await_taken(void)
{
	kind_postgres_await("SELECT count(*) FROM weekwheel.inbox AS i, unnest(coalesce((options).ids, ARRAY[id])) one "
	                    "WHERE NOT EXISTS (SELECT FROM weekwheel.turn AS t WHERE one = ANY (t.taken))",
	    0);
}

START_TEST(a_row_counts_from_the_commit)
{
	PGconn *early, *late;

	world_make(&world, KIND_POSTGRES);
	/* The earlier id and transaction commits last. */
	early = session("BEGIN; SELECT weekwheel.put('default', 'early')");
	late = session("BEGIN; SELECT weekwheel.put('default', 'late')");
	end_session(late, "COMMIT");
	take_and_finish("late");
	end_session(early, "COMMIT");
	take_and_finish("early");
	end_session(session("BEGIN; SELECT weekwheel.put('default', 'never')"), "ROLLBACK");
	end_session(session("BEGIN; SELECT weekwheel.put('default', 'after')"), "COMMIT");
	take_and_finish("after");
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_row_of_a_long_transaction_is_not_passed_by)
{
	PGconn *open;

	world_make(&world, KIND_POSTGRES);
	kind_postgres_config(&world)->ring = WW_MILLISECOND;
	world_reopen(&world);
	open = session("BEGIN; SELECT weekwheel.put('default', 'open long')");
	for (int i = 0; i < 50; i++) {
		end_session(session("BEGIN; SELECT weekwheel.put('default', 'others')"), "COMMIT");
		take_and_finish("others");
	}
	/* The ring has not gone round over it. */
	OK(ww_jobs_begin(world.jobs));
	ck_assert_uint_le(store()->position, 4 + 1);
	OK(ww_jobs_commit(world.jobs));
	end_session(open, "COMMIT");
	take_and_finish("open long");
	world_end(&world);
}
END_TEST

START_TEST(what_was_taken_is_not_taken_again)
{
	struct ww_jobs_stats stats;

	world_make(&world, KIND_POSTGRES);
	end_session(
	    session("BEGIN; SELECT weekwheel.put_many('default', array_fill('x'::text, ARRAY[1500]))"), "COMMIT");
	await_taken();
	for (int i = 0; i < 3; i++) {
		world_reopen(&world);
		end_session(session("BEGIN; SELECT weekwheel.put('default', 'one more')"), "COMMIT");
		await_taken();
		OK(ww_jobs_stats(world.jobs, &stats));
		ck_assert_uint_eq(stats.all.ready, 1500 + (uint64_t)i + 1);
	}
	world_end(&world);
}
END_TEST

static _Atomic int reports;

static void count_report(const char *sentence, void *context)
{
	(void)context;
	reports += strstr(sentence, "is tried again") != NULL;
}

static void await_reports(int count)
{
	for (int i = 0; reports < count; i++) {
		ck_assert_int_lt(i, 6000);
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
}

START_TEST(a_reading_that_fails_is_done_again_without_loss)
{
	struct ww_jobs_stats stats;

	world_make(&world, KIND_POSTGRES);
	reports = 0;
	kind_postgres_config(&world)->report = count_report;
	world_reopen(&world);
	world_fail(&world, FAIL_COMMIT);
	end_session(
	    session("BEGIN; SELECT weekwheel.put_many('default', array_fill('x'::text, ARRAY[1200]))"), "COMMIT");
	await_reports(2);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.all.ready, 0);
	world_fail(&world, FAIL_NOTHING);
	await_taken();
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.all.ready, 1200);
	world_end(&world);
}
END_TEST

START_TEST(each_field_reaches_the_job)
{
	struct ww_job_info info;

	world_make(&world, KIND_POSTGRES);
	end_session(
	    session("BEGIN; SELECT weekwheel.put('default', 'body', delay => '1 hour', priority => 7, key => 'k', "
	            "run => '90 seconds', backoff => '2 seconds', attempts => 5)"),
	    "COMMIT");
	await_taken();
	OK(ww_jobs_peek(world.jobs, &(struct ww_job_ref){.tube = "default", .key = "k", .key_length = 1}, &info, NULL));
	ck_assert_uint_eq(info.id % 2, 1);
	ck_assert_uint_eq(info.priority, 7);
	ck_assert_uint_eq(info.run, 90 * WW_SECOND);
	ck_assert_uint_eq(info.attempts, 5);
	ck_assert_int_eq(info.state, WW_JOB_DELAYED);
	end_session(session("BEGIN; SELECT weekwheel.move('default', 'k', delay => '3 hours')"), "COMMIT");
	await_taken();
	uint64_t due = info_of(&world, info.id).due;
	ck_assert_uint_gt(due, world_now(&world) + 2 * 3600 * WW_SECOND);
	end_session(session("BEGIN; SELECT weekwheel.cancel('default', 'k')"), "COMMIT");
	await_taken();
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = info.id}, &info, NULL), WW_ENOTFOUND);
	world_end(&world);
}
END_TEST

static void write_hex(char *to, const unsigned char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		(void)sprintf(to + 2 * i, "%02x", bytes[i]);
	to[2 * length] = 0;
}

/* Put by one of the ways to put, and return when the job is due. */
static uint64_t due_of_put(unsigned way, const struct ww_job_spec *spec, uint64_t span_ms)
{
	static const char *const ways[] = {
	    "SELECT weekwheel.put('%s', '\\x%s'::bytea, at => '2030-01-01Z', key_bytes => nullif('\\x%s'::bytea, ''), "
	    "spread => make_interval(secs => %llu / 1000.0))",
	    "INSERT INTO weekwheel.puts (tube, body_bytes, at, key_bytes, spread) VALUES ('%s', '\\x%s', '2030-01-01Z', "
	    "nullif('\\x%s'::bytea, ''), make_interval(secs => %llu / 1000.0))",
	    "SELECT weekwheel.put_many('%s', ARRAY['x', '\\x%s'::bytea], at => '2030-01-01Z', keys => ARRAY[NULL, "
	    "nullif(convert_from('\\x%s', 'UTF8'), '')], spread => make_interval(secs => %llu / 1000.0))"};
	char body[200], key[500], sql[1000];

	write_hex(body, spec->body, spec->body_length);
	write_hex(key, spec->key, spec->key_length);
	(void)snprintf(sql, sizeof sql, ways[way], spec->tube, body, key, (unsigned long long)span_ms);
	(void)kind_postgres_ask(sql);
	return (uint64_t)kind_postgres_ask(
	    "SELECT (extract(epoch FROM due) * 1000)::bigint FROM weekwheel.inbox ORDER BY id DESC LIMIT 1");
}

START_TEST(a_spread_put_is_due_where_the_library_would_put_it)
{
	static const char *const tubes[] = {"default", "mail", "a/b;c.$_()+-9"};
	unsigned char key[200], body[90];
	uint64_t state = seed_of_run("postgres/intake"), moved = 0;

	world_make(&world, KIND_POSTGRES);
	OK(ww_jobs_close(world.jobs));
	for (int i = 0; i < 120; i++) {
		unsigned way = (unsigned)seed_below(&state, 3);
		uint64_t span =
		    seed_below(&state, 2) ? seed_below(&state, 4) : seed_below(&state, UINT64_C(4000000000));
		struct ww_job_spec spec = {.tube = tubes[seed_below(&state, 3)],
		    .key = key,
		    .body = body,
		    .key_length = seed_below(&state, 3) ? seed_below(&state, sizeof key + 1) : 0,
		    .body_length = seed_below(&state, sizeof body + 1)};
		/* Keys of put_many are text. */
		for (size_t at = 0; at < sizeof key; at++)
			key[at] = (unsigned char)(way == 2 ? 1 + seed_below(&state, 127) : seed_below(&state, 256));
		for (size_t at = 0; at < sizeof body; at++)
			body[at] = (unsigned char)seed_below(&state, 256);
		OK(ww_job_spread(&spec, span * WW_MILLISECOND));
		ck_assert_uint_eq(due_of_put(way, &spec, span), UINT64_C(1893456000000) + spec.due / WW_MILLISECOND);
		moved += spec.due > 0;
	}
	ck_assert_uint_gt(moved, 30);
	OK(world.kind->open(&world));
	world_end(&world);
}
END_TEST

/* Whoever asked could not know. A move has no effect, and after a cancel the delivery is the last. */
START_TEST(a_worker_may_have_what_is_moved_or_cancelled)
{
	struct ww_lease lease;
	char sql[200];

	world_make(&world, KIND_POSTGRES);
	end_session(session("BEGIN; SELECT weekwheel.put('default', 'in hands', key => 'k')"), "COMMIT");
	lease = take("in hands");
	(void)snprintf(sql, sizeof sql,
	    "BEGIN; SELECT weekwheel.move(%llu, delay => '1 hour'), weekwheel.move('default', 'k', delay => '1 hour'), "
	    "weekwheel.move(%llu, delay => '1 hour')",
	    (unsigned long long)lease.id, (unsigned long long)lease.id + 1000);
	end_session(session(sql), "COMMIT");
	await_taken();
	ck_assert_int_eq(info_of(&world, lease.id).state, WW_JOB_RESERVED);
	(void)snprintf(sql, sizeof sql, "BEGIN; SELECT weekwheel.cancel(%llu)", (unsigned long long)lease.id);
	end_session(session(sql), "COMMIT");
	await_taken();
	ck_assert_int_eq(ww_jobs_release(world.jobs, lease.id, lease.token, 0, 0, NULL), WW_ESTALE);
	expect_none(&world);
	ck_assert_int_eq(kind_postgres_ask("SELECT count(*) FROM weekwheel.refused"), 0);
	world_end(&world);
}
END_TEST

/* All rows of a batch become one row, and PostgreSQL has limits. */
START_TEST(rows_with_long_bodies_are_taken_in_several_turns)
{
	struct ww_jobs_stats stats;

	world_make(&world, KIND_POSTGRES);
	kind_postgres_config(&world)->ring = 3600 * WW_SECOND;
	world_reopen(&world);
	end_session(session("BEGIN; SELECT weekwheel.put_many('default', array_fill(repeat('x', 1 << 20), ARRAY[40]))"),
	    "COMMIT");
	await_taken();
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.all.ready, 40);
	ck_assert_int_le(kind_postgres_ask("SELECT max(length(changes)) FROM weekwheel.turn"), 18 << 20);
	ck_assert_int_ge(kind_postgres_ask("SELECT max(length(changes)) FROM weekwheel.turn"), 10 << 20);
	world_end(&world);
}
END_TEST

#define READS "l.relation = 'weekwheel.inbox'::regclass AND l.mode = 'AccessShareLock' AND NOT l.granted"

/* The owner reads once, takes the lock, reads again, and then it would sleep. The second reading fails. */
START_TEST(an_owner_that_fails_before_it_sleeps_gives_the_lock_back)
{
	PGconn *first, *second;
	char sql[80];

	world_make(&world, KIND_POSTGRES);
	kind_postgres_config(&world)->ring = 3600 * WW_SECOND;
	reports = 0;
	kind_postgres_config(&world)->report = count_report;
	world_reopen(&world);
	kind_postgres_await("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 2 AND granted", 1);
	first = session("BEGIN; LOCK TABLE weekwheel.inbox");
	kind_postgres_await("SELECT count(*) FROM pg_locks AS l WHERE " READS, 1);
	/* The first reading is before it in the queue, the second behind it. */
	second = PQconnectdb(kind_postgres_server()->url);
	ck_assert_int_eq(PQsendQuery(second, "BEGIN; LOCK TABLE weekwheel.inbox"), 1);
	kind_postgres_await("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted", 1);
	end_session(first, "COMMIT");
	kind_postgres_await(
	    "SELECT count(*) FROM pg_locks AS l JOIN pg_locks AS asleep USING (pid) WHERE asleep.locktype = "
	    "'advisory' AND asleep.objid = 2 AND " READS,
	    1);
	(void)snprintf(sql, sizeof sql, "SELECT pg_cancel_backend(%d)", PQbackendPID(store()->reader.connection));
	ck_assert_int_eq(reports, 0);
	kind_postgres_ask(sql);
	await_reports(1);
	/* It is awake, and reads again. */
	kind_postgres_await("SELECT count(*) FROM pg_locks AS l WHERE " READS, 1);
	ck_assert_int_eq(
	    kind_postgres_ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 2"), 0);
	PQfinish(second);
	end_session(session("BEGIN; SELECT weekwheel.put('default', 'goes on')"), "COMMIT");
	take_and_finish("goes on");
	world_end(&world);
}
END_TEST

/* As if a statement had been cancelled when it had just taken the lock: the session has it once more than the owner knows. */
START_TEST(an_owner_gives_a_lock_back_that_it_does_not_know_of)
{
	PGconn *other;
	char sql[120];

	world_make(&world, KIND_POSTGRES);
	kind_postgres_config(&world)->ring = 3600 * WW_SECOND;
	kind_postgres_config(&world)->report = count_report;
	world_reopen(&world);
	end_session(
	    session(
	        "CREATE FUNCTION weekwheel.lock_too(body bytea) RETURNS bytea LANGUAGE plpgsql AS "
	        "'BEGIN PERFORM pg_advisory_lock(1463900017, 2); RETURN body; END'; "
	        "BEGIN; ALTER TABLE weekwheel.inbox RENAME TO inbox_rows; CREATE VIEW weekwheel.inbox AS SELECT "
	        "ring, verb, id, xid, due, tube, options, weekwheel.lock_too(body) AS body FROM weekwheel.inbox_rows"),
	    "COMMIT");
	end_session(session("BEGIN; SELECT weekwheel.put('default', 'locks')"), "COMMIT");
	take_and_finish("locks");
	end_session(session("BEGIN; DROP VIEW weekwheel.inbox; DROP FUNCTION weekwheel.lock_too; "
	                    "ALTER TABLE weekwheel.inbox_rows RENAME TO inbox"),
	    "COMMIT");
	other = session("BEGIN; LOCK TABLE weekwheel.inbox");
	kind_postgres_await("SELECT count(*) FROM pg_locks AS l WHERE " READS, 1);
	/* If it is about to sleep, that fails. */
	(void)snprintf(
	    sql, sizeof sql, "SELECT count(pg_cancel_backend(%d))", PQbackendPID(store()->reader.connection));
	kind_postgres_ask(sql);
	kind_postgres_await("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 2", 0);
	end_session(other, "COMMIT");
	world_end(&world);
}
END_TEST

START_TEST(a_row_that_makes_no_sense_is_kept)
{
	world_make(&world, KIND_POSTGRES);
	kind_postgres_ask(
	    "INSERT INTO weekwheel.inbox (ring, id, verb, tube, options.run, body) VALUES (0, 77, 0, 'default', 5, 'x')");
	kind_postgres_await("SELECT count(*) FROM weekwheel.refused WHERE id = 77", 1);
	end_session(session("BEGIN; SELECT weekwheel.put('default', 'goes on')"), "COMMIT");
	take_and_finish("goes on");
	kind_postgres_ask("DELETE FROM weekwheel.refused");
	world_end(&world);
}
END_TEST

/* Some of a row's jobs, and what is not one. */
START_TEST(a_row_of_many_that_makes_no_sense_is_kept)
{
	static const struct {
		const char *ids;
		const char *body;
	} bad[] = {{"{1001,1003}", "array_send(ARRAY['x']::bytea[])"}, {"{}", "array_send('{}'::bytea[])"},
	    {"{1001}", "array_send(ARRAY[7])"}, {"{1001}", "'nonsense that is long enough to be one'"},
	    {"{1001,NULL}", "array_send(ARRAY['x', 'y']::bytea[])"}, {"{1001}", "NULL"}};
	char sql[300];

	world_make(&world, KIND_POSTGRES);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		(void)snprintf(sql, sizeof sql,
		    "INSERT INTO weekwheel.inbox (ring, id, verb, tube, options.ids, body) VALUES (0, %zu, 0, 'default', '%s', %s)",
		    2 * i + 101, bad[i].ids, bad[i].body);
		kind_postgres_ask(sql);
		kind_postgres_await("SELECT count(*) FROM weekwheel.refused", (long long)i + 1);
	}
	/* Of these jobs the second is none. */
	kind_postgres_ask("INSERT INTO weekwheel.inbox (ring, id, verb, tube, options.ids, options.run, body) "
	                  "VALUES (0, 201, 0, 'default', '{201,203}', 5, array_send(ARRAY['x', 'yy']::bytea[]))");
	kind_postgres_await("SELECT count(*) FROM weekwheel.refused WHERE id = 203 AND body = 'yy'", 1);
	kind_postgres_await("SELECT count(*) FROM weekwheel.refused WHERE id = 201 AND body = 'x'", 1);
	end_session(session("BEGIN; SELECT weekwheel.put('default', 'goes on')"), "COMMIT");
	take_and_finish("goes on");
	expect_none(&world);
	kind_postgres_ask("DELETE FROM weekwheel.refused");
	world_end(&world);
}
END_TEST

START_TEST(a_row_of_many_is_taken_in_parts_and_each_job_once)
{
	struct ww_jobs_stats stats;

	world_make(&world, KIND_POSTGRES);
	kind_postgres_config(&world)->ring = WW_MILLISECOND;
	world_reopen(&world);
	/* More than go into a turn, and some before them. */
	end_session(
	    session("BEGIN; SELECT weekwheel.put('default', 'x') FROM generate_series(1, 30); "
	            "SELECT weekwheel.put_many('default', array_fill('x'::text, ARRAY[700]), delay => '1 hour'); "
	            "SELECT weekwheel.put('default', 'x', delay => '1 hour')"),
	    "COMMIT");
	await_taken();
	for (int i = 0; i < 30; i++)
		take_and_finish("x");
	expect_none(&world);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.all.delayed, 701);
	/* All of them are counted, or the ring would stand. */
	kind_postgres_await("SELECT count(*) FROM weekwheel.inbox", 0);
	world_reopen(&world);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.all.delayed, 701);
	world_end(&world);
}
END_TEST

START_TEST(an_owner_that_sleeps_is_woken)
{
	world_make(&world, KIND_POSTGRES);
	for (int i = 0; i < 3; i++) {
		kind_postgres_await(
		    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 2 AND granted", 1);
		end_session(session("BEGIN; SELECT weekwheel.put('default', 'wakes')"), "COMMIT");
		take_and_finish("wakes");
	}
	world_end(&world);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_row_counts_from_the_commit, a_row_of_a_long_transaction_is_not_passed_by,
	    what_was_taken_is_not_taken_again, a_reading_that_fails_is_done_again_without_loss,
	    each_field_reaches_the_job, a_spread_put_is_due_where_the_library_would_put_it,
	    a_worker_may_have_what_is_moved_or_cancelled, rows_with_long_bodies_are_taken_in_several_turns,
	    an_owner_that_fails_before_it_sleeps_gives_the_lock_back,
	    an_owner_gives_a_lock_back_that_it_does_not_know_of, a_row_that_makes_no_sense_is_kept,
	    a_row_of_many_that_makes_no_sense_is_kept, a_row_of_many_is_taken_in_parts_and_each_job_once,
	    an_owner_that_sleeps_is_woken};

	if (!postgres_server_is_there())
		return EXIT_SUCCESS;
	return suite_run_with("postgres/intake", tests, sizeof tests / sizeof *tests, kind_postgres.begin);
}
