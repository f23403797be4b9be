/* Commands about deadlines: their conditions, units and answers. */
/* tier: quick */
#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

START_TEST(each_unit_is_set_and_shown)
{
	static const struct served_row rows[] = {
	    {"EXPIRE a 10", ":0"},
	    {"TTL a", ":-2"},
	    {"PERSIST a", ":0"},
	    {"SET a x", "+OK"},
	    {"TTL a", ":-1"},
	    {"EXPIRETIME a", ":-1"},
	    {"PERSIST a", ":0"},
	    {"EXPIRE a 10", ":1"},
	    {"TTL a", ":10"},
	    {"PTTL a", ":10000"},
	    {"PEXPIRE a 1499", ":1"},
	    {"TTL a", ":1"},
	    {"PTTL a", ":1499"},
	    {"PEXPIRE a 1500", ":1"},
	    {"TTL a", ":2"},
	    {"EXPIREAT a 4102444800", ":1"},
	    {"EXPIRETIME a", ":4102444800"},
	    {"PEXPIREAT a 4102444800600", ":1"},
	    {"EXPIRETIME a", ":4102444801"},
	    {"PEXPIRETIME a", ":4102444800600"},
	    {"PERSIST a", ":1"},
	    {"PTTL a", ":-1"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* No deadline counts as the latest of all. */
START_TEST(conditions_hold_or_not)
{
	static const struct served_row rows[] = {
	    {"SET a x", "+OK"},
	    {"EXPIRE a 10 XX", ":0"},
	    {"EXPIRE a 10 GT", ":0"},
	    {"EXPIRE a 10 XX LT", ":0"},
	    {"EXPIRE a 10 LT", ":1"},
	    {"EXPIRE a 20 NX", ":0"},
	    {"EXPIRE a 10 GT", ":0"},
	    {"EXPIRE a 10 LT", ":0"},
	    {"EXPIRE a 9 GT", ":0"},
	    {"EXPIRE a 11 LT", ":0"},
	    {"EXPIRE a 11 GT", ":1"},
	    {"EXPIRE a 9 LT XX", ":1"},
	    {"TTL a", ":9"},
	    {"EXPIREAT a 1 GT", ":0"},
	    {"EXPIREAT a 4102444800 GT XX", ":1"},
	    {"EXPIREAT a 4102444800 LT", ":0"},
	    {"PERSIST a", ":1"},
	    {"EXPIRE a 5 NX", ":1"},
	    {"TTL a", ":5"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(others_are_refused)
{
	static const struct served_row rows[] = {
	    {"SET a x", "+OK"},
	    {"EXPIRE a 1 YY", "-ERR Unsupported option YY"},
	    {"EXPIRE a 1 NX XX", "-ERR NX and XX, GT or LT options at the same time are not compatible"},
	    {"EXPIRE a 1 NX GT", "-ERR NX and XX, GT or LT options at the same time are not compatible"},
	    {"EXPIRE a 1 GT LT", "-ERR GT and LT options at the same time are not compatible"},
	    {"EXPIRE a x", "-ERR value is not an integer or out of range"},
	    {"EXPIRE a 9223372036854775807", "-ERR invalid expire time in 'expire' command"},
	    {"EXPIRE a -9223372036854775808", "-ERR invalid expire time in 'expire' command"},
	    {"PEXPIRE a 9223372036854775807", "-ERR invalid expire time in 'pexpire' command"},
	    {"EXPIREAT a 9223372036854775807", "-ERR invalid expire time in 'expireat' command"},
	    {"PTTL a", ":-1"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(a_deadline_that_has_passed_deletes)
{
	static const struct served_row rows[] = {
	    {"MSET a 1 b 2 c 3 d 4 e 5", "+OK"},
	    {"EXPIRE a 0", ":1"},
	    {"EXPIRE b -5", ":1"},
	    {"EXPIREAT c 1", ":1"},
	    {"PEXPIREAT d -1", ":1"},
	    {"EXPIRE e -1 GT", ":0"},
	    {"MGET a b c d e", "*5 $-1 $-1 $-1 $-1 $1 5"},
	    {"PEXPIRE e 1", ":1"},
	    {"ADVANCE 0", "+OK"},
	    {"EXISTS e", ":1"},
	    {"ADVANCE 1", "+OK"},
	    {"EXISTS e", ":0"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/expiry", each_unit_is_set_and_shown, conditions_hold_or_not, others_are_refused,
    a_deadline_that_has_passed_deletes)
