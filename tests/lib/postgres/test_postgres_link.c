/* Connections to PostgreSQL: what goes wrong is an error and a sentence, and a lost connection is noticed. */
/* tier: check */
#include "lib/postgres/link.h"

#include <string.h>

#include "tests/support/postgres/postgres_server.h"
#include "weekwheel/error.h"

static struct postgres_server server;

static void begin(void)
{
	postgres_server_start(&server);
}

static void expect_refusal(const char *url, int error)
{
	struct link link;

	ck_assert_int_eq(ww_postgres_link_open(&link, url, "on"), error);
	ck_assert_ptr_null(link.connection);
	ck_assert_msg(strlen(link.why) > 10 && !strchr(link.why, '\n'), "'%s'", link.why);
}

START_TEST(each_way_to_fail_has_its_error)
{
	char url[200];

	expect_refusal("postgresql://[", WW_EINVAL);
	expect_refusal("postgresql:///weekwheel?host=/nowhere", WW_EIO);
	(void)snprintf(url, sizeof url, "postgresql://postgres@/none?host=%s", server.folder);
	expect_refusal(url, WW_ENOTFOUND);
	(void)snprintf(url, sizeof url, "postgresql://nobody_@/weekwheel?host=%s", server.folder);
	expect_refusal(url, WW_EDENIED);
}
END_TEST

START_TEST(each_state_of_sql_has_its_error)
{
	static const struct {
		const char *sql;
		int error;
	} cases[] = {{"SELECT 1/0", WW_EIO}, {"SELECT * FROM none.none", WW_ENOTFOUND},
	    {"SELECT * FROM none", WW_ENOTFOUND}, {"DO $$ BEGIN RAISE SQLSTATE '42501'; END $$", WW_EDENIED},
	    {"DO $$ BEGIN RAISE SQLSTATE '53100'; END $$", WW_EFULL},
	    {"DO $$ BEGIN RAISE SQLSTATE '40001'; END $$", WW_EAGAIN},
	    {"SELECT pg_cancel_backend(pg_backend_pid())", WW_EAGAIN},
	    {"DO $$ BEGIN RAISE SQLSTATE '25006'; END $$", WW_EDENIED}};
	struct link link;

	OK(ww_postgres_link_open(&link, server.url, "off"));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		PGresult *result = NULL;
		ck_assert_msg(ww_postgres_link_execute(&link, cases[i].sql) == cases[i].error, "%s", cases[i].sql);
		ck_assert_int_eq(ww_postgres_link_ask(&link, cases[i].sql, NULL, 0, &result), cases[i].error);
		ck_assert_ptr_null(result);
		ck_assert_int_ne(*link.why, 0);
		ck_assert(!ww_postgres_link_is_lost(&link));
	}
	ww_postgres_link_close(&link);
}
END_TEST

START_TEST(answers_are_read_in_binary_form)
{
	struct link link;
	PGresult *result;
	size_t size;

	OK(ww_postgres_link_open(&link, server.url, "on"));
	OK(ww_postgres_link_ask(&link,
	    "SELECT -2::smallint, 5000000000, true, NULL::bigint, '\\x0001'::bytea, NULL::bytea", NULL, 0, &result));
	ck_assert_int_eq(ww_postgres_link_number(result, 0, 0), -2);
	ck_assert_int_eq(ww_postgres_link_number(result, 0, 1), 5000000000);
	ck_assert_int_eq(ww_postgres_link_number(result, 0, 2), 1);
	ck_assert_int_eq(ww_postgres_link_number(result, 0, 3), 0);
	ck_assert_int_eq(memcmp(ww_postgres_link_bytes(result, 0, 4, &size), "\0\1", 2), 0);
	ck_assert_uint_eq(size, 2);
	(void)ww_postgres_link_bytes(result, 0, 5, &size);
	ck_assert_uint_eq(size, 0);
	PQclear(result);
	ww_postgres_link_close(&link);
}
END_TEST

