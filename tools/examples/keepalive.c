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
 * connection objects and a loop anyway is faster with the wheel, at the price of sleep_ms() and serve().
 *
 * The clock is CLOCK_MONOTONIC. Like epoll_wait it stands still while the machine is suspended, when no heartbeat can
 * be heard. keepalive_load.c measures how late silent clients are disconnected.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weekwheel/weekwheel.h>

enum {
	MILLISECOND = 1000000, /* in ns: a tick of the wheel, and the unit of epoll_wait */
	SECONDS_MAX = 1000000, /* the longest timeout: 11 days */
	CONNECTIONS_MAX = 10000000,
	DESCRIPTORS_SPARE = 16, /* not connections: the listening socket, standard output and the like */
	EVENTS = 1024,          /* sockets, expiries and new connections handled before the others have a turn */
	ACCEPTS = 256,
	ACCEPT_AGAIN = 100, /* ticks until the next attempt to accept, after descriptors ran out */
};

struct connection {
	int fd;
	struct ww_timer silence; /* expires when nothing was heard for the length of the timeout */
};

static struct {
	uint64_t timeout; /* in ns, like the next */
	uint64_t end;     /* 0: never */
	uint64_t limit;   /* connections at a time */
	uint16_t port;
} options = {.timeout = UINT64_C(30000000000), .limit = 10000};

static struct {
	struct ww_wheel *wheel;
	uint64_t origin; /* the clock, in ns, when the wheel's time was 0 */
	int listener, epoll;
	struct ww_timer accept_again, end;
	uint64_t open, most, accepted, heartbeats, silent, left, pauses;
} server;

static volatile sig_atomic_t stopped;

/* ---- Time ------------------------------------------------------------------------------------------------------- */

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - server.origin;
}

/* When a connection heard just now will have been silent for too long: rounded up to a tick, never early. */
static uint64_t silence_deadline(void)
{
	uint64_t deadline;

	ww_wheel_deadline_ns(server.wheel, clock_ns() + options.timeout, &deadline);
	return deadline;
}

/* How long epoll_wait may sleep; -1, without limit, when no timer is pending. */
static int sleep_ms(void)
{
	uint64_t next, now;

	if (ww_wheel_next(server.wheel, &next) != 1)
		return -1;
	ww_wheel_now_ns(server.wheel, clock_ns(), &now);
	if (next <= now)
		return 0;
	return next - now < INT_MAX ? (int)(next - now) : INT_MAX;
}

/* ---- Connections ------------------------------------------------------------------------------------------------ */

enum heard { NOTHING, SOMETHING, FAREWELL };

/*
 * Every byte is a sign of life here, so nothing has to be assembled. In a protocol of messages this would append to the
 * connection's buffer, and only a whole message is a heartbeat: half a message, repeated, must keep nobody alive. It
 * reads once only, for fairness: if there is more, epoll reports the socket again.
 */
static enum heard hear(const struct connection *connection)
{
	char bytes[4096];
	ssize_t got = recv(connection->fd, bytes, sizeof bytes, 0);

	if (got > 0) {
		server.heartbeats++;
		return SOMETHING;
	}
	return got < 0 && (errno == EAGAIN || errno == EINTR) ? NOTHING : FAREWELL;
}

/* The object may be freed as soon as its timer is no longer pending. */
static void disconnect(struct connection *connection)
{
	ww_wheel_cancel(server.wheel, &connection->silence);
	close(connection->fd); /* this also removes it from the epoll set */
	free(connection);
	server.open--;
}

static void on_readable(struct connection *connection)
{
	switch (hear(connection)) {
	case SOMETHING: /* the heartbeat: the line that matters */
		ww_wheel_reschedule_at(server.wheel, &connection->silence, silence_deadline());
		break;
	case FAREWELL:
		server.left++;
		disconnect(connection);
		break;
	case NOTHING:
		break;
	}
}

static void on_silence(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	struct connection *connection = WW_TIMER_OWNER(timer, struct connection, silence);

	(void)missed;
	switch (hear(connection)) {
	case SOMETHING: /* not silent: we did not listen. The expired timer is idle and must be scheduled again. */
		ww_wheel_schedule_at(wheel, timer, silence_deadline());
		break;
	case FAREWELL:
		server.left++;
		disconnect(connection);
		break;
	case NOTHING:
		server.silent++;
		disconnect(connection);
		break;
	}
}

/* ---- Accepting -------------------------------------------------------------------------------------------------- */

static void listen_for(uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = NULL}; /* NULL: the listening socket */

	epoll_ctl(server.epoll, EPOLL_CTL_MOD, server.listener, &event);
}

static void on_accept_again(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	(void)wheel, (void)timer, (void)missed;
	listen_for(EPOLLIN);
}

