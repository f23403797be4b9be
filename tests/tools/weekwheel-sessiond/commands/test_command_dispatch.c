/* How a command comes to its function: refused, queued, with the stripes of its keys held, or in another turn. */
/* tier: quick */
#include <stdio.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"
#include "tools/weekwheel-sessiond/commands/commands.h"

static int is_short(const char *name)
{
	return command_is_short(command_find(&(struct resp_arg){name, strlen(name)}));
}

START_TEST(short_commands_have_one_key)
{
	commands_start();
	ck_assert(is_short("get") && is_short("set") && is_short("expire") && is_short("getdel"));
	ck_assert(
	    !is_short("append") && !is_short("mget") && !is_short("rename") && !is_short("keys") && !is_short("ping"));
}
END_TEST

START_TEST(each_way_ends_at_its_function)
{
	static const struct served_row rows[] = {
	    {"SET a 1", "+OK"},                                         /* a stripe */
	    {"GET a", "$1 1"},                                          /* none, as it only reads */
	    {"WATCH a", "+OK"},                                         /* neither */
	    {"MGET a b", "*2 $1 1 $-1"},                                /* several */
	    {"FLUSHALL", "+OK"},                                        /* all */
	    {"PING", "+PONG"},                                          /* no key */
	    {"NONE", "-ERR unknown*"},                                  /* no function */
	    {"GET", "-ERR wrong number*"},                              /* not with so few words */
	    {"MULTI", "+OK"}, {"GET a", "+QUEUED"}, {"DISCARD", "+OK"}, /* not queued */
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* Others wait already: what is long runs again from its beginning, and nothing of it is done or answered twice. */
START_TEST(what_is_long_waits_for_its_turn)
{
	static const char *const lines[] = {"MSET a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8", "KEYS *", "SCAN 0"};
	struct conn *conn;

	served_begin(NULL);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct resp_arg arg[20];
		char words[80];
		size_t count = 0;
		(void)snprintf(words, sizeof words, "%s", lines[i]);
		for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
			arg[count++] = (struct resp_arg){word, strlen(word)};
		ck_assert_ptr_nonnull(served_ask("PING"));
		conn = LIST_FIRST(&served_server()->loop->conns);
		conn->loop->is_long = 1;
		command_carry_out(conn, arg, count);
		ck_assert_int_eq(conn->is_again, 1);
		ck_assert_uint_eq(conn->stream.out.size, 0);
		conn->is_again = conn->loop->is_long = 0;
		ck_assert_uint_eq(data_count(served_server()->data, 0), 0);
	}
	served_end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/dispatch", short_commands_have_one_key, each_way_ends_at_its_function,
    what_is_long_waits_for_its_turn)
