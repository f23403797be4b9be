/* Where the owner of a store in PostgreSQL listens: see owner.h. */
#include "tools/weekwheeld/standby/owner.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- Where its host is */

struct owner_search {
	uv_getaddrinfo_t request;
	owner_found_fn *found; /* NULL: nobody waits */
	void *context;
};

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
	struct owner_search *search = request->data;

	if (search->found)
		search->found(search->context, addresses, status < 0 ? uv_strerror(status) : NULL);
	uv_freeaddrinfo(addresses);
	free(search);
}

struct owner_search *owner_search(const struct owner *owner, uv_loop_t *loop, owner_found_fn *found, void *context)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct owner_search *search = calloc(1, sizeof *search);

	if (!search)
		return NULL;
	search->request.data = search;
	search->found = found;
	search->context = context;
	if (uv_getaddrinfo(loop, &search->request, on_found, owner->host, NULL, &hints) == 0)
		return search;
	free(search);
	return NULL;
}

void owner_search_end(struct owner_search *search)
{
	search->found = NULL;
	(void)uv_cancel((uv_req_t *)&search->request);
}

void owner_take(struct owner *owner, const struct addrinfo *addresses)
{
	const struct addrinfo *address = addresses;

	for (unsigned i = 0; i < owner->failures; i++)
		address = address->ai_next ? address->ai_next : addresses;
	memcpy(&owner->address, address->ai_addr, address->ai_addrlen);
	owner->size = address->ai_addrlen;
}

/* ---- The way there */

int owner_connect(const struct owner *owner, enum owner_port port)
{
	static const int on = 1;
	static const int seconds = 60;
	struct sockaddr_storage address = owner->address;
	struct sockaddr_in in;
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	/* As for clients: those that wait for a job send nothing, and learn by this that the owner's machine is gone. */
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
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
