#ifndef TOOLS_WEEKWHEEL_JOBS_CLIENT_H
#define TOOLS_WEEKWHEEL_JOBS_CLIENT_H

/*
 * A connection to a server that speaks beanstalkd's protocol. Commands are queued, and sent together; answers come in
 * the order of the commands. Nothing here waits for ever, and nothing that the server sends is believed: lines and
 * bodies have bounds.
 *
 * Two ways to use it: client_ask and its parts, which wait up to the timeout and say what went wrong; or client_push,
 * client_pull and client_take beside a poll() of one's own, which never wait and say nothing.
 */

#include <stddef.h>
#include <stdint.h>

#define CLIENT_DEFAULT_SERVER "127.0.0.1:11300"
#define CLIENT_DEFAULT_TIMEOUT_MS 10000

/* The longest line and the longest body of an answer. */
enum { CLIENT_LINE = 1024, CLIENT_WORDS = 6 };
#define CLIENT_BODY_MAX ((size_t)1 << 30)

struct client_buffer {
	char *bytes;
	size_t start, end, room; /* bytes[start .. end-1] are still to be dealt with */
};

struct client {
	int fd;             /* -1: not connected */
	const char *server; /* as it was given */
	int timeout_ms;
	struct client_buffer in, out;
};

struct reply {
	char line[CLIENT_LINE];
	const char *word[CLIENT_WORDS]; /* of the line; "" behind the last */
	size_t words;
	const char *body; /* NULL: the answer has none; valid until the client is used again */
	size_t body_size;
};

/* Connect to HOST:PORT, [IPv6]:PORT or unix:PATH. Return 0, or -1 after a message. */
int client_open(struct client *client, const char *server, int timeout_ms);
void client_close(struct client *client);

/* Queue a line, whose end is added, or a body, whose end is, too; before that there may be other bytes of it. */
void client_line(struct client *client, const char *format, ...) __attribute__((format(printf, 2, 3)));
void client_bytes(struct client *client, const void *bytes, size_t size);
void client_body(struct client *client, const void *body, size_t size);

/* Send all that is queued; what arrives meanwhile is kept. Return 0, or -1 after a message. */
int client_flush(struct client *client);

/* Wait for the next answer. Return 0, or -1 after a message. */
int client_read(struct client *client, struct reply *reply);

/* Queue a line, send it, and wait for its answer. Return 0, or -1 after a message. */
int client_ask(struct client *client, struct reply *reply, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Send what can be sent, or read what is there, without waiting. Return 0, or -1 where the connection is lost. */
int client_push(struct client *client);
int client_pull(struct client *client);

/* Take an answer out of what was read: 1, or 0 if none is complete, or -1 if it is none of this protocol. */
int client_take(struct client *client, struct reply *reply);

/* Whether there is something to send. */
int client_pending(const struct client *client);

/* Return 1 if the answer is this word. */
int reply_is(const struct reply *reply, const char *word);

/*
 * Say that `what` ("put", "job 12") was answered by something else than hoped for: what that means and what can be
 * done. Returns -1.
 */
int reply_refused(const struct client *client, const struct reply *reply, const char *what);

/* Store the number in the word in *number and return 0; or return -1 after a message if it is none. */
int reply_number(const struct client *client, const struct reply *reply, size_t word, uint64_t *number);

#endif
