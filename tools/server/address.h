#ifndef TOOLS_SERVER_ADDRESS_H
#define TOOLS_SERVER_ADDRESS_H

/* Addresses as people write them: HOST:PORT, [HOST]:PORT for IPv6. */

#include <sys/socket.h>

enum { ADDRESS_TEXT = 80 };

/* Read an address; the first one, where a name has several. Returns 0, or -1 after a message. */
int address_read(const char *text, struct sockaddr_storage *address);

/* Write an address to text, which has room for ADDRESS_TEXT bytes. */
void address_text(const struct sockaddr *address, char *text);

/* Return 1 if only this machine reaches it. */
int address_is_loopback(const struct sockaddr *address);

#endif
