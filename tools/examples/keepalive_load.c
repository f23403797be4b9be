/*
 * The load for keepalive.c: connections that send heartbeats. Some go silent, and the program measures how late each
 * is disconnected, counted from its last byte plus the timeout. No client may be disconnected earlier, and none that
 * sends.
 *
 * The clock is read before the last byte is sent and after the disconnection is seen. The lateness therefore includes
 * both ways over the network, the server's rounding up to its tick, the whole millisecond that its epoll_wait sleeps,
 * and how late either process woke. It is never less than the truth, and never negative if the server keeps its
 * promise. The program also prints how late its own heartbeats were, which tells how busy the machine was.
 *
 * If the time between two heartbeats of a connection reached the timeout because this program was late, the server was
 * right to disconnect it. Such connections are counted separately ("kept waiting by this program").
 *
 * Each client has one periodic timer, its heartbeat; the wheel and the loop are like those of keepalive.c.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "keepalive.h"

#define SECOND UINT64_C(1000000000)

enum {
	CONNECTING = 256, /* connections under way at a time: they must fit into the server's queue */
	PATIENCE = 10,    /* seconds without a new connection, or past the expected end, until this program gives up */
};

enum state { IDLE, OPENING, SENDING, SILENT, GONE };

struct load_client {
	int fd;
	enum state state;
	int planned;        /* this one goes silent */
	int kept_waiting;   /* between two of its heartbeats the timeout passed */
	uint64_t silent_at; /* ns after all were connected */
	uint64_t sent;      /* just before its last byte was sent, or before it began to connect */
	struct ww_timer beat;
};

static struct {
	uint64_t port; /* 0: start a server */
	uint64_t connections;
	uint64_t timeout, heartbeat, seconds; /* in ns */
	uint64_t silent;
	int json;
} options = {.connections = 200};

static struct {
	struct load_client *clients;
	int64_t *late; /* of each silent client that was disconnected, in ns */
	int epoll;
	uint64_t next;                      /* the client to connect next */
	uint64_t opening, sending, waiting; /* clients in those states; waiting: silent and not disconnected yet */
	uint64_t connected;                 /* how many ever */
	uint64_t started, progress;         /* when the last of them was; when something happened last */
	uint64_t heartbeats, own_late;      /* own_late: by how much, in ns, the latest heartbeat */
	uint64_t to_come;                   /* clients that go silent and are not disconnected yet */
	uint64_t disconnected, early, while_sending, kept_waiting;
	struct ww_timer second;
	pid_t server;
	FILE *server_output;
} load;

/* Numbers that are the same in every run (G. Steele et al., SplitMix, OOPSLA 2014): 0 to below - 1. */
static uint64_t random_below(uint64_t below)
{
	static uint64_t state;
	uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) % below;
}

/* ---- Clients ---------------------------------------------------------------------------------------------------- */

/* The server has closed the connection: judge whether it was right and how late it was. */
static void on_disconnected(struct load_client *client)
{
	uint64_t silence = clock_ns() - client->sent;

	ww_wheel_cancel(wheel, &client->beat);
	close(client->fd);
	load.to_come -= (uint64_t)client->planned;
	if (client->state == SILENT)
		load.waiting--;
	else
		load.sending--;
	if (client->state == SILENT && silence >= options.timeout)
		load.late[load.disconnected++] = (int64_t)(silence - options.timeout);
	else if (silence >= options.timeout || client->kept_waiting)
		load.kept_waiting++;
	else if (client->state == SILENT)
		load.early++;
	else
		load.while_sending++;
	client->state = GONE;
	load.progress = clock_ns();
}

/*
 * As the server sees it, the time between two heartbeats is at most that from before the first to after the second. The
 * byte does not fit only if the server does not read; then it is left out.
 */
static void send_heartbeat(struct load_client *client)
{
	uint64_t before = clock_ns();
	ssize_t sent = send(client->fd, ".", 1, MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN && errno != EINTR) {
		on_disconnected(client);
		return;
	}
	if (clock_ns() - client->sent >= options.timeout)
		client->kept_waiting = 1;
	if (sent < 0)
		return;
	client->sent = before;
	load.heartbeats++;
}

static void go_silent(struct load_client *client)
{
	ww_wheel_cancel(wheel, &client->beat);
	client->state = SILENT;
	load.sending--;
	load.waiting++;
	load.progress = clock_ns();
}

static void on_beat(struct ww_wheel *of, struct ww_timer *timer, uint64_t missed)
{
	struct load_client *client = WW_TIMER_OWNER(timer, struct load_client, beat);
	uint64_t now = clock_ns(), next, late;

	(void)of, (void)missed;
	/* A periodic timer is already scheduled again: this expiry was due one period earlier. */
	if (ww_timer_deadline(timer, &next) == 1) {
		late = now - (next - wheel_tick(options.heartbeat)) * MILLISECOND;
		if (late > load.own_late)
			load.own_late = late;
	}
	if (client->planned && load.started && now >= load.started + client->silent_at)
		go_silent(client);
	else
		send_heartbeat(client);
}