START_TEST(rows_come_one_at_a_time_until_the_end_or_an_error)
{
	struct link link;
	PGresult *row;
	int64_t sum = 0;
	int end;

	OK(ww_postgres_link_open(&link, server.url, "on"));
	OK(ww_postgres_link_stream(&link, "SELECT generate_series(1, 100)", NULL, 0));
	while ((end = ww_postgres_link_row(&link, &row)) == WW_OK) {
		sum += ww_postgres_link_number(row, 0, 0);
		PQclear(row);
	}
	ck_assert_int_eq(end, LINK_END);
	ck_assert_int_eq(sum, 5050);
	/* A table that is missing is not one without rows. */
	OK(ww_postgres_link_stream(&link, "SELECT * FROM weekwheel.missing", NULL, 0));
	ck_assert_int_eq(ww_postgres_link_row(&link, &row), WW_ENOTFOUND);
	ck_assert_ptr_null(row);
	OK(ww_postgres_link_stream(&link, "SELECT 1 / (3 - i) FROM generate_series(1, 9) AS i", NULL, 0));
	OK(ww_postgres_link_row(&link, &row));
	PQclear(row);
	OK(ww_postgres_link_row(&link, &row));
	PQclear(row);
	ck_assert_int_eq(ww_postgres_link_row(&link, &row), WW_EIO);
	ck_assert_ptr_null(row);
	/* The connection is good for more. */
	OK(ww_postgres_link_execute(&link, "SELECT 1"));
	ww_postgres_link_close(&link);
}
END_TEST

START_TEST(a_statement_is_planned_once)
{
	static const char statement[] = "SELECT $1 + 1 FROM generate_series(1, 3)";
	static const enum link_type types[] = {LINK_INT8};
	static const unsigned char seven[8] = {[7] = 7};
	const struct link_argument argument = {LINK_INT8, seven, sizeof seven};
	struct link link;
	PGresult *row;

	OK(ww_postgres_link_open(&link, server.url, "on"));
	ck_assert_int_lt(ww_postgres_link_prepare(&link, "SELECT no such thing", types, 1), 0);
	OK(ww_postgres_link_prepare(&link, statement, types, 1));
	for (int i = 0; i < 2; i++) {
		OK(ww_postgres_link_ask(&link, statement, &argument, 1, &row));
		ck_assert_int_eq(ww_postgres_link_number(row, 2, 0), 8);
		PQclear(row);
		OK(ww_postgres_link_stream(&link, statement, &argument, 1));
		for (int j = 0; j < 3; j++) {
			OK(ww_postgres_link_row(&link, &row));
			ck_assert_int_eq(ww_postgres_link_number(row, 0, 0), 8);
			PQclear(row);
		}
		ck_assert_int_eq(ww_postgres_link_row(&link, &row), LINK_END);
	}
	OK(ww_postgres_link_ask(
	    &link, "SELECT generic_plans + custom_plans FROM pg_prepared_statements", NULL, 0, &row));
	ck_assert_int_eq(PQntuples(row), 1);
	ck_assert_int_eq(ww_postgres_link_number(row, 0, 0), 4);
	PQclear(row);
	ww_postgres_link_close(&link);
}
END_TEST

START_TEST(a_lost_connection_is_noticed)
{
	struct link link;
	PGresult *row;
	char sql[80];

	OK(ww_postgres_link_open(&link, server.url, "on"));
	(void)snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d, 10000)", PQbackendPID(link.connection));
	(void)postgres_server_ask(&server, sql);
	ck_assert_int_eq(ww_postgres_link_execute(&link, "SELECT 1"), WW_EIO);
	ck_assert(ww_postgres_link_is_lost(&link));
	ck_assert_int_eq(ww_postgres_link_stream(&link, "SELECT 1", NULL, 0), WW_EIO);
	ck_assert_int_ne(ww_postgres_link_row(&link, &row), WW_OK);
	ww_postgres_link_close(&link);
	ck_assert(ww_postgres_link_is_lost(&link));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {each_way_to_fail_has_its_error, each_state_of_sql_has_its_error,
	    answers_are_read_in_binary_form, rows_come_one_at_a_time_until_the_end_or_an_error,
	    a_statement_is_planned_once, a_lost_connection_is_noticed};

	if (!postgres_server_is_there())
		return EXIT_SUCCESS;
	return suite_run_with("postgres/link", tests, sizeof tests / sizeof *tests, begin);
}
