#ifndef TOOLS_WEEKWHEEL_JOBS_JOBS_H
#define TOOLS_WEEKWHEEL_JOBS_JOBS_H

/* What the commands for jobs share: a description that runs each of them, common options, keys, and the server. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/common/options.h"
#include "tools/weekwheel/jobs/client.h"
#include "weekwheel/jobs.h"

enum { JOBS_TOKEN_LEAST = 16, JOBS_TOKEN_MOST = 200 };
enum { JOBS_KEY_TEXT = 3 * WW_JOB_KEY_MAX + 1 };

struct jobs {
	const char *server;
	const char *tube;        /* NULL: not given */
	char key[JOBS_KEY_TEXT]; /* percent-encoded; "": not given */
	int timeout_ms;
	int json;
	struct tls_files tls; /* for a server with tls: */
	int is_token_given;
	char token[JOBS_TOKEN_MOST + 1]; /* "": none */
	struct client_needs needs;
	const char *remedy;           /* what to do if the server does not answer; NULL: the usual */
	char where[WW_TUBE_MAX + 20]; /* what needs.where points to if a tube was given */
	struct client client;
};

/* The ids of the shared options; each command numbers its own from 1. */
enum {
	JOBS_SERVER = 100,
	JOBS_TIMEOUT,
	JOBS_TLS_CA,
	JOBS_TLS_CERT,
	JOBS_TLS_KEY,
	JOBS_TOKEN_FILE,
	JOBS_TUBE,
	JOBS_KEY,
	JOBS_HELP,
	JOBS_FLAGS = 1000
};

/* The id of an option that sets an int of the command's context to 1. */
#define JOBS_FLAG(type, member) (JOBS_FLAGS + (int)offsetof(type, member))

/* clang-format off */
#define JOBS_TUBE_OPTION(help) {JOBS_TUBE, 't', "tube", "TUBE", help}
#define JOBS_KEY_OPTION(help) {JOBS_KEY, 'k', "key", "KEY", help}
#define JOBS_TLS_OPTIONS \
	{JOBS_TIMEOUT, 0, "timeout", "TIME", "how long to wait for an answer (default 10s)"}, \
	{JOBS_TLS_CA, 0, "tls-ca", "FILE", "certificates to trust instead of the system's (default\n$WEEKWHEEL_TLS_CA)"}, \
	{JOBS_TLS_CERT, 0, "tls-cert", "FILE", "this client's certificate (default $WEEKWHEEL_TLS_CERT)"}, \
	{JOBS_TLS_KEY, 0, "tls-key", "FILE", "its key (default $WEEKWHEEL_TLS_KEY, or in the\nfile of the certificate)"}
#define JOBS_SERVER_OPTIONS \
	{JOBS_SERVER, 's', "server", "ADDRESS", "HOST:PORT, tls:HOST:PORT or unix:PATH (default\n$WEEKWHEEL_SERVER, or 127.0.0.1:11300)"}, \
	JOBS_TLS_OPTIONS, \
	{JOBS_TOKEN_FILE, 0, "token-file", "FILE", "send the token in this file to the server (default\n$WEEKWHEEL_TOKEN, the token itself)"}
#define JOBS_JSON_OPTION {JOBS_FLAG(struct jobs, json), 'j', "json", NULL, "write JSON, one object per line"}
#define JOBS_HELP_OPTION {JOBS_HELP, 'h', "help", NULL, "show this help"}
#define JOBS_OPTIONS JOBS_SERVER_OPTIONS, JOBS_JSON_OPTION, JOBS_HELP_OPTION
/* clang-format on */

/* What a command needs from a server before it runs. */
enum jobs_server {
	JOBS_NO_SERVER, /* nothing: its context has no struct jobs, and take gets all options but --help */
	JOBS_ADDRESS,   /* only the address: it connects by itself */
	JOBS_CONNECTED, /* a connection */
	JOBS_USING_TUBE /* a connection that uses the tube, if one was given */
};

/* A command. */
struct jobs_command {
	const char *name; /* "weekwheel put" */
	const struct option *options;
	size_t option_count;
	void *context; /* begins with a struct jobs unless it needs no server; has the other defaults */
	enum jobs_server server;
	const int *repeats;           /* as of struct options */
	struct client_needs needs;    /* the right that it needs, and where if no --tube is given */
	const char *usage, *examples; /* what its help says before and after the options */
	const char *no_operand;       /* NULL: take gets operands; otherwise what to add to the refusal of one */

