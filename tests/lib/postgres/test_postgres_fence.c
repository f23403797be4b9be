/* A delivery ends once, by SQL or otherwise: what comes second fails, whoever owns the store and however long it took. */
/* tier: check, threads */
#include "lib/postgres/fence.h"

#include <string.h>
#include <time.h>

#include "lib/postgres/postgres_internal.h"
#include "tests/support/postgres/kind.h"

#define BLOCK (UINT64_C(1) << 18)
#define RUN (60 * WW_SECOND)

static struct world world;

static PGconn *open_session(void)
{
	PGconn *session = PQconnectdb(kind_postgres_server()->url);

	ck_assert_int_eq(PQstatus(session), CONNECTION_OK);
	return session;
}

/* Returns the SQLSTATE, or "". */
static const char *state_of(PGconn *session, const char *sql)
{
	static char state[6];
	PGresult *result = PQexec(session, sql);
	const char *text = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	(void)snprintf(state, sizeof state, "%s", text ? text : "");
	PQclear(result);
	return state;
}

static void expect_state(PGconn *session, const char *sql, const char *state)
{
	ck_assert_msg(strcmp(state_of(session, sql), state) == 0, "%s: %s", sql, PQerrorMessage(session));
}

/* The call of a function, with further arguments. */
static const char *call_of(const char *function, const struct ww_lease *lease, const char *more)
{
	static char sql[200];

	(void)snprintf(sql, sizeof sql, "SELECT weekwheel.%s(%llu, %llu%s)", function, (unsigned long long)lease->id,
	    (unsigned long long)lease->token, more);
	return sql;
}

static const char *finish_of(const struct ww_lease *lease)
{
	return call_of("finish", lease, "");
}

/* In a transaction of its own. */
static void expect_finish(const struct ww_lease *lease, const char *state)
{
	PGconn *session = open_session();

	expect_state(session, finish_of(lease), state);
	PQfinish(session);
}

static void expect_end(const char *function, const struct ww_lease *lease, const char *more, const char *state)
{
	PGconn *session = open_session();

	expect_state(session, call_of(function, lease, more), state);
	PQfinish(session);
}

/* In one that stays open. */
static PGconn *begin_finish(const struct ww_lease *lease)
{
	PGconn *session = open_session();

	expect_state(session, "BEGIN", "");
	expect_state(session, finish_of(lease), "");
	return session;
}

static void end_session(PGconn *session, const char *sql, const char *state)
{
	expect_state(session, sql, state);
	PQfinish(session);
}

/* All requests that have committed were carried out. */
static void await_taken(void)
{
	kind_postgres_await("SELECT count(*) FROM weekwheel.inbox AS i WHERE NOT EXISTS "
	                    "(SELECT FROM weekwheel.turn AS t WHERE i.id = ANY (t.taken))",
	    0);
}

static void expect_gone(uint64_t id)
{
	struct ww_job_info info;

	await_taken();
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = id}, &info, NULL), WW_ENOTFOUND);
}

static struct ww_lease put_and_reserve(void)
{
	struct ww_job_spec spec = spec_of("work");

	(void)put_job(&world, &spec);
	return reserve_job(&world);
}

START_TEST(a_transaction_ends_a_delivery_once)
{
	struct ww_lease lease;
	struct ww_job_info info;
	PGconn *first, *second;

	world_make(&world, KIND_POSTGRES);
	lease = put_and_reserve();
	first = begin_finish(&lease);
	ck_assert_uint_eq(info_of(&world, lease.id).token, lease.token);
	end_session(first, "ROLLBACK", "");
	first = begin_finish(&lease);
	expect_state(first, "SAVEPOINT s", "");
	expect_state(first, finish_of(&lease), "WW001");
	expect_state(first, "ROLLBACK TO s", "");
	end_session(first, "COMMIT", "");
	expect_gone(lease.id);
	expect_finish(&lease, "WW001");
	ck_assert_int_eq(ww_jobs_finish(world.jobs, lease.id, lease.token), WW_ESTALE);
	/* Of two at the same time the second waits, and fails. */
	lease = put_and_reserve();
	first = begin_finish(&lease);
	second = open_session();
	ck_assert_int_eq(PQsendQuery(second, finish_of(&lease)), 1);
	kind_postgres_await("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'", 1);
	end_session(first, "COMMIT", "");
	PGresult *result = PQgetResult(second);
	ck_assert_str_eq(PQresultErrorField(result, PG_DIAG_SQLSTATE), "WW001");
	PQclear(result);
	PQfinish(second);
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = lease.id}, &info, NULL) == WW_OK &&
	                     info.state != WW_JOB_RESERVED,
	    0);
	world_end(&world);
}
END_TEST

