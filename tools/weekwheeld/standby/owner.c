/* Where the owner of a store in PostgreSQL listens: see owner.h. */
#include "tools/weekwheeld/standby/owner.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/service/net/address.h"
#include "tools/service/net/listen.h"

/* ---- What this server tells */

static unsigned port_of(const struct sockaddr_storage *address)
{
	struct sockaddr_in in;

	memcpy(&in, address, sizeof in);
	return ntohs(in.sin_port);
}

static int is_any(const struct sockaddr_storage *address)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	memcpy(&six, address, sizeof six);
	memcpy(&four, address, sizeof four);
	return address->ss_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr)
	                                      : four.sin_addr.s_addr == INADDR_ANY;
}

/* Write an address without its port. One that stands for all is '*': PostgreSQL sees from where this server comes. */
static void write_host(const struct sockaddr_storage *address, char host[ADDRESS_TEXT])
{
	char text[ADDRESS_TEXT];
	size_t from;

	(void)address_show((const struct sockaddr *)address, text);
	*strrchr(text, ':') = 0;
	from = text[0] == '[';
	text[strlen(text) - from] = 0;
	snprintf(host, ADDRESS_TEXT, "%s", is_any(address) ? "*" : text + from);
}

int owner_tell(const char *given, const struct listening *jobs, const struct listening *http, char text[OWNER_TEXT])
{
	struct sockaddr_storage at[OWNER_PORTS];
	int reach[OWNER_PORTS] = {listen_find(jobs, 0, &at[OWNER_CLEAR]), listen_find(jobs, 1, &at[OWNER_TLS]),
	    listen_find(http, -1, &at[OWNER_HTTP])};
	unsigned ports[OWNER_PORTS] = {0};
	char host[ADDRESS_TEXT] = "";
	char one[ADDRESS_TEXT];
	int best = LISTEN_NOWHERE;
	int length;

	for (int i = 0; i < OWNER_PORTS; i++)
		best = reach[i] > best ? reach[i] : best;
	/* Beside an address that others reach, one that they do not is none. */
	for (int i = 0; i < OWNER_PORTS; i++) {
		if (reach[i] == LISTEN_NOWHERE || reach[i] != best)
			continue;
		write_host(&at[i], one);
		/* One host is told for all ports, and at another one this port may be anybody's. */
		if (!given && *host && *host != '*' && *one != '*' && strcmp(host, one) != 0)
			continue;
		ports[i] = port_of(&at[i]);
		if (*host != '*')
			memcpy(host, one, sizeof host);
	}
	if (given || !*host)
		snprintf(host, sizeof host, "%s", given ? given : "127.0.0.1");
	length =
	    snprintf(text, OWNER_TEXT, "%s %u %u %u", host, ports[OWNER_CLEAR], ports[OWNER_TLS], ports[OWNER_HTTP]);
	return length < OWNER_TEXT ? 0
	                           : message_error("the address of this server is too long for the other servers: give "
	                                           "a shorter name of it by --advertise");
}

/* ---- What another one tells */

int owner_read(struct owner *owner, const char *text)
{
	*owner = (struct owner){.size = 0};
	snprintf(owner->text, sizeof owner->text, "%s", text);
	if (sscanf(text, "%127s %5u %5u %5u", owner->host, &owner->ports[OWNER_CLEAR], &owner->ports[OWNER_TLS],
	        &owner->ports[OWNER_HTTP]) == 1 + OWNER_PORTS)
		return 0;
	owner->host[0] = 0;
	return -1;
}

const char *owner_find(struct owner *owner)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int error = getaddrinfo(owner->host, NULL, &hints, &found);

	if (error)
		return error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error);
	memcpy(&owner->address, found->ai_addr, found->ai_addrlen);
	owner->size = found->ai_addrlen;
	freeaddrinfo(found);
	return NULL;
}

int owner_connect(const struct owner *owner, enum owner_port port)
{
	static const int on = 1;
	struct sockaddr_storage address = owner->address;
	struct sockaddr_in in;
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	/* The port has the same place in both families. */
	memcpy(&in, &address, sizeof in);
	in.sin_port = htons((uint16_t)owner->ports[port]);
	memcpy(&address, &in, sizeof in);
	if (connect(fd, (const struct sockaddr *)&address, owner->size) == 0 || errno == EINPROGRESS)
		return fd;
	error = errno;
	(void)close(fd);
	errno = error;
	return -1;
}
