/* Reads and writes addresses: HOST:PORT, [HOST]:PORT for IPv6, and ranges. */
#include "tools/service/net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/options.h"

/* Split HOST:PORT at its last colon, and take the brackets off. Returns 0 or -1. */
static int address_split(const char *text, char *host, size_t room, const char **port)
{
	const char *colon = strrchr(text, ':');
	size_t length;

	if (!colon || colon[1] == 0)
		return -1;
	*port = colon + 1;
	length = (size_t)(colon - text);
	if (length >= 2 && text[0] == '[' && colon[-1] == ']') {
		text++;
		length -= 2;
	}
	if (length == 0 || length >= room)
		return -1;
	memcpy(host, text, length);
	host[length] = 0;
	return 0;
}

const char *address_check(const char *text)
{
	const char *port;
	uint64_t number;
	char host[256];

	if (address_split(text, host, sizeof host, &port) != 0)
		return "HOST:PORT, such as 127.0.0.1:11300 or [::1]:11300";
	/* getaddrinfo would take the lower 16 bits of a larger number. */
	if (options_whole(port, 0, 65535, &number) != 0)
		return "HOST:PORT with a number from 0 to 65535 for the port";
	return NULL;
}

int address_read(const char *option, const char *text, struct sockaddr_storage *address)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	const char *port;
	char host[256];
	int error = address_split(text, host, sizeof host, &port) == 0 ? 0 : EAI_NONAME;

	if (!error)
		error = getaddrinfo(host, port, &hints, &found);
	if (error) {
		message_error("%s %s: %s: give an address of this machine, or a name that it knows", option, text,
		    error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
		return error == EAI_AGAIN || error == EAI_MEMORY || error == EAI_SYSTEM ? ADDRESS_LATER : -1;
	}
	memset(address, 0, sizeof *address);
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

int address_range(const char *text, char *right)
{
	const char *slash = strchr(text, '/');
	size_t size = slash ? (size_t)(slash - text) : strlen(text);
	unsigned char bytes[sizeof(struct in6_addr)];
	char name[INET6_ADDRSTRLEN];
	uint64_t bits;
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	unsigned all = family == AF_INET ? 32 : 128;
	unsigned bit;
	int beyond = 0;

	if (size >= sizeof name)
		return -1;
	memcpy(name, text, size);
	name[size] = 0;
	if (inet_pton(family, name, bytes) != 1 || (slash && options_whole(slash + 1, 0, all, &bits) != 0))
		return -1;
	for (bit = slash ? (unsigned)bits : all; bit < all; bit++) {
		beyond |= bytes[bit / 8] >> (7 - bit % 8) & 1;
		bytes[bit / 8] &= (unsigned char)~(1U << (7 - bit % 8));
	}
	(void)inet_ntop(family, bytes, name, sizeof name);
	snprintf(right, ADDRESS_TEXT, "%s%s", name, slash ? slash : "");
	return beyond;
}

int address_show(const struct sockaddr *address, char text[ADDRESS_TEXT])
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;

		(void)inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
		snprintf(text, ADDRESS_TEXT, "[%s]:%u", host, ntohs(six->sin6_port));
		return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
	}
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;

	(void)inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
	snprintf(text, ADDRESS_TEXT, "%s:%u", host, ntohs(four->sin_port));
	return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

void address_announce(const struct sockaddr *address, const char *before, const char *after, const char *risk)
{
	char text[ADDRESS_TEXT];

	if (!address_show(address, text) && risk)
		message_warning("other machines can reach %s, and %s", text, risk);
	message_info("%s%s%s", before, text, after);
}

int address_is_tls(const char *text)
{
	return strncmp(text, "tls:", ADDRESS_TLS_PREFIX) == 0;
}

int address_let_in(const struct sockaddr *address, int is_tls, int has_tokens, int has_trusted, const char *what)
{
	int has_identity = has_tokens || (is_tls && has_trusted);
	char text[ADDRESS_TEXT];

	if ((is_tls && has_identity) || address_show(address, text))
		return 0;
	if (is_tls)
		return message_error("other machines can reach %s, and no client needs a token or a certificate: give "
		                     "--auth-file or --tls-client-ca; or let in whoever reaches it, with --insecure",
		    text);
	return message_error(
	    "other machines can reach %s, and %s%s: listen on 127.0.0.1, or on tls:HOST:PORT with --tls-cert "
	    "and --auth-file; or let in whoever reaches it, with --insecure",
	    text, has_identity ? what : "everybody could use it, unencrypted",
	    has_identity ? " would pass unencrypted" : "");
}
