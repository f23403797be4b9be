/*
 * A loop for each processor, and each with timers of its own.
 *
 * Every loop is a thread with an epoll, a listening socket of the same port (SO_REUSEPORT: the kernel deals out the
 * clients) and a driver without threads. What a loop does with the timers of its clients touches no memory of another
 * one. A timer that others may want to name is named by its loop and its handle.
 *
 *   - A call from another thread is safe: it takes the lock of that loop's timers for a moment.
 *   - Or another thread asks the loop: a timer that is long due is a message, whose callback runs there at once.
 *
 * Six clients connect and stay silent. Four are disconnected in time. One is let live by a call, one by a message.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weekwheel/driver.h>

enum { LOOPS = 3, CLIENTS = 6 };
#define SILENCE (500 * WW_MILLISECOND)

struct loop {
	_Alignas(64) struct ww_driver *driver; /* loops that share no cache line do not slow each other down */
	int epoll, listener, done;
	pthread_t thread;
};

/* The name of a timer, for all threads. */
struct timeout {
	struct loop *loop;
	ww_handle handle;
	int fd;
	_Atomic int known;
};

static struct loop loops[LOOPS];
static struct timeout timeouts[CLIENTS];

static void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* ---- In the loop that has the client */

static void disconnect(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver, (void)firing;
	shutdown(((struct timeout *)user)->fd, SHUT_RDWR);
}

static void greet(struct loop *loop, int fd)
{
	unsigned char number = 0; /* a client sends it first */

	check(recv(fd, &number, 1, 0) == 1 && number < CLIENTS, "a client");
	struct timeout *timeout = &timeouts[number];
	timeout->loop = loop;
	timeout->fd = fd;
	check(ww_driver_schedule(loop->driver, SILENCE, disconnect, timeout, &timeout->handle) == WW_OK, "a timer");
	timeout->known = 1;
}

static void *run(void *argument)
{
	struct loop *loop = argument;
	struct epoll_event event;

	while (!loop->done) {
		if (epoll_wait(loop->epoll, &event, 1, -1) != 1)
			continue;
		if (event.data.fd == loop->listener)
			greet(loop, accept4(loop->listener, NULL, NULL, SOCK_CLOEXEC));
		else
			ww_driver_dispatch(loop->driver, 100);
	}
	return NULL;
}

/* ---- Messages: they come in the loop */

static void let_live(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	const struct timeout *timeout = user;

	(void)firing;
	ww_driver_cancel(driver, timeout->handle); /* WW_ESTALE: too late */
}

static void end(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver, (void)firing;
	((struct loop *)user)->done = 1;
}

static void tell(const struct loop *loop, ww_driver_fn *what, void *user)
{
	check(ww_driver_schedule_at(loop->driver, 0, what, user, NULL) == WW_OK, "a message");
}

/* ---- The main thread */

static void watch(const struct loop *loop, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	check(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll");
}

/* The first loop chooses a port, and the others listen on it, too. */
static void start(struct loop *loop, struct sockaddr_in *address)
{
	const struct ww_driver_config config = {
	    .tick_ns = WW_MILLISECOND, .queue = 1024, .flags = WW_DRIVER_THREADLESS};
	socklen_t size = sizeof *address;
	int on = 1;

	check(ww_driver_create(&loop->driver, &config) == WW_OK, "the driver");
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(setsockopt(loop->listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0, "SO_REUSEPORT");
	check(bind(loop->listener, (struct sockaddr *)address, size) == 0, "bind");
	check(getsockname(loop->listener, (struct sockaddr *)address, &size) == 0, "the port");
	check(listen(loop->listener, CLIENTS) == 0, "listen");
	watch(loop, loop->listener);
	watch(loop, ww_driver_fd(loop->driver));
}

static int connect_client(const struct sockaddr_in *address, unsigned char number)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	check(connect(fd, (const struct sockaddr *)address, sizeof *address) == 0, "connect");
	check(send(fd, &number, 1, 0) == 1, "send");
	while (!timeouts[number].known)
		poll(NULL, 0, 1);
	return fd;
}

int main(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int clients[CLIENTS];
	int ended = 0, alive = 0;
	char byte;

	for (int i = 0; i < LOOPS; i++)
		start(&loops[i], &address);
	for (int i = 0; i < LOOPS; i++)
		check(pthread_create(&loops[i].thread, NULL, run, &loops[i]) == 0, "a thread");
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = connect_client(&address, (unsigned char)i);
	ww_driver_cancel(timeouts[0].loop->driver, timeouts[0].handle); /* by a call */
	tell(timeouts[1].loop, let_live, &timeouts[1]);                 /* by a message */
	for (int i = 2; i < CLIENTS; i++)
		ended += recv(clients[i], &byte, 1, 0) == 0;
	for (int i = 0; i < 2; i++) {
		int open = recv(clients[i], &byte, 1, MSG_DONTWAIT) < 0;
		alive += open;
		ended += !open; /* a machine that stood still may let live too late */
	}
	printf("%d clients in %d loops: %d were silent for too long, %d were let live\n", CLIENTS, LOOPS, ended, alive);
	for (int i = 0; i < LOOPS; i++) {
		tell(&loops[i], end, &loops[i]);
		pthread_join(loops[i].thread, NULL);
		ww_driver_destroy(loops[i].driver);
	}
	return ended >= CLIENTS - 2 && ended + alive == CLIENTS ? 0 : 1;
}
