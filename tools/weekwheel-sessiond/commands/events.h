#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_EVENTS_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_EVENTS_H

/*
 * Events of keys, which clients receive on the channels __keyspace@0__:KEY, __keyevent@0__:EVENT and __expired@0__:KEY.
 */

#include <stddef.h>

#include "tools/weekwheel-sessiond/commands/command.h"
#include "tools/weekwheel-sessiond/data/data.h"

/* Classes of events and their destinations, as notify-keyspace-events names them. */
enum {
	EVENT_KEYSPACE = 1,  /* K */
	EVENT_KEYEVENT = 2,  /* E */
	EVENT_GENERIC = 4,   /* g */
	EVENT_STRING = 8,    /* $ */
	EVENT_EXPIRED = 16,  /* x */
	EVENT_EVICTED = 32,  /* e */
	EVENT_LIST = 64,     /* l: classes of values that this server does not have, kept for CONFIG GET */
	EVENT_SET = 128,     /* s */
	EVENT_HASH = 256,    /* h */
	EVENT_ZSET = 512,    /* z */
	EVENT_STREAM = 1024, /* t */
	EVENT_MODULE = 2048, /* d */
	EVENT_ALL = EVENT_MODULE * 2 - EVENT_GENERIC /* A */
};

enum { EVENTS_TEXT = 24 };

/* Why that is refused. */
#define EVENTS_LONG                                                                                                    \
	"events of that many keys take too long with these patterns and listeners: name fewer keys at a time"

/* Read what notify-keyspace-events may be. Returns 0, or -1. */
int events_read(const char *text, size_t size, unsigned *events);
/* Write it as Redis does. */
void events_show(unsigned events, char text[EVENTS_TEXT]);

/* Which are told. */
unsigned events_get(void);
void events_set(unsigned events);

/* The cost of the events of a command or transaction, in steps of patterns. Zero: nothing yet. */
struct events_weight {
	size_t steps;
	size_t each;  /* at most, of an event of this database; 0: not known */
	size_t heard; /* by so many, at most */
	unsigned database;
};

/*
 * Others wait while the events of a command or transaction are compared with all patterns, and sent. Add what those of the
 * command take. Returns 1 if all of it is too much.
 */
int events_take_long(struct events_weight *weight, unsigned database, const struct command_entry *command,
    const struct resp_arg *arg, size_t count);

/*
 * This thread's events wait, until it releases them: all are published, or those of changes dropped if these were undone. Release
 * and hold them again before a message that must come behind them.
 */
void events_hold(void);
void events_release(int is_done);
/* Publish what a command has done to the key. Its stripe is held. */
void event_publish(unsigned class, const char *event, const struct data_key *key);
/* Publish that a key has expired or was evicted: data_config's callback. */
void event_gone(
    void *context, unsigned database, const void *key, size_t length, const struct value *value, enum ww_gone why);

#endif
