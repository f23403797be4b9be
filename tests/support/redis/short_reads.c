/*
 * Stands in front of the C library (LD_PRELOAD): a program receives at most SHORT_READS bytes at once. Only recvfrom is
 * replaced, as tools/service/http/recv.c calls that for recv.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>

ssize_t recvfrom(int fd, void *bytes, size_t size, int flags, __SOCKADDR_ARG from, socklen_t *length)
{
	size_t most = strtoul(getenv("SHORT_READS"), NULL, 10);
	ssize_t (*original)(int, void *, size_t, int, struct sockaddr *, socklen_t *);

	*(void **)&original = dlsym(RTLD_NEXT, "recvfrom");
	return original(fd, bytes, size < most ? size : most, flags, from.__sockaddr__, length);
}
