#ifndef TOOLS_WEEKWHEELD_AUTH_H
#define TOOLS_WEEKWHEELD_AUTH_H

/* Who may: what is turned away, and what the log says of it. */

struct connection;

/* The client speaks HTTP or TLS, as a web page makes a browser do: close it at once, with a line in the log. */
void auth_foreign(struct connection *connection);

#endif
