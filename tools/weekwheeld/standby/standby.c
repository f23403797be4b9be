/* A server of jobs in PostgreSQL while another one owns them: see standby.h. */
#include "tools/weekwheeld/standby/standby.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/address.h"
#include "tools/service/state/notify.h"
#include "tools/weekwheeld/engine/server.h"

/* How long a guest waits for an owner, an attempt to connect may take, and the loop runs at a time. */
enum { WAIT_MS = 10000, CONNECT_MS = 3000, TICK_MS = 50, AGAIN_MS = 1000, NOTIFY_MS = 1000 };

enum { HEAD_MOST = 64 /* bytes in which a path that is answered here ends */, DISCARD = 65536 };

/* A descriptor that is watched for a guest, or for nobody. */
struct guest_watch {
	uv_poll_t poll;
	struct standby *standby;
	struct guest *guest;
};

struct attempt {
	struct guest_watch watch;
	int fd;
	uint64_t until; /* ms */
};

struct guest {
	TAILQ_ENTRY(guest) next;
	int fd;
	enum standby_door door;
	enum owner_port port; /* of the owner */
	int is_tls;
	struct sockaddr_storage peer;
	uint64_t until;           /* ms: how long it waits */
	uint64_t again;           /* ms: when to try its port again */
	struct guest_watch *look; /* for the beginning of its request by HTTP, or NULL */
	struct attempt *attempt;  /* to reach the owner, or NULL */
};

static uint64_t now_ms(const struct standby *standby)
{
	return uv_now(&standby->server->loop);
}

/* ---- Watching */

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* `watch` is in memory of its own, which this frees: at once if there is no room, otherwise after watch_end. */
static int guest_watch_begin(struct guest_watch *watch, void *memory, int fd, int events, uv_poll_cb came)
{
	if (uv_poll_init(&watch->standby->server->loop, &watch->poll, fd) != 0) {
		free(memory);
		return -1;
	}
	watch->poll.data = memory;
	uv_poll_start(&watch->poll, events, came);
	return 0;
}

static void guest_watch_end(struct guest_watch *watch)
{
	uv_close((uv_handle_t *)&watch->poll, on_closed);
}

/* ---- Guests */

static void guest_look_no_more(struct guest *guest)
{
	if (guest->look)
		guest_watch_end(guest->look);
	guest->look = NULL;
}

static void attempt_end(struct attempt *attempt)
{
	guest_watch_end(&attempt->watch);
	if (attempt->fd >= 0)
		(void)close(attempt->fd);
	attempt->fd = -1;
}

/* It leaves with its descriptor, which this returns. */
static int guest_leave(struct standby *standby, struct guest *guest)
{
	int fd = guest->fd;

	guest_look_no_more(guest);
	if (guest->attempt)
		attempt_end(guest->attempt);
	TAILQ_REMOVE(&standby->guests, guest, next);
	standby->guest_count--;
	free(guest);
	return fd;
}

