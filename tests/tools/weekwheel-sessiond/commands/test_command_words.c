/* Words behind a command's name: which there are, and how many arguments they take. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"
#include "tools/weekwheel-sessiond/commands/commands.h"

static const struct command_word *find(const char *name, const char *word, size_t count)
{
	const struct resp_arg arg[] = {{name, strlen(name)}, {word, strlen(word)}};

	return command_word(command_find(arg), arg, count);
}

START_TEST(words_are_those_of_their_command)
{
	static const struct {
		const char *name;
		const char *word;
		int arity; /* 0: there is none */
	} cases[] = {{"client", "KILL", -3}, {"client", "kill", -3}, {"client", "docs", 0}, {"client", "kil", 0},
	    {"client", "", 0}, {"command", "docs", -2}, {"config", "set", -4}, {"config", "getkeys", 0},
	    {"pubsub", "numpat", 2}, {"get", "help", 0}, {"subscribe", "channels", 0}};

	commands_start();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct command_word *word = find(cases[i].name, cases[i].word, 2);
		ck_assert_msg((word ? word->arity : 0) == cases[i].arity, "%s %s", cases[i].name, cases[i].word);
	}
	ck_assert_ptr_null(find("client", "help", 1));
}
END_TEST

START_TEST(counts_are_checked)
{
	static const struct served_row rows[] = {
	    {"CLIENT KILL", "-ERR wrong number of arguments for 'client|kill' command"},
	    {"CLIENT kill x", "-ERR No such client"},
	    {"config get", "-ERR wrong number of arguments for 'config|get' command"},
	    {"CONFIG RESETSTAT x", "-ERR wrong number of arguments for 'config|resetstat' command"},
	    {"PUBSUB numpat x", "-ERR wrong number of arguments for 'pubsub|numpat' command"},
	    {"PUBSUB", "-ERR wrong number of arguments for 'pubsub' command"},
	    {"PUBSUB x", "-ERR unknown subcommand 'x'. Try PUBSUB HELP."},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

START_TEST(help_names_them_all)
{
	static const struct served_row rows[] = {
	    {"CONFIG HELP",
	        "*5 $14 config get ... $11 config help $16 config resetstat $14 config rewrite $14 config set ..."},
	    {"PUBSUB HELP", "*6 $19 pubsub channels ... $11 pubsub help $13 pubsub numpat $17 pubsub numsub ... "
	                    "$24 pubsub shardchannels ... $22 pubsub shardnumsub ..."},
	};

	SERVED_STORY(rows, NULL);
}
END_TEST

TEST_MAIN(
    "weekwheel-sessiond/commands/words", words_are_those_of_their_command, counts_are_checked, help_names_them_all)
