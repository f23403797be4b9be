/* Subcommands, each with an arity of its own: CLIENT LIST, CONFIG GET. */
#include <string.h>

#include "tools/weekwheel-sessiond/commands/request.h"

static const struct command_word words[] = {
    {"client", "getname", 2},
    {"client", "getredir", 2},
    {"client", "help", 2},
    {"client", "id", 2},
    {"client", "info", 2},
    {"client", "kill", -3},
    {"client", "list", -2},
    {"client", "no-evict", 3},
    {"client", "no-touch", 3},
    {"client", "reply", 3},
    {"client", "setinfo", 4},
    {"client", "setname", 3},
    {"command", "count", 2},
    {"command", "docs", -2},
    {"command", "getkeys", -4},
    {"command", "help", 2},
    {"command", "info", -2},
    {"command", "list", -2},
    {"config", "get", -3},
    {"config", "help", 2},
    {"config", "resetstat", 2},
    {"config", "rewrite", 2},
    {"config", "set", -4},
    {"pubsub", "channels", -2},
    {"pubsub", "help", 2},
    {"pubsub", "numpat", 2},
    {"pubsub", "numsub", -2},
    {"pubsub", "shardchannels", -2},
    {"pubsub", "shardnumsub", -2},
    {"script", "exists", -3},
    {"script", "flush", -2},
    {"script", "help", 2},
    {"script", "kill", 2},
    {"script", "load", 3},
};

enum { WORDS_ALL = sizeof words / sizeof *words };

const struct command_word *command_word(const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	for (size_t i = 0; command->flags & COMMAND_SUBCOMMANDS && count > 1 && i < WORDS_ALL; i++)
		if (strcmp(words[i].command, command->name) == 0 && command_is_word(&arg[1], words[i].name))
			return &words[i];
	return NULL;
}

void request_help(struct request *request)
{
	const struct command_entry *command = command_find(&request->arg[0]);
	size_t count = 0;

	for (size_t i = 0; i < WORDS_ALL; i++)
		count += strcmp(words[i].command, command->name) == 0;
	reply_array(request->conn, count);
	for (size_t i = 0; i < WORDS_ALL; i++)
		if (strcmp(words[i].command, command->name) == 0)
			reply_format(
			    request->conn, "%s %s%s", command->name, words[i].name, words[i].arity == 2 ? "" : " ...");
}
