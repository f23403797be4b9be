/*
 * Plays libuv for the server: its loops wait in the simulated world. The sockets that it polls lead to the clients of the
 * simulation. What is ready at the same time comes in any order. Sockets take what they like of what is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/simulate/system.h"
#include "tests/simulate/wire.h"
#include "tests/simulate/world.h"

enum { ACTIVE = 1, CLOSING = 2, CLOSED = 4, HANDLES = 512, IN_FLIGHT = 1 << 18, AT_EOF = -1 };

struct wire {
	struct wire *next;
	struct client *client; /* NULL: it is gone, or was told that the server is */
	int was_accepted;
	int is_open; /* accepted, and not closed */
	int is_over;
	char *in; /* has come to the server */
	size_t in_size, in_room;
	int at_end;                 /* then this: EOF, or an error */
	int is_dropping;            /* the rest of what was sent does not arrive */
	int is_silent;              /* nor of what the server sent */
	uint64_t in_last, out_last; /* when the last of it arrives */
	size_t out_flight;
};

struct packet {
	struct wire *wire;
	size_t size; /* 0: the other end is gone */
	char data[];
};

static uv_loop_t *loop;               /* the server's first one */
static uv_handle_t *handles[HANDLES]; /* of all loops, which wait at this */
static size_t handle_count;
static int is_listening;
static struct wire *wires;
static struct wire *arriving[64];
static size_t arriving_count;
static int pending_signal;
static int was_open;

static void wake(void)
{
	world_wake(handles);
	system_wake();
}

/* ---- The network */

static uint64_t delay(void)
{
	return world_chance(20) ? world_below(SIM_S / 2) : world_between(20 * SIM_US, 2 * SIM_MS);
}

static void to_server(void *context, uint64_t number)
{
	struct packet *packet = context;
	struct wire *wire = packet->wire;

	(void)number;
	wire->is_dropping |= !wire->client && packet->size && world_chance(300);
	if (wire->is_over || wire->is_dropping || !packet->size) {
		if (!packet->size)
			wire->at_end = world_chance(500) ? AT_EOF : ECONNRESET;
		/* Who is not accepted yet is never served. */
		if (!packet->size && !wire->is_open && wire->was_accepted)
			wire->is_over = 1;
		free(packet);
		wake();
		return;
	}
	if (wire->in_size + packet->size > wire->in_room) {
		wire->in_room = 2 * (wire->in_size + packet->size);
		wire->in = realloc(wire->in, wire->in_room);
	}
	memcpy(wire->in + wire->in_size, packet->data, packet->size);
	wire->in_size += packet->size;
	free(packet);
	wake();
}

static void to_client(void *context, uint64_t number)
{
	struct packet *packet = context;
	struct wire *wire = packet->wire;
	struct client *client = wire->client;

	(void)number;
	wire->out_flight -= packet->size;
	if (client && packet->size && wire->is_silent) {
		world_trace("answer gone", 0, 0);
	} else if (client && packet->size) {
		client_heard(client, packet->data, packet->size);
	} else if (client) {
		wire->client = NULL;
		client_lost(client);
	}
	free(packet);
	wake();
}

static void send_packet(struct wire *wire, world_fn *fn, uint64_t *last, const char *bytes, size_t size)
{
	struct packet *packet = malloc(sizeof *packet + size);
	uint64_t arrives = world.now + delay();

	packet->wire = wire;
	packet->size = size;
	if (size)
		memcpy(packet->data, bytes, size);
	*last = arrives > *last ? arrives : *last;
	world_at(*last, fn, packet, 0);
}

/* In pieces. */
static void send_bytes(struct wire *wire, world_fn *fn, uint64_t *last, const char *bytes, size_t size)
{
	while (size) {
		size_t piece = world_chance(700) ? size : world_between(1, size);
		send_packet(wire, fn, last, bytes, piece);
		bytes += piece;
		size -= piece;
	}
}

