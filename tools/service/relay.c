/* TLS before HTTP: see relay.h. */
#include "tools/service/relay.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/tls/tls.h"
#include "tools/service/certificate.h"

enum { STALLED_MS = 30000 };

struct relay {
	LIST_ENTRY(relay) next;
	struct relays *relays;
	struct tls_link *tls;
	uv_tcp_t outer;
	uv_pipe_t inner;
	uv_timer_t stalled; /* runs while bytes wait for the client */
	unsigned to_outer;  /* writes under way */
	unsigned to_inner;
	struct shake shake;
	uv_shutdown_t ends;
	int is_half; /* the client sends no more */
	int is_over; /* it closes when all is written */
	int is_closed;
	int handles; /* not closed yet */
};

struct passage {
	uv_write_t write;
	struct relay *relay;
	unsigned *under_way;
	char bytes[];
};

static void relay_closed(uv_handle_t *handle)
{
	struct relay *relay = handle->data;

	if (--relay->handles > 0)
		return;
	tls_close(relay->tls);
	free(relay);
}

static void relay_close(struct relay *relay)
{
	if (relay->is_closed)
		return;
	relay->is_closed = 1;
	shake_leave(relay->relays->shakes, &relay->shake);
	LIST_REMOVE(relay, next);
	uv_close((uv_handle_t *)&relay->outer, relay_closed);
	uv_close((uv_handle_t *)&relay->inner, relay_closed);
	uv_close((uv_handle_t *)&relay->stalled, relay_closed);
}

static void relay_stalled(uv_timer_t *timer)
{
	relay_close(timer->data);
}

static void relay_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
	struct relay *relay = handle->data;

	(void)suggested;
	*room = uv_buf_init(relay->relays->input, RELAY_CHUNK);
}

static void outer_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *bytes);
static void inner_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *bytes);

/* Read from each side to the other while nothing waits there. */
static void relay_settle(struct relay *relay)
{
	if (relay->is_closed)
		return;
	if (relay->is_over && relay->to_outer == 0) {
		relay_close(relay);
		return;
	}
	if (relay->to_outer == 0)
		uv_timer_stop(&relay->stalled);
	else if (!uv_is_active((uv_handle_t *)&relay->stalled))
		uv_timer_start(&relay->stalled, relay_stalled, STALLED_MS, 0);
	if (relay->to_inner > 0 || relay->is_over || relay->is_half || relay->shake.is_waiting)
		uv_read_stop((uv_stream_t *)&relay->outer);
	else if (!uv_is_active((uv_handle_t *)&relay->outer))
		(void)uv_read_start((uv_stream_t *)&relay->outer, relay_room, outer_read);
	if (relay->to_outer > 0 || relay->is_over)
		uv_read_stop((uv_stream_t *)&relay->inner);
	else if (!uv_is_active((uv_handle_t *)&relay->inner))
		(void)uv_read_start((uv_stream_t *)&relay->inner, relay_room, inner_read);
}

static void passed(uv_write_t *write, int status)
{
	struct passage *passage = write->data;
	struct relay *relay = passage->relay;

	--*passage->under_way;
	free(passage);
	if (status < 0)
		relay_close(relay);
	else
		relay_settle(relay);
}

/* Room for that many bytes to one side; NULL: the relay is closed, there being no memory. */
static struct passage *passage_make(struct relay *relay, size_t size, unsigned *under_way)
{
	struct passage *passage = malloc(sizeof *passage + size);

	if (!passage) {
		relay_close(relay);
		return NULL;
	}
	passage->write.data = passage;
	passage->relay = relay;
	passage->under_way = under_way;
	return passage;
}

static void pass(struct passage *passage, uv_stream_t *to, size_t size)
{
	uv_buf_t bytes = uv_buf_init(passage->bytes, (unsigned)size);

	++*passage->under_way;
	if (uv_write(&passage->write, to, &bytes, 1, passed) == 0)
		return;
	--*passage->under_way;
	relay_close(passage->relay);
	free(passage);
}

static void half_done(uv_shutdown_t *request, int status)
{
	(void)request;
	(void)status;
}