/* Close it. What it has sent is read first: the system would otherwise drop an answer that it has not read. */
static void turn_away(struct standby *standby, struct guest *guest, const char *answer)
{
	static char unread[DISCARD];
	int fd;

	if (guest->is_tls)
		answer = NULL;
	fd = guest_leave(standby, guest);
	if (answer) {
		(void)!recv(fd, unread, sizeof unread, MSG_DONTWAIT);
		(void)!send(fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
		(void)shutdown(fd, SHUT_WR);
	}
	(void)close(fd);
}

static void give_up(struct standby *standby, struct guest *guest)
{
	static const char *const answers[] = {"INTERNAL_ERROR\r\n",
	    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\n"
	    "Connection: close\r\nContent-Length: 56\r\n\r\n"
	    "this server stands by, and cannot reach the jobs' owner\n"};

	/* One that has asked nothing is not answered by HTTP. */
	turn_away(standby, guest, guest->look ? NULL : answers[guest->door]);
}

/* ---- The owner */

static void drop_line(struct standby *standby)
{
	if (standby->search)
		owner_search_end(standby->search);
	standby->search = NULL;
	if (standby->first)
		attempt_end(standby->first);
	standby->first = NULL;
	if (standby->line >= 0)
		(void)close(standby->line);
	standby->line = -1;
}

static void owner_fails(struct standby *standby, const char *why)
{
	drop_line(standby);
	standby->is_good = 0;
	standby->again = now_ms(standby) + AGAIN_MS;
	state_begin("owner", STATE_STOPS_READING | STATE_STOPS_WRITING,
	    "no client can be passed on to the owner of the store: %s", why);
}

/* It cannot be reached where it says that it listens. */
static void owner_is_away(struct standby *standby, enum owner_port port, const char *reason)
{
	char why[3 * OWNER_HEARD];

	snprintf(why, sizeof why,
	    "%s:%u, which it publishes, cannot be reached: %s; check the way there, or give it --advertise",
	    standby->owner.host, standby->owner.ports[port], reason);
	owner_fails(standby, why);
}

/* All that has begun leads to a former owner. Guests wait for the next one. */
static void leave_owner(struct standby *standby)
{
	struct guest *guest;

	standby->is_good = 0;
	standby->again = 0;
	drop_line(standby);
	relay_stop(&standby->relays);
	TAILQ_FOREACH(guest, &standby->guests, next)
	{
		if (guest->attempt)
			attempt_end(guest->attempt);
		guest->attempt = NULL;
	}
}

/* ---- Connecting */

static void on_connected(uv_poll_t *poll, int status, int events);

/* Returns NULL, with errno set, if it has failed already. */
static struct attempt *attempt_begin(struct standby *standby, enum owner_port port, struct guest *guest)
{
	int fd = owner_connect(&standby->owner, port);
	struct attempt *attempt = fd >= 0 ? calloc(1, sizeof *attempt) : NULL;

	if (attempt) {
		attempt->watch.standby = standby;
		attempt->watch.guest = guest;
		attempt->fd = fd;
		attempt->until = now_ms(standby) + CONNECT_MS;
		if (guest_watch_begin(&attempt->watch, attempt, fd, UV_WRITABLE, on_connected) == 0)
			return attempt;
	}
	if (fd >= 0) {
		(void)close(fd);
		errno = ENOMEM;
	}
	return NULL;
}

static enum owner_port first_port(const struct owner *owner)
{
	int port = OWNER_CLEAR;

	while (port < OWNER_PORTS - 1 && owner->ports[port] == 0)
		port++;
	return (enum owner_port)port;
}

/* Clients at other ports are not held up by one that is closed or behind a firewall. */
static void guest_fails(struct standby *standby, struct guest *guest, const char *reason)
{
	guest->attempt = NULL;
	if (guest->port == first_port(&standby->owner)) {
		owner_is_away(standby, guest->port, reason);
		return;
	}
	guest->again = now_ms(standby) + AGAIN_MS;
	state_seen("owner-port",
	    "a client waits: %s:%u of the owner, which it publishes, cannot be reached: %s; check the way there, or give the owner --advertise",
	    standby->owner.host, standby->owner.ports[guest->port], reason);
}

static void attempt_failed(struct standby *standby, struct attempt *attempt, int error)
{
	struct guest *guest = attempt->watch.guest;

	attempt_end(attempt);
	if (guest) {
		guest_fails(standby, guest, strerror(error));
		return;
	}
	standby->first = NULL;
	standby->owner.failures++;
	owner_is_away(standby, first_port(&standby->owner), strerror(error));
}

/* Take the connection that was made. */
static int attempt_take(struct attempt *attempt)
{
	int fd = attempt->fd;

	attempt->fd = -1;
	attempt_end(attempt);
	return fd;
}

static void on_connected(uv_poll_t *poll, int status, int events)
{
	struct attempt *attempt = poll->data;
	struct standby *standby = attempt->watch.standby;
	struct guest *guest = attempt->watch.guest;
	int error = 0;
	socklen_t size = sizeof error;
	int fd;

	(void)events;
	if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		error = errno;
	if (error || status < 0) {
		attempt_failed(standby, attempt, error ? error : -status);
		return;
	}
	fd = attempt_take(attempt);
	if (!guest) {
		standby->first = NULL;
		standby->line = fd;
		return;
	}
	guest->attempt = NULL;
	(void)relay_join(&standby->relays, guest_leave(standby, guest), fd);
}

/* Bring a guest nearer to the owner. It may be gone afterwards. */
static void guest_go(struct standby *standby, struct guest *guest)
{
	if (guest->attempt || guest->look || !standby->is_good || now_ms(standby) < guest->again)
		return;
	if (standby->owner.ports[guest->port] == 0) {
		static const char *const kinds[] = {"without TLS", "with TLS", "by HTTP"};

		state_seen("owner-port",
		    "a client %s is turned away: the owner listens nowhere so that other machines reach it %s; give all servers the same options",
		    kinds[guest->port], kinds[guest->port]);
		give_up(standby, guest);
		return;
	}
	guest->attempt = attempt_begin(standby, guest->port, guest);
	if (!guest->attempt)
		guest_fails(standby, guest, strerror(errno));
}

/* ---- What is answered here */

/* Whether a request begins with a path that this server answers itself: 1 or 0, or -1 if not enough of it is there. */
static int is_own(const char *head, size_t size)
{
	static const char *const own[] = {"/livez", "/readyz", "/healthz", "/metrics"};
	const char *path = memchr(head, ' ', size);
	size_t length;

	if (!path)
		return size < HEAD_MOST ? -1 : 0;
	path++;
	for (length = 0; path + length < head + size && !strchr(" ?\r\n", path[length]); length++)
		;
	if (path + length == head + size)
		return size < HEAD_MOST ? -1 : 0;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strlen(own[i]) == length && memcmp(own[i], path, length) == 0)
			return 1;
	return 0;
}

