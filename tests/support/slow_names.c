/*
 * Stands in front of the C library (LD_PRELOAD): names that begin with "silent." are looked up for ever, and
 * those that begin with "two." have two addresses, of which nobody listens at the first.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

typedef int look_up(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found);

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
	void *next = dlsym(RTLD_NEXT, "getaddrinfo");
	look_up *real;
	int error;

	memcpy(&real, &next, sizeof real);
	if (host && strncmp(host, "silent.", 7) == 0) {
		for (;;)
			(void)pause();
	}
	if (!host || strncmp(host, "two.", 4) != 0)
		return real(host, port, hints, found);
	error = real("127.0.0.9", port, hints, found);
	return error ? error : real("127.0.0.1", port, hints, &(*found)->ai_next);
}
