/* MULTI and WATCH: what is queued, what EXEC runs, and when it runs nothing. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

START_TEST(commands_wait_for_exec)
{
	static const struct served_row rows[] = {
	    {"EXEC", "-ERR EXEC without MULTI"},
	    {"DISCARD", "-ERR DISCARD without MULTI"},
	    {"MULTI", "+OK"},
	    {"MULTI", "-ERR MULTI calls can not be nested"},
	    {"SET a 1", "+QUEUED"},
	    {"INCR a", "+QUEUED"},
	    {"SELECT 1", "+QUEUED"},
	    {"GET a", "+QUEUED"},
	    {"1> GET a", "$-1"},
	    {"EXEC", "*4 +OK :2 +OK $-1"},
	    {"GET a", "$-1"},
	    {"1> GET a", "$1 2"},
	    {"MULTI", "+OK"},
	    {"SET a 3", "+QUEUED"},
	    {"DISCARD", "+OK"},
	    {"GET a", "$-1"},
	    {"MULTI", "+OK"},
	    {"EXEC", "*0"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* An error of a command that runs stops no other one; one that could not be queued stops all. */
START_TEST(errors_before_and_within)
{
	static const struct served_row rows[] = {
	    {"MULTI", "+OK"},
	    {"SET a x", "+QUEUED"},
	    {"INCR a", "+QUEUED"},
	    {"SET b y", "+QUEUED"},
	    {"EXEC", "*3 +OK -ERR value is not an integer or out of range +OK"},
	    {"MULTI", "+OK"},
	    {"SET a z", "+QUEUED"},
	    {"NONE", "-ERR unknown command*"},
	    {"SET b z", "+QUEUED"},
	    {"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
	    {"MULTI", "+OK"},
	    {"GET", "-ERR wrong number of arguments for 'get' command"},
	    {"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
	    {"MULTI", "+OK"},
	    {"SAVE", "-ERR Command not allowed inside a transaction"},
	    {"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
	    {"MULTI", "+OK"},
	    {"WATCH a", "-ERR WATCH inside MULTI is not allowed"},
	    {"SET c z", "+QUEUED"},
	    {"EXEC", "*1 +OK"},
	    {"MGET a b c", "*3 $1 x $1 y $1 z"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* Each row of the other client is a change between WATCH and EXEC, or none. */
START_TEST(watched_keys_must_not_change)
{
	static const struct {
		const char *before;
		const char *change;
		int is_changed;
	} cases[] = {
	    {"SET a 1", "SET a 1", 1},
	    {"SET a 1", "DEL a", 1},
	    {"SET a 1", "RENAME a b", 1},
	    {"MSET a 1 b 2", "RENAME b a", 1},
	    {"SET a 1", "APPEND a x", 1},
	    {"SET a 1", "FLUSHALL", 1},
	    {"SETEX a 10 1", "ADVANCE 10000", 1},
	    {"DEL a", "SET a 1", 1},
	    {"SET a 1", "GET a", 0},
	    {"SET a 1", "SET b 1", 0},
	    {"SET a 1", "SELECT 1", 0},
	    {"DEL a", "DEL a", 0},
	    {"SETEX a 10 1", "ADVANCE 9999", 0},
	};
	char line[40];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		served_begin(NULL);
		(void)served_ask(cases[i].before);
		ck_assert_str_eq(served_ask("WATCH none a"), "+OK");
		(void)snprintf(line, sizeof line, "1> %s", cases[i].change);
		(void)served_ask(line);
		ck_assert_str_eq(served_ask("MULTI"), "+OK");
		ck_assert_str_eq(served_ask("SET done 1"), "+QUEUED");
		ck_assert_msg(
		    (strcmp(served_ask("EXEC"), "*-1") == 0) == cases[i].is_changed, "after %s", cases[i].change);
		ck_assert_msg(
		    (strcmp(served_ask("EXISTS done"), ":0") == 0) == cases[i].is_changed, "after %s", cases[i].change);
		/* It watches nothing any more. */
		ck_assert_str_eq(served_ask("SET a 5"), "+OK");
		ck_assert_str_eq(served_ask("MULTI"), "+OK");
		ck_assert_str_eq(served_ask("EXEC"), "*0");
		served_end();
	}
}
END_TEST

START_TEST(what_ends_a_watch)
{
	static const char *const ends[] = {"UNWATCH", "RESET", "MULTI\r\nDISCARD", "MULTI\r\nEXEC"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		served_begin(NULL);
		ck_assert_str_eq(served_ask("WATCH a"), "+OK");
		ck_assert_ptr_nonnull(served_ask(ends[i]));
		ck_assert_str_eq(served_ask("SET a 1"), "+OK");
		ck_assert_str_eq(served_ask("MULTI"), "+OK");
		ck_assert_msg(strcmp(served_ask("EXEC"), "*0") == 0, "%s does not end it", ends[i]);
		served_end();
	}
}
END_TEST

/* They lie in one block, which moves while it grows. */
START_TEST(arguments_of_all_sizes_are_kept)
{
	enum { COUNT = 200 };
	static char value[COUNT + 1];
	char line[COUNT + 40];

	served_begin(NULL);
	ck_assert_str_eq(served_ask("MULTI"), "+OK");
	memset(value, 'v', COUNT);
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(line, sizeof line, "SET key:%d \"%.*s\"", i, i, value);
		ck_assert_str_eq(served_ask(line), "+QUEUED");
	}
	ck_assert_int_eq(strncmp(served_ask("EXEC"), "*200 +OK", 8), 0);
	for (int i = 0; i < COUNT; i++) {
		const char *answer;
		(void)snprintf(line, sizeof line, "GET key:%d", i);
		answer = served_ask(line);
		(void)snprintf(line, sizeof line, i ? "$%d %.*s" : "$%d", i, i, value);
		ck_assert_str_eq(answer, line);
	}
	served_end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/transaction", commands_wait_for_exec, errors_before_and_within,
    watched_keys_must_not_change, what_ends_a_watch, arguments_of_all_sizes_are_kept)
