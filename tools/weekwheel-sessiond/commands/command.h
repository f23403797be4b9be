#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_COMMAND_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_COMMAND_H

/* What is known of a command before it is carried out: its name, arguments, keys and words. */

#include <stddef.h>

#include "tools/weekwheel-sessiond/data/data.h"
#include "tools/weekwheel-sessiond/protocol/resp.h"

struct request;

typedef void command_fn(struct request *request);

enum {
	COMMAND_WRITE = 1,
	COMMAND_READONLY = 2,
	COMMAND_DENYOOM = 4, /* as Redis says it; it may fail at the bound of memory */
	COMMAND_FAST = 8,
	COMMAND_ALL = 16,      /* all stripes are held */
	COMMAND_NO_AUTH = 32,  /* without a password */
	COMMAND_PUBSUB = 64,   /* also while subscribed, in RESP2 */
	COMMAND_AT_ONCE = 128, /* not queued by MULTI */
	COMMAND_ADMIN = 256,
	COMMAND_NO_MULTI = 512,
	COMMAND_LOADING = 1024,
	COMMAND_STALE = 2048,
	COMMAND_SUBCOMMANDS = 4096, /* the word behind its name is one of a table */
	COMMAND_DELETES = 8192,     /* it writes, but only deletes */
	COMMAND_SCRIPT = 16384,     /* nobody knows its keys: in a transaction all stripes are held */
	COMMAND_SELECTS = 32768     /* what follows it may be about another database */
};

struct command_entry {
	const char *name;
	int arity; /* with the name; negative: at least this many */
	unsigned flags;
	int first; /* key; 0: none */
	int last;  /* negative: from the end */
	int step;
	command_fn *run;
	const char *group;
	const char *summary;
	int way; /* which of several commands its function carries out */
};

/* The way of a command about time. */
enum { COMMAND_MS = 1, COMMAND_AT = 2 };

/* The most commands that a table has. */
enum { COMMANDS_MAX = 128 };

/* Install the table of commands. Call it before clients come. */
void command_index(const struct command_entry *table, size_t count);
/* Add more commands to it. */
void command_add(const struct command_entry *table, size_t count);
/* Whether it writes something that needs room. */
static inline int command_adds(const struct command_entry *command)
{
	return (command->flags & (COMMAND_WRITE | COMMAND_DELETES)) == COMMAND_WRITE;
}

/* Return the number of keys, channels and patterns among these arguments. */
size_t command_names(const struct command_entry *command, size_t count);
/* The same for bounds, in keys that are read: a set, which may evict another key, or a subscription takes so many times as long. */
enum { COMMAND_HEAVY = 3 };
size_t command_weight(const struct command_entry *command, size_t count);

/* Find a command by its name, in any case; NULL if there is none. */
const struct command_entry *command_find(const struct resp_arg *name);
const struct command_entry *command_at(size_t number); /* NULL: beyond the last */

/* Whether the client's word is this one, in any case of letters. */
int command_is_word(const struct resp_arg *arg, const char *word);
/* Whether a command or word of this arity may have this many arguments, its name among them. */
int command_has_arity(int arity, size_t count);
/* Add the stripes of the command's keys. */
void command_stripes(
    const struct command_entry *command, const struct resp_arg *arg, size_t count, struct data_stripes *stripes);

/* ---- Words behind a command's name */

struct command_word {
	const char *command;
	const char *name;
	int arity; /* with the command's name; negative: at least this many */
};

/* The word after the command's name; NULL if the command has no words, or not this one. */
const struct command_word *command_word(const struct command_entry *command, const struct resp_arg *arg, size_t count);

#endif
