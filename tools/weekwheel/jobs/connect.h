#ifndef TOOLS_WEEKWHEEL_JOBS_CONNECT_H
#define TOOLS_WEEKWHEEL_JOBS_CONNECT_H

/* Whether it is written as one of the addresses below; no name is looked up. */
int connect_is_address(const char *server);

/* Connect to HOST:PORT, [IPv6]:PORT or unix:PATH. Return a descriptor that never blocks, or -1 after a message. */
int connect_server(const char *server, int timeout_ms);

#endif
