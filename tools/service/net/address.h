#ifndef TOOLS_SERVICE_NET_ADDRESS_H
#define TOOLS_SERVICE_NET_ADDRESS_H

/* Addresses as people write them: HOST:PORT, [HOST]:PORT for IPv6, and ranges such as 10.1.0.0/16. */

#include <sys/socket.h>

enum { ADDRESS_TEXT = 80 };

/* Return NULL if the text has the form of an address, otherwise what was expected. Looks up no name. */
const char *address_check(const char *text);

/*
 * Read the address of an option; of a name with several addresses the first. Returns 0, or after a message -1, or
 * ADDRESS_LATER if the name may be known later.
 */
enum { ADDRESS_LATER = -2 };
int address_read(const char *option, const char *text, struct sockaddr_storage *address);

/*
 * Check a range such as 10.1.0.0/16 or fd00::/8, or one address. Returns 0 if it is right, -1 if it is malformed, or 1
 * if it has bits after its prefix: `right`, of ADDRESS_TEXT bytes, then has the range without them.
 */
int address_range(const char *text, char *right);

/* Write HOST:PORT. Returns 1 if only this machine can reach the address. */
int address_show(const struct sockaddr *address, char text[ADDRESS_TEXT]);

/* "tls:HOST:PORT" is an address with TLS. */
enum { ADDRESS_TLS_PREFIX = 4 };
int address_is_tls(const char *text);

/*
 * Whether a server may listen there: only this machine can reach it, or it has TLS and its clients log in by tokens or
 * certificates (`has_tokens`, `has_trusted`). `what` would otherwise pass unencrypted. Returns 0, or -1 after a
 * message.
 */
int address_let_in(const struct sockaddr *address, int is_tls, int has_tokens, int has_trusted, const char *what);

/*
 * Log `before`, the address and `after`. If other machines can reach it, first warn of the risk, unless that is NULL.
 */
void address_announce(const struct sockaddr *address, const char *before, const char *after, const char *risk);

#endif
