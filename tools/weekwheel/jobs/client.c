/* Sends lines and bodies to the server, and reads and explains its answers. See client.h. */
#include "tools/weekwheel/jobs/client.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/options.h"
#include "weekwheel/jobs.h"

/* Append to what is queued, or end the program. */
static void queue(struct client *client, const void *bytes, size_t size)
{
	if (buffer_append(&client->channel.out, bytes, size))
		memory_exhausted();
}

int client_open(struct client *client, const char *server, int timeout_ms, const struct tls_files *files,
    const char *token, const char *remedy)
{
	*client = (struct client){.channel.fd = -1, .server = server, .timeout_ms = timeout_ms};
	return client_connect(client, remedy) || client_secure(client, files) || client_login(client, token) ? -1 : 0;
}

void client_close(struct client *client)
{
	channel_close(&client->channel);
	client->taken = 0;
}

static void queue_line(struct client *client, const char *format, va_list arguments)
{
	struct buffer *out = &client->channel.out;
	va_list again;
	int length;

	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (length < 0 || buffer_reserve(out, (size_t)length + 1))
		memory_exhausted();
	vsnprintf(out->data + out->size, (size_t)length + 1, format, arguments);
	out->size += (size_t)length;
	queue(client, "\r\n", 2);
}

void client_line(struct client *client, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	queue_line(client, format, arguments);
	va_end(arguments);
}

void client_bytes(struct client *client, const void *bytes, size_t size)
{
	queue(client, bytes, size);
}

void client_body(struct client *client, const void *body, size_t size)
{
	queue(client, body, size);
	queue(client, "\r\n", 2);
}

static void split(struct reply *reply)
{
	char *at = reply->line;

	for (size_t i = 0; i < CLIENT_WORDS; i++)
		reply->word[i] = "";
	reply->words = 0;
	while (*at && reply->words < CLIENT_WORDS) {
		reply->word[reply->words++] = at;
		at += strcspn(at, " ");
		if (*at)
			*at++ = 0;
	}
}

/* Store the sizes of what follows the line. Return 1, 0 for an answer without a body, or -1. */
static int body_size(struct reply *reply)
{
	uint64_t number, headers = 0;
	size_t word = 0;

	if (reply_is(reply, "OK"))
		word = 1;
	else if (reply_is(reply, "FOUND") || reply_is(reply, "RESERVED"))
		word = 2;
	/* RESERVED alone has no body: it refuses a command since the job is reserved. */
	if (word == 0 || reply->words == 1)
		return 0;
	if (reply->words != word + 1 && (word == 1 || reply->words != word + 2))
		return -1;
	if (options_whole(reply->word[word], 0, CLIENT_BODY_MAX, &number) ||
	    (reply->words == word + 2 && options_whole(reply->word[word + 1], 0,
	                                     number < WW_JOB_HEADERS_MAX ? number : WW_JOB_HEADERS_MAX, &headers)))
		return -1;
	reply->headers_size = (size_t)headers;
	reply->body_size = (size_t)(number - headers);
	return 1;
}

int client_take(struct client *client, struct reply *reply)
{
	struct buffer *in = &client->channel.in;
	int has_body, line;
	size_t length;

	buffer_drop(in, client->taken);
	client->taken = 0;
	line = channel_line(&client->channel, CLIENT_LINE);
	if (line <= 0)
		return line;
	length = (size_t)line;
	memcpy(reply->line, in->data, length - 2);
	reply->line[length - 2] = 0;
	split(reply);
	reply->body = NULL;
	reply->headers = NULL;
	reply->body_size = reply->headers_size = 0;
	has_body = body_size(reply);
	if (has_body < 0)
		return -1;
	if (has_body) {
		if (in->size - length < reply->headers_size + reply->body_size + 2)
			return 0;
		reply->headers = in->data + length;
		reply->body = reply->headers + reply->headers_size;
		length += reply->headers_size + reply->body_size + 2;
		if (memcmp(in->data + length - 2, "\r\n", 2) != 0)
			return -1;
	}
	client->taken = length;
	return 1;
}

static int lost(const struct client *client)
{
	const char *why = errno ? strerror(errno) : "the server closed it";

	if (errno == ENOMEM)
		memory_exhausted();
	/* One who speaks no TLS is not answered at all. */
	if (client->taken == 0 && client->channel.in.size == 0 && strncmp(client->server, "tls:", 4) != 0 &&
	    *client->server != '/')
		return message_error(
		    "%s: the connection was lost: %s; is the server still running? If it listens with TLS there, write tls:%s",
		    client->server, why, client->server);
	return message_error("%s: the connection was lost: %s; is the server still running?", client->server, why);
}

/* Wait up to the deadline until the connection is ready. Return the events, or -1 after a message. */
static int await(const struct client *client, short events, int64_t deadline)
{
	struct pollfd one = {client->channel.fd, events, 0};

	for (;;) {
		int64_t left = deadline - time_ms();
		int ready = poll(&one, 1, left > 0 ? (int)left : 0);

		if (ready > 0)
			return one.revents;
		if (ready < 0 && errno != EINTR)
			return lost(client);
		if (ready == 0)
			return message_error(
			    "%s: no answer for %.3g s; check the server, or wait longer with --timeout", client->server,
			    client->timeout_ms / 1000.0);
	}
}

static int no_answer(const struct client *client)
{
	return message_error(
	    "%s: the answer is not beanstalkd's protocol; is this the port of another server?", client->server);
}