static void watch(struct load_client *client, int operation, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = client};

	if (epoll_ctl(load.epoll, operation, client->fd, &event) != 0)
		fail("epoll", strerror(errno));
}

static void open_client(struct load_client *client)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port)};

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (client->fd < 0)
		fail("a socket", strerror(errno));
	client->sent = clock_ns();
	if (connect(client->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)
		fail("connecting", errno == EADDRNOTAVAIL
		                       ? "there are no more local ports; see /proc/sys/net/ipv4/ip_local_port_range"
		                       : strerror(errno));
	client->state = OPENING;
	load.opening++;
	watch(client, EPOLL_CTL_ADD, EPOLLOUT);
}

static void on_connected(struct load_client *client)
{
	uint64_t period = wheel_tick(options.heartbeat);
	socklen_t size = sizeof(int);
	int error = 0;

	if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error)
		fail("connecting",
		    error == ECONNREFUSED ? "nobody listens on that port" : strerror(error ? error : errno));
	watch(client, EPOLL_CTL_MOD, EPOLLIN);
	client->state = SENDING;
	load.opening--;
	load.sending++;
	load.connected++;
	load.progress = clock_ns();
	if (load.connected == options.connections)
		load.started = load.progress;
	/* The first heartbeat goes out at once, the others at a phase of their own: clients do not beat in step. */
	ww_wheel_schedule_every_at(wheel, &client->beat, wheel_tick(load.progress) + random_below(period), period);
	send_heartbeat(client);
}

static void on_event(struct load_client *client)
{
	char bytes[64];
	ssize_t got;

	if (client->state == OPENING) {
		on_connected(client);
		return;
	}
	got = recv(client->fd, bytes, sizeof bytes, 0);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		on_disconnected(client);
}

/* Spread the silent ones over all clients, and their moments over the time in which they are still seen. */
static void make_clients(void)
{
	uint64_t span = options.seconds - options.timeout - options.heartbeat;
	struct load_client *client;

	load.clients = calloc(options.connections, sizeof *load.clients);
	load.late = calloc(options.silent + 1, sizeof *load.late);
	if (!load.clients || !load.late)
		fail("memory", strerror(errno));
	load.to_come = options.silent;
	for (uint64_t i = 0; i < options.connections; i++) {
		client = &load.clients[i];
		client->planned =
		    (i + 1) * options.silent / options.connections != i * options.silent / options.connections;
		client->silent_at = random_below(span + 1);
		ww_timer_init(&client->beat, on_beat);
	}
}

/* ---- The run ---------------------------------------------------------------------------------------------------- */

static void show_second(struct ww_wheel *of, struct ww_timer *timer, uint64_t missed)
{
	(void)of, (void)timer, (void)missed;
	fprintf(stderr,
	    "\r\033[K%" PRIu64 " of %" PRIu64 " s: %" PRIu64 " connected, %" PRIu64 " of them silent, %" PRIu64
	    " disconnected",
	    load.started ? (clock_ns() - load.started) / SECOND : 0, options.seconds / SECOND,
	    load.sending + load.waiting, load.waiting, load.disconnected);
}

/* Return 1 when everything has happened or no longer can. */
static int is_over(void)
{
	uint64_t now = clock_ns();

	if (load.connected < options.connections) {
		if (now > load.progress + PATIENCE * SECOND)
			fail("connecting", "the server accepts no more connections");
		return 0;
	}
	if (load.sending + load.waiting == 0)
		return 1;
	if (now < load.started + options.seconds)
		return 0;
	return load.to_come == 0 || now > load.started + options.seconds + options.timeout + PATIENCE * SECOND;
}

