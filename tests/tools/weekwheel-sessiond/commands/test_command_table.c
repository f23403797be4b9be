/* The table of commands: each row is one that can be looked up, carried out, and told of. */
/* tier: quick */
#include <ctype.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/commands/commands.h"

static void each(void (*check)(const struct command_entry *command))
{
	commands_start();
	for (size_t i = 0; command_at(i); i++)
		check(command_at(i));
}

static void check_name(const struct command_entry *command)
{
	struct resp_arg name = {.data = command->name, .size = strlen(command->name)};

	ck_assert_ptr_eq(command_find(&name), command);
	for (const char *at = command->name; *at; at++)
		ck_assert_msg(islower((unsigned char)*at), "%s", command->name);
	ck_assert(command->run);
	ck_assert_int_eq(command->summary[strlen(command->summary) - 1], '.');
}

START_TEST(each_is_found)
{
	each(check_name);
}
END_TEST

/* rights.c and dispatch.c go by these. */
static void check_keys(const struct command_entry *command)
{
	size_t least = (size_t)(command->arity < 0 ? -command->arity : command->arity);

	ck_assert_msg(least >= 1, "%s", command->name);
	ck_assert_msg(
	    command->first == 0 ? command->last == 0 && command->step == 0 : command->step > 0, "%s", command->name);
	/* With the fewest arguments there is a key, unless it is a command about all that it has. */
	if (command->first && strcmp(command->name, "sunsubscribe") != 0)
		ck_assert_msg(command_names(command, least) >= 1, "%s", command->name);
	/* A reader of several keys holds stripes, too, and so it must not write what it does not say. */
	ck_assert_msg(!(command->flags & COMMAND_WRITE) || !(command->flags & COMMAND_READONLY), "%s", command->name);
	ck_assert_msg(!(command->flags & COMMAND_DELETES) || command->flags & COMMAND_WRITE, "%s", command->name);
	ck_assert_msg(!(command->flags & COMMAND_DENYOOM) || command_adds(command), "%s", command->name);
	ck_assert_msg(
	    !(command->flags & COMMAND_WRITE) || command->first || command->flags & COMMAND_ALL, "%s", command->name);
}

START_TEST(keys_and_flags_go_together)
{
	each(check_keys);
}
END_TEST

static void check_word(const struct command_entry *command)
{
	const struct resp_arg arg[] = {{command->name, strlen(command->name)}, {"HELP", 4}};

	ck_assert_msg((command_word(command, arg, 2) != NULL) == ((command->flags & COMMAND_SUBCOMMANDS) != 0), "%s",
	    command->name);
}

START_TEST(those_with_words_have_help)
{
	each(check_word);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/table", each_is_found, keys_and_flags_go_together, those_with_words_have_help)
