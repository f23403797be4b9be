#ifndef TOOLS_COMMON_DIAL_H
#define TOOLS_COMMON_DIAL_H

/* Addresses of servers, and connections to them: HOST:PORT, [IPv6]:PORT, tls: and one of these, or unix:PATH. */

enum { DIAL_HOST_MAX = 256 };

/* Return 1 if the text is such an address. No name is looked up. */
int dial_is_address(const char *server);

/* Return 1 if it is one with tls:, and store the host. */
int dial_is_tls(const char *server, char host[DIAL_HOST_MAX]);

/*
 * Connect, without TLS, and wait at most the timeout for each address of a name. Return a descriptor that never blocks and
 * is closed in programs that this one runs, or -1 with *reason, which stays valid in this thread until its next call, and with
 * errno, which is 0 if the address or its name is the reason.
 */
int dial_connect(const char *server, int timeout_ms, const char **reason);

#endif