static void run(void)
{
	static struct epoll_event events[EVENTS];
	int count;

	load.progress = clock_ns();
	while (!is_over()) {
		while (load.opening < CONNECTING && load.next < options.connections)
			open_client(&load.clients[load.next++]);
		count = epoll_wait(load.epoll, events, EVENTS, wheel_sleep_ms(1000));
		for (int i = 0; i < count; i++)
			on_event(events[i].data.ptr);
		wheel_turn();
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static void begin(void)
{
	wheel_open();
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (load.epoll < 0)
		fail("epoll", strerror(errno));
	make_clients();
	ww_timer_init(&load.second, show_second);
	if (isatty(STDERR_FILENO))
		ww_wheel_schedule_every(wheel, &load.second, 1000, 1000);
}

static void end(void)
{
	for (uint64_t i = 0; i < options.connections; i++)
		if (load.clients[i].state != GONE)
			close(load.clients[i].fd);
	ww_wheel_destroy(wheel);
	close(load.epoll);
	free(load.clients);
}

/* ---- A server of its own ---------------------------------------------------------------------------------------- */

/* The child becomes the program keepalive in the same folder, and ends when its parent does. */
static _Noreturn void become_server(pid_t parent, int out, const char *connections, const char *timeout)
{
	const char *slash = strrchr(program_invocation_name, '/');
	int folder = slash ? (int)(slash + 1 - program_invocation_name) : 0;
	char path[4096];

	snprintf(path, sizeof path, "%.*skeepalive", folder, program_invocation_name);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	dup2(out, STDOUT_FILENO);
	execlp(path, path, "--port", "0", "--connections", connections, "--timeout", timeout, (char *)NULL);
	fprintf(stderr, "keepalive_load: %s: %s\n", path, strerror(errno));
	_exit(127);
}

/* The server prints its port as soon as it listens. */
static void start_server(void)
{
	char connections[32], timeout[48], line[256];
	pid_t parent = getpid();
	int pipes[2];

	snprintf(connections, sizeof connections, "%" PRIu64, options.connections);
	snprintf(timeout, sizeof timeout, "%" PRIu64 ".%09" PRIu64, options.timeout / SECOND, options.timeout % SECOND);
	if (pipe2(pipes, O_CLOEXEC) != 0)
		fail("a pipe", strerror(errno));
	load.server = fork();
	if (load.server < 0)
		fail("a process for the server", strerror(errno));
	if (load.server == 0)
		become_server(parent, pipes[1], connections, timeout);
	close(pipes[1]);
	load.server_output = fdopen(pipes[0], "r");
	if (!load.server_output || !fgets(line, sizeof line, load.server_output) ||
	    sscanf(line, "listening on 127.0.0.1:%" SCNu64, &options.port) != 1)
		fail("the server", "did not start");
}

/* Return 0 if it ended well. Its last output is passed on. */
static int stop_server(void)
{
	char line[512];
	int status;

	if (!load.server)
		return 0;
	kill(load.server, SIGTERM);
	while (fgets(line, sizeof line, load.server_output))
		if (!options.json)
			printf("server: %s", line);
	fclose(load.server_output);
	while (waitpid(load.server, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	fprintf(stderr, "keepalive_load: the server ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "status",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return 1;
}

/* ---- The report ------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/* The least lateness that `thousandths` of all do not exceed, in ms. */
static double late_ms(uint64_t thousandths)
{
	uint64_t rank = (load.disconnected * thousandths + 999) / 1000;

	return (double)load.late[rank ? rank - 1 : 0] / MILLISECOND;
}

static void write_text(void)
{
	printf("%" PRIu64 " connections, timeout %g s; %" PRIu64
	       " heartbeats, one every %g s, sent at most %.2f ms late\n",
	    options.connections, (double)options.timeout / 1e9, load.heartbeats, (double)options.heartbeat / 1e9,
	    (double)load.own_late / MILLISECOND);
	printf("silent %" PRIu64 ", disconnected %" PRIu64, options.silent, load.disconnected);
	if (load.disconnected)
		printf(", late by ms: least %.2f, median %.2f, 99.9 %% %.2f, most %.2f", late_ms(0), late_ms(500),
		    late_ms(999), late_ms(1000));
	printf("\ndisconnected while sending %" PRIu64 ", too early %" PRIu64 ", never %" PRIu64
	       "; kept waiting by this program %" PRIu64 "\n",
	    load.while_sending, load.early, load.waiting, load.kept_waiting);
}

static void write_json(void)
{
	static const struct {
		const char *name;
		uint64_t thousandths;
	} lateness[] = {{"least", 0}, {"median", 500}, {"p999", 999}, {"most", 1000}};

	printf("{\n  \"connections\": %" PRIu64 ",\n  \"timeout_seconds\": %g,\n  \"heartbeat_seconds\": %g,\n"
	       "  \"heartbeats\": %" PRIu64 ",\n  \"heartbeat_most_late_ms\": %.6f,\n  \"silent\": %" PRIu64 ",\n"
	       "  \"disconnected\": %" PRIu64 ",\n",
	    options.connections, (double)options.timeout / 1e9, (double)options.heartbeat / 1e9, load.heartbeats,
	    (double)load.own_late / MILLISECOND, options.silent, load.disconnected);
	for (size_t i = 0; i < sizeof lateness / sizeof *lateness; i++)
		if (load.disconnected)
			printf("  \"late_%s_ms\": %.6f,\n", lateness[i].name, late_ms(lateness[i].thousandths));
		else
			printf("  \"late_%s_ms\": null,\n", lateness[i].name);
	printf("  \"disconnected_while_sending\": %" PRIu64 ",\n  \"disconnected_early\": %" PRIu64 ",\n"
	       "  \"never_disconnected\": %" PRIu64 ",\n  \"kept_waiting\": %" PRIu64 "\n}\n",
	    load.while_sending, load.early, load.waiting, load.kept_waiting);
}

/* Return the exit status: 1 if the server broke a promise. */
static int report(void)
{
	qsort(load.late, load.disconnected, sizeof *load.late, compare);
	if (options.json)
		write_json();
	else
		write_text();
	free(load.late);
	if (!load.while_sending && !load.early && !load.waiting)
		return 0;
	fflush(stdout);
	fprintf(stderr,
	    "keepalive_load: %" PRIu64 " connections were disconnected while they were sending, %" PRIu64
	    " too early, and %" PRIu64 " never; has the server the same --timeout?\n",
	    load.while_sending, load.early, load.waiting);
	return 1;
}

/* ---- The command line ------------------------------------------------------------------------------------------- */

static const char help[] =
    "Usage: keepalive_load [OPTION]...\n"
    "\n"
    "Open connections to the server keepalive, send heartbeats, let some go silent, and measure how late those are\n"
    "disconnected. Exit status 1 if a client was disconnected while sending, or too early, or never.\n"
    "\n"
    "  -p, --port PORT           the server's, on 127.0.0.1; without it, a server is started for the run\n"
    "  -t, --timeout SECONDS     the server's, 0.001 to 1000000 (0.3; with --port it must be given)\n"
    "  -b, --heartbeat SECONDS   the time between two heartbeats of a connection (a sixth of the timeout)\n"
    "  -c, --connections NUMBER  how many (200)\n"
    "  -q, --silent SOME         how many of them go silent: 1000, or a share: 10%, 0.1 (10%)\n"
    "  -s, --seconds SECONDS     how long it goes on when all are connected (2.5 times the timeout)\n"
    "  -j, --json                write the result as JSON\n"
    "  -h, --help                show this help\n"
    "\n"
    "Examples: a small run, and 75 seconds with 10,000 connections:\n"
    "  keepalive_load\n"
    "  keepalive_load --connections 10000 --timeout 30 --heartbeat 5 --silent 1000";

/* 1000, 10% or 0.1; a number without a point or a percent sign is a count. */
static uint64_t take_silent(void)
{
	static const char expected[] = "a number of connections, or a share of them such as 10% or 0.1";
	const char *value = given['q'] ? given['q'] : "10%";
	uint64_t silent = 0;
	double share;
	char *end;

	if (!value[strspn(value, "0123456789")]) {
		take_whole(&silent, 'q', "silent", 0, options.connections, expected);
		return silent;
	}
	share = strtod(value, &end);
	if (strcmp(end, "%") == 0)
		share /= 100;
	else if (*end)
		share = -1;
	if (value[strspn(value, "0123456789.%")] || end == value || !(share >= 0 && share <= 1))
		usage("--silent '%s': expected %s", value, expected);
	return (uint64_t)(share * (double)options.connections + 0.5);
}

/* Those that are not given follow from the others. */
static void take_options(int count, char **arguments)
{
	static const struct option table[] = {{"port", required_argument, NULL, 'p'},
	    {"timeout", required_argument, NULL, 't'}, {"heartbeat", required_argument, NULL, 'b'},
	    {"connections", required_argument, NULL, 'c'}, {"silent", required_argument, NULL, 'q'},
	    {"seconds", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
	    {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

	read_options(count, arguments, "p:t:b:c:q:s:jh", table, help);
	take_whole(&options.port, 'p', "port", 0, 65535, "a port, 1 to 65535; 0 starts a server");
	if (options.port && !given['t'])
		usage("with --port, the server's --timeout is needed too");
	options.timeout = 3 * SECOND / 10;
	take_common(&options.connections, &options.timeout);
	options.heartbeat = options.timeout / 6;
	take_seconds(&options.heartbeat, 'b', "heartbeat");
	options.seconds = options.timeout * 5 / 2;
	take_seconds(&options.seconds, 's', "seconds");
	options.silent = take_silent();
	options.json = given['j'] != NULL;
	if (options.heartbeat >= options.timeout)
		usage("heartbeats must come more often than the timeout");
	if (options.seconds < options.timeout + options.heartbeat)
		usage("--seconds must be at least the timeout and a heartbeat");
}

int main(int count, char **arguments)
{
	int status;

	take_options(count, arguments);
	need_descriptors(options.connections);
	if (!options.port)
		start_server();
	begin();
	run();
	end();
	status = report();
	if (stop_server() != 0)
		status = 1;
	finish_output();
	return status;
}