/*
 * Without a free descriptor a new connection stays in the queue, and epoll would report it again at once, in a busy
 * loop. Stop listening for a while.
 */
static void pause_accepting(void)
{
	listen_for(0);
	ww_wheel_schedule(server.wheel, &server.accept_again, ACCEPT_AGAIN);
	server.pauses++;
}

static int add_connection(int fd)
{
	struct connection *connection = malloc(sizeof *connection);
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

	if (!connection || epoll_ctl(server.epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		free(connection);
		close(fd);
		return -1;
	}
	connection->fd = fd;
	ww_timer_init(&connection->silence, on_silence);
	ww_wheel_schedule_at(server.wheel, &connection->silence, silence_deadline());
	server.accepted++;
	if (++server.open > server.most)
		server.most = server.open;
	return 0;
}

/*
 * Connections come in bursts, and a burst is one event. Accept until nobody waits, and pause when there is no room.
 */
static void accept_burst(void)
{
	int i, fd;

	if (server.open == options.limit)
		pause_accepting();
	for (i = 0; i < ACCEPTS && server.open < options.limit; i++) {
		fd = accept4(server.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
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

static void on_end(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	(void)wheel, (void)timer, (void)missed;
	stopped = 1;
}

/* Signals arrive only while epoll_pwait sleeps: none is lost between reading `stopped` and going to sleep. */
static int serve(const sigset_t *asleep)
{
	static struct epoll_event events[EVENTS];
	uint64_t now;
	int i, count, error;

	while (!stopped) {
		count = epoll_pwait(server.epoll, events, EVENTS, sleep_ms(), asleep);
		for (i = 0; i < count; i++) { /* a connection has at most one event: none is used after it was freed */
			if (events[i].data.ptr)
				on_readable(events[i].data.ptr);
			else
				accept_burst();
		}
		ww_wheel_now_ns(server.wheel, clock_ns(), &now);
		/*
		 * If more than EVENTS are due, ww_wheel_next says so, and the rest follows after clients that have
		 * sent in the meantime.
		 */
		error = ww_wheel_advance(server.wheel, now, EVENTS, NULL);
		if (error < 0) {
			fprintf(stderr, "keepalive: the wheel: %s\n", ww_strerror(error));
			return 1;
		}
	}
	return 0;
}

/* The wheel has all connections: no other list of them is needed. */
static void disconnect_all(void)
{
	struct ww_expiry batch[64];
	size_t count, i;
	int more;

	ww_wheel_cancel(server.wheel, &server.accept_again);
	ww_wheel_cancel(server.wheel, &server.end);
	do {
		more = ww_wheel_drain(server.wheel, batch, sizeof batch / sizeof *batch, &count);
		for (i = 0; i < count; i++)
			disconnect(WW_TIMER_OWNER(batch[i].timer, struct connection, silence));
	} while (more == 1);
}

/* ---- Beginning -------------------------------------------------------------------------------------------------- */

static int failed(const char *what)
{
	fprintf(stderr, "keepalive: %s: %s\n", what, strerror(errno));
	return -1;
}

/* Many systems allow a process 1,024 descriptors until it asks for more. */
static int have_descriptors(void)
{
	uint64_t needed = options.limit + DESCRIPTORS_SPARE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return failed("the limit of descriptors");
	if (limit.rlim_cur < needed && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= needed)
		return 0;
	fprintf(stderr,
	    "keepalive: %" PRIu64 " connections take %" PRIu64 " file descriptors, and this process may have %" PRIu64
	    ": %" PRIu64 " are missing.\nRaise the hard limit (ulimit -Hn), or ask for fewer --connections.\n",
	    options.limit, needed, (uint64_t)limit.rlim_cur, needed - (uint64_t)limit.rlim_cur);
	return -1;
}

static int have_listener(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options.port)};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	socklen_t size = sizeof address;
	int yes = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server.listener < 0)
		return failed("socket");
	setsockopt(server.listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(server.listener, (struct sockaddr *)&address, sizeof address) != 0 ||
	    listen(server.listener, SOMAXCONN) != 0) {
		fprintf(stderr, "keepalive: port %u: %s\n", (unsigned)options.port,
		    errno == EADDRINUSE ? "in use by another program; --port 0 takes any that is free"
		                        : strerror(errno));
		return -1;
	}
	getsockname(server.listener, (struct sockaddr *)&address, &size);
	options.port = ntohs(address.sin_port);
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll < 0 || epoll_ctl(server.epoll, EPOLL_CTL_ADD, server.listener, &event) != 0)
		return failed("epoll");
	return 0;
}

