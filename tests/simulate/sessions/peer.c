/* The server that is told what expires: see peer.h. It speaks as much of beanstalkd's protocol as the courier does. */
#include "tests/simulate/sessions/peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulate/sessions/book.h"
#include "tests/simulate/system.h"
#include "tests/simulate/wire.h"
#include "tests/simulate/world.h"

enum { LINE = 256, BODY = 200 };

static struct {
	struct wire *wire; /* NULL: nobody is connected */
	char *in;
	size_t in_size, in_room;
	uint64_t jobs;
	int is_well; /* for ever */
} peer;

/* Only its address is used. */
static char stands_for_it;

static struct client *as_client(void)
{
	return (struct client *)(void *)&stands_for_it;
}

int peer_is(const struct client *client)
{
	return client == as_client();
}

void peer_begin(void)
{
	peer.wire = NULL;
	peer.in_size = 0;
	peer.jobs = 0;
	peer.is_well = 0;
}

void peer_end(void)
{
	free(peer.in);
	peer.in = NULL;
	peer.in_room = 0;
}

void peer_drain(void)
{
	peer.is_well = 1;
}

void peer_lost(void)
{
	peer.wire = NULL;
	peer.in_size = 0;
}

/* ---- Its answers */

/* The text of a member of an object. */
static void member(const char *body, const char *name, char text[64])
{
	char sought[64];
	const char *at;

	(void)snprintf(sought, sizeof sought, "\"%s\":\"", name);
	at = strstr(body, sought);
	at = at ? at + strlen(sought) : "?";
	(void)snprintf(text, 64, "%.*s", (int)strcspn(at, "\" "), at);
}

static void hear_end(const char *bytes, size_t size)
{
	char body[BODY], key[64], value[64];

	(void)snprintf(body, sizeof body, "%.*s", (int)size, bytes);
	member(body, "key", key);
	member(body, "value", value);
	book_hears_end(key, value);
}

static void answer(const char *text)
{
	if (!peer.wire)
		return;
	world_trace_bytes("the peer answers", 0, text, strlen(text));
	(void)wire_send(peer.wire, text, strlen(text));
}

static void put(const char *bytes, size_t size)
{
	char text[LINE];

	if (!peer.is_well && world_chance(50)) {
		answer(world_chance(500) ? "DRAINING\r\n" : "OUT_OF_MEMORY\r\n");
		return;
	}
	hear_end(bytes, size);
	/* It has the job, and who put it never hears so. */
	if (!peer.is_well && world_chance(30)) {
		wire_break(peer.wire);
		peer_lost();
		return;
	}
	(void)snprintf(text, sizeof text, "INSERTED %" PRIu64 "\r\n", ++peer.jobs);
	answer(text);
}

/* Take a whole command off what came. Returns its size, or 0: it is not whole. */
static size_t take_command(void)
{
	const char *end = memmem(peer.in, peer.in_size, "\r\n", 2);
	size_t size, body;
	char line[LINE];

	if (!end)
		return 0;
	size = (size_t)(end - peer.in) + 2;
	(void)snprintf(line, sizeof line, "%.*s", (int)(size - 2), peer.in);
	if (strncmp(line, "put ", 4) == 0) {
		body = strtoull(strrchr(line, ' '), NULL, 10);
		if (peer.in_size < size + body + 2)
			return 0;
		put(peer.in + size, body);
		return size + body + 2;
	}
	answer(strncmp(line, "use ", 4) == 0 ? "USING ends\r\n" : "UNKNOWN_COMMAND\r\n");
	return size;
}

void peer_heard(const char *bytes, size_t size)
{
	size_t taken;

	if (!peer.wire)
		return;
	if (peer.in_size + size > peer.in_room) {
		peer.in_room = 2 * (peer.in_size + size);
		peer.in = realloc(peer.in, peer.in_room);
	}
	memcpy(peer.in + peer.in_size, bytes, size);
	peer.in_size += size;
	while (peer.in_size && (taken = take_command()) > 0) {
		if (!peer.wire)
			return;
		peer.in_size -= taken;
		memmove(peer.in, peer.in + taken, peer.in_size);
	}
}

/* ---- In place of that of tools/common */

int __wrap_dial_connect(const char *server, int timeout_ms, const char **reason);
int __wrap_dial_connect(const char *server, int timeout_ms, const char **reason)
{
	(void)server;
	*reason = "the peer is away";
	if (!peer.is_well && world_chance(200)) {
		world_sleep(world_below((uint64_t)timeout_ms * SIM_MS));
		return -1;
	}
	world_sleep(world_between(50 * SIM_US, 2 * SIM_MS));
	if (world.is_ghost)
		return -1;
	peer_lost();
	peer.wire = wire_dialled(as_client());
	return system_dialled(peer.wire);
}
