#ifndef LIB_CALLBACK_ADDRESS_H
#define LIB_CALLBACK_ADDRESS_H

/*
 * Which addresses may be called. All are compared as 16 bytes, an IPv4 address as ::ffff:a.b.c.d; so a range of IPv4 in
 * a list also means its addresses written that way. What an address is at first is told by its class, one of
 * WW_CALLBACK_*.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

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
/*
 * Of an address that may not be called: the networks, WW_CALLBACK_*, without which it may not; 0: it may not with all
 * of them.
 */
uint32_t ww_callback_address_lacks(const struct callback_ranges *ranges, const struct sockaddr *address);
/* Write it for people: at least INET6_ADDRSTRLEN bytes. */
void ww_callback_address_text(const struct sockaddr *address, char *text, size_t size);

#endif