/* Milliseconds, and a fifth wheel: a horizon of 10 hours. A longer timeout is exact too. */
static int have_wheel(void)
{
	struct ww_wheel_config config;
	uint64_t end;
	int error;

	ww_wheel_config_default(&config);
	config.tick_ns = MILLISECOND;
	config.slots[config.levels++] = 64;
	error = ww_wheel_create(&server.wheel, &config);
	if (error != WW_OK) {
		fprintf(stderr, "keepalive: the wheel: %s\n", ww_strerror(error));
		return -1;
	}
	server.origin = clock_ns();
	ww_timer_init(&server.accept_again, on_accept_again);
	ww_timer_init(&server.end, on_end);
	if (options.end) {
		ww_wheel_deadline_ns(server.wheel, options.end, &end);
		ww_wheel_schedule_at(server.wheel, &server.end, end);
	}
	return 0;
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

/* ---- The command line ------------------------------------------------------------------------------------------- */

static void help(void)
{
	puts(
	    "Usage: keepalive --port PORT [OPTION]...\n"
	    "\n"
	    "Hold TCP connections on 127.0.0.1 and disconnect those that send nothing for too long; until interrupted.\n"
	    "\n"
	    "  -p, --port PORT           where to listen; 0: any free port, which is printed\n"
	    "  -t, --timeout SECONDS     the longest silence, 0.001 to 1000000 (30)\n"
	    "  -c, --connections NUMBER  at most so many at a time; others wait (10000)\n"
	    "  -s, --seconds SECONDS     end after this time\n"
	    "  -h, --help                show this help\n"
	    "\n"
	    "Example, and in another terminal 10,000 clients, of which 1,000 go silent:\n"
	    "  keepalive --port 7000 --timeout 30\n"
	    "  keepalive_load --port 7000 --timeout 30 --heartbeat 5 --connections 10000 --silent 1000");
}

static _Noreturn void usage(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "keepalive: --%s '%s': expected %s\nTry 'keepalive --help'.\n", option, value, expected);
	exit(2);
}

static uint64_t seconds_option(const char *option, const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	if (end == value || *end || value[strspn(value, "0123456789.")] ||
	    !(seconds >= 0.001 && seconds <= SECONDS_MAX))
		usage(option, value, "seconds, 0.001 to 1000000");
	return (uint64_t)(seconds * 1e9 + 0.5);
}

static uint64_t whole_option(const char *option, const char *value, uint64_t least, uint64_t most, const char *expected)
{
	uint64_t number = strtoull(value, NULL, 10);

	if (!*value || value[strspn(value, "0123456789")] || strlen(value) > 10 || number < least || number > most)
		usage(option, value, expected);
	return number;
}

static void read_options(int argc, char **argv)
{
	static const struct option table[] = {{"port", required_argument, NULL, 'p'},
	    {"timeout", required_argument, NULL, 't'}, {"connections", required_argument, NULL, 'c'},
	    {"seconds", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int option, port = 0;

	while ((option = getopt_long(argc, argv, "p:t:c:s:h", table, NULL)) != -1) {
		switch (option) {
		case 'p':
			options.port = (uint16_t)whole_option("port", optarg, 0, 65535, "a port, 0 to 65535");
			port = 1;
			break;
		case 't':
			options.timeout = seconds_option("timeout", optarg);
			break;
		case 'c':
			options.limit =
			    whole_option("connections", optarg, 1, CONNECTIONS_MAX, "a number from 1 to 10000000");
			break;
		case 's':
			options.end = seconds_option("seconds", optarg);
			break;
		case 'h':
			help();
			exit(0);
		default:
			fputs("Try 'keepalive --help'.\n", stderr);
			exit(2);
		}
	}
	if (optind < argc || !port) {
		fprintf(stderr, "keepalive: %s\nTry 'keepalive --help'.\n",
		    optind < argc ? "takes options only" : "--port is needed; 0 takes any that is free");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	sigset_t asleep;
	int status;

	if (argc == 1) {
		help();
		return 0;
	}
	read_options(argc, argv);
	if (have_descriptors() != 0 || have_wheel() != 0 || have_listener() != 0)
		return 1;
	catch_signals(&asleep);
	printf("listening on 127.0.0.1:%u, for at most %" PRIu64 " connections with a timeout of %g s\n",
	    (unsigned)options.port, options.limit, (double)options.timeout / 1e9);
	fflush(stdout);
	status = serve(&asleep);
	printf("%" PRIu64 " connections, at most %" PRIu64 " at a time, heard %" PRIu64
	       " times; disconnected for silence %" PRIu64 ", left %" PRIu64 ", here at the end %" PRIu64
	       "; pauses in accepting %" PRIu64 "\n",
	    server.accepted, server.most, server.heartbeats, server.silent, server.left, server.open, server.pauses);
	disconnect_all();
	ww_wheel_destroy(server.wheel);
	close(server.epoll);
	close(server.listener);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		failed("standard output");
		status = 1;
	}
	return status;
}
