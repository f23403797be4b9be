/*
 * A TCP server that disconnects clients that are silent for too long.
 *
 * Thousands of clients each send a byte or more every few seconds, their heartbeat, and every heartbeat renews a
 * timeout. One thread, epoll, and a wheel of milliseconds. What this shows:
 *
 *   - Each connection contains its struct ww_timer. Nothing is allocated for it, there is no handle to keep, and a
 *     heartbeat writes to memory that reading the socket has just touched: ww_wheel_reschedule_at.
 *   - ww_wheel_next says how long to sleep, and that is the timeout of epoll_wait. No thread or timerfd is needed.
 *   - A heartbeat's deadline counts from the clock after the read. It is never too early, because the bytes were sent
 *     before. A delay would count from the wheel's time instead, which is when this loop last advanced it, before it
 *     slept. That is why a deadline is passed.
 *   - When a timer expires, the socket is read once more. A server that was stopped or overloaded finds all timeouts
 *     over and all heartbeats unread, and must not disconnect clients for its own sleep.
 *   - The server's other timers use the same wheel: when to accept again, and when to end.
 *
 * The driver (driver.h) has its own clock, sleep and lock, and suits timers that many threads share. A server that has
 * connection objects and a loop anyway is faster with the wheel, at the price of wheel_sleep_ms() and
 * wheel_turn() in keepalive.h.
 *
 * The clock is CLOCK_MONOTONIC. Like epoll_wait it stands still while the machine is suspended, when no heartbeat can
 * be heard. keepalive_load.c measures how late silent clients are disconnected.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "keepalive.h"

enum {
	ACCEPTS = 256,      /* new connections that are accepted before the others have a turn */
	ACCEPT_AGAIN = 100, /* ticks until the next attempt to accept, after descriptors ran out */
};

struct kept_connection {
	int fd;
	struct ww_timer silence; /* expires when nothing was received for the length of the timeout */
};

static struct {
	uint64_t timeout; /* in ns, as `end` */
	uint64_t end;     /* 0: never */
	uint64_t limit;   /* connections at a time */
	uint64_t port;
} options = {.timeout = UINT64_C(30000000000), .limit = 10000};

static struct {
	int listener, epoll;
	struct ww_timer accept_again, end;
	uint64_t open, most, accepted, heartbeats, silent, left, pauses;
} server;

static volatile sig_atomic_t stopped;

/* ---- Connections ------------------------------------------------------------------------------------------------ */

/* The tick at which a connection that has just been active has been silent for too long. */
static uint64_t silence_deadline(void)
{
	return wheel_tick(clock_ns() + options.timeout);
}

/* The object may be freed as soon as its timer is no longer pending. */
static void disconnect(struct kept_connection *connection)
{
	ww_wheel_cancel(wheel, &connection->silence);
	close(connection->fd); /* this also removes it from the epoll set */
	free(connection);
	server.open--;
}

/*
 * Every byte is a sign of life here, so nothing has to be assembled. In a protocol of messages this would append to the
 * connection's buffer, and only a whole message is a heartbeat: half a message, repeated, must keep nobody alive. It
 * reads once only, for fairness: if there is more, epoll reports the socket again.
 */
static void hear(struct kept_connection *connection, int expired)
{
	char bytes[4096];
	ssize_t got = recv(connection->fd, bytes, sizeof bytes, 0);

	if (got > 0) {
		server.heartbeats++;
		if (expired) /* not silent: we did not listen. The expired timer is idle and must be scheduled again. */
			ww_wheel_schedule_at(wheel, &connection->silence, silence_deadline());
		else /* the heartbeat: the line that matters */
			ww_wheel_reschedule_at(wheel, &connection->silence, silence_deadline());
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		server.left++;
		disconnect(connection);
	} else if (expired) {
		server.silent++;
		disconnect(connection);
	}
}

static void on_silence(struct ww_wheel *of, struct ww_timer *timer, uint64_t missed)
{
	(void)of, (void)missed;
	hear(WW_TIMER_OWNER(timer, struct kept_connection, silence), 1);
}

/* ---- Accepting -------------------------------------------------------------------------------------------------- */

static void listen_for(uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = NULL}; /* NULL: the listening socket */

	epoll_ctl(server.epoll, EPOLL_CTL_MOD, server.listener, &event);
}

static void on_accept_again(struct ww_wheel *of, struct ww_timer *timer, uint64_t missed)
{
	(void)of, (void)timer, (void)missed;
	listen_for(EPOLLIN);
}

/*
 * Without a free descriptor a new connection stays in the queue, and epoll would report it again at once, in a busy
 * loop. Stop listening for a while.
 */
static void pause_accepting(void)
{
	listen_for(0);
	ww_wheel_schedule(wheel, &server.accept_again, ACCEPT_AGAIN);
	server.pauses++;
}

