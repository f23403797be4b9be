/*
 * Stands in front of the C library (LD_PRELOAD): the first connections that a program makes are refused, as many as REFUSED says, as
 * if its server had just been started and did not listen yet.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	static int refused;

	if (refused++ < atoi(getenv("REFUSED"))) {
		errno = ECONNREFUSED;
		return -1;
	}
	return (int)syscall(SYS_connect, fd, address, size);
}
