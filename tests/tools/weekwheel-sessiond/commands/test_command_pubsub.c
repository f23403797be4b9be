/* Channels and patterns: who hears what, in which form, and how each is counted. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"
#include "tools/weekwheel-sessiond/commands/pubsub.h"

START_TEST(a_message_comes_to_each_listener)
{
	static const struct served_row rows[] = {
	    {"PUBLISH a x", ":0"},
	    {"1> SUBSCRIBE a b", "*3 $9 subscribe $1 a :1 *3 $9 subscribe $1 b :2"},
	    {"2> PSUBSCRIBE a* ?", "*3 $10 psubscribe $2 a* :1 *3 $10 psubscribe $1 ? :2"},
	    {"3> SSUBSCRIBE a", "*3 $10 ssubscribe $1 a :1"},
	    {"PUBLISH a x", ":3"},
	    {"1> ", "*3 $7 message $1 a $1 x"},
	    {"2> ", "*4 $8 pmessage $2 a* $1 a $1 x *4 $8 pmessage $1 ? $1 a $1 x"},
	    {"PUBLISH b y", ":2"},
	    {"1> ", "*3 $7 message $1 b $1 y"},
	    {"2> ", "*4 $8 pmessage $1 ? $1 b $1 y"},
	    {"SPUBLISH a z", ":1"},
	    {"3> ", "*3 $8 smessage $1 a $1 z"},
	    {"PUBLISH \"\" none", ":0"},
	    {"1> ", ""},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* In RESP3 other commands go on, and messages are pushed. */