static void arrive(void *context, uint64_t number)
{
	struct wire *wire = context;

	(void)number;
	if (!is_listening || arriving_count == sizeof arriving / sizeof *arriving) {
		wire->is_over = 1;
		send_packet(wire, to_client, &wire->out_last, NULL, 0);
		return;
	}
	arriving[arriving_count++] = wire;
	wake();
}

int loop_was_open(void)
{
	return was_open;
}

int loop_listens(void)
{
	return is_listening && !world.is_ghost;
}

struct wire *wire_connect(struct client *client)
{
	struct wire *wire;

	if (!loop_listens())
		return NULL;
	wire = calloc(1, sizeof *wire);
	wire->next = wires;
	wires = wire;
	wire->client = client;
	wire->in_last = world.now + delay();
	world_at(wire->in_last, arrive, wire, 0);
	return wire;
}

struct wire *wire_dialled(struct client *client)
{
	struct wire *wire = calloc(1, sizeof *wire);

	wire->next = wires;
	wires = wire;
	wire->client = client;
	wire->was_accepted = wire->is_open = 1;
	return wire;
}

uint64_t wire_send(struct wire *wire, const char *bytes, size_t size)
{
	world_trace_bytes("sent", (uint64_t)(wire->in_last > 0), bytes, size);
	send_bytes(wire, to_server, &wire->in_last, bytes, size);
	return wire->in_last;
}

void wire_cut(struct wire *wire, int is_silent)
{
	wire->client = NULL;
	if (is_silent)
		wire->in_last += world_between(60 * SIM_S, 120 * SIM_S);
	send_packet(wire, to_server, &wire->in_last, NULL, 0);
}

void wire_break(struct wire *wire)
{
	send_packet(wire, to_client, &wire->out_last, NULL, 0);
	send_packet(wire, to_server, &wire->in_last, NULL, 0);
}

int wire_is_over(const struct wire *wire)
{
	return wire->is_over;
}

/* ---- Sockets */

void loop_listen(void)
{
	was_open = 1;
	is_listening = !world.is_ghost;
}

void loop_listen_no_more(void)
{
	is_listening = 0;
	for (size_t i = 0; i < arriving_count; i++) {
		arriving[i]->is_over = 1;
		send_packet(arriving[i], to_client, &arriving[i]->out_last, NULL, 0);
	}
	arriving_count = 0;
}

int loop_has_arrived(void)
{
	return arriving_count > 0;
}

struct wire *wire_accept(void)
{
	struct wire *wire = arriving_count ? arriving[0] : NULL;

	if (!wire) {
		errno = EAGAIN;
		return NULL;
	}
	memmove(arriving, arriving + 1, --arriving_count * sizeof arriving[0]);
	wire->is_open = wire->was_accepted = 1;
	return wire;
}

void wire_close(struct wire *wire)
{
	if (wire->client && !world.is_ghost)
		client_left(wire->client);
	if (!wire->is_over)
		send_packet(wire, to_client, &wire->out_last, NULL, 0);
	wire->is_over = 1;
	wire->is_open = 0;
}

int wire_is_readable(const struct wire *wire)
{
	return wire->in_size > 0 || wire->at_end;
}

int wire_is_writable(const struct wire *wire)
{
	return wire->is_over || world.is_ghost || wire->out_flight <= IN_FLIGHT;
}

ssize_t wire_read(struct wire *wire, void *bytes, size_t room)
{
	size_t size = wire->in_size < room ? wire->in_size : room;
	int end = wire->at_end;

	if (size) {
		memcpy(bytes, wire->in, size);
		wire->in_size -= size;
		memmove(wire->in, wire->in + size, wire->in_size);
		return (ssize_t)size;
	}
	errno = end ? end : EAGAIN;
	/* It is seen once. */
	wire->at_end = 0;
	return end == AT_EOF ? 0 : -1;
}

