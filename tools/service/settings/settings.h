#ifndef TOOLS_SERVICE_SETTINGS_SETTINGS_H
#define TOOLS_SERVICE_SETTINGS_SETTINGS_H

/*
 * The settings of a server, from its command line and a configuration file.
 *
 * A server has a table of its options. Those that every server has are in common.c. A row says where its value goes, so
 * most rows need no code. A default is text, which is read as if somebody had written it.
 *
 * A message names the option, the wrong word, and what is expected instead. The program then ends with status 2, and
 * with 1 for all that fails later: systemd does not start it again after 2, since that would repair nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/common/tls/tls.h"
#include "tools/service/access/tokens.h"

enum { SETTINGS_LISTEN_MAX = 16, SETTINGS_MOST = 64 /* options of a server */ };

/* Of --sync; each server's own words for it have the same order. */
enum settings_sync { SETTINGS_ALWAYS, SETTINGS_INTERVAL, SETTINGS_SYSTEM };

struct setting;
struct settings_server;

/* What every server has. It stands first in the struct of its settings. */
#define SERVICE_SETTINGS                                                                                               \
	const struct settings_server *server;                                                                          \
	const char *listen[SETTINGS_LISTEN_MAX];                                                                       \
	size_t listen_count;                                                                                           \
	const char *unix_path;                                                                                         \
	const char *socket_group; /* of unix_path; NULL: not changed */                                                \
	unsigned socket_mode;                                                                                          \
	const char *http;                            /* NULL: none */                                                  \
	const char *http_hosts[SETTINGS_LISTEN_MAX]; /* names of this server, beside its addresses */                  \
	size_t http_host_count;                                                                                        \
	struct tls_files tls;     /* for addresses that begin with "tls:" */                                           \
	struct tls *certificate;  /* its content at the start */                                                       \
	const char *auth_file;    /* NULL: every client may do everything */                                           \
	int is_http_only;         /* it is for HTTP, and other clients need no token */                                \
	struct tokens *tokens;    /* its content at the start */                                                       \
	int has_password;         /* clients log in, but not by tokens */                                              \
	int is_insecure;          /* other machines may reach an address without TLS or tokens */                      \
	uint64_t max_per_address; /* clients; 0: any */                                                                \
	uint64_t max_buffers;     /* bytes of commands and answers of all clients */                                   \
	int sync;                 /* enum settings_sync */                                                             \
	uint64_t sync_interval;                                                                                        \
	int is_virtual;                                                                                                \
	int is_ahead_given;                         /* the server's own number of them, if no option sets it */        \
	uint64_t ahead;                             /* with virtual clocks: ns that passed before the start */         \
	const struct setting *given[SETTINGS_MOST]; /* those given on the command line or in a file, a bit for each */ \
	size_t given_count

struct service_settings {
	SERVICE_SETTINGS;
};

/* ---- What a server describes */

enum setting_kind {
	SETTING_OWN,  /* `read` takes the value */
	SETTING_LIST, /* `read` gets each of the words between commas */
	SETTING_FLAG, /* an int, which becomes 1 */
	SETTING_TEXT,
	SETTING_SECRET, /* the first line of a file */
	SETTING_WORD,   /* an int: the index in `words` */
	SETTING_WHOLE,  /* these are uint64_t or uint32_t, from least to most */
	SETTING_BYTES,
	SETTING_BYTES_OR_0,
	SETTING_TIME /* ns */
};

struct given {
	const struct setting *setting;
	const char *value; /* NULL: the option takes none */
	int is_first;      /* of the words of a list */
};

struct setting {
	char letter;
	const char *name;
	const char *argument;
	const char *help; /* "%s" is the default */
	const char *preset;
	enum setting_kind kind;
	size_t at; /* in the settings */
	size_t size;
	uint64_t least;
	uint64_t most;
	const char *const *words; /* ended by NULL */
	int repeats;              /* it may be given several times */
	/* Returns 0, -1 after a message, or 1: the program ends now, with status 0. */
	int (*read)(void *settings, const struct given *given);
	const char *needs;  /* another option; NULL: none */
	const char *or_one; /* this one will do, too */
	const char *why;    /* the rest of a sentence that begins with the option's name; NULL: the default one */
};

/* Where a value goes. */
#define SETTING_AT(type, member) .at = offsetof(struct type, member), .size = sizeof((struct type *)0)->member

struct settings_server {
	const char *usage;
	const char *example;
	const char *option;  /* what the message calls a value that is no option */
	const char *operand; /* the option that a word without a name is the value of; NULL: none */
	const char *passes;  /* what would pass unencrypted: "tokens and jobs" */
	const struct setting *table;
	size_t count;
	const struct setting
	    *here; /* options of common.c with another default, need or help; one without a name ends it */
	const char *const *without; /* options of common.c that it does not have, ended by NULL; NULL: it has all */
	/* Returns 0, or -1 after a message. */
	int (*check)(void *settings);
};

/* ---- read.c */

/* Fill the settings, which are zero. Returns 0, or 1 + the status with which the program ends now. */
int service_settings_read(const struct settings_server *server, void *settings, char **arguments);

/* Return 1 if the server has this option at all. */
int settings_knows(const void *settings, const char *name);
/* Count an option as given. */
void settings_give(void *settings, const char *name);

/* These are for the table in common.c. */
int settings_config(void *settings, const struct given *given);
int settings_version(void *settings, const struct given *given);
int settings_help(void *settings, const struct given *given);

/* ---- common.c */

extern const struct setting settings_common[];
extern const size_t settings_common_count;

/* Return 1 if the option was given. */
int settings_has(const void *settings, const char *name);

/*
 * Return 0 if the server may listen there, for its clients or for HTTP, or -1 after a message: clients of other machines
 * need TLS, and a token or a certificate.
 */
struct sockaddr;
int settings_let_in(const void *settings, const struct sockaddr *address, int is_tls, int is_http);

/*
 * Check that these options go together, and that other machines reach nothing that is open to all; read the
 * certificate. Returns 0, or after a message -1, or ADDRESS_LATER if a name is not known yet.
 */
int settings_check_common(struct service_settings *settings);

/* ---- value.c */

/* Report why an option does not go with the others; returns -1. */
int settings_refuse(const char *name, const char *why);

/* Read a value into the settings. Returns what `read` of a setting does. */
int settings_take(void *settings, const struct given *given);

/* Report what was expected instead of the value; returns -1. */
int settings_bad(const struct given *given, const char *expected);

/* The same for a file that the value names, with the reason. */
int settings_bad_file(const struct given *given, const char *expected, const char *reason);

/* Return the index of the value in a list of words, or -1. */
int settings_word(const char *value, const char *const *words);

/* Add the value to a list that has room for `most`. Returns 0, or -1 after a message. */
int settings_add(const struct given *given, const char **list, size_t *count, size_t most);

/* Return zeroed memory for the life of the program, or NULL. */
char *settings_keep(size_t size);

/*
 * Return the text of the file that the value names, or NULL after a message. `what` is expected in it. What is read
 * again later must be a file; otherwise a pipe will do.
 */
char *settings_file(const struct given *given, const char *what, int is_again);

/* Return its first line, or NULL after a message. Warn if others may read the file. */
const char *settings_line(const struct given *given, const char *what);

#endif