/* Beside so many others. Those that wait for the owner get their second descriptor only then, and it must be there. */
static int is_full(const struct standby *standby, enum standby_door door, unsigned others)
{
	unsigned kept = (unsigned)standby->doors[door]->kept;

	return others >= standby->doors[STANDBY_JOBS]->config.most || 2 * others >= kept;
}

static unsigned count_all(const struct standby *standby)
{
	return standby->guest_count + standby->relays.count;
}

/* Look at the beginning of a request, and leave it where it is. */
static void guest_look(struct standby *standby, struct guest *guest)
{
	char head[HEAD_MOST + 1];
	ssize_t size = recv(guest->fd, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
	int is_here = size > 0 ? is_own(head, (size_t)size) : -1;
	struct sockaddr_storage peer = guest->peer;

	if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
		turn_away(standby, guest, NULL);
	} else if (is_here > 0) {
		standby->let_in[STANDBY_HTTP](
		    standby->context, guest_leave(standby, guest), (struct sockaddr *)&peer, 0);
	} else if (is_here == 0) {
		guest_look_no_more(guest);
		if (is_full(standby, STANDBY_HTTP, count_all(standby) - 1))
			give_up(standby, guest);
		else
			guest_go(standby, guest);
	} else if (size > 0) {
		/* The rest of the line is looked for at the next tick: these bytes would wake the loop at once. */
		uv_poll_stop(&guest->look->poll);
	}
}

static void on_request(uv_poll_t *poll, int status, int events)
{
	const struct guest_watch *watch = poll->data;

	(void)status;
	(void)events;
	guest_look(watch->standby, watch->guest);
}