static int add_connection(int fd)
{
	struct kept_connection *connection = malloc(sizeof *connection);
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

	if (!connection || epoll_ctl(server.epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		free(connection);
		close(fd);
		return -1;
	}
	connection->fd = fd;
	ww_timer_init(&connection->silence, on_silence);
	ww_wheel_schedule_at(wheel, &connection->silence, silence_deadline());
	server.accepted++;
	if (++server.open > server.most)
		server.most = server.open;
	return 0;
}

/* Connections come in bursts, and a burst is one event. Accept until nobody waits, and pause when there is no room. */
static void accept_burst(void)
{
	if (server.open == options.limit)
		pause_accepting();
	for (int i = 0; i < ACCEPTS && server.open < options.limit; i++) {
		int fd = accept4(server.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0 || add_connection(fd) != 0) { /* EMFILE, ENFILE, ENOBUFS, ENOMEM */
			pause_accepting();
			return;
		}
	}
}

/* ---- The loop --------------------------------------------------------------------------------------------------- */

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static void on_end(struct ww_wheel *of, struct ww_timer *timer, uint64_t missed)
{
	(void)of, (void)timer, (void)missed;
	stopped = 1;
}

/* Signals arrive only while epoll_pwait sleeps: none is lost between reading `stopped` and going to sleep. */
static void serve(const sigset_t *asleep)
{
	static struct epoll_event events[EVENTS];

	while (!stopped) {
		int count = epoll_pwait(server.epoll, events, EVENTS, wheel_sleep_ms(-1), asleep);

		/* A connection has at most one event: none is used after it was freed. */
		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr)
				hear(events[i].data.ptr, 0);
			else
				accept_burst();
		}
		wheel_turn();
	}
}

/* The wheel has all connections: no other list of them is needed. */
static void disconnect_all(void)
{
	struct ww_expiry batch[64];
	size_t count;
	int more;

	ww_wheel_cancel(wheel, &server.accept_again);
	ww_wheel_cancel(wheel, &server.end);
	do {
		more = ww_wheel_drain(wheel, batch, sizeof batch / sizeof *batch, &count);
		for (size_t i = 0; i < count; i++)
			disconnect(WW_TIMER_OWNER(batch[i].timer, struct kept_connection, silence));
	} while (more == 1);
}

/* ---- The beginning ---------------------------------------------------------------------------------------------- */

static void open_listener(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port)};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	socklen_t size = sizeof address;
	char port[32];
	int yes = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server.listener < 0)
		fail("socket", strerror(errno));
	setsockopt(server.listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	snprintf(port, sizeof port, "port %" PRIu64, options.port);
	if (bind(server.listener, (struct sockaddr *)&address, sizeof address) != 0 ||
	    listen(server.listener, SOMAXCONN) != 0)
		fail(port, errno == EADDRINUSE ? "in use by another program; --port 0 takes any that is free"
		                               : strerror(errno));
	getsockname(server.listener, (struct sockaddr *)&address, &size);
	options.port = ntohs(address.sin_port);
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll < 0 || epoll_ctl(server.epoll, EPOLL_CTL_ADD, server.listener, &event) != 0)
		fail("epoll", strerror(errno));
}

static void begin(void)
{
	wheel_open();
	ww_timer_init(&server.accept_again, on_accept_again);
	ww_timer_init(&server.end, on_end);
	if (options.end)
		ww_wheel_schedule_at(wheel, &server.end, wheel_tick(options.end));
	open_listener();
}

static void catch_signals(sigset_t *asleep)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t awake;

	sigemptyset(&awake);
	sigaddset(&awake, SIGINT);
	sigaddset(&awake, SIGTERM);
	sigprocmask(SIG_BLOCK, &awake, asleep);
	sigdelset(asleep, SIGINT);
	sigdelset(asleep, SIGTERM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static const char help[] =
    "Usage: keepalive --port PORT [OPTION]...\n"
    "\n"
    "Hold TCP connections on 127.0.0.1 until interrupted, and disconnect those that send nothing for too long.\n"
    "\n"
    "  -p, --port PORT           where to listen; 0: any free port, which is printed\n"
    "  -t, --timeout SECONDS     the longest silence, 0.001 to 1000000 (30)\n"
    "  -c, --connections NUMBER  at most this many at a time; others wait (10000)\n"
    "  -s, --seconds SECONDS     end after this time\n"
    "  -h, --help                show this help\n"
    "\n"
    "Example, and in another terminal 10,000 clients, of which 1,000 go silent:\n"
    "  keepalive --port 7000 --timeout 30\n"
    "  keepalive_load --port 7000 --timeout 30 --heartbeat 5 --connections 10000 --silent 1000";

static void take_options(int count, char **arguments)
{
	static const struct option table[] = {{"port", required_argument, NULL, 'p'},
	    {"timeout", required_argument, NULL, 't'}, {"connections", required_argument, NULL, 'c'},
	    {"seconds", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

	read_options(count, arguments, "p:t:c:s:h", table, help);
	take_whole(&options.port, 'p', "port", 0, 65535, "a port, 0 to 65535");
	take_common(&options.limit, &options.timeout);
	take_seconds(&options.end, 's', "seconds");
	if (!given['p'])
		usage("--port is needed; 0 takes any that is free");
}

int main(int count, char **arguments)
{
	sigset_t asleep;

	if (count == 1) {
		puts(help);
		return 0;
	}
	take_options(count, arguments);
	need_descriptors(options.limit);
	begin();
	catch_signals(&asleep);
	printf("listening on 127.0.0.1:%" PRIu64 ", for at most %" PRIu64 " connections with a timeout of %g s\n",
	    options.port, options.limit, (double)options.timeout / 1e9);
	fflush(stdout);
	serve(&asleep);
	printf("%" PRIu64 " connections, at most %" PRIu64 " at a time, received %" PRIu64
	       " times; disconnected for silence %" PRIu64 ", left %" PRIu64 ", here at the end %" PRIu64
	       "; pauses in accepting %" PRIu64 "\n",
	    server.accepted, server.most, server.heartbeats, server.silent, server.left, server.open, server.pauses);
	disconnect_all();
	ww_wheel_destroy(wheel);
	close(server.epoll);
	close(server.listener);
	finish_output();
	return 0;
}