START_TEST(after_its_time_to_run_a_delivery_has_no_finish)
{
	struct ww_lease late, next;

	world_make(&world, KIND_POSTGRES);
	late = put_and_reserve();
	world_pass(&world, RUN + MS);
	/* Not even before somebody else has the job. */
	expect_finish(&late, "WW001");
	next = reserve_job(&world);
	ck_assert_uint_eq(next.id, late.id);
	ck_assert_uint_gt(next.token, late.token);
	expect_finish(&late, "WW001");
	expect_finish(&next, "");
	expect_gone(next.id);
	world_end(&world);
}
END_TEST

START_TEST(a_finish_that_is_under_way_holds_the_lease)
{
	struct ww_lease lease, next;
	PGconn *session;

	world_make(&world, KIND_POSTGRES);
	lease = put_and_reserve();
	for (int i = 0; i < 2; i++) {
		session = begin_finish(&lease);
		world_pass(&world, RUN + MS);
		expect_none(&world);
		world_pass(&world, 10 * RUN);
		expect_none(&world);
		/* Nor may its worker end it in another way. */
		ck_assert_int_eq(ww_jobs_release(world.jobs, lease.id, lease.token, 0, 0, NULL), WW_ESTALE);
		ck_assert_int_eq(ww_jobs_bury(world.jobs, lease.id, lease.token, 0, NULL), WW_ESTALE);
		ck_assert_int_eq(ww_jobs_return(world.jobs, lease.id, lease.token), WW_ESTALE);
		ck_assert_int_eq(ww_jobs_return_after(world.jobs, lease.id, lease.token, 5), WW_ESTALE);
		if (i == 0) {
			/* It comes back, since there is no finish. */
			end_session(session, "ROLLBACK", "");
			world_pass(&world, 60 * WW_SECOND);
			next = reserve_job(&world);
			ck_assert_uint_eq(next.id, lease.id);
			expect_finish(&lease, "WW001");
			lease = next;
		}
	}
	end_session(session, "COMMIT", "");
	expect_gone(lease.id);
	world_pass(&world, RUN);
	expect_none(&world);
	world_end(&world);
}
END_TEST

/* It is looked for the end of the transaction soon, and then more seldom. */
START_TEST(a_worker_that_gives_back_what_is_being_finished_shortens_the_wait)
{
	struct ww_lease lease;
	PGconn *session;

	world_make(&world, KIND_POSTGRES);
	for (int how = 0; how < 3; how++) {
		lease = put_and_reserve();
		session = begin_finish(&lease);
		ck_assert_int_eq(how == 0   ? ww_jobs_return(world.jobs, lease.id, lease.token)
		                 : how == 1 ? ww_jobs_return_after(world.jobs, lease.id, lease.token, 5)
		                            : ww_jobs_release(world.jobs, lease.id, lease.token, 0, 0, NULL),
		    WW_ESTALE);
		world_pass(&world, 2 * WW_SECOND);
		expect_none(&world);
		end_session(session, "ROLLBACK", "");
		world_pass(&world, 3 * WW_SECOND);
		expect_none(&world);
		world_pass(&world, WW_SECOND);
		lease = reserve_job(&world);
		expect_finish(&lease, "");
		expect_gone(lease.id);
	}
	world_end(&world);
}
END_TEST

