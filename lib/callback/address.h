#ifndef LIB_CALLBACK_ADDRESS_H
#define LIB_CALLBACK_ADDRESS_H

/*
 * Which addresses may be called. All are compared as 16 bytes, an IPv4 address as ::ffff:a.b.c.d; an IPv4 range in a
 * list therefore also covers its addresses in that form.
 *
 *   1. A denied range forbids an address, and also an IPv6 address with a denied IPv4 address inside.
 *   2. An allowed range permits it.
 *   3. Otherwise its class decides: a public address may be called; one of a special network (WW_CALLBACK_*) only if
 *      that network is permitted.
 *   4. An IPv6 address with an IPv4 address inside (mapped, NAT64, 6to4) also needs that one to be permitted.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "weekwheel/callback.h"

#define CALLBACK_NETWORKS                                                                                              \
	((uint32_t)(WW_CALLBACK_LOOPBACK | WW_CALLBACK_PRIVATE | WW_CALLBACK_LINK_LOCAL | WW_CALLBACK_SPECIAL))

struct callback_range {
	unsigned char address[16];
	unsigned bits;
};

struct callback_ranges {
	struct callback_range *deny;
	size_t deny_count;
	struct callback_range *allow;
	size_t allow_count;
	uint32_t networks;
};

/* Read "10.0.0.0/8", "2001:db8::/32", or one address. Returns 0 if it cannot be read, or has bits beyond its prefix. */
int ww_callback_address_range(const char *text, struct callback_range *range);
int ww_callback_address_may(const struct callback_ranges *ranges, const struct sockaddr *address);
/* The networks, WW_CALLBACK_*, that must be added to permit a forbidden address; 0: no networks would. */
uint32_t ww_callback_address_lacks(const struct callback_ranges *ranges, const struct sockaddr *address);
/* Write it as text of at most `size` bytes, at least INET6_ADDRSTRLEN. */
void ww_callback_address_text(const struct sockaddr *address, char *text, size_t size);

#endif
