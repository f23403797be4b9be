/* The ring of a store in PostgreSQL: what lasts is written on, parts and slots are emptied, and nothing is lost by it. */
/* tier: check, threads, no-valgrind (its thousands of jobs take minutes there) */
#include "lib/postgres/ring.h"

#include <string.h>

#include "lib/postgres/far.h"
#include "lib/postgres/postgres_internal.h"
#include "tests/support/postgres/kind.h"

static struct world world;

static struct postgres *store(void)
{
	return local_of(world.jobs)->store.self;
}

/* How often the ring has turned. The store's thread turns it: what it writes is read amid a batch. */
static uint64_t position(int *is_emptying)
{
	uint64_t now;

	OK(ww_jobs_begin(world.jobs));
	now = store()->position;
	if (is_emptying)
		*is_emptying = store()->is_emptying;
	OK(ww_jobs_commit(world.jobs));
	return now;
}

static struct part part_of(unsigned slot)
{
	struct part part;

	OK(ww_jobs_begin(world.jobs));
	part = store()->parts[RING_PARTS + slot];
	OK(ww_jobs_commit(world.jobs));
	return part;
}

/* Let the store write something, and its ring turn, so many times. */
static void turn_ring(unsigned times)
{
	uint64_t target = position(NULL) + times;
	struct ww_job_spec spec = spec_of("short");
	int is_emptying;

	while (position(&is_emptying) < target || is_emptying) {
		uint64_t id = put_job(&world, &spec);
		ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 0);
	}
}

static uint64_t put_far(uint64_t delay, const char *body)
{
	struct ww_job_spec spec = spec_of(body);

	spec.due = delay;
	return put_job(&world, &spec);
}

static uint64_t ready_in(const char *tube)
{
	struct ww_tube_stats stats;

	return ww_jobs_tube(world.jobs, tube, &stats) == WW_OK ? stats.ready : 0;
}

static void make(void)
{
	world_make(&world, KIND_POSTGRES);
	kind_postgres_reopen(&world, WW_MILLISECOND, 2);
}

START_TEST(what_lasts_lies_in_the_slot_of_its_hour)
{
	char sql[160];
	uint64_t id;

	make();
	id = put_far(30 * HOUR, "far");
	turn_ring(5);
	(void)snprintf(sql, sizeof sql, "SELECT slot FROM weekwheel.job WHERE id = %llu", (unsigned long long)id);
	ck_assert_int_eq(kind_postgres_ask(sql), (long long)((world_now(&world) + 30 * HOUR) / HOUR % 168));
	/* Nobody but the slot has it. */
	ck_assert_uint_eq(part_of((unsigned)((world_now(&world) + 30 * HOUR) / HOUR % 168)).living, 1);
	world_reopen(&world);
	ck_assert_str_eq(info_of(&world, id).tube, "default");
	expect_job_in(&world, 30 * HOUR, id);
	world_end(&world);
}
END_TEST

START_TEST(what_is_due_in_no_hour_of_the_week_lies_in_the_rest)
{
	uint64_t ids[3];

	make();
	ids[0] = put_far(200 * HOUR, "later");
	ids[1] = put_far(0, "waits");
	ids[2] = put_far(161 * HOUR, "almost");
	turn_ring(5);
	ck_assert_int_eq(kind_postgres_ask("SELECT count(*) FROM weekwheel.job WHERE slot = 168"), 3);
	world_reopen(&world);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(info_of(&world, ids[i]).id, ids[i]);
	world_end(&world);
}
END_TEST

START_TEST(a_job_that_left_its_slot_does_not_come_back)
{
	uint64_t ended, moved, stays;

	make();
	ended = put_far(30 * HOUR, "ended");
	moved = put_far(30 * HOUR, "moved");
	stays = put_far(30 * HOUR, "stays");
	turn_ring(5);
	ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = ended}), 0);
	OK(ww_jobs_move(world.jobs, &(struct ww_job_ref){.id = moved}, 40 * HOUR, 0, NULL));
	/* As long as the ring has the change, and when only `gone` has it. */
	for (int i = 0; i < 2; i++) {
		struct ww_job_info info;
		world_reopen(&world);
		ck_assert_int_eq(
		    ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = ended}, &info, NULL), WW_ENOTFOUND);
		ck_assert_uint_eq(info_of(&world, stays).id, stays);
		ck_assert_uint_eq(info_of(&world, moved).id, moved);
		turn_ring(6);
		ck_assert_int_ge(kind_postgres_ask("SELECT sum(cardinality(ids)) FROM weekwheel.gone"), 2);
	}
	expect_job_in(&world, 30 * HOUR, stays);
	world_end(&world);
}
END_TEST

