/* Finds a command by its name, and the stripes of its keys. */
#include "tools/weekwheel-sessiond/commands/command.h"

#include <string.h>
#include <strings.h>

/* The search for a name begins at the name's own place. */
enum { PLACES = 2 * COMMANDS_MAX };

static const struct command_entry *commands[COMMANDS_MAX];
static size_t command_count;
static uint8_t places[PLACES]; /* 1 + the number of a command, or 0 */

const struct command_entry *command_at(size_t number)
{
	return number < command_count ? commands[number] : NULL;
}

int command_is_word(const struct resp_arg *arg, const char *word)
{
	/* The client's word may contain a NUL where this one ends, and be longer. */
	return strncasecmp(arg->data, word, arg->size) == 0 && strlen(word) == arg->size;
}

static unsigned place_of(const char *name, size_t size)
{
	unsigned place = (unsigned)size;

	for (size_t i = 0; i < size; i++)
		place = place * 31 + ((unsigned char)name[i] | 0x20);
	return place % PLACES;
}

void command_index(const struct command_entry *table, size_t count)
{
	command_count = 0;
	memset(places, 0, sizeof places);
	command_add(table, count);
}

void command_add(const struct command_entry *table, size_t count)
{
	for (size_t i = 0; i < count && command_count < COMMANDS_MAX; i++) {
		unsigned place = place_of(table[i].name, strlen(table[i].name));
		while (places[place])
			place = (place + 1) % PLACES;
		commands[command_count++] = &table[i];
		places[place] = (uint8_t)command_count;
	}
}

const struct command_entry *command_find(const struct resp_arg *name)
{
	const struct command_entry *found;

	if (name->size > 32)
		return NULL;
	for (unsigned place = place_of(name->data, name->size); places[place]; place = (place + 1) % PLACES) {
		found = commands[places[place] - 1];
		if (command_is_word(name, found->name))
			return found;
	}
	return NULL;
}

void command_stripes(
    const struct command_entry *command, const struct resp_arg *arg, size_t count, struct data_stripes *stripes)
{
	size_t last;

	if (command->flags & (COMMAND_ALL | COMMAND_SCRIPT))
		data_stripes_all(stripes);
	if (command->first == 0)
		return;
	last = command->last < 0 ? count + (size_t)(ptrdiff_t)command->last : (size_t)command->last;
	for (size_t i = (size_t)command->first; i <= last && i < count; i += (size_t)command->step)
		data_stripes_add(stripes, arg[i].data, arg[i].size);
}

size_t command_names(const struct command_entry *command, size_t count)
{
	size_t last = command->last < 0 ? count + (size_t)(ptrdiff_t)command->last : (size_t)command->last;

	if (command->first == 0)
		return strcmp(command->group, "pubsub") == 0 ? count - 1 : 0;
	return last < (size_t)command->first ? 0 : (last - (size_t)command->first) / (size_t)command->step + 1;
}

size_t command_weight(const struct command_entry *command, size_t count)
{
	int is_heavy = command->flags & (COMMAND_DENYOOM | COMMAND_PUBSUB);

	return command_names(command, count) * (is_heavy ? COMMAND_HEAVY : 1);
}

int command_has_arity(int arity, size_t count)
{
	return arity > 0 ? count == (size_t)arity : count >= (size_t)-arity;
}
