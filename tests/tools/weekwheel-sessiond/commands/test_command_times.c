/* Deadlines in commands: which options go together, and which times they are. */
/* tier: quick */
#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

#define SYNTAX "-ERR syntax error"
#define NUMBER "-ERR value is not an integer or out of range"
#define INVALID(name) "-ERR invalid expire time in '" name "' command"

START_TEST(each_unit_sets_its_deadline)
{
	static const struct served_row rows[] = {
	    {"SET a x EX 2", "+OK"},
	    {"PTTL a", ":2000"},
	    {"SET a x px 1500", "+OK"},
	    {"PTTL a", ":1500"},
	    {"SET a x EXAT 4102444800", "+OK"},
	    {"PEXPIRETIME a", ":4102444800000"},
	    {"SET a x PXAT 4102444800001", "+OK"},
	    {"PEXPIRETIME a", ":4102444800001"},
	    {"SET a x EX 1 EX 3", "+OK"},
	    {"PTTL a", ":3000"},
	    {"GETEX a EX 4", "$1 x"},
	    {"PTTL a", ":4000"},
	    {"GETEX a EXAT 4102444800", "$1 x"},
	    {"PEXPIRETIME a", ":4102444800000"},
	    {"SET a x PXAT 1", "+OK"},
	    {"GET a", "$-1"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(others_are_refused)
{
	static const struct served_row rows[] = {
	    {"SET a x EX", SYNTAX},
	    {"SET a x EX 1 PX 1", SYNTAX},
	    {"SET a x EX 1 EXAT 1", SYNTAX},
	    {"SET a x EX 1 KEEPTTL", SYNTAX},
	    {"SET a x KEEPTTL EX 1", SYNTAX},
	    {"SET a x NX XX", SYNTAX},
	    {"SET a x XX NX", SYNTAX},
	    {"SET a x PERSIST", SYNTAX},
	    {"SET a x EX 1 y", SYNTAX},
	    {"SET a x LIFETIME", SYNTAX},
	    {"GETEX a NX", SYNTAX},
	    {"GETEX a KEEPTTL", SYNTAX},
	    {"GETEX a LIFETIME 1", SYNTAX},
	    {"GETEX a PERSIST EX 1", SYNTAX},
	    {"GETEX a EX 1 PERSIST", SYNTAX},
	    {"SET a x EX y", NUMBER},
	    {"SET a x EX 1.5", NUMBER},
	    {"SET a x EX 0", INVALID("set")},
	    {"SET a x PX -1", INVALID("set")},
	    {"SET a x EXAT 0", INVALID("set")},
	    {"SET a x EX 9223372036854775807", INVALID("set")},
	    {"SET a x PX 9223372036854775807", INVALID("set")},
	    {"SET a x LIFETIME 10", "-ERR LIFETIME needs a server with --lifetime or --lifetimes"},
	    {"DBSIZE", ":0"},
	    {"SET a x", "+OK"},
	    {"GETEX a EX 0", INVALID("getex")},
	    {"GETEX a PX y", NUMBER},
	    {"PTTL a", ":-1"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* More than a century is capped, and no sum overflows. */
START_TEST(the_longest_are_capped)
{
	static const struct served_row rows[] = {
	    {"SET a x PX 4611686018427387903", "+OK"},
	    {"SET b x PXAT 9223372036854775807", "+OK"},
	    {"SET c x EX 4611686018427387", "+OK"},
	    {"ADVANCE 3000000000000", "+OK"},
	    {"EXISTS a b c", ":3"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(a_lifetime_goes_beside_a_deadline)
{
	static const struct served_row rows[] = {
	    {"SET a x EX 10 LIFETIME 15", "+OK"},
	    {"PTTL a", ":10000"},
	    {"ADVANCE 9000", "+OK"},
	    {"EXPIRE a 10", ":1"},
	    {"PTTL a", ":6000"},
	    {"SET a x LIFETIME 1 LIFETIME 2", SYNTAX},
	    {"SET a x LIFETIME 0", INVALID("set")},
	    {"SET a x LIFETIME 9223372036854775807", INVALID("set")},
	    {"SET a x LIFETIME y", NUMBER},
	    {"ADVANCE 6000", "+OK"},
	    {"GET a", "$-1"},
	};

	SERVED_STORY(rows, "--lifetimes", NULL);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/times", each_unit_sets_its_deadline, others_are_refused, the_longest_are_capped,
    a_lifetime_goes_beside_a_deadline)