/* Otherwise it is noted as one that has left when the ring has gone round, and is lost with the next start. */
START_TEST(a_job_whose_end_could_not_be_written_stays_in_its_slot)
{
	uint64_t id;

	make();
	id = put_far(30 * HOUR, "stays");
	turn_ring(5);
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_lt(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 0);
	world_fail(&world, FAIL_NOTHING);
	turn_ring(6);
	world_reopen(&world);
	ck_assert_uint_eq(info_of(&world, id).id, id);
	expect_job_in(&world, 30 * HOUR, id);
	world_end(&world);
}
END_TEST

START_TEST(a_job_may_return_to_a_slot_that_it_left)
{
	uint64_t id, other;

	make();
	id = put_far(30 * HOUR, "there and back");
	other = put_far(30 * HOUR, "keeps the slot");
	for (int i = 0; i < 3; i++) {
		turn_ring(5);
		OK(ww_jobs_move(world.jobs, &(struct ww_job_ref){.id = id}, 50 * HOUR, 0, NULL));
		turn_ring(1);
		OK(ww_jobs_move(world.jobs, &(struct ww_job_ref){.id = id}, 30 * HOUR, 0, NULL));
		turn_ring(5);
		world_reopen(&world);
		ck_assert_uint_eq(info_of(&world, id).due, info_of(&world, other).due);
	}
	world_end(&world);
}
END_TEST

START_TEST(a_slot_is_emptied_when_its_jobs_have_ended)
{
	uint64_t id;

	make();
	id = put_far(30 * HOUR, "ends");
	turn_ring(5);
	ck_assert_int_eq(kind_postgres_ask("SELECT count(*) FROM weekwheel.job"), 1);
	ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 0);
	kind_postgres_await("SELECT count(*) FROM weekwheel.job", 0);
	turn_ring(6);
	world_reopen(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_slot_whose_hour_is_over_is_written_on)
{
	uint64_t id;
	unsigned slot;

	make();
	id = put_far(2 * HOUR, "nobody takes it");
	slot = (unsigned)((world_now(&world) + 2 * HOUR) / HOUR % 168);
	turn_ring(5);
	ck_assert(part_of(slot).has_rows);
	world_pass(&world, 4 * HOUR);
	turn_ring(5);
	while (part_of(slot).has_rows)
		turn_ring(1);
	turn_ring(5);
	world_reopen(&world);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
	ck_assert_int_eq(kind_postgres_ask("SELECT count(*) FROM weekwheel.job WHERE slot = 168"), 1);
	world_end(&world);
}
END_TEST

START_TEST(many_jobs_are_written_on_in_steps)
{
	enum { JOBS = 3000 };
	static uint64_t ids[JOBS];
	struct ww_jobs_stats stats;

	make();
	for (int i = 0; i < JOBS; i++) {
		if (i % 500 == 0)
			OK(ww_jobs_begin(world.jobs));
		ids[i] = put_far((uint64_t)(1 + i % 170) * HOUR, "one of many");
		if (i % 500 == 499)
			OK(ww_jobs_commit(world.jobs));
	}
	/* It is opened again in the middle of it, and goes on. */
	for (int i = 0; i < 4; i++) {
		turn_ring(1);
		world_reopen(&world);
	}
	turn_ring(6);
	ck_assert_int_ge(kind_postgres_ask("SELECT count(*) FROM weekwheel.job"), JOBS);
	world_reopen(&world);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.all.delayed, JOBS);
	for (int i = 0; i < JOBS; i++)
		ck_assert_uint_eq(info_of(&world, ids[i]).id, ids[i]);
	world_end(&world);
}
END_TEST

START_TEST(a_store_that_is_left_alone_empties_its_ring)
{
	make();
	for (int i = 0; i < 600; i++)
		(void)put_far(30 * HOUR, "left alone");
	kind_postgres_await("SELECT count(*) FROM weekwheel.job", 600);
	/* But for an image of what belongs to no job. */
	kind_postgres_await("SELECT count(*) FROM weekwheel.turn", 1);
	world_reopen(&world);
	world_end(&world);
}
END_TEST