START_TEST(each_other_end_leaves_no_finish)
{
	struct ww_lease lease;

	world_make(&world, KIND_POSTGRES);
	lease = put_and_reserve();
	OK(ww_jobs_release(world.jobs, lease.id, lease.token, 0, 0, NULL));
	expect_finish(&lease, "WW001");
	lease = reserve_job(&world);
	OK(ww_jobs_return(world.jobs, lease.id, lease.token));
	expect_finish(&lease, "WW001");
	lease = reserve_job(&world);
	OK(ww_jobs_return_after(world.jobs, lease.id, lease.token, 1));
	expect_finish(&lease, "WW001");
	world_pass(&world, MS);
	lease = reserve_job(&world);
	OK(ww_jobs_bury(world.jobs, lease.id, lease.token, 0, NULL));
	expect_finish(&lease, "WW001");
	OK(ww_jobs_kick_job(world.jobs, lease.id));
	lease = reserve_job(&world);
	expect_finish(&lease, "");
	expect_gone(lease.id);
	world_end(&world);
}
END_TEST

START_TEST(a_new_owner_lets_no_earlier_delivery_finish)
{
	struct ww_lease lease;
	PGconn *session, *checked;

	world_make(&world, KIND_POSTGRES);
	lease = put_and_reserve();
	session = begin_finish(&lease);
	world_reopen(&world);
	/* It is delivered at once, while the transaction is open. */
	ck_assert_uint_eq(reserve_job(&world).id, lease.id);
	end_session(session, "COMMIT", "WW001");
	expect_finish(&lease, "WW001");
	ck_assert_uint_eq(info_of(&world, lease.id).state, WW_JOB_RESERVED);
	/* Also one that looked at the floor before, when its constraints were checked: it is waited for. */
	world_reopen(&world);
	lease = reserve_job(&world);
	checked = begin_finish(&lease);
	expect_state(checked, "SET CONSTRAINTS ALL IMMEDIATE", "");
	ck_assert_int_eq(PQsendQuery(checked, "SELECT pg_sleep(0.3); COMMIT"), 1);
	world_reopen(&world);
	expect_none(&world);
	expect_gone(lease.id);
	PQfinish(checked);
	world_end(&world);
}
END_TEST

START_TEST(what_committed_without_an_owner_counts_before_the_next_delivery)
{
	struct ww_job_spec spec = spec_of("once");
	struct ww_lease leases[3];

	world_make(&world, KIND_POSTGRES);
	for (int i = 0; i < 3; i++)
		(void)put_job(&world, &spec);
	for (int i = 0; i < 3; i++)
		leases[i] = reserve_job(&world);
	OK(ww_jobs_close(world.jobs));
	expect_finish(&leases[0], "");
	expect_finish(&leases[2], "");
	OK(world.kind->open(&world));
	ck_assert_uint_eq(reserve_job(&world).id, leases[1].id);
	expect_none(&world);
	expect_gone(leases[0].id);
	expect_gone(leases[2].id);
	world_end(&world);
}
END_TEST

START_TEST(what_ended_otherwise_is_not_ended_again_by_the_next_owner)
{
	struct ww_job_spec spec = spec_of("old");
	struct ww_lease replaced, periodic, unknown;
	uint64_t due;

	world_make(&world, KIND_POSTGRES);
	spec.key = "k";
	spec.key_length = 1;
	(void)put_job(&world, &spec);
	replaced = reserve_job(&world);
	spec.body = "new";
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	spec = spec_of("each hour");
	spec.period = 3600 * WW_SECOND;
	spec.priority = 0;
	(void)put_job(&world, &spec);
	periodic = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, periodic.id, periodic.token));
	due = info_of(&world, periodic.id).due;
	OK(ww_jobs_close(world.jobs));
	/* The store does not know that these come too late: they end nothing. */
	expect_finish(&replaced, "");
	expect_finish(&periodic, "");
	unknown = periodic;
	unknown.id = 1000001;
	expect_finish(&unknown, "");
	OK(world.kind->open(&world));
	await_taken();
	ck_assert_uint_eq(info_of(&world, periodic.id).due, due);
	ck_assert_uint_eq(reserve_job(&world).id, replaced.id);
	world_end(&world);
}
END_TEST

START_TEST(a_periodic_job_goes_on)
{
	struct ww_job_spec spec = spec_of("each hour");
	struct ww_lease lease;

	world_make(&world, KIND_POSTGRES);
	spec.period = 3600 * WW_SECOND;
	(void)put_job(&world, &spec);
	for (int i = 0; i < 3; i++) {
		lease = reserve_job(&world);
		expect_finish(&lease, "");
		await_taken();
		ck_assert_uint_eq(info_of(&world, lease.id).state, WW_JOB_DELAYED);
		expect_finish(&lease, "WW001");
		world_pass(&world, spec.period);
	}
	ck_assert_uint_eq(reserve_job(&world).id, lease.id);
	world_end(&world);
}
END_TEST

