/* Addresses. */
#include "address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

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

/* getaddrinfo takes the lower 16 bits of any number. */
static int is_port(const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && *end == 0 && port <= 65535;
}

int address_read(const char *text, struct sockaddr_storage *address)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	const char *port;
	char host[256];
	int error;

	if (address_split(text, host, sizeof host, &port) != 0) {
		message_line(
		    "weekwheeld: '%s' is no address: write HOST:PORT, such as 127.0.0.1:11300 or [::1]:11300", text);
		return -1;
	}
	if (!is_port(port)) {
		message_line("weekwheeld: '%s' is no address: its port has to be a number from 0 to 65535", text);
		return -1;
	}
	error = getaddrinfo(host, port, &hints, &found);
	if (error) {
		message_line("weekwheeld: '%s' is no address: %s", text, gai_strerror(error));
		return -1;
	}
	memset(address, 0, sizeof *address);
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

void address_text(const struct sockaddr *address, char *text)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;

		(void)inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
		snprintf(text, ADDRESS_TEXT, "[%s]:%u", host, ntohs(six->sin6_port));
	} else {
		const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;

		(void)inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
		snprintf(text, ADDRESS_TEXT, "%s:%u", host, ntohs(four->sin_port));
	}
}

int address_is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
	return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
}
