/*
 * Notifies systemd that the server is ready, that it ends, and, while its loop goes round, that it lives
 * (sd_notify(3)). That takes a few datagrams, for which the server needs no library.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/service/state/notify.h"

static void notify_send(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (length == 0 || length >= sizeof address.sun_path)
		return;
	memcpy(address.sun_path, path, length);
	/* An abstract name is written with '@'. */
	if (*path == '@')
		*address.sun_path = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	(void)close(fd);
}

static void notify_alive(uv_timer_t *timer)
{
	(void)timer;
	notify_send("WATCHDOG=1");
}

/* Return how often systemd expects a sign of life from this process, in ms, or 0: never. */
static uint64_t watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoull(usec, NULL, 10) / 1000;
}

void notify_stands_by(const char *status)
{
	char text[200];

	(void)snprintf(text, sizeof text, "READY=1\nSTATUS=%s%s", status,
	    watchdog_ms() ? "\nWATCHDOG=1\nWATCHDOG_USEC=300000000" : "");
	notify_send(text);
}

void notify_start(uv_loop_t *loop, uv_timer_t *watchdog)
{
	uint64_t ms = watchdog_ms();
	char text[80];

	uv_timer_init(loop, watchdog);
	if (ms > 0)
		uv_timer_start(watchdog, notify_alive, ms / 3, ms / 3 ? ms / 3 : 1);
	/* What it said while it stood by ends. */
	(void)snprintf(
	    text, sizeof text, "READY=1\nSTATUS=%s%s", ms ? "\nWATCHDOG_USEC=" : "", ms ? getenv("WATCHDOG_USEC") : "");
	notify_send(text);
}

void notify_stop(void)
{
	notify_send("STOPPING=1");
}
