#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_REQUEST_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_REQUEST_H

/* A client's command, as its function gets it, and what these functions share. */

#include "tools/weekwheel-sessiond/commands/command.h"
#include "tools/weekwheel-sessiond/data/data.h"
#include "tools/weekwheel-sessiond/server/reply.h"
#include "tools/weekwheel-sessiond/server/server.h"

struct request {
	struct conn *conn;
	struct data *data;
	const struct command_entry *command;
	const struct resp_arg *arg; /* arg[0] is the command's name */
	size_t count;
};

static inline struct data_key request_key(const struct request *request, size_t number)
{
	return (struct data_key){request->conn->database, request->arg[number].data, request->arg[number].size};
}

/* Return 1 if the argument is this word, which is in upper case. */
int request_is(const struct request *request, size_t number, const char *word);
/* Read an argument as a whole number. Returns 0, or -1 after an answer. */
int request_whole(struct request *request, size_t number, int64_t *value);
/* Answer an error of data_set and its kin. Returns 1 if there was one. */
int request_failed(struct request *request, int error);
void request_syntax_error(struct request *request);
/* Answer with the words that the command takes. */
void request_help(struct request *request);

enum {
	REQUEST_LARGE = 65536, /* bytes that take long */
	REQUEST_MANY = 16      /* arguments that do */
};

/*
 * How many keys, channels and patterns a command may name, and a transaction with its commands; and how many bytes the values of a
 * command, the commands of a transaction, and what those copy may have besides the largest of them. Others wait for them.
 */
enum { REQUEST_NAMES = 100000, REQUEST_BYTES = 32 << 20 };

/*
 * Others wait for a transaction, so its walks through keys, channels and clients are bounded. Return 1 if this one may look at so
 * many more, and 0 after an answer: it may not, or patterns have taken too long already.
 */
int request_may_look(struct conn *conn, size_t looks);
/* Whether patterns and messages to subscribers have used up the transaction's steps. */
int request_took_long(const struct conn *conn);
void request_refuse_long(struct conn *conn);
/* The same for the bytes of a value that is copied. One that is larger than what is left is the last one. */
int request_may_copy(struct conn *conn, size_t bytes);
/* A transaction begins, with all that it may look at and copy. */
void request_bound(struct conn *conn);

/* Return 1 if a long command has to wait for another turn: it then runs again from its beginning. */
int request_waits(struct conn *conn);

/* Call the function of a command. Its stripes are held. */
void request_call(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count);

#endif