static void look_begin(struct standby *standby, struct guest *guest)
{
	struct guest_watch *watch = calloc(1, sizeof *watch);

	if (!watch)
		return;
	watch->standby = standby;
	watch->guest = guest;
	if (guest_watch_begin(watch, watch, guest->fd, UV_READABLE, on_request) == 0)
		guest->look = watch;
}

/* ---- Coming in */

typedef int name_fn(int fd, struct sockaddr *address, socklen_t *size);

/* Whether one end of a connection is the other end of another one. */
static int is_same_end(int one, name_fn *name_one, int other, name_fn *name_other)
{
	struct sockaddr_storage at[2] = {{.ss_family = AF_UNSPEC}, {.ss_family = AF_UNSPEC}};
	socklen_t sizes[2] = {sizeof at[0], sizeof at[1]};
	struct address_key a, b;
	struct sockaddr_in in[2];

	if (name_one(one, (struct sockaddr *)&at[0], &sizes[0]) != 0 ||
	    name_other(other, (struct sockaddr *)&at[1], &sizes[1]) != 0)
		return 0;
	a = address_key((const struct sockaddr *)&at[0]);
	b = address_key((const struct sockaddr *)&at[1]);
	for (int i = 0; i < 2; i++)
		memcpy(&in[i], &at[i], sizeof in[i]);
	return in[0].sin_port == in[1].sin_port && address_key_equal(&a, &b);
}

/*
 * Whether a client is this server's own first connection to the owner. Both ends tell: a client of this machine may have
 * the same port to come from.
 */
static int is_circle(const struct standby *standby, int fd, const struct sockaddr *peer)
{
	int line = standby->first ? standby->first->fd : standby->line;

	return line >= 0 && (peer->sa_family == AF_INET || peer->sa_family == AF_INET6) &&
	       is_same_end(fd, getpeername, line, getsockname) && is_same_end(fd, getsockname, line, getpeername);
}

static void guest_begin(
    struct standby *standby, enum standby_door door, int fd, const struct sockaddr *peer, int is_tls)
{
	/* However many are passed on, this server says how it is. */
	int is_looked_at = door == STANDBY_HTTP && !is_tls;
	int is_left_out = !is_looked_at && is_full(standby, door, count_all(standby));
	struct guest *guest = is_left_out ? NULL : calloc(1, sizeof *guest);

