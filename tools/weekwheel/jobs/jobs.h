#ifndef TOOLS_WEEKWHEEL_JOBS_JOBS_H
#define TOOLS_WEEKWHEEL_JOBS_JOBS_H

/* What the commands that talk to a server of jobs have in common: their options, keys, and how they ask. */

#include <stdint.h>

#include "tools/common/options.h"
#include "tools/weekwheel/jobs/client.h"

enum { JOBS_TUBE_MAX = 200, JOBS_KEY_MAX = 200, JOBS_KEY_TEXT = 3 * JOBS_KEY_MAX + 1 };

struct jobs {
	const char *server;
	const char *tube;        /* NULL: not given */
	char key[JOBS_KEY_TEXT]; /* percent-encoded; "": not given */
	int timeout_ms;
	int json;
	struct client client;
};

/* The ids of the options below; commands have theirs from 1. */
enum { JOBS_SERVER = 100, JOBS_TIMEOUT, JOBS_JSON, JOBS_HELP, JOBS_TUBE, JOBS_KEY };

#define JOBS_OPTIONS                                                                                                   \
	{JOBS_SERVER, 's', "server", "ADDRESS",                                                                        \
	    "HOST:PORT or unix:PATH (default $WEEKWHEEL_SERVER,\n"                                                     \
	    "or 127.0.0.1:11300)"},                                                                                    \
	    {JOBS_TIMEOUT, 0, "timeout", "TIME", "how long to wait for an answer (default 10s)"},                      \
	    {JOBS_JSON, 'j', "json", NULL, "write JSON, an object a line"},                                            \
	{                                                                                                              \
		JOBS_HELP, 'h', "help", NULL, "show this help"                                                         \
	}

#define JOBS_TUBE_OPTION(help)                                                                                         \
	{                                                                                                              \
		JOBS_TUBE, 't', "tube", "TUBE", help                                                                   \
	}
#define JOBS_KEY_OPTION(help)                                                                                          \
	{                                                                                                              \
		JOBS_KEY, 'k', "key", "KEY", help                                                                      \
	}

/* Set the defaults. */
void jobs_init(struct jobs *jobs);

/* Whether the server's address, which the environment may have, is one: 0, or OPTIONS_ERROR after a message. */
int jobs_check_server(const struct jobs *jobs, const struct options *options);

/*
 * As options_next, but the options above are dealt with; except JOBS_HELP, which is returned. At the end the server's
 * address is checked.
 */
int jobs_next(struct jobs *jobs, struct options *options);

enum { JOBS_PARSED = -1 };

/*
 * Set the defaults and read the command line: take gets each option and operand that jobs_next leaves, and returns 0,
 * or another number after a message; --help calls help. Return JOBS_PARSED, or the exit status if the command is over
 * by that.
 */
int jobs_parse(struct jobs *jobs, struct options *options,
    int (*take)(void *context, const struct options *options, int id), void *context, void (*help)(FILE *out));

/* What take returns of an operand where there should be none. */
int jobs_no_operand(const struct options *options);

/* Say what is wrong with the command line as a whole, with a hint at --help. Returns OPTIONS_ERROR. */
int jobs_complain(const struct options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Read the option's value, which is one of these; return 0, or OPTIONS_ERROR after a message with the place. */
int jobs_duration(const struct options *options, const char *name, uint64_t least, uint64_t most, uint64_t *ns);
int jobs_time(const struct options *options, const char *name, uint64_t *ns);
int jobs_time_from(const struct options *options, const char *name, uint64_t *ns);
int jobs_id(const struct options *options, uint64_t *id);
int jobs_key(const struct options *options, const char *name, char text[JOBS_KEY_TEXT]);

/* Connect, and use the tube if one was given. Return 0, or -1 after a message. */
int jobs_open(struct jobs *jobs);
void jobs_close(struct jobs *jobs);

/* Whether the server has verbs of its own beside beanstalkd's. Asks it; return 1, 0, or -1 after a message. */
int jobs_has_own_verbs(struct jobs *jobs);

/* $WEEKWHEEL_SERVER, or the address where a server listens unless told otherwise. */
const char *jobs_default_server(void);

/* Decode a key to text for a reader: what is not printable becomes '?'. */
const char *jobs_key_show(const char *encoded, char *out, size_t room);

#endif
