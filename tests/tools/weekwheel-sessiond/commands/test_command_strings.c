/* Commands that read and set values: what each answers and leaves behind. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

START_TEST(values_are_read_and_set)
{
	static const struct served_row rows[] = {
	    {"GET a", "$-1"},
	    {"STRLEN a", ":0"},
	    {"SET a one", "+OK"},
	    {"GET a", "$3 one"},
	    {"STRLEN a", ":3"},
	    {"MGET a none a", "*3 $3 one $-1 $3 one"},
	    {"GETSET a two", "$3 one"},
	    {"GETSET b new", "$-1"},
	    {"GETDEL a", "$3 two"},
	    {"GETDEL a", "$-1"},
	    {"SETNX a three", ":1"},
	    {"SETNX a four", ":0"},
	    {"GET a", "$5 three"},
	    {"MSET a 1 b 2 a 3", "+OK"},
	    {"MGET a b", "*2 $1 3 $1 2"},
	    {"MSET a 1 b", "-ERR wrong number of arguments for 'mset' command"},
	    {"MSETNX c 1 b 3", ":0"},
	    {"MSETNX c 1 d 2", ":1"},
	    {"MSETNX c 1 d", "-ERR wrong number of arguments for 'msetnx' command"},
	    {"MGET a b c d", "*4 $1 3 $1 2 $1 1 $1 2"},
	    {"SET \"\" \"\"", "+OK"},
	    {"GET \"\"", "$0"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(a_set_depends_on_what_was_there)
{
	static const struct served_row rows[] = {
	    {"SET a 1 XX", "$-1"},
	    {"GET a", "$-1"},
	    {"SET a 1 NX", "+OK"},
	    {"SET a 2 NX", "$-1"},
	    {"SET a 3 XX", "+OK"},
	    {"SET a 4 GET", "$1 3"},
	    {"SET b 4 GET", "$-1"},
	    {"SET a 5 NX GET", "$1 4"},
	    {"SET a 5 XX GET", "$1 4"},
	    {"SET c 5 NX GET", "$-1"},
	    {"SET d 5 XX GET", "$-1"},
	    {"MGET a b c d", "*4 $1 5 $1 4 $1 5 $-1"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* A set ends the deadline of before, unless it keeps it; what changes a value keeps it. */