/* What commits while TRUNCATE waits for its lock must not be lost: who empties looks again under the lock. */
START_TEST(a_put_that_commits_while_its_part_is_being_locked_is_kept)
{
	PGconn *connection;
	unsigned part;

	make();
	for (int i = 0; i < 3; i++) {
		connection = PQconnectdb(kind_postgres_server()->url);
		PQclear(PQexec(connection, "BEGIN"));
		PQclear(PQexec(connection, "SELECT weekwheel.put('late', 'x')"));
		/* The ring may have turned since, and turns again until it is to empty the part that has this row. */
		part = (unsigned)kind_postgres_ask(
		    "SELECT right(relation::regclass::text, 1)::int FROM pg_locks WHERE "
		    "mode = 'RowExclusiveLock' AND relation::regclass::text ~ 'inbox_[0-3]$'");
		while (!kind_postgres_is_emptying(&world, part))
			(void)put_far(30 * HOUR, "others");
		kind_postgres_await(
		    "SELECT sign(count(*)) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted", 1);
		PQclear(PQexec(connection, "COMMIT"));
		PQfinish(connection);
		kind_postgres_await("SELECT count(*) FROM weekwheel.inbox", 0);
		world_reopen(&world);
		ck_assert_uint_eq(ready_in("late"), (uint64_t)i + 1);
	}
	world_end(&world);
}
END_TEST

START_TEST(a_reader_of_a_part_only_delays_its_end)
{
	PGconn *connection;

	make();
	connection = PQconnectdb(kind_postgres_server()->url);
	PQclear(PQexec(connection, "BEGIN; SELECT count(*) FROM weekwheel.turn"));
	for (int i = 0; i < 200; i++)
		(void)put_far(30 * HOUR, "goes on");
	ck_assert_int_eq(kind_postgres_ask("SELECT (count(*) >= 200)::int FROM weekwheel.turn"), 1);
	PQclear(PQexec(connection, "COMMIT"));
	PQfinish(connection);
	turn_ring(6);
	world_reopen(&world);
	world_end(&world);
}
END_TEST

START_TEST(no_row_ever_dies)
{
	make();
	for (int i = 0; i < 500; i++) {
		uint64_t id = put_far((uint64_t)(i % 3) * 30 * HOUR, "comes and goes");
		if (i % 2)
			ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 0);
	}
	turn_ring(6);
	/* A session reports what it did once a second. */
	kind_postgres_await("SELECT (sum(n_tup_ins) >= 750)::int FROM pg_stat_user_tables WHERE relname ~ '^turn_'", 1);
	ck_assert_int_eq(kind_postgres_ask("SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables "
	                                   "WHERE schemaname = 'weekwheel'"),
	    0);
	world_end(&world);
}
END_TEST

/* How many jobs a tube has is no row that each put would change: it is written when the ring turns. */
START_TEST(counts_of_tubes_outlive_the_parts_that_they_were_counted_in)
{
	static const char *const tubes[] = {"a", "b", "c"};
	uint64_t delayed[3] = {0}, ready[3] = {0};
	struct ww_tube_stats stats;

	make();
	for (int i = 0; i < 300; i++) {
		struct ww_job_spec spec = spec_of("counted");
		spec.tube = tubes[i % 3];
		spec.due = (uint64_t)(i % 5) * 30 * HOUR;
		uint64_t id = put_job(&world, &spec);
		if (i % 2)
			ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 0);
		else
			(spec.due ? delayed : ready)[i % 3]++;
	}
	for (int restarts = 0; restarts < 2; restarts++) {
		turn_ring(6);
		world_reopen(&world);
		world_check(&world);
		for (int i = 0; i < 3; i++) {
			OK(ww_jobs_tube(world.jobs, tubes[i], &stats));
			ck_assert_uint_eq(stats.delayed, delayed[i]);
			ck_assert_uint_eq(stats.ready, ready[i]);
		}
	}
	ck_assert_int_eq(kind_postgres_ask("SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables "
	                                   "WHERE schemaname = 'weekwheel'"),
	    0);
	world_end(&world);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {what_lasts_lies_in_the_slot_of_its_hour,
	    what_is_due_in_no_hour_of_the_week_lies_in_the_rest, a_job_that_left_its_slot_does_not_come_back,
	    a_job_whose_end_could_not_be_written_stays_in_its_slot, a_job_may_return_to_a_slot_that_it_left,
	    a_slot_is_emptied_when_its_jobs_have_ended, a_slot_whose_hour_is_over_is_written_on,
	    many_jobs_are_written_on_in_steps, a_store_that_is_left_alone_empties_its_ring,
	    a_put_that_commits_while_its_part_is_being_locked_is_kept, a_reader_of_a_part_only_delays_its_end,
	    no_row_ever_dies, counts_of_tubes_outlive_the_parts_that_they_were_counted_in};

	if (!postgres_server_is_there())
		return EXIT_SUCCESS;
	return suite_run_with("postgres/ring", tests, sizeof tests / sizeof *tests, kind_postgres.begin);
}