	if (!guest) {
		(void)close(fd);
		return;
	}
	guest->fd = fd;
	guest->door = door;
	guest->port = door == STANDBY_HTTP ? OWNER_HTTP : is_tls ? OWNER_TLS : OWNER_CLEAR;
	guest->is_tls = is_tls;
	if (peer->sa_family == AF_INET || peer->sa_family == AF_INET6)
		memcpy(&guest->peer, peer,
		    peer->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	else
		guest->peer.ss_family = peer->sa_family;
	guest->until = now_ms(standby) + WAIT_MS;
	TAILQ_INSERT_TAIL(&standby->guests, guest, next);
	standby->guest_count++;
	if (is_looked_at)
		look_begin(standby, guest);
	guest_go(standby, guest);
}

void standby_came(struct standby *standby, enum standby_door door, int fd, const struct sockaddr *peer, int is_tls)
{
	if (!is_circle(standby, fd, peer)) {
		guest_begin(standby, door, fd, peer, is_tls);
		return;
	}
	(void)close(fd);
	leave_owner(standby);
	owner_fails(standby,
	    "the address that it publishes leads back to this server; let each listen where the others reach it, or give each its own --advertise");
}

/* ---- The wait */

static void on_found(void *context, const struct addrinfo *addresses, const char *why)
{
	struct standby *standby = context;
	enum owner_port port = first_port(&standby->owner);

	standby->search = NULL;
	if (!why) {
		owner_take(&standby->owner, addresses);
		standby->first = attempt_begin(standby, port, NULL);
		if (standby->first)
			return;
		standby->owner.failures++;
		why = strerror(errno);
	}
	owner_is_away(standby, port, why);
}

static void owner_heard(struct standby *standby, const char *text)
{
	if (strcmp(standby->owner.text, text) != 0) {
		leave_owner(standby);
		(void)owner_read(&standby->owner, text);
	}
	if (standby->is_good || standby->search || standby->first || now_ms(standby) < standby->again)
		return;
	if (!standby->owner.host[0]) {
		owner_fails(standby,
		    "none says where it listens; one that begins or ends does not yet, and one of an earlier version never does");
		return;
	}
	if (standby->line >= 0) {
		standby->is_good = 1;
		state_end("owner", "it can be reached");
		message_info("clients are passed on to the owner at %s", standby->owner.host);
		return;
	}
	standby->search = owner_search(&standby->owner, &standby->server->loop, on_found, standby);
	if (!standby->search)
		owner_is_away(standby, first_port(&standby->owner), strerror(ENOMEM));
}

static void attempt_sweep(struct standby *standby, struct attempt *attempt)
{
	if (attempt && now_ms(standby) >= attempt->until)
		attempt_failed(standby, attempt, ETIMEDOUT);
}

static void guests_sweep(struct standby *standby)
{
	struct guest *guest;
	struct guest *next;

	for (guest = TAILQ_FIRST(&standby->guests); guest; guest = next) {
		next = TAILQ_NEXT(guest, next);
		attempt_sweep(standby, guest->attempt);
		if (now_ms(standby) >= guest->until)
			give_up(standby, guest);
		else if (!guest->look)
			guest_go(standby, guest);
		else if (!uv_is_active((uv_handle_t *)&guest->look->poll))
			guest_look(standby, guest);
	}
}

static void on_tick(uv_timer_t *timer)
{
	struct standby *standby = timer->data;

	standby->is_tick = 1;
}

static void tell_systemd(struct standby *standby)
{
	if (standby->notified && now_ms(standby) < standby->notified + NOTIFY_MS)
		return;
	standby->notified = now_ms(standby);
	notify_stands_by("standing by: another server owns the store");
}

void standby_wait(struct standby *standby, const char *owner)
{
	uv_loop_t *loop = &standby->server->loop;

	uv_update_time(loop);
	tell_systemd(standby);
	owner_heard(standby, owner);
	attempt_sweep(standby, standby->first);
	guests_sweep(standby);
	standby->is_tick = 0;
	uv_timer_start(&standby->tick, on_tick, TICK_MS, 0);
	while (!standby->is_tick)
		(void)uv_run(loop, UV_RUN_ONCE);
}

/* ---- Beginning and end */

/* A client that is passed on takes two descriptors. */
static void set_each(const struct standby *standby, int by)
{
	for (int i = 0; i < STANDBY_DOORS; i++)
		standby->doors[i]->config.each += (unsigned)by;
}

int standby_begin(struct standby *standby, struct server *server)
{
	TAILQ_INIT(&standby->guests);
	standby->server = server;
	standby->relays.loop = &server->loop;
	standby->line = -1;
	standby->began = uv_hrtime();
	standby->tick.data = standby;
	set_each(standby, 1);
	return uv_timer_init(&server->loop, &standby->tick);
}

void standby_end(struct standby *standby, int is_owner)
{
	struct guest *guest;
	struct sockaddr_storage peer;

	if (!standby->server)
		return;
	state_end("owner", is_owner ? "this server owns it now" : "this server ends");
	leave_owner(standby);
	set_each(standby, -1);
	standby->server = NULL;
	while ((guest = TAILQ_FIRST(&standby->guests)) != NULL) {
		enum standby_door door = guest->door;
		int is_tls = guest->is_tls;

		peer = guest->peer;
		if (is_owner)
			standby->let_in[door](
			    standby->context, guest_leave(standby, guest), (struct sockaddr *)&peer, is_tls);
		else
			turn_away(standby, guest, NULL);
	}
}
