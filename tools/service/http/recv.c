/* The C library's recv with a look at the heads of requests: see recv.h. */
#include "tools/service/http/recv.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tools/service/http/visitors.h"

static _Thread_local struct visitors *looked_at;

void recv_look_at(struct visitors *visitors)
{
	looked_at = visitors;
}

/* Put as much of the refusal behind these bytes as there is room for. Returns how many bytes there are then. */
static size_t refuse(struct visitor *visitor, char *bytes, size_t size, size_t room)
{
	size_t part = strnlen(visitor->refusal, room - size);

	memcpy(bytes + size, visitor->refusal, part);
	visitor->refusal += part;
	return size + part;
}

static ssize_t look(struct visitor *visitor, char *bytes, size_t size, size_t room)
{
	int was_wrong = visitor->head.state == HEAD_WRONG;
	size_t right = head_read(&visitor->head, bytes, size);

	if (!was_wrong && visitor->head.state == HEAD_WRONG)
		visitor->refusal = head_refusal(&visitor->head);
	if (visitor->head.state == HEAD_WRONG)
		right = refuse(visitor, bytes, right, room);
	if (right > 0)
		return (ssize_t)right;
	/* After a wrong head, read and drop. */
	errno = EAGAIN;
	return -1;
}

/*
 * epoll reports an end to libmicrohttpd only as an edge, and libmicrohttpd does not read again after a short read. So
 * an end that arrives together with bytes gets an edge of its own; otherwise the connection would stay until it times
 * out.
 */
static void signal_end(int fd)
{
	char byte;

	if (recvfrom(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) == 0)
		(void)shutdown(fd, SHUT_RD);
}

ssize_t recv(int fd, void *bytes, size_t room, int flags)
{
	struct visitor *visitor = looked_at && !(flags & MSG_PEEK) ? visitors_find(looked_at, fd) : NULL;
	ssize_t got;

	/* The refusal may be longer than the bytes it replaces. */
	if (visitor && room > 0 && visitor->refusal && *visitor->refusal)
		return (ssize_t)refuse(visitor, bytes, 0, room);
	got = recvfrom(fd, bytes, room, flags, NULL, NULL);
	if (visitor && got > 0 && (size_t)got < room)
		signal_end(fd);
	return visitor && got > 0 ? look(visitor, bytes, (size_t)got, room) : got;
}
