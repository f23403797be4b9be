/* What rows of the inbox ask, also those that somebody wrote by hand. */
/* tier: check */
#include "lib/postgres/request.h"

#include <stdlib.h>

#include "tests/support/postgres/kind.h"

static struct world world;

/* Write a row of a put that is due then, in SQL. */
static void put_at(const char *due, uint64_t id)
{
	char sql[300];

	(void)snprintf(sql, sizeof sql,
	    "INSERT INTO weekwheel.inbox (ring, id, verb, tube, due, body) VALUES (0, %llu, 0, 'default', %s, 'x')",
	    (unsigned long long)id, due);
	(void)kind_postgres_ask(sql);
}

static void await_taken(uint64_t id)
{
	char sql[100];

	(void)snprintf(
	    sql, sizeof sql, "SELECT count(*) FROM weekwheel.turn WHERE %llu = ANY (taken)", (unsigned long long)id);
	kind_postgres_await(sql, 1);
}

START_TEST(a_time_may_be_any)
{
	world_make(&world, KIND_POSTGRES);
	put_at("NULL", 101);
	put_at("'-infinity'", 103);
	put_at("'1969-12-31'", 105);
	put_at("'4713-01-01 BC'", 107);
	put_at("clock_timestamp() - interval '1 hour'", 109);
	put_at("clock_timestamp() + interval '1 hour'", 111);
	for (uint64_t id = 101; id <= 111; id += 2)
		await_taken(id);
	for (uint64_t id = 101; id <= 109; id += 2)
		ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
	ck_assert_int_eq(info_of(&world, 111).state, WW_JOB_DELAYED);
	/* No time is so late. */
	put_at("'infinity'", 113);
	put_at("'200000-01-01'", 115);
	kind_postgres_await("SELECT count(*) FROM weekwheel.refused WHERE id IN (113, 115) AND body = 'x'", 2);
	(void)kind_postgres_ask("DELETE FROM weekwheel.refused");
	world_end(&world);
}
END_TEST

START_TEST(a_verb_that_is_not_known_is_refused)
{
	world_make(&world, KIND_POSTGRES);
	(void)kind_postgres_ask("INSERT INTO weekwheel.inbox (ring, id, verb, tube) VALUES (0, 101, 99, 'default')");
	kind_postgres_await("SELECT count(*) FROM weekwheel.refused WHERE id = 101 AND body IS NULL", 1);
	(void)kind_postgres_ask("DELETE FROM weekwheel.refused");
	world_end(&world);
}
END_TEST

START_TEST(only_room_and_memory_are_waited_for)
{
	ck_assert(ww_postgres_request_can_wait(WW_EFULL));
	ck_assert(ww_postgres_request_can_wait(WW_ENOMEM));
	ck_assert(ww_postgres_request_can_wait(WW_EIO));
	ck_assert(ww_postgres_request_can_wait(WW_EAGAIN));
	ck_assert(!ww_postgres_request_can_wait(WW_EINVAL));
	ck_assert(!ww_postgres_request_can_wait(WW_ECORRUPT));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
	    a_time_may_be_any, a_verb_that_is_not_known_is_refused, only_room_and_memory_are_waited_for};

	if (!postgres_server_is_there())
		return EXIT_SUCCESS;
	return suite_run_with("postgres/request", tests, sizeof tests / sizeof *tests, kind_postgres.begin);
}