START_TEST(a_release_is_carried_out_after_the_commit)
{
	struct ww_job_spec spec = spec_of("twice");
	struct ww_lease lease, next;
	struct ww_job_info info;
	PGconn *session;

	world_make(&world, KIND_POSTGRES);
	spec.attempts = 3;
	spec.backoff = 10 * WW_SECOND;
	spec.priority = 9;
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	session = open_session();
	expect_state(session, "BEGIN", "");
	expect_state(session, call_of("release", &lease, ", '1 hour', 5, 'no route'"), "");
	end_session(session, "ROLLBACK", "");
	expect_end("release", &lease, ", '1 hour', 5, 'no route'", "");
	await_taken();
	info = info_of(&world, lease.id);
	ck_assert_int_eq(info.state, WW_JOB_DELAYED);
	ck_assert_uint_eq(info.priority, 5);
	ck_assert_str_eq(info.error, "no route");
	ck_assert_uint_eq(info.releases, 1);
	ck_assert_uint_gt(info.left, 3590 * WW_SECOND);
	expect_finish(&lease, "WW001");
	expect_end("release", &lease, "", "WW001");
	world_pass(&world, 3600 * WW_SECOND);
	next = reserve_job(&world);
	ck_assert_uint_eq(next.attempt, 2);
	/* The job's own backoff and priority. */
	expect_end("release", &next, "", "");
	await_taken();
	info = info_of(&world, lease.id);
	ck_assert_uint_le(info.left, 20 * WW_SECOND);
	ck_assert_uint_gt(info.left, 5 * WW_SECOND);
	ck_assert_uint_eq(info.priority, 5);
	/* After the last attempt it is buried. */
	world_pass(&world, 20 * WW_SECOND);
	lease = reserve_job(&world);
	expect_end("release", &lease, "", "");
	await_taken();
	ck_assert_int_eq(info_of(&world, lease.id).state, WW_JOB_BURIED);
	world_end(&world);
}
END_TEST

START_TEST(a_bury_is_carried_out_after_the_commit)
{
	struct ww_lease lease;
	struct ww_job_info info;

	world_make(&world, KIND_POSTGRES);
	lease = put_and_reserve();
	expect_end("bury", &lease, ", 7, 'no address'", "");
	await_taken();
	info = info_of(&world, lease.id);
	ck_assert_int_eq(info.state, WW_JOB_BURIED);
	ck_assert_uint_eq(info.priority, 7);
	ck_assert_str_eq(info.error, "no address");
	expect_finish(&lease, "WW001");
	OK(ww_jobs_kick_job(world.jobs, lease.id));
	lease = reserve_job(&world);
	ck_assert_uint_eq(lease.priority, 7);
	expect_finish(&lease, "");
	expect_gone(lease.id);
	world_end(&world);
}
END_TEST

START_TEST(releases_that_committed_without_an_owner_count)
{
	struct ww_job_spec spec = spec_of("k");
	struct ww_lease leases[3];

	world_make(&world, KIND_POSTGRES);
	for (int i = 0; i < 3; i++) {
		spec.key = &"abc"[i];
		spec.key_length = 1;
		(void)put_job(&world, &spec);
		leases[i] = reserve_job(&world);
	}
	/* The third is replaced: what was to be released is no more. */
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	OK(ww_jobs_close(world.jobs));
	expect_end("release", &leases[0], ", '1 hour'", "");
	expect_end("bury", &leases[1], "", "");
	expect_end("bury", &leases[2], "", "");
	OK(world.kind->open(&world));
	ck_assert_int_eq(info_of(&world, leases[0].id).state, WW_JOB_DELAYED);
	ck_assert_uint_eq(info_of(&world, leases[0].id).releases, 1);
	ck_assert_int_eq(info_of(&world, leases[1].id).state, WW_JOB_BURIED);
	ck_assert_uint_eq(reserve_job(&world).id, leases[2].id);
	expect_none(&world);
	world_end(&world);
}
END_TEST

