#ifndef TOOLS_WEEKWHEELD_SETTINGS_ADDRESS_H
#define TOOLS_WEEKWHEELD_SETTINGS_ADDRESS_H

/* Addresses as people write them: HOST:PORT, [HOST]:PORT for IPv6. */

#include <sys/socket.h>

enum { ADDRESS_TEXT = 80 };

/* What was expected in place of the text, or NULL if it is written as an address. No name is looked up. */
const char *address_check(const char *text);

/* Read the address of an option; the first one, where a name has several. Returns 0, or -1 after a message. */
int address_read(const char *option, const char *text, struct sockaddr_storage *address);

/*
 * Whether it is a range such as 10.1.0.0/16 or fd00::/8, or one address. Returns 0; 1: it has bits behind its prefix,
 * and right, of ADDRESS_TEXT bytes, is it without them; -1: it is none.
 */
int address_range(const char *text, char *right);

/* Write an address to text, which has room for ADDRESS_TEXT bytes. */
void address_text(const struct sockaddr *address, char *text);

/* Return 1 if only this machine reaches it. */
int address_is_loopback(const struct sockaddr *address);

#endif
