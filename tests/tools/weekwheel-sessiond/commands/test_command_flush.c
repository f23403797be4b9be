/* FLUSHDB and FLUSHALL: few keys at once, many in pieces, and all of a transaction. */
/* tier: quick */
#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

START_TEST(one_database_or_all)
{
	static const struct served_row rows[] = {
	    {"SET a 1", "+OK"},
	    {"SELECT 1", "+OK"},
	    {"SET b 2", "+OK"},
	    {"FLUSHDB", "+OK"},
	    {"DBSIZE", ":0"},
	    {"SELECT 0", "+OK"},
	    {"DBSIZE", ":1"},
	    {"SELECT 15", "+OK"},
	    {"SET c 3", "+OK"},
	    {"SELECT 2", "+OK"},
	    {"FLUSHALL", "+OK"},
	    {"SELECT 0", "+OK"},
	    {"DBSIZE", ":0"},
	    {"SELECT 15", "+OK"},
	    {"DBSIZE", ":0"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(its_word_is_sync_or_async)
{
	static const struct served_row rows[] = {
	    {"SET a 1", "+OK"},
	    {"FLUSHALL NOW", "-ERR syntax error"},
	    {"FLUSHDB SYNC ASYNC", "-ERR syntax error"},
	    {"DBSIZE", ":1"},
	    {"FLUSHDB async", "+OK"},
	    {"DBSIZE", ":0"},
	    {"FLUSHALL SYNC", "+OK"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

enum { MANY = 30000, EACH = 500 };

static void set_many(const char *select)
{
	char line[EACH * 16];

	ck_assert_str_eq(served_ask(select), "+OK");
	for (int i = 0; i < MANY; i += EACH) {
		size_t size = (size_t)snprintf(line, sizeof line, "MSET");
		for (int n = i; n < i + EACH; n++)
			size += (size_t)snprintf(line + size, sizeof line - size, " key:%d x", n);
		ck_assert_str_eq(served_ask(line), "+OK");
	}
}

/* The next command comes behind it, and other databases keep theirs. */
START_TEST(many_go_in_pieces)
{
	static const struct served_row rows[] = {
	    {"FLUSHDB", "+OK"},
	    {"DBSIZE", ":0"},
	    {"SELECT 0", "+OK"},
	    {"DBSIZE", ":30000"},
	    {"SELECT 3", "+OK"},
	    {"FLUSHALL", "+OK"},
	    {"SELECT 0", "+OK"},
	    {"DBSIZE", ":0"},
	    {"SELECT 5", "+OK"},
	    {"DBSIZE", ":0"},
	};
	static const char both[] = "FLUSHALL\r\nDBSIZE\r\n";

	served_begin(NULL);
	set_many("SELECT 0");
	set_many("SELECT 5");
	set_many("SELECT 1");
	SERVED_CHECK(rows);
	set_many("SELECT 0");
	ck_assert_str_eq(served_send(0, both, sizeof both - 1), "+OK :0");
	served_end();
}
END_TEST

/* It cannot be divided. */
START_TEST(a_transaction_flushes_at_once)
{
	static const struct served_row rows[] = {
	    {"MULTI", "+OK"},
	    {"FLUSHALL", "+QUEUED"},
	    {"DBSIZE", "+QUEUED"},
	    {"SET a 1", "+QUEUED"},
	    {"DBSIZE", "+QUEUED"},
	    {"EXEC", "*4 +OK :0 +OK :1"},
	};

	served_begin(NULL);
	set_many("SELECT 0");
	SERVED_CHECK(rows);
	served_end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/flush", one_database_or_all, its_word_is_sync_or_async, many_go_in_pieces,
    a_transaction_flushes_at_once)