/* The client sends no more, and may still wait for its answer. */
static void relay_half(struct relay *relay)
{
	if (relay->is_half || relay->is_closed)
		return;
	relay->is_half = 1;
	if (!tls_is_ready(relay->tls) || uv_shutdown(&relay->ends, (uv_stream_t *)&relay->inner, half_done) != 0)
		relay->is_over = 1;
}

/* Send what TLS has for the client. */
static void relay_drain(struct relay *relay)
{
	size_t size = tls_pending(relay->tls);
	struct passage *passage = relay->is_closed || size == 0 ? NULL : passage_make(relay, size, &relay->to_outer);

	if (passage)
		pass(passage, (uv_stream_t *)&relay->outer, tls_drain(relay->tls, passage->bytes, size));
}

/* Decipher what has come, and pass it on. */
static void relay_read(struct relay *relay, int state)
{
	char clear[RELAY_CHUNK];

	while (state == TLS_OK && !relay->is_closed) {
		int got = tls_read(relay->tls, clear, sizeof clear);
		struct passage *passage = got > 0 ? passage_make(relay, (size_t)got, &relay->to_inner) : NULL;

		if (passage) {
			memcpy(passage->bytes, clear, (size_t)got);
			pass(passage, (uv_stream_t *)&relay->inner, (size_t)got);
		} else if (got < 0) {
			state = got;
		} else {
			break;
		}
	}
	relay_drain(relay);
	if (state == TLS_ENDED)
		relay_half(relay);
	else
		relay->is_over |= state != TLS_OK;
	relay_settle(relay);
}

static void relay_shake(struct shake *shake)
{
	relay_read((struct relay *)((char *)shake - offsetof(struct relay, shake)), TLS_OK);
}

static void outer_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *bytes)
{
	struct relay *relay = stream->data;
	int state = size == UV_EOF ? TLS_ENDED : TLS_BROKEN;

	if (size == 0)
		return;
	if (size > 0)
		state = tls_feed(relay->tls, bytes->base, (size_t)size);
	if (state == TLS_OK && !tls_is_ready(relay->tls)) {
		shake_wait(relay->relays->shakes, &relay->shake);
		relay_settle(relay);
	} else {
		relay_read(relay, state);
	}
}

static void inner_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *bytes)
{
	struct relay *relay = stream->data;

	if (size == 0)
		return;
	if (size < 0)
		tls_end(relay->tls);
	relay->is_over |= size < 0 || tls_write(relay->tls, bytes->base, (size_t)size) != TLS_OK;
	relay_drain(relay);
	relay_settle(relay);
}

/* Descriptors that the relay closes from now on become -1. */
static struct relay *relay_make(struct relays *relays, int *outer, int *inner)
{
	struct relay *relay = calloc(1, sizeof *relay);

	if (!relay)
		return NULL;
	relay->relays = relays;
	relay->shake.go_on = relay_shake;
	relay->tls = certificate_open(relays->certificate);
	if (!relay->tls) {
		free(relay);
		return NULL;
	}
	(void)uv_tcp_init(relays->loop, &relay->outer);
	(void)uv_pipe_init(relays->loop, &relay->inner, 0);
	(void)uv_timer_init(relays->loop, &relay->stalled);
	relay->outer.data = relay->inner.data = relay->stalled.data = relay;
	relay->handles = 3;
	LIST_INSERT_HEAD(&relays->all, relay, next);
	if (uv_tcp_open(&relay->outer, *outer) == 0)
		*outer = -1;
	if (uv_pipe_open(&relay->inner, *inner) == 0)
		*inner = -1;
	if (*outer < 0 && *inner < 0)
		return relay;
	relay_close(relay);
	return NULL;
}

int relay_begin(struct relays *relays, int fd)
{
	int ends[3] = {fd, -1, -1};
	struct relay *relay = NULL;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, &ends[1]) == 0)
		relay = relay_make(relays, &ends[0], &ends[1]);
	if (relay) {
		relay_settle(relay);
		return ends[2];
	}
	for (int i = 0; i < 3; i++)
		if (ends[i] >= 0)
			(void)close(ends[i]);
	return -1;
}

void relay_stop(struct relays *relays)
{
	struct relay *relay;

	while ((relay = LIST_FIRST(&relays->all)) != NULL)
		relay_close(relay);
}
