/* Decides whether an HTTP request may come in: see gate.h. */
#include "tools/service/http/gate.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static int is_address(const char *host)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Copy the host without its port, brackets and a dot at its end. Returns -1 if it is too long. */
static int host_alone(const char *field, char host[256])
{
	size_t length = strlen(field);
	const char *colon = strrchr(field, ':');

	if (colon && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
	    (field[0] != '[' || (colon > field && colon[-1] == ']')))
		length = (size_t)(colon - field);
	if (length >= 2 && field[0] == '[' && field[length - 1] == ']') {
		field++;
		length -= 2;
	} else if (length > 0 && field[length - 1] == '.') {
		length--;
	}
	if (length >= 256)
		return -1;
	memcpy(host, field, length);
	host[length] = 0;
	return 0;
}

int gate_is_ours(const char *const *names, size_t count, const char *field)
{
	char host[256];

	if (!field)
		return 1;
	if (host_alone(field, host) != 0)
		return 0;
	if (strcasecmp(host, "localhost") == 0 || is_address(host))
		return 1;
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(host, names[i]) == 0)
			return 1;
	return 0;
}
