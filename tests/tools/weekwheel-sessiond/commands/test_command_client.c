/* CLIENT: names, lists, and the ends of others. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"

#define NAMES "-ERR Client names cannot contain spaces, newlines or special characters."

START_TEST(a_client_has_names)
{
	static const struct served_row rows[] = {
	    {"CLIENT ID", ":1"},
	    {"1> CLIENT ID", ":2"},
	    {"CLIENT GETNAME", "$-1"},
	    {"CLIENT SETNAME me", "+OK"},
	    {"CLIENT GETNAME", "$2 me"},
	    {"CLIENT SETNAME \"a b\"", NAMES},
	    {"CLIENT SETNAME \"a\\nb\"", NAMES},
	    {"CLIENT GETNAME", "$2 me"},
	    {"CLIENT SETINFO lib-name \"lib\"", "+OK"},
	    {"CLIENT SETINFO LIB-VER 1.2", "+OK"},
	    {"CLIENT SETINFO lib-name \"a b\"", "-ERR lib-name cannot contain spaces, newlines or special characters."},
	    {"CLIENT SETINFO lib-ver \"a b\"", "-ERR lib-ver cannot contain spaces, newlines or special characters."},
	    {"CLIENT SETINFO else x", "-ERR Unrecognized option 'else'"},
	    {"CLIENT SETNAME \"\"", "+OK"},
	    {"CLIENT GETNAME", "$-1"},
	    {"CLIENT GETREDIR", ":-1"},
	    {"CLIENT NO-EVICT on", "+OK"},
	    {"CLIENT NO-TOUCH off", "+OK"},
	    {"CLIENT NO-TOUCH x", "-ERR syntax error"},
	    {"CLIENT", "-ERR wrong number of arguments for 'client' command"},
	    {"CLIENT NONE", "-ERR unknown subcommand 'NONE'. Try CLIENT HELP."},
	    {"CLIENT ID x", "-ERR wrong number of arguments for 'client|id' command"},
	    {"CLIENT HELP", "*12 $14 client getname*"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(a_name_is_not_too_long)
{
	char line[1100] = "CLIENT SETNAME ";
	size_t size = strlen(line);

	served_begin(NULL);
	memset(line + size, 'n', 1024);
	ck_assert_str_eq(served_ask(line), "+OK");
	line[size + 1024] = 'n';
	ck_assert_str_eq(served_ask(line), "-ERR Client names cannot be longer than 1024 bytes.");
	served_end();
}
END_TEST

static void check_list(const char *line, const char *const *parts)
{
	const char *answer = served_ask(line);

	for (; *parts; parts++)
		ck_assert_msg((strstr(answer, **parts == '!' ? *parts + 1 : *parts) != NULL) == (**parts != '!'),
		    "%s has or lacks %s: %s", line, *parts, answer);
}

START_TEST(lists_show_each_client)
{
	served_begin(NULL);
	ck_assert_str_eq(served_ask("CLIENT SETNAME me"), "+OK");
	ck_assert_str_eq(served_ask("SELECT 5"), "+OK");
	ck_assert_ptr_nonnull(served_ask("1> HELLO 3"));
	ck_assert_str_eq(served_ask("1> CLIENT SETINFO lib-name lib"), "+OK");
	ck_assert_ptr_nonnull(served_ask("2> SUBSCRIBE a b"));
	ck_assert_ptr_nonnull(served_ask("2> PSUBSCRIBE c"));
	check_list("CLIENT LIST", (const char *const[]){"id=1 ", "id=2 ", "id=3 ", " name=me ", " db=5 ",
	                              " resp=3 lib-name=lib ", " sub=2 psub=1 ssub=0 cmd=psubscribe ", NULL});
	check_list("CLIENT INFO", (const char *const[]){"id=1 ", " cmd=client ", "!id=2 ", "!id=3 ", NULL});
	check_list("CLIENT LIST TYPE pubsub", (const char *const[]){"!id=1 ", "!id=2 ", "id=3 ", " flags=P ", NULL});
	check_list("CLIENT LIST TYPE normal", (const char *const[]){"id=1 ", "id=2 ", "!id=3 ", NULL});
	check_list("CLIENT LIST ID 2", (const char *const[]){"!id=1 ", "id=2 ", "!id=3 ", NULL});
	ck_assert_str_eq(served_ask("CLIENT LIST TYPE none"), "-ERR Unknown client type 'none'");
	ck_assert_str_eq(served_ask("CLIENT LIST ID x"), "-ERR value is not an integer or out of range");
	ck_assert_str_eq(served_ask("CLIENT LIST TYPE"), "-ERR syntax error");
	served_end();
}
END_TEST

/* Three clients, whose ids are 1 to 3; the last one listens. Which of them are closed? */
START_TEST(kill_ends_those_that_are_meant)
{
	static const struct {
		const char *line;
		const char *answer;
		const char *ended;
	} cases[] = {
	    {"CLIENT KILL ID 2", ":1", "2"},
	    {"CLIENT KILL ID 1", ":0", ""},
	    {"CLIENT KILL ID 1 SKIPME no", ":1", "1"},
	    {"CLIENT KILL ID 9", ":0", ""},
	    {"CLIENT KILL TYPE pubsub", ":1", "3"},
	    {"CLIENT KILL TYPE normal", ":1", "2"},
	    {"CLIENT KILL TYPE normal SKIPME no", ":2", "12"},
	    {"CLIENT KILL TYPE normal ID 3", ":0", ""},
	    {"CLIENT KILL USER default", ":2", "23"},
	    {"CLIENT KILL ADDR 127.0.0.1:9", ":0", ""},
	    {"CLIENT KILL LADDR 127.0.0.1:9", ":0", ""},
	    {"CLIENT KILL 127.0.0.1:9", "-ERR No such client", ""},
	    {"CLIENT KILL ID 0", "-ERR client-id should be greater than 0", ""},
	    {"CLIENT KILL ID x", "-ERR client-id should be greater than 0", ""},
	    {"CLIENT KILL USER none", "-ERR No such user 'none'", ""},
	    {"CLIENT KILL ID 2 SKIPME", "-ERR syntax error", ""},
	    {"CLIENT KILL SKIPME maybe", "-ERR syntax error", ""},
	    {"CLIENT KILL NONE 2", "-ERR syntax error", ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char ended[4] = "";
		int count = 0;
		served_begin(NULL);
		ck_assert_str_eq(served_ask("PING"), "+PONG");
		ck_assert_str_eq(served_ask("1> PING"), "+PONG");
		ck_assert_ptr_nonnull(served_ask("2> SUBSCRIBE a"));
		ck_assert_str_eq(served_ask(cases[i].line), cases[i].answer);
		for (int number = 0; number < 3; number++) {
			char line[] = "0> ";
			line[0] = (char)('0' + number);
			if (!served_ask(line))
				ended[count++] = (char)('1' + number);
		}
		ck_assert_msg(
		    strcmp(ended, cases[i].ended) == 0, "%s ends '%s', not '%s'", cases[i].line, ended, cases[i].ended);
		served_end();
	}
}
END_TEST

START_TEST(answers_may_be_left_out)
{
	static const struct served_row rows[] = {
	    {"CLIENT REPLY SKIP", ""},
	    {"SET a 1", ""},
	    {"GET a", "$1 1"},
	    {"CLIENT REPLY OFF", ""},
	    {"SET a 2", ""},
	    {"CLIENT REPLY SKIP", ""},
	    {"NONE", ""},
	    {"CLIENT REPLY ON", "+OK"},
	    {"GET a", "$1 2"},
	    {"CLIENT REPLY x", "-ERR syntax error"},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/client", a_client_has_names, a_name_is_not_too_long, lists_show_each_client,
    kill_ends_those_that_are_meant, answers_may_be_left_out)