START_TEST(messages_have_the_form_of_the_protocol)
{
	static const struct served_row rows[] = {
	    {"HELLO 3", "%7*"},
	    {"SUBSCRIBE a", ">3 $9 subscribe $1 a :1"},
	    {"PUBLISH a x", ">3 $7 message $1 a $1 x :1"},
	    {"GET a", "_"},
	    {"UNSUBSCRIBE", ">3 $11 unsubscribe $1 a :0"},
	    {"UNSUBSCRIBE", ">3 $11 unsubscribe _ :0"},
	    {"1> SUBSCRIBE a", "*3 $9 subscribe $1 a :1"},
	    {"1> GET a", "-ERR Can't execute 'get'*"},
	    {"1> PING", "*2 $4 pong $0"},
	    {"1> PING x", "*2 $4 pong $1 x"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(subscriptions_end)
{
	static const struct served_row rows[] = {
	    {"SUBSCRIBE a a b", "*3 $9 subscribe $1 a :1 *3 $9 subscribe $1 a :1 *3 $9 subscribe $1 b :2"},
	    {"PSUBSCRIBE c", "*3 $10 psubscribe $1 c :3"},
	    {"UNSUBSCRIBE none a", "*3 $11 unsubscribe $4 none :3 *3 $11 unsubscribe $1 a :2"},
	    {"1> PUBLISH a x", ":0"},
	    {"1> PUBSUB NUMSUB a b none", "*6 $1 a :0 $1 b :1 $4 none :0"},
	    {"UNSUBSCRIBE", "*3 $11 unsubscribe $1 b :1"},
	    {"PUNSUBSCRIBE", "*3 $12 punsubscribe $1 c :0"},
	    {"GET a", "$-1"},
	    {"SSUBSCRIBE s", "*3 $10 ssubscribe $1 s :1"},
	    {"SUNSUBSCRIBE", "*3 $12 sunsubscribe $1 s :0"},
	    {"SUBSCRIBE a", "*3 $9 subscribe $1 a :1"},
	    {"RESET", "+RESET"},
	    {"1> PUBLISH a x", ":0"},
	    {"SUBSCRIBE a", "*3 $9 subscribe $1 a :1"},
	    {"QUIT", "+OK"},
	    {"1> PUBLISH a x", ":0"},
	    {"1> PUBSUB CHANNELS", "*0"},
	};

	served_begin(NULL);
	SERVED_CHECK(rows);
	ck_assert_int_eq(pubsub_has_listeners(), 0);
	served_end();
}
END_TEST

START_TEST(channels_are_listed_and_counted)
{
	static const struct served_row rows[] = {
	    {"PUBSUB CHANNELS", "*0"},
	    {"PUBSUB NUMPAT", ":0"},
	    {"1> SUBSCRIBE news", "*"},
	    {"2> SUBSCRIBE news", "*"},
	    {"2> PSUBSCRIBE n*", "*"},
	    {"3> PSUBSCRIBE n* m*", "*"},
	    {"4> SSUBSCRIBE shard", "*"},
	    {"PUBSUB CHANNELS", "*1 $4 news"},
	    {"PUBSUB CHANNELS n*", "*1 $4 news"},
	    {"PUBSUB CHANNELS m*", "*0"},
	    {"PUBSUB SHARDCHANNELS", "*1 $5 shard"},
	    {"PUBSUB SHARDNUMSUB shard news", "*4 $5 shard :1 $4 news :0"},
	    {"PUBSUB NUMSUB", "*0"},
	    {"PUBSUB NUMSUB news", "*2 $4 news :2"},
	    {"PUBSUB NUMPAT", ":2"},
	    {"PUBSUB CHANNELS a b",
	        "-ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP."},
	    {"PUBSUB NUMPAT x", "-ERR wrong number of arguments for 'pubsub|numpat' command"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* A client has a few in any case, and then an eighth of those that are left. */
START_TEST(patterns_are_bounded)
{
	char line[24];
	int taken = 0;

	served_begin("--max-patterns", "100", NULL);
	for (int i = 0; i < 30; i++) {
		(void)snprintf(line, sizeof line, "PSUBSCRIBE a%d*", i);
		taken += strncmp(served_ask(line), "*3 ", 3) == 0;
	}
	ck_assert_int_eq(taken, 11);
	/* One that is there already is no other one. */
	ck_assert_str_eq(served_ask("PSUBSCRIBE a0*"), "*3 $10 psubscribe $3 a0* :11");
	ck_assert_str_eq(served_ask("PSUBSCRIBE z*"), "-ERR max number of patterns reached");
	ck_assert_str_eq(served_ask("1> PSUBSCRIBE z*"), "*3 $10 psubscribe $2 z* :1");
	served_end();
}
END_TEST

/* A client with thousands leaves in pieces, and the next commands wait. */
START_TEST(many_subscriptions_end_in_pieces)
{
	enum { MANY = 3500, EACH = 500 };
	static char line[EACH * 12];
	const char *answer;

	served_begin(NULL);
	for (int i = 0; i < MANY; i += EACH) {
		size_t size = (size_t)snprintf(line, sizeof line, "SUBSCRIBE");
		for (int n = i; n < i + EACH; n++)
			size += (size_t)snprintf(line + size, sizeof line - size, " c%d", n);
		ck_assert_ptr_nonnull(served_ask(line));
	}
	answer = served_ask("UNSUBSCRIBE\r\nPING");
	ck_assert_ptr_nonnull(strstr(answer, "$5 c3499 :0 +PONG"));
	for (int i = 0; i < MANY; i += EACH) {
		size_t size = (size_t)snprintf(line, sizeof line, "SUBSCRIBE");
		for (int n = i; n < i + EACH; n++)
			size += (size_t)snprintf(line + size, sizeof line - size, " c%d", n);
		ck_assert_ptr_nonnull(served_ask(line));
	}
	ck_assert_str_eq(served_ask("RESET\r\nPING"), "+RESET +PONG");
	ck_assert_int_eq(pubsub_has_listeners(), 0);
	served_end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/pubsub", a_message_comes_to_each_listener,
    messages_have_the_form_of_the_protocol, subscriptions_end, channels_are_listed_and_counted, patterns_are_bounded,
    many_subscriptions_end_in_pieces)