/* Read answers while sending: a server that cannot send its answers stops reading. */
int client_flush(struct client *client)
{
	while (channel_is_pending(&client->channel)) {
		int events;

		if (channel_push(&client->channel))
			return lost(client);
		if (!channel_is_pending(&client->channel))
			break;
		events = await(client, POLLIN | POLLOUT, time_ms() + client->timeout_ms);
		if (events < 0)
			return -1;
		if ((events & (POLLIN | POLLHUP)) && channel_pull(&client->channel))
			return lost(client);
		if (client->channel.in.size > CLIENT_BODY_MAX)
			return no_answer(client);
	}
	return 0;
}

int client_await(struct client *client)
{
	size_t before = client->channel.in.size;

	/* With TLS what comes may have no byte for us. */
	while (client->channel.in.size == before) {
		if (await(client, POLLIN, time_ms() + client->timeout_ms) < 0)
			return -1;
		if (channel_pull(&client->channel))
			return lost(client);
	}
	return 0;
}

int client_read(struct client *client, struct reply *reply)
{
	int64_t deadline = time_ms() + client->timeout_ms;
	int taken;

	while ((taken = client_take(client, reply)) == 0) {
		size_t before = client->channel.in.size;

		if (await(client, POLLIN, deadline) < 0)
			return -1;
		if (channel_pull(&client->channel))
			return lost(client);
		/* A long body may take longer than the timeout while bytes keep coming. */
		if (client->channel.in.size > before)
			deadline = time_ms() + client->timeout_ms;
	}
	return taken < 0 ? no_answer(client) : 0;
}

int client_ask(struct client *client, struct reply *reply, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	queue_line(client, format, arguments);
	va_end(arguments);
	return client_flush(client) || client_read(client, reply) ? -1 : 0;
}

int client_take_headers(struct client *client)
{
	struct reply reply;

	return client_ask(client, &reply, "headers");
}

int client_expect(
    struct client *client, struct reply *reply, const char *word, const char *what, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	queue_line(client, format, arguments);
	va_end(arguments);
	if (client_flush(client) || client_read(client, reply))
		return -1;
	return reply_is(reply, word) ? 0 : reply_refused(client, reply, what);
}

/* ---- What the answers mean to a person */

static const struct {
	const char *word, *meaning;
} refusals[] = {
    {"NOT_FOUND", "there is no such job, or another connection has it reserved"},
    {"STALE", "it has another version now; look at it again with 'weekwheel list --json'"},
    {"RESERVED", "a worker runs it; wait until that ends, or cancel it"},
    {"BURIED", "it is buried; 'weekwheel kick' brings it back"},
    {"DRAINING", "the server takes no new jobs; try again after its restart"},
    {"JOB_TOO_BIG",
        "the body is larger than the server allows; make it smaller, or start the server with a larger limit"},
    {"OUT_OF_MEMORY", "the server or its Redis is out of memory, or its disk is full; its log and /readyz say which"},
    {"INTERNAL_ERROR", "the server could not write or read it, or its Redis does not answer; see its log"},
    {"UNKNOWN_COMMAND", "this server does not know the command; it may be beanstalkd, or an older weekwheeld"},
    {"BAD_FORMAT",
        "the server refuses its form: in a tube that it delivers over HTTP a job has to be a request, see --url; "
        "or the server has another version than this program"},
    {"NO_WEIGHTS",
        "groups in Redis have no weights; leave it out, or start the server with a store of its own or in PostgreSQL"},
    {"NO_EXPIRY",
        "jobs in Redis do not expire; leave --expire out, or start the server with a store of its own (--data) or "
        "in PostgreSQL"},
    {"NO_CODES",
        "jobs in Redis have no code; leave --code out, or start the server with a store of its own (--data) or in "
        "PostgreSQL"},
    {"NO_THEN",
        "jobs in Redis have no follow-ups; leave --then out, or start the server with a store of its own (--data) or in "
        "PostgreSQL"},
    {"EXPECTED_CRLF", "the server missed the end of the body; it may have another version than this program"},
};

int reply_is(const struct reply *reply, const char *word)
{
	return strcmp(reply->word[0], word) == 0;
}

static int denied(const struct client *client, const char *what)
{
	const struct client_needs *needs = &client->needs;

	if (client->token == CLIENT_NO_TOKEN)
		return message_error(
		    "%s: the server wants a token: give it with --token-file or WEEKWHEEL_TOKEN (DENIED)", what);
	if (client->token == CLIENT_TOKEN_REFUSED)
		return message_error("%s: the server does not know it: its line has to be in the server's --auth-file, "
		                     "which SIGHUP reads again (DENIED)",
		    what);
	return message_error("%s: the token is known, but does not grant this: it needs the right %s in %s; the "
	                     "server's --auth-file says what it has (DENIED)",
	    what, needs->right ? needs->right : "to do it", needs->where ? needs->where : "the tube");
}

const char *reply_meaning(const struct reply *reply)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
		if (reply_is(reply, refusals[i].word))
			return refusals[i].meaning;
	return NULL;
}

int reply_refused(const struct client *client, const struct reply *reply, const char *what)
{
	const char *meaning = reply_meaning(reply);
	char excerpt[80];

	if (reply_is(reply, "DENIED"))
		return denied(client, what);
	if (meaning)
		return message_error("%s: %s (%s)", what, meaning, reply->word[0]);
	return message_error("%s: %s answered %s, which is not expected; is this the port of another server?", what,
	    client->server, message_excerpt(excerpt, sizeof excerpt, reply->word[0], strlen(reply->word[0])));
}

int reply_number(const struct client *client, const struct reply *reply, size_t word, uint64_t *number)
{
	if (word < reply->words && options_whole(reply->word[word], 0, UINT64_MAX, number) == 0)
		return 0;
	return message_error(
	    "%s: the server's %s lacks a number; has it another version?", client->server, reply->word[0]);
}