ssize_t wire_write(struct wire *wire, const void *bytes, size_t size)
{
	if (wire->is_over || world.is_ghost) {
		errno = EPIPE;
		return -1;
	}
	if (wire->out_flight > IN_FLIGHT || world_chance(30)) {
		errno = EAGAIN;
		return -1;
	}
	if (world_chance(100))
		size = world_between(1, size);
	wire->out_flight += size;
	send_bytes(wire, to_client, &wire->out_last, bytes, size);
	return (ssize_t)size;
}

/* ---- The server's life */

void loop_signal_server(int number)
{
	pending_signal = number;
	wake();
}

void loop_hang_up(int is_power)
{
	for (struct wire *wire = wires; wire; wire = wire->next) {
		if (wire->is_over)
			continue;
		wire->is_over = 1;
		wire->in_size = 0;
		wire->is_silent = is_power;
		send_packet(wire, to_client, &wire->out_last, NULL, 0);
	}
	is_listening = 0;
	arriving_count = 0;
}

void loop_begin(void)
{
	loop = NULL;
	is_listening = 0;
	arriving_count = handle_count = 0;
	pending_signal = 0;
}

void loop_end_of_server(void)
{
	loop_hang_up(0);
	for (struct wire *wire = wires; wire; wire = wire->next)
		wire->is_open = 0;
	loop_begin();
}

void loop_end_of_run(void)
{
	struct wire *next;

	loop_end_of_server();
	for (struct wire *wire = wires; wire; wire = next) {
		next = wire->next;
		free(wire->in);
		free(wire);
	}
	wires = NULL;
}

/* ---- libuv: handles */

static void init(uv_loop_t *of, uv_handle_t *handle, uv_handle_type type)
{
	handle->loop = of;
	handle->type = type;
	handle->flags = 0;
	handle->u.reserved[0] = NULL;
	if (handle_count == HANDLES)
		abort();
	handles[handle_count++] = handle;
}

static int is_active(const uv_handle_t *handle, uv_handle_type type)
{
	return handle->type == type && (handle->flags & (ACTIVE | CLOSING)) == ACTIVE;
}

int uv_loop_init(uv_loop_t *made)
{
	memset(made, 0, sizeof *made);
	if (loop)
		return 0;
	handle_count = 0;
	was_open = 0;
	loop = made;
	return 0;
}

static size_t count_handles(const uv_loop_t *of)
{
	size_t count = 0;

	for (size_t i = 0; i < handle_count; i++)
		count += handles[i]->loop == of;
	return count;
}

int uv_loop_close(uv_loop_t *closed)
{
	return count_handles(closed) ? UV_EBUSY : 0;
}

void uv_update_time(uv_loop_t *of)
{
	(void)of;
}

uint64_t uv_now(const uv_loop_t *of)
{
	(void)of;
	return world.now / SIM_MS;
}

uint64_t uv_hrtime(void)
{
	return world.now;
}

int uv_is_closing(const uv_handle_t *handle)
{
	return (handle->flags & (CLOSING | CLOSED)) != 0;
}

void uv_close(uv_handle_t *handle, uv_close_cb done)
{
	handle->close_cb = done;
	handle->flags |= CLOSING;
	handle->flags &= ~(unsigned)ACTIVE;
}

void uv_walk(uv_loop_t *of, uv_walk_cb each, void *context)
{
	for (size_t i = 0; i < handle_count; i++)
		if (handles[i]->loop == of)
			each(handles[i], context);
}

static uv_handle_t *head(void *handle)
{
	return handle;
}

#define SIMPLE(name, TYPE)                                                                                             \
	int uv_##name##_init(uv_loop_t *of, uv_##name##_t *name)                                                       \
	{                                                                                                              \
		init(of, head(name), TYPE);                                                                            \
		return 0;                                                                                              \
	}                                                                                                              \
	int uv_##name##_start(uv_##name##_t *name, uv_##name##_cb call)                                                \
	{                                                                                                              \
		name->name##_cb = call;                                                                                \
		name->flags |= ACTIVE;                                                                                 \
		return 0;                                                                                              \
	}                                                                                                              \
	int uv_##name##_stop(uv_##name##_t *name)                                                                      \
	{                                                                                                              \
		name->flags &= ~(unsigned)ACTIVE;                                                                      \
		return 0;                                                                                              \
	}

