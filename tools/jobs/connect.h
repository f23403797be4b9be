#ifndef TOOLS_CONNECT_H
#define TOOLS_CONNECT_H

/* Connect to HOST:PORT, [IPv6]:PORT or unix:PATH. Return a descriptor that never blocks, or -1 after a message. */
int connect_server(const char *server, int timeout_ms);

#endif
