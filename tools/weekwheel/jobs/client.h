#ifndef TOOLS_WEEKWHEEL_JOBS_CLIENT_H
#define TOOLS_WEEKWHEEL_JOBS_CLIENT_H

/*
 * A connection to a server that speaks beanstalkd's protocol. Commands are queued and sent together. Answers arrive in
 * the order of the commands. Every wait ends by a timeout, and lines and bodies from the server have bounds.
 *
 * There are two ways to use it. client_ask and its parts wait up to the timeout and report errors. client_push,
 * client_pull and client_take are for a caller with a poll() of its own: they never wait and report nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/common/tls/channel.h"

#define CLIENT_DEFAULT_SERVER "127.0.0.1:11300"
#define CLIENT_DEFAULT_TIMEOUT_MS 10000

/* The longest line and the longest body of an answer. */
enum { CLIENT_LINE = 1024, CLIENT_WORDS = 6 };
#define CLIENT_BODY_MAX ((size_t)1 << 30)

/* The right that a token needs for what is asked, and in which tubes: "work", "the tube mail". NULL: not said. */
struct client_needs {
	const char *right, *where;
};

struct client {
	struct tls_channel channel;
	size_t taken;       /* bytes in channel.in of the answer that client_take found last */
	const char *server; /* as it was given */
	int timeout_ms;
	const char *trust; /* how the user says which certificates are trusted; NULL: --tls-ca */
	enum { CLIENT_NO_TOKEN, CLIENT_TOKEN_REFUSED, CLIENT_TOKEN_KNOWN } token;
	int is_misled;             /* the files for TLS cannot be used: another try is of no use */
	struct client_needs needs; /* what the server's DENIED then means */
};

struct reply {
	char line[CLIENT_LINE];
	const char *word[CLIENT_WORDS]; /* of the line; "" after the last */
	size_t words;
	const char *body; /* NULL: the answer has none; valid until the client is used again */
	size_t body_size;
	const char *headers; /* of a job, before its body, after client_take_headers */
	size_t headers_size; /* 0: none */
};

/*
 * Connect to an address of dial.h; the files are for tls:, the token is "" if there is none, and the remedy is what to do if
 * nobody answers, NULL for a weekwheeld. Return 0, or -1 after a message.
 */
int client_open(struct client *client, const char *server, int timeout_ms, const struct tls_files *files,
    const char *token, const char *remedy);

/* client_open's last part: send the token, unless it is "". Return 0, or -1 after a message. See token.c. */
int client_login(struct client *client, const char *token);
void client_close(struct client *client);

/* client_open's parts that connect, and begin TLS if the address says so. Return 0, or -1 after a message: connect.c. */
int client_connect(struct client *client, const char *remedy);
int client_secure(struct client *client, const struct tls_files *files);

/* Queue a line without its end, a part of a body, or the last part of a body without its end. The ends are added. */
void client_line(struct client *client, const char *format, ...) __attribute__((format(printf, 2, 3)));
void client_bytes(struct client *client, const void *bytes, size_t size);
void client_body(struct client *client, const void *body, size_t size);

/* Send everything queued and keep what arrives meanwhile. Return 0, or -1 after a message. */
int client_flush(struct client *client);

/* Wait for the next answer. Return 0, or -1 after a message. */
int client_read(struct client *client, struct reply *reply);

/* For answers of another protocol: wait until more bytes are in channel.in. Return 0, or -1 after a message. */
int client_await(struct client *client);

/* Queue a line, send it, and wait for its answer. Return 0, or -1 after a message. */
int client_ask(struct client *client, struct reply *reply, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, but any answer other than `word` is an error, which reply_refused reports for `what`. */
int client_expect(struct client *client, struct reply *reply, const char *word, const char *what, const char *format,
    ...) __attribute__((format(printf, 5, 6)));

/* Ask for the headers of jobs, which beanstalkd and older servers do not know. Return 0, or -1 after a message. */
int client_take_headers(struct client *client);

/* Take an answer out of what was read: 1, 0 if none is complete, or -1 if it does not belong to this protocol. */
int client_take(struct client *client, struct reply *reply);

/* Return 1 if the answer is this word. */
int reply_is(const struct reply *reply, const char *word);

/* Return what an answer other than the expected one means and what the user can do, or NULL if it is no known one. */
const char *reply_meaning(const struct reply *reply);

/* Report that `what` ("put", "job 12") got another answer than expected, and what the user can do. Returns -1. */
int reply_refused(const struct client *client, const struct reply *reply, const char *what);

/* Store the number in the word in *number and return 0. Return -1 after a message if it is not a number. */
int reply_number(const struct client *client, const struct reply *reply, size_t word, uint64_t *number);

#endif