SIMPLE(prepare, UV_PREPARE)
SIMPLE(check, UV_CHECK)
SIMPLE(idle, UV_IDLE)

/* Where a poll keeps what it waits for; its descriptor has the first of these places. */
enum { EVENTS = 1 };

int uv_poll_init(uv_loop_t *of, uv_poll_t *poll, int fd)
{
	init(of, head(poll), UV_POLL);
	poll->u.fd = fd;
	return 0;
}

int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb call)
{
	poll->u.reserved[EVENTS] = (void *)(uintptr_t)events;
	poll->poll_cb = call;
	poll->flags |= ACTIVE;
	return 0;
}

int uv_poll_stop(uv_poll_t *poll)
{
	poll->flags &= ~(unsigned)ACTIVE;
	return 0;
}

int uv_signal_init(uv_loop_t *of, uv_signal_t *signal)
{
	init(of, head(signal), UV_SIGNAL);
	return 0;
}

int uv_signal_start(uv_signal_t *signal, uv_signal_cb call, int number)
{
	signal->signal_cb = call;
	signal->signum = number;
	signal->flags |= ACTIVE;
	return 0;
}

int uv_async_init(uv_loop_t *of, uv_async_t *async, uv_async_cb call)
{
	init(of, head(async), UV_ASYNC);
	async->async_cb = call;
	async->pending = 0;
	async->flags |= ACTIVE;
	return 0;
}

int uv_async_send(uv_async_t *async)
{
	async->pending = 1;
	wake();
	return 0;
}

int uv_timer_init(uv_loop_t *of, uv_timer_t *timer)
{
	init(of, head(timer), UV_TIMER);
	return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb call, uint64_t timeout, uint64_t repeat)
{
	timer->timer_cb = call;
	timer->timeout = world.now + timeout * SIM_MS;
	timer->repeat = repeat * SIM_MS;
	timer->flags |= ACTIVE;
	return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
	timer->flags &= ~(unsigned)ACTIVE;
	return 0;
}

int uv_random(uv_loop_t *of, uv_random_t *request, void *bytes, size_t size, unsigned flags, uv_random_cb call)
{
	(void)of;
	(void)request;
	(void)flags;
	(void)call;
	memset(bytes, 0x33, size);
	return 0;
}

const char *uv_strerror(int error)
{
	(void)error;
	return "an error of libuv";
}

/* ---- libuv: the loop */

static int events_of(const uv_handle_t *poll)
{
	int wanted = (int)(uintptr_t)poll->u.reserved[EVENTS];

	return is_active(poll, UV_POLL) ? system_events(poll->u.fd) & wanted : 0;
}

static int is_ready(const uv_handle_t *handle)
{
	switch (handle->type) {
	case UV_TIMER:
		return is_active(handle, UV_TIMER) && ((const uv_timer_t *)handle)->timeout <= world.now;
	case UV_POLL:
		return events_of(handle);
	case UV_SIGNAL:
		return is_active(handle, UV_SIGNAL) && ((const uv_signal_t *)handle)->signum == pending_signal;
	case UV_ASYNC:
		return is_active(handle, UV_ASYNC) && ((const uv_async_t *)handle)->pending;
	default:
		return 0;
	}
}

