/* Commands about keys, whatever their values. */
/* tier: quick */
#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

START_TEST(keys_are_counted_and_deleted)
{
	static const struct served_row rows[] = {
	    {"RANDOMKEY", "$-1"},
	    {"DEL a", ":0"},
	    {"MSET a 1 b 2 c 3", "+OK"},
	    {"EXISTS a b none a", ":3"},
	    {"TOUCH a b none a", ":3"},
	    {"TYPE a", "+string"},
	    {"TYPE none", "+none"},
	    {"DBSIZE", ":3"},
	    {"DEL a a none", ":1"},
	    {"UNLINK b none", ":1"},
	    {"DBSIZE", ":1"},
	    {"RANDOMKEY", "$1 c"},
	    {"SELECT 1", "+OK"},
	    {"DBSIZE", ":0"},
	    {"RANDOMKEY", "$-1"},
	    {"EXISTS c", ":0"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(a_key_gets_another_name)
{
	static const struct served_row rows[] = {
	    {"RENAME a b", "-ERR no such key"},
	    {"RENAMENX a b", "-ERR no such key"},
	    {"SETEX a 10 x", "+OK"},
	    {"RENAME a b", "+OK"},
	    {"MGET a b", "*2 $-1 $1 x"},
	    {"PTTL b", ":10000"},
	    {"RENAME b b", "+OK"},
	    {"RENAMENX b b", ":0"},
	    {"SET a y", "+OK"},
	    {"RENAMENX b a", ":0"},
	    {"RENAMENX b c", ":1"},
	    {"RENAME c a", "+OK"},
	    {"MGET a b c", "*3 $1 x $-1 $-1"},
	    {"PTTL a", ":10000"},
	    {"DBSIZE", ":1"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* What takes the name of a session that has ended ends with it. */
START_TEST(a_name_that_has_ended_takes_no_other)
{
	static const struct served_row rows[] = {
	    {"SET a x LIFETIME 1", "+OK"},
	    {"SET b y", "+OK"},
	    {"SET c z", "+OK"},
	    {"ADVANCE 1000", "+OK"},
	    {"RENAMENX b a", ":0"},
	    {"GET b", "$1 y"},
	    {"RENAME b a", "+OK"},
	    {"MGET a b", "*2 $-1 $-1"},
	    {"ADVANCE 60000", "+OK"},
	    {"RENAMENX c a", ":1"},
	    {"GET a", "$1 z"},
	};

	SERVED_STORY(rows, "--lifetimes", "--stay-ended", "1m", NULL);
}
END_TEST

/* It counts as a use: the other one is evicted. */
START_TEST(a_touch_is_a_use)
{
	char line[70];

	served_begin("--maxmemory", "1M", "--maxmemory-policy", "allkeys-lru", NULL);
	ck_assert_str_eq(served_ask("MSET used 1 idle 1"), "+OK");
	for (int i = 0; i < 40000; i++) {
		(void)snprintf(line, sizeof line, "SET key:%d 0123456789012345678901234567890123456789", i);
		ck_assert_str_eq(served_ask(line), "+OK");
		if (i % 50 == 0)
			ck_assert_str_eq(served_ask("TOUCH used"), ":1");
	}
	ck_assert_str_eq(served_ask("EXISTS used"), ":1");
	ck_assert_str_eq(served_ask("EXISTS idle"), ":0");
	served_end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/keys", keys_are_counted_and_deleted, a_key_gets_another_name,
    a_name_that_has_ended_takes_no_other, a_touch_is_a_use)
