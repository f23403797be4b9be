/* COMMAND: what it says of the table of commands. */
/* tier: quick */
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"
#include "tools/weekwheel-sessiond/commands/command.h"

START_TEST(words_answer)
{
	static const struct served_row rows[] = {
	    {"COMMAND INFO get none", "*2 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *0 *0 *0 *0 $-1"},
	    {"COMMAND INFO MSET", "*1 *10 $4 mset :-3 *2 +write +denyoom :1 :-1 :2 *0 *0 *0 *0"},
	    {"COMMAND INFO subscribe", "*1 *10 $9 subscribe :-2 *3 +pubsub +loading +stale :0 :0 :0 *0 *0 *0 *0"},
	    {"COMMAND INFO pubsub", "*1 *10 $6 pubsub :-2 *2 +loading +stale :0 :0 :0 *0 *0 *0 *0"},
	    {"COMMAND INFO save", "*1 *10 $4 save :1 *2 +admin +no_multi :0 :0 :0 *0 *0 *0 *0"},
	    {"COMMAND INFO auth", "*1 *10 $4 auth :-2 *4 +loading +stale +fast +no_auth :0 :0 :0 *0 *0 *0 *0"},
	    {"COMMAND DOCS echo none",
	        "*2 $4 echo *6 $7 summary $21 Answers its argument. $5 since $5 1.0.0 $5 group $10 connection"},
	    {"COMMAND DOCS none", "*0"},
	    {"COMMAND GETKEYS MSET a 1 b 2", "*2 $1 a $1 b"},
	    {"COMMAND GETKEYS RENAME a b", "*2 $1 a $1 b"},
	    {"COMMAND GETKEYS GET a", "*1 $1 a"},
	    {"COMMAND GETKEYS GET a b", "-ERR Invalid number of arguments specified for command"},
	    {"COMMAND GETKEYS NONE a", "-ERR Invalid command specified"},
	    {"COMMAND GETKEYS CLIENT NONE", "-ERR Invalid command specified"},
	    {"COMMAND GETKEYS CLIENT ID", "-ERR The command has no key arguments"},
	    {"COMMAND GETKEYS SPUBLISH a x", "-ERR The command has no key arguments"},
	    {"COMMAND GETKEYS", "-ERR wrong number of arguments for 'command|getkeys' command"},
	    {"COMMAND NONE", "-ERR unknown subcommand 'NONE'. Try COMMAND HELP."},
	    {"COMMAND HELP", "*6*"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

/* How many commands an answer tells of. */
static int count_of(const char *line)
{
	return atoi(served_ask(line) + 1);
}

START_TEST(all_are_told)
{
	int count = 0;
	char name[40];

	served_begin(NULL);
	while (command_at((size_t)count))
		count++;
	ck_assert_int_eq(count_of("COMMAND COUNT"), count);
	ck_assert_int_eq(count_of("COMMAND"), count);
	ck_assert_int_eq(count_of("COMMAND INFO"), count);
	ck_assert_int_eq(count_of("COMMAND LIST"), count);
	ck_assert_int_eq(count_of("COMMAND DOCS"), 2 * count);
	for (int i = 0; i < count; i++) {
		(void)snprintf(name, sizeof name, " %s ", command_at((size_t)i)->name);
		if (i + 1 < count)
			ck_assert_msg(strstr(served_ask("COMMAND LIST"), name) != NULL, "%s is missing", name);
	}
	served_end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/introspection", words_answer, all_are_told)