static void call(uv_handle_t *handle)
{
	switch (handle->type) {
	case UV_TIMER: {
		uv_timer_t *timer = (uv_timer_t *)handle;
		if (timer->repeat)
			timer->timeout += timer->repeat;
		else
			timer->flags &= ~(unsigned)ACTIVE;
		timer->timer_cb(timer);
		break;
	}
	case UV_POLL:
		((uv_poll_t *)handle)->poll_cb((uv_poll_t *)handle, 0, events_of(handle));
		break;
	case UV_SIGNAL:
		pending_signal = 0;
		((uv_signal_t *)handle)->signal_cb((uv_signal_t *)handle, ((uv_signal_t *)handle)->signum);
		break;
	case UV_ASYNC:
		((uv_async_t *)handle)->pending = 0;
		((uv_async_t *)handle)->async_cb((uv_async_t *)handle);
		break;
	default:
		break;
	}
}

/* What is ready, in any order. */
static int call_ready(const uv_loop_t *of)
{
	uv_handle_t *ready[HANDLES];
	size_t count = 0;

	for (size_t i = 0; i < handle_count; i++)
		if (handles[i]->loop == of && is_ready(handles[i]))
			ready[count++] = handles[i];
	for (size_t i = count; i > 0; i--) {
		size_t one = i == 1 ? 0 : world_below(i);
		uv_handle_t *handle = ready[one];
		ready[one] = ready[i - 1];
		if (is_ready(handle))
			call(handle);
	}
	return count > 0;
}

static int any(const uv_loop_t *of, uv_handle_type type, unsigned flag)
{
	for (size_t i = 0; i < handle_count; i++)
		if (handles[i]->loop == of && (type == UV_UNKNOWN_HANDLE || handles[i]->type == type) &&
		    handles[i]->flags & flag)
			return 1;
	return 0;
}

static uint64_t next_time(const uv_loop_t *of)
{
	uint64_t next = SIM_NEVER;

	for (size_t i = 0; i < handle_count; i++) {
		uint64_t time = SIM_NEVER;
		if (handles[i]->loop != of)
			continue;
		if (is_active(handles[i], UV_TIMER))
			time = ((uv_timer_t *)handles[i])->timeout;
		else if (is_active(handles[i], UV_POLL))
			time = system_readable_at(handles[i]->u.fd);
		next = time < next ? time : next;
	}
	return next;
}

static int anything_ready(const uv_loop_t *of)
{
	for (size_t i = 0; i < handle_count; i++)
		if (handles[i]->loop == of && is_ready(handles[i]))
			return 1;
	return 0;
}

static void wait_for_something(const uv_loop_t *of)
{
	world_sleep(world_between(5, 50) * SIM_US);
	world_events();
	while (!anything_ready(of) && !any(of, UV_IDLE, ACTIVE) && !any(of, UV_UNKNOWN_HANDLE, CLOSING))
		(void)world_wait(handles, next_time(of));
}

static void call_closed(const uv_loop_t *of)
{
	for (size_t i = 0; i < handle_count;) {
		uv_handle_t *handle = handles[i];
		if (handle->loop != of || !(handle->flags & CLOSING)) {
			i++;
			continue;
		}
		handles[i] = handles[--handle_count];
		handle->flags = CLOSED;
		if (handle->close_cb)
			handle->close_cb(handle);
	}
}

static void call_each(const uv_loop_t *of, uv_handle_type type)
{
	for (size_t i = 0; i < handle_count; i++) {
		if (handles[i]->loop != of || !is_active(handles[i], type))
			continue;
		if (type == UV_IDLE)
			((uv_idle_t *)handles[i])->idle_cb((uv_idle_t *)handles[i]);
		else if (type == UV_PREPARE)
			((uv_prepare_t *)handles[i])->prepare_cb((uv_prepare_t *)handles[i]);
		else
			((uv_check_t *)handles[i])->check_cb((uv_check_t *)handles[i]);
	}
}

int uv_run(uv_loop_t *of, uv_run_mode mode)
{
	(void)mode;
	while (count_handles(of)) {
		call_each(of, UV_IDLE);
		call_each(of, UV_PREPARE);
		wait_for_something(of);
		(void)call_ready(of);
		call_each(of, UV_CHECK);
		call_closed(of);
	}
	return 0;
}
