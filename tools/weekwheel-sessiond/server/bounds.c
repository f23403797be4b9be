/* Bounds the memory of clients: see bounds.h. */
#include "tools/weekwheel-sessiond/server/bounds.h"

#include "tools/service/state/state.h"
#include "tools/weekwheel-sessiond/server/server.h"

/* The shortest time between two notices to other loops, in ms. */
enum { NOTIFY_MS = 10 };
/*
 * The largest part of all that one client's answers may take at once: more would make others wait. It may take this
 * part of the remaining patterns, and a few in any case.
 */
enum { PARTS = 8, PATTERNS_FREE = 8 };

void bounds_count(struct conn *conn, size_t bytes)
{
	conn->kept += bytes;
	buffer_count(bytes);
}

void bounds_count_out(struct conn *conn, size_t bytes)
{
	conn->kept -= bytes;
	buffer_count_out(bytes);
}

size_t bounds_size(const struct conn *conn)
{
	return conn->life == CONN_LEAVING
	           ? 0
	           : buffer_takes(&conn->in) + resp_takes(&conn->parser) + stream_takes(&conn->stream) +
	                 buffer_takes(&conn->aside) + buffer_takes(&conn->queued) + conn->kept;
}

/* Return what the loop's clients have, and the largest of them. */
static size_t look_at(const struct loop *loop, size_t *most)
{
	const struct conn *conn;
	size_t all = 0;

	*most = 0;
	LIST_FOREACH(conn, &loop->conns, next)
	{
		size_t size = bounds_size(conn);
		all += size;
		if (size > *most)
			*most = size;
	}
	return all;
}

/* Another loop may have more. */
static void notify_others(struct loop *loop)
{
	struct sessiond *server = loop->server;
	uint64_t now = uv_now(&loop->uv);

	if (now < loop->notified_bounds + NOTIFY_MS)
		return;
	loop->notified_bounds = now;
	for (unsigned i = 0; i < server->loop_count; i++)
		if (i != loop->number)
			uv_async_send(&server->loop[i].wake);
}

int bounds_are_passed(const struct sessiond *server, size_t more)
{
	int are_passed = buffer_all() + more > server->settings->max_buffers;

	if (are_passed)
		state_seen("buffers",
		    "what clients have sent and not read takes more than --max-buffers: those with the most of it are closed");
	return are_passed;
}

int bounds_have_share(const struct sessiond *server, size_t bytes)
{
	if (bytes <= server->settings->max_buffers / PARTS)
		return 1;
	state_seen("answers",
	    "a command, or a transaction, is answered with more than an eighth of --max-buffers: its client is closed");
	return 0;
}

int bounds_have_pattern(const struct sessiond *server, uint64_t all, uint64_t own)
{
	uint64_t most = server->settings->patterns_max;

	if (own < PATTERNS_FREE || (all < most && own + 1 <= (most - all) / PARTS))
		return 1;
	state_seen("patterns", "there are too many patterns for --max-patterns: clients with many get no more");
	return 0;
}

int bounds_find_large(struct loop *loop, size_t *least)
{
	const struct sessiond *server = loop->server;
	size_t most;
	size_t all;

	if (!bounds_are_passed(server, 0))
		return 0;
	all = look_at(loop, &most);
	if (most == 0 || all < server->settings->max_buffers / server->loop_count) {
		notify_others(loop);
		return 0;
	}
	/* Thousands may have as much: searching for the largest each time would take long. */
	*least = most - most / 4;
	return 1;
}
