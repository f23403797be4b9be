/* Passes bytes on between two sockets: see relay.h. */
#include "tools/service/net/relay.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/service/net/stream.h"

enum { STALLED_MS = 30000 };

struct relay {
	LIST_ENTRY(relay) next;
	struct relays *relays;
	struct stream outer; /* the client's */
	struct stream inner; /* the other one, in clear */
	uv_timer_t stalled;  /* runs while the last bytes wait for the client, or with TLS any */
	int is_half;         /* the client sends no more */
	int is_over;         /* close it when all is written */
	int is_closed;
	int handles; /* not closed yet */
};

/* ---- The end */

static void let_go(struct relay *relay)
{
	if (--relay->handles == 0)
		free(relay);
}

static void on_gone(struct stream *stream)
{
	let_go(stream->owner);
}

static void on_closed(uv_handle_t *handle)
{
	let_go(handle->data);
}

static void relay_close(struct relay *relay)
{
	if (relay->is_closed)
		return;
	relay->is_closed = 1;
	relay->relays->count--;
	LIST_REMOVE(relay, next);
	if (relay->outer.fd >= 0)
		stream_close(&relay->outer, on_gone);
	if (relay->inner.fd >= 0)
		stream_close(&relay->inner, on_gone);
	uv_close((uv_handle_t *)&relay->stalled, on_closed);
}

static void on_stalled(uv_timer_t *timer)
{
	relay_close(timer->data);
}

/* ---- Bytes */

static void watch_client(struct relay *relay)
{
	if (stream_unsent(&relay->outer) == 0 || !(relay->outer.tls || relay->is_over))
		uv_timer_stop(&relay->stalled);
	else if (!uv_is_active((uv_handle_t *)&relay->stalled))
		uv_timer_start(&relay->stalled, on_stalled, STALLED_MS, 0);
}

/* Send what waits, and read from each side while nothing waits on the other. */
static void settle(struct relay *relay)
{
	struct stream *outer = &relay->outer;
	struct stream *inner = &relay->inner;
	int is_read;

	if (stream_send(outer) < 0 || (relay->is_over && !stream_is_unsent(outer))) {
		relay_close(relay);
		return;
	}
	/* The other side may have answered and closed its end before it has read all: the answer is still there. */
	if (stream_send(inner) < 0) {
		buffer_free(&inner->out);
		relay->is_half = 1;
	}
	/* The client may still wait for its answer. */
	if (relay->is_half && stream_unsent(inner) == 0)
		(void)shutdown(inner->fd, SHUT_WR);
	watch_client(relay);
	is_read = !relay->is_over && !relay->is_half && stream_unsent(inner) == 0;
	stream_wait(outer, (stream_is_unsent(outer) ? UV_WRITABLE : 0) | (is_read ? UV_READABLE : 0));
	is_read = !relay->is_over && stream_unsent(outer) == 0;
	stream_wait(inner, (stream_is_unsent(inner) ? UV_WRITABLE : 0) | (is_read ? UV_READABLE : 0));
}

/* Pass on what has come from one side. Returns what stream_read did last. */
static ssize_t pass(struct stream *from, struct stream *to)
{
	struct relay *relay = from->owner;
	ssize_t got;

	do {
		got = stream_read(from, relay->relays->input, RELAY_CHUNK);
		if (got > 0 && buffer_append(&to->out, relay->relays->input, (size_t)got) != 0)
			got = STREAM_LOST;
	} while (got > 0 && from->is_fed);
	return got;
}

static void outer_came(struct stream *outer, int events)
{
	struct relay *relay = outer->owner;
	ssize_t got = events & UV_READABLE ? pass(outer, &relay->inner) : 0;

	if (got == STREAM_ENDED || got == STREAM_SHUT)
		relay->is_half = 1;
	relay->is_over |=
	    got == STREAM_LOST || got == STREAM_BROKEN || (relay->is_half && outer->tls && !tls_is_ready(outer->tls));
	settle(relay);
}

static void inner_came(struct stream *inner, int events)
{
	struct relay *relay = inner->owner;

	relay->is_over |= events & UV_READABLE && pass(inner, &relay->outer) < 0;
	settle(relay);
}

/* ---- The beginning */

/* Returns 0, or -1 if the loop has no room: then the descriptor is closed. */
static int open_end(struct relay *relay, struct stream *stream, int fd, void (*came)(struct stream *stream, int events))
{
	if (stream_open(stream, relay->relays->loop, fd, came, relay) == 0) {
		relay->handles++;
		return 0;
	}
	(void)close(fd);
	return -1;
}

/* It has both descriptors, and closes them if it fails. */
static int set_up(struct relay *relay, int outer, int inner, int is_tls)
{
	struct relays *relays = relay->relays;
	int is_bad;

	(void)uv_timer_init(relays->loop, &relay->stalled);
	relay->stalled.data = relay;
	relay->handles = 1;
	LIST_INSERT_HEAD(&relays->all, relay, next);
	relays->count++;
	is_bad = open_end(relay, &relay->outer, outer, outer_came) != 0;
	is_bad |= open_end(relay, &relay->inner, inner, inner_came) != 0;
	if (!is_bad && (!is_tls || stream_secure(&relay->outer, relays->certificate, relays->shakes) == 0)) {
		settle(relay);
		return 0;
	}
	relay_close(relay);
	return -1;
}

int relay_join(struct relays *relays, int outer, int inner)
{
	struct relay *relay = calloc(1, sizeof *relay);

	if (!relay) {
		(void)close(outer);
		(void)close(inner);
		return -1;
	}
	relay->relays = relays;
	return set_up(relay, outer, inner, 0);
}

int relay_begin(struct relays *relays, int fd)
{
	struct relay *relay = calloc(1, sizeof *relay);
	int ends[2];

	if (!relay || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
		(void)close(fd);
		free(relay);
		return -1;
	}
	relay->relays = relays;
	if (set_up(relay, fd, ends[0], 1) != 0) {
		(void)close(ends[1]);
		return -1;
	}
	return ends[1];
}

void relay_stop(struct relays *relays)
{
	struct relay *relay;

	while ((relay = LIST_FIRST(&relays->all)) != NULL)
		relay_close(relay);
}