START_TEST(a_set_begins_or_keeps_a_deadline)
{
	static const struct served_row rows[] = {
	    {"SETEX a 10 x", "+OK"},
	    {"PTTL a", ":10000"},
	    {"PSETEX a 2500 x", "+OK"},
	    {"PTTL a", ":2500"},
	    {"APPEND a yz", ":3"},
	    {"SET a 7 KEEPTTL", "+OK"},
	    {"INCR a", ":8"},
	    {"PTTL a", ":2500"},
	    {"SET a 7", "+OK"},
	    {"PTTL a", ":-1"},
	    {"SETEX a 10 x", "+OK"},
	    {"GETSET a y", "$1 x"},
	    {"PTTL a", ":-1"},
	    {"SETEX a 10 x", "+OK"},
	    {"MSET a y", "+OK"},
	    {"PTTL a", ":-1"},
	    {"SETEX a 1 x", "+OK"},
	    {"ADVANCE 1000", "+OK"},
	    {"GET a", "$-1"},
	    {"SET a x KEEPTTL", "+OK"},
	    {"PTTL a", ":-1"},
	    {"SETEX a 0 x", "-ERR invalid expire time in 'setex' command"},
	    {"PSETEX a 0 x", "-ERR invalid expire time in 'psetex' command"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(numbers_are_changed)
{
	static const struct served_row rows[] = {
	    {"INCR a", ":1"},
	    {"DECR a", ":0"},
	    {"INCRBY a 41", ":41"},
	    {"DECRBY a -1", ":42"},
	    {"GET a", "$2 42"},
	    {"INCRBY a x", "-ERR value is not an integer or out of range"},
	    {"DECRBY a -9223372036854775808", "-ERR decrement would overflow"},
	    {"SET a 9223372036854775807", "+OK"},
	    {"INCR a", "-ERR increment or decrement would overflow"},
	    {"GET a", "$19 9223372036854775807"},
	    {"SET a \" 1\"", "+OK"},
	    {"INCR a", "-ERR value is not an integer or out of range"},
	    {"APPEND b 1", ":1"},
	    {"APPEND b 2", ":2"},
	    {"INCR b", ":13"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(getex_moves_the_deadline)
{
	static const struct served_row rows[] = {
	    {"GETEX a EX 10", "$-1"},
	    {"SET a x", "+OK"},
	    {"GETEX a PX 1500", "$1 x"},
	    {"PTTL a", ":1500"},
	    {"GETEX a", "$1 x"},
	    {"PTTL a", ":1500"},
	    {"GETEX a PERSIST", "$1 x"},
	    {"PTTL a", ":-1"},
	    {"GETEX a EXAT 1", "$1 x"},
	    {"GET a", "$-1"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* A lifetime that has ended is not begun again by what knows nothing of its end. */
START_TEST(what_has_ended_stays_ended)
{
	static const struct served_row rows[] = {
	    {"SET a x EX 100", "+OK"},
	    {"ADVANCE 9000", "+OK"},
	    {"SET a y EX 100", "+OK"},
	    {"PTTL a", ":1000"},
	    {"ADVANCE 1000", "+OK"},
	    {"SET a z EX 100", "+OK"},
	    {"GET a", "$-1"},
	    {"MSET a z b z", "+OK"},
	    {"MGET a b", "*2 $-1 $1 z"},
	    {"SETNX a z", ":0"},
	    {"MSETNX a z c z", ":0"},
	    {"SET a z NX", "$-1"},
	    {"SET a z NX GET", "-ERR the lifetime of the key has just ended"},
	    {"INCR a", ":1"},
	    {"APPEND a z", ":1"},
	    {"GET a", "$-1"},
	    {"SET a z NX LIFETIME 5", "+OK"},
	    {"PTTL a", ":5000"},
	    {"SET b y XX KEEPTTL LIFETIME 5", "+OK"},
	    {"ADVANCE 66000", "+OK"},
	    {"SETNX a z", ":1"},
	};

	SERVED_STORY(rows, "--lifetime", "10s", "--keep-lifetimes", "--stay-ended", "1m", NULL);
}
END_TEST

/* Without room for the last one, none is set, and nobody hears of one. */
START_TEST(mset_sets_all_or_none)
{
	static const char head[] =
	    "*7\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\n3\r\n$1\r\nc\r\n$1\r\n3\r\n$1\r\nb\r\n$2000000\r\n";
	static char large[sizeof head + 2000002];
	static const struct served_row before[] = {
	    {"SETEX a 10 1", "+OK"}, {"SET b 2", "+OK"}, {"1> SUBSCRIBE __keyevent@0__:set", "*"}};
	static const struct served_row after[] = {{"MGET a b c", "*3 $1 1 $1 2 $-1"}, {"PTTL a", ":10000"},
	    {"DBSIZE", ":2"}, {"1> ", ""}, {"MSET a 3 c 3", "+OK"},
	    {"1> ", "*3 $7 message $18 __keyevent@0__:set $1 a *3 $7 message $18 __keyevent@0__:set $1 c"}};

	memset(large, 'v', sizeof large);
	memcpy(large, head, sizeof head - 1);
	memcpy(large + sizeof head - 1 + 2000000, "\r\n", 2);
	served_begin("--maxmemory", "1M", "--notify-keyspace-events", "E$", NULL);
	SERVED_CHECK(before);
	ck_assert_str_eq(served_send(0, large, sizeof head - 1 + 2000002),
	    "-OOM command not allowed when used memory > 'maxmemory'.");
	SERVED_CHECK(after);
	served_end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/strings", values_are_read_and_set, a_set_depends_on_what_was_there,
    a_set_begins_or_keeps_a_deadline, numbers_are_changed, getex_moves_the_deadline, what_has_ended_stays_ended,
    mset_sets_all_or_none)
