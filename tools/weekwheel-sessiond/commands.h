#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_H

/*
 * All commands. A function gets the client's command, with the number of arguments checked. If the table says that the
 * command writes, or that it has several keys, their stripes are held.
 */

#include "tools/weekwheel-sessiond/data.h"
#include "tools/weekwheel-sessiond/reply.h"
#include "tools/weekwheel-sessiond/server.h"

/* What this server says it is, for clients that ask what Redis can do. */
#define REDIS_VERSION "7.0.15"

struct request {
	struct conn *conn;
	struct data *data;
	const struct resp_arg *arg; /* arg[0] is the command's name */
	size_t count;
};

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
	COMMAND_SUBCOMMANDS = 4096 /* the word behind its name is one of a table */
};

struct command_entry {
	const char *name;
	int arity; /* with the name; negative: at least so many */
	unsigned flags;
	int first; /* key; 0: none */
	int last;  /* negative: from the end */
	int step;
	command_fn *run;
	const char *group;
	const char *summary;
};

/* Before all else. */
void commands_start(void);
/* Carry out a command, or queue it for EXEC. */
void command_carry_out(struct conn *conn, const struct resp_arg *arg, size_t count);
/* Find a command by its name in any case; NULL: there is none. */
const struct command_entry *command_find(const struct resp_arg *name);
const struct command_entry *command_at(size_t number); /* NULL: beyond the last */
/* Add the stripes of the command's keys. */
void command_stripes(
    const struct command_entry *command, const struct resp_arg *arg, size_t count, struct data_stripes *stripes);
/* Whether it is about one key, and does not copy its value within the server. */
int command_is_short(const struct command_entry *command);
/* Whether the word behind its name is one of the command, if it has words. */
int command_has_word(const struct command_entry *command, const struct resp_arg *arg, size_t count);
/* Run it; stripes are held. */
void command_call(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count);

/* ---- What the files of commands share */

static inline struct data_key request_key(const struct request *request, size_t number)
{
	return (struct data_key){request->conn->database, request->arg[number].data, request->arg[number].size};
}

/* Return 1 if the argument is this word, which is in upper case. */
int request_is(const struct request *request, size_t number, const char *word);
int request_is_word(const struct resp_arg *arg, const char *word);
/* Read an argument as a whole number. Returns 0, or -1 after an answer. */
int request_whole(struct request *request, size_t number, int64_t *value);
/* Answer what data_set and its kin returned, if that is an error. Returns 1 if it is. */
int request_failed(struct request *request, int error);
void request_syntax_error(struct request *request);
/* Answer the words that may stand behind the command's name. */
void request_help(struct request *request);

/* ---- The commands */

#define COMMAND(name) void command_##name(struct request *request)

COMMAND(get);
COMMAND(set);
COMMAND(setex);
COMMAND(psetex);
COMMAND(setnx);
COMMAND(getex);
COMMAND(getdel);
COMMAND(getset);
COMMAND(mget);
COMMAND(mset);
COMMAND(msetnx);
COMMAND(append);
COMMAND(strlen);
COMMAND(incr);
COMMAND(decr);
COMMAND(incrby);
COMMAND(decrby);

COMMAND(expire);
COMMAND(pexpire);
COMMAND(expireat);
COMMAND(pexpireat);
COMMAND(ttl);
COMMAND(pttl);
COMMAND(expiretime);
COMMAND(pexpiretime);
COMMAND(persist);

COMMAND(del);
COMMAND(exists);
COMMAND(touch);
COMMAND(type);
COMMAND(rename);
COMMAND(renamenx);
COMMAND(scan);
COMMAND(keys);
COMMAND(dbsize);
COMMAND(randomkey);
COMMAND(flushdb);
COMMAND(flushall);

COMMAND(multi);
COMMAND(exec);
COMMAND(discard);
COMMAND(watch);
COMMAND(unwatch);

COMMAND(subscribe);
COMMAND(unsubscribe);
COMMAND(psubscribe);
COMMAND(punsubscribe);
COMMAND(ssubscribe);
COMMAND(sunsubscribe);
COMMAND(publish);
COMMAND(spublish);
COMMAND(pubsub);

COMMAND(ping);
COMMAND(echo);
COMMAND(quit);
COMMAND(hello);
COMMAND(auth);
COMMAND(select);
COMMAND(reset);
COMMAND(client);
COMMAND(command);
COMMAND(info);
COMMAND(config);
COMMAND(time);
COMMAND(save);
COMMAND(bgsave);
COMMAND(lastsave);
COMMAND(shutdown);
COMMAND(step);

#endif
