/* What a client may do with its token: see rights.h. */
#include "tools/weekwheel-sessiond/commands/rights.h"

#include <string.h>

#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/pubsub.h"

/* A key or channel longer than this is granted only by "*". */
enum { NAME_MOST = 1024 };

/* Whether the token has the right for a name. The name need not end with a NUL. */
static int may(const struct token *token, unsigned right, const struct resp_arg *arg)
{
	char name[NAME_MOST + 1];

	if (arg->size > NAME_MOST || memchr(arg->data, 0, arg->size))
		return token_may(token, right, NULL);
	memcpy(name, arg->data, arg->size);
	name[arg->size] = 0;
	/* token_may takes "" for "any tube", so pass NULL for an empty key. */
	return arg->size ? token_may(token, right, name) : token_may(token, right, NULL);
}

static const char *refuses_keys(const struct token *token, unsigned right, const struct command_entry *command,
    const struct resp_arg *arg, size_t count)
{
	int last = command->last < 0 ? (int)count + command->last : command->last;

	for (int i = command->first; i <= last; i += command->step)
		if (!may(token, right, &arg[i]))
			return "NOPERM this user has no permissions to access one of the keys used as arguments";
	return NULL;
}

/* The index of the first argument that names a channel to listen to or ask about; 0: there is none. */
static size_t first_heard(const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	if (command->run == command_subscribe && command->way != PUBSUB_PATTERN)
		return 1;
	return command->run == command_pubsub && count > 1 &&
	               (command_is_word(&arg[1], "NUMSUB") || command_is_word(&arg[1], "SHARDNUMSUB"))
	           ? 2
	           : 0;
}

/* Whether it lists or matches names of channels, which contain keys: __expired@0__:KEY. */
static int is_about_all(const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	return (command->run == command_subscribe && command->way == PUBSUB_PATTERN) ||
	       (command->run == command_pubsub && count > 1 &&
	           (command_is_word(&arg[1], "CHANNELS") || command_is_word(&arg[1], "SHARDCHANNELS")));
}

static const char *refuses_channels(
    const struct token *token, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	size_t first = first_heard(command, arg, count);
	int is_right = !is_about_all(command, arg, count) || token_may(token, RIGHT_READ, NULL);

	for (size_t i = first; first && i < count; i++)
		is_right &= may(token, RIGHT_READ, &arg[i]);
	if (command->run == command_publish)
		is_right = may(token, RIGHT_PUT, &arg[1]);
	return is_right ? NULL : "NOPERM this user has no permissions to access one of the channels used as arguments";
}

const char *rights_refuse(
    const struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	const struct token *token = conn->auth.token;
	unsigned right = command->flags & COMMAND_WRITE ? RIGHT_PUT : RIGHT_READ;
	int is_right = 1;

	if (!token)
		return NULL;
	if (strcmp(command->group, "pubsub") == 0)
		return refuses_channels(token, command, arg, count);
	if (command->first)
		return refuses_keys(token, right, command, arg, count);
	if (command->flags & COMMAND_ADMIN)
		is_right = token_may(token, RIGHT_ADMIN, NULL);
	else if (command->flags & (COMMAND_WRITE | COMMAND_READONLY))
		is_right = token_may(token, right, NULL);
	else if (command->run == command_client && count > 1 && command_is_word(&arg[1], "KILL"))
		is_right = token_may(token, RIGHT_ADMIN, NULL);
	else if (command->run == command_client && count > 1 && command_is_word(&arg[1], "LIST"))
		is_right = token_may(token, RIGHT_READ, NULL);
	return is_right ? NULL : "NOPERM this user has no permissions to run this command for all keys";
}
