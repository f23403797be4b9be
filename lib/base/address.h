#ifndef LIB_BASE_ADDRESS_H
#define LIB_BASE_ADDRESS_H

/* By what the other side of a connection is counted, limited and remembered. */

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/*
 * An address of IPv4 in the form ::ffff:a.b.c.d, whether it came so or not, or the first 64 bits of one of IPv6: a
 * machine may choose from all addresses that begin with them. All zeros: this machine, or no address.
 */
struct address_key {
	unsigned char bytes[16];
};

static inline struct address_key address_key(const struct sockaddr *address)
{
	static const unsigned char mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	struct address_key key = {{0}};
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (address->sa_family == AF_INET) {
		memcpy(&in, address, sizeof in);
		memcpy(key.bytes, mapped, sizeof mapped);
		memcpy(key.bytes + sizeof mapped, &in.sin_addr, sizeof in.sin_addr);
	} else if (address->sa_family == AF_INET6) {
		memcpy(&in6, address, sizeof in6);
		memcpy(key.bytes, &in6.sin6_addr, IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr) ? 16 : 8);
	}
	return key;
}

static inline int address_key_equal(const struct address_key *a, const struct address_key *b)
{
	return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

#endif