/* As if so many jobs had been delivered. */
static void deliver(uint64_t tokens)
{
	/* A batch keeps out the thread that tends the fence. */
	OK(ww_jobs_begin(world.jobs));
	local_of(world.jobs)->tokens += tokens;
	OK(ww_jobs_commit(world.jobs));
}

/* Nothing is left but in the part of the next token, which rows of earlier blocks may share. */
static void await_emptied(void)
{
	char sql[100];
	uint64_t floor, next;

	OK(ww_jobs_begin(world.jobs));
	ww_jobs_port_tokens(world.jobs, &floor, &next);
	OK(ww_jobs_commit(world.jobs));
	(void)snprintf(
	    sql, sizeof sql, "SELECT count(*) FROM weekwheel.ended WHERE part <> %d", (int)(next / BLOCK % 4));
	kind_postgres_await(sql, 0);
}

START_TEST(what_nobody_can_finish_any_more_is_emptied)
{
	struct ww_lease oldest, lease;

	world_make(&world, KIND_POSTGRES);
	oldest = put_and_reserve();
	for (int i = 0; i < 9; i++) {
		lease = put_and_reserve();
		expect_finish(&lease, "");
		expect_gone(lease.id);
		deliver(BLOCK);
	}
	/* The oldest lease keeps what is later. */
	kind_postgres_await("SELECT count(*) FROM weekwheel.ended", 9);
	expect_finish(&lease, "WW001");
	for (int i = 0; i < 4; i++) {
		OK(ww_jobs_release(world.jobs, oldest.id, oldest.token, 0, 0, NULL));
		deliver(BLOCK);
		await_emptied();
		oldest = reserve_job(&world);
	}
	OK(ww_jobs_release(world.jobs, oldest.id, oldest.token, 0, 0, NULL));
	/* The floor is what refuses these now. */
	expect_finish(&oldest, "WW001");
	expect_finish(&lease, "WW001");
	ck_assert_int_le(kind_postgres_ask("SELECT count(*) FROM weekwheel.ended"), 2);
	lease = reserve_job(&world);
	expect_finish(&lease, "");
	expect_gone(lease.id);
	world_end(&world);
}
END_TEST

START_TEST(that_goes_on_while_a_put_keeps_a_part_of_the_ring)
{
	struct ww_lease lease;
	PGconn *put = open_session();
	unsigned kept;

	world_make(&world, KIND_POSTGRES);
	expect_state(put, "BEGIN", "");
	expect_state(put, "SELECT weekwheel.put('other', 'x')", "");
	/* The ring may have turned since. It turns until it is to empty the part that has this row. */
	kept = (unsigned)kind_postgres_ask("SELECT right(relation::regclass::text, 1)::int FROM pg_locks WHERE "
	                                   "mode = 'RowExclusiveLock' AND relation::regclass::text ~ 'inbox_[0-3]$'");
	while (!kind_postgres_is_emptying(&world, kept)) {
		lease = put_and_reserve();
		expect_finish(&lease, "");
		expect_gone(lease.id);
	}
	for (int i = 0; i < 4; i++) {
		deliver(BLOCK);
		await_emptied();
	}
	lease = put_and_reserve();
	expect_finish(&lease, "");
	end_session(put, "COMMIT", "");
	world_end(&world);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_transaction_ends_a_delivery_once,
	    after_its_time_to_run_a_delivery_has_no_finish, a_finish_that_is_under_way_holds_the_lease,
	    a_worker_that_gives_back_what_is_being_finished_shortens_the_wait, each_other_end_leaves_no_finish,
	    a_new_owner_lets_no_earlier_delivery_finish,
	    what_committed_without_an_owner_counts_before_the_next_delivery,
	    what_ended_otherwise_is_not_ended_again_by_the_next_owner, a_periodic_job_goes_on,
	    a_release_is_carried_out_after_the_commit, a_bury_is_carried_out_after_the_commit,
	    releases_that_committed_without_an_owner_count, what_nobody_can_finish_any_more_is_emptied,
	    that_goes_on_while_a_put_keeps_a_part_of_the_ring};

	if (!postgres_server_is_there())
		return EXIT_SUCCESS;
	return suite_run_with("postgres/fence", tests, sizeof tests / sizeof *tests, kind_postgres.begin);
}