	/* Take another option or an operand. Return 0, or another number after a message; so does check. */
	int (*take)(void *context, struct options *options, int id);
	/* Check the command line as a whole; may be NULL. */
	int (*check)(void *context, const struct options *options);
	/* Do it. Return the exit status, or -1 after a message. */
	int (*run)(void *context);
};

/* The members options and option_count, from an array. */
#define JOBS_TABLE(array) .options = (array), .option_count = sizeof array / sizeof *(array)

/* Set the defaults of the struct jobs, read the command line, run the command and disconnect. Return the exit status. */
int jobs_command(const struct jobs_command *command, char **arguments);

extern const struct jobs_command command_advance, command_bury, command_cancel, command_forecast, command_history,
    command_kick, command_limit, command_list, command_move, command_pause, command_peek, command_purge, command_put,
    command_resume, command_replay, command_stats, command_token, command_top, command_work;
/* import with --from. */
extern const struct jobs_command command_from;
/* These exist only if the library of calendars is built. */
extern const struct jobs_command command_cron, command_crontab, command_schedule;
/* These speak the protocol of Redis, and exist only if the library for jobs in Redis is built. */
extern const struct jobs_command command_sessions, command_sessions_import;
/* Only if the library for jobs in PostgreSQL is built. */
extern const struct jobs_command command_postgres;
/* These open stores themselves. They exist only if the library of jobs is built. */
extern const struct jobs_command command_backup, command_export, command_fsck, command_import, command_recover,
    command_restore;

/* Read the option's value, which is one of these. Return 0, or OPTIONS_ERROR after a message with the place. */
int jobs_whole(const struct options *options, const char *name, uint64_t least, uint64_t most, uint64_t *number,
    const char *expected);
int jobs_version(const struct options *options, uint64_t *version);
int jobs_duration(const struct options *options, const char *name, uint64_t least, uint64_t most, uint64_t *ns);
int jobs_time(const struct options *options, const char *name, uint64_t *ns);
int jobs_time_from(const struct options *options, const char *name, uint64_t *ns);

/* Write a member of JSON: "name":"2026-12-01T09:00:00.000Z", or "key":"mail" of a percent-encoded key. */
void jobs_write_time(FILE *out, const char *name, uint64_t unix_ns);
void jobs_write_key(FILE *out, const char *key);

int jobs_tube(struct jobs *jobs, const struct options *options);
int jobs_id(const struct options *options, uint64_t *id);
int jobs_key(const struct options *options, const char *name, char text[JOBS_KEY_TEXT]);

/* ---- token.c: take the token of the option, or of the environment. Return 0, or another number after a message. */

int jobs_token(struct jobs *jobs, const struct options *options);
int jobs_token_default(struct jobs *jobs);

/* Connect a client to the server, with the token. Return 0, or -1 after a message. */
int jobs_open(struct jobs *jobs, struct client *client);

/* Connect, and use the tube if one was given. Return 0, or -1 after a message. */
int jobs_connect(struct jobs *jobs);
int jobs_use_tube(struct jobs *jobs);

/* Ask whether the server knows weekwheeld's own verbs. Return 1, 0, or -1 after a message. */
int jobs_has_own_verbs(struct jobs *jobs);

/* Add " name=value" to a command's text in text[0 .. room-1], or nothing for NULL and "". */
void jobs_add(char *text, size_t room, const char *name, const char *value);
void jobs_add_number(char *text, size_t room, const char *name, uint64_t number);

/* Warn of --at with a time that is over: it is taken, but seldom meant. */
void jobs_warn_of_past(uint64_t at);

/* Say when a job is due, and end the line: "due now", or "due" with the time and how long until then. */
void jobs_print_due(uint64_t due, uint64_t left);

/* Return "s", or "" for one. */
const char *jobs_plural(uint64_t count);

/* Decode a key for a reader; '?' stands for what is not printable. Returns out. */
const char *jobs_key_show(const char *encoded, char *out, size_t room);

#endif
