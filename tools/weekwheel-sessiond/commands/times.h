#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_TIMES_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_TIMES_H

/* Deadlines in commands: "EX 1800", "PXAT 1798761600000". */

#include "tools/weekwheel-sessiond/commands/commands.h"

enum {
	TIMES_GIVEN = 1, /* there is a deadline */
	TIMES_KEEPTTL = 2,
	TIMES_PERSIST = 4,
	TIMES_NX = 8,
	TIMES_XX = 16,
	TIMES_GET = 32,
	TIMES_LIFETIME = 64,
	TIMES_IFEQ = 128, /* only if the value is, or is not, that of the argument `compared` */
	TIMES_IFNE = 256
};

/* Both of them. */
enum { TIMES_IF = TIMES_IFEQ | TIMES_IFNE };

enum times_of { TIMES_SET, TIMES_GETEX };

struct times {
	const char *name; /* the command's, for messages */
	unsigned flags;
	size_t deadline; /* indices of the arguments with the times, or 0 */
	size_t limit;
	size_t compared;
	int64_t unit_ms;
	int64_t ms; /* from now on, or wall time */
	int is_absolute;
	uint64_t lifetime; /* ns; 0: none */
};

/* Find the options of SET or GETEX from this argument on. Returns 0, or -1 after an answer. */
int times_find(struct request *request, size_t number, enum times_of of, struct times *times);
/* TIMES_IFEQ, TIMES_IFNE, or 0 if the argument is neither word. */
unsigned times_comparison(const struct request *request, size_t number);
/* Then read their numbers, with the same results. */
int times_read(struct request *request, struct times *times);
/* Read one argument in this unit as a deadline. times->name is set. */
int times_read_one(struct request *request, size_t number, int64_t unit_ms, int is_absolute, struct times *times);
/* The times in the form of data_set. */
void times_of_set(struct data *data, const struct times *times, struct data_times *to);
/* Whether the deadline that was given has passed. */
int times_are_over(struct data *data, const struct times *times);
/*
 * Set the entry's deadline; one that has passed deletes it. Publishes the event. Returns 1, 0 if the entry is gone, or
 * -1 after an error.
 */
int times_move(
    struct request *request, const struct data_key *key, const struct data_entry *entry, const struct times *times);
/* Remove the entry's deadline. Returns 1, 0 if it had none, or -1 as above. */
int times_persist(struct request *request, const struct data_key *key, const struct data_entry *entry);

#endif
