#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_NAMES_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_NAMES_H

/* What a client calls itself and its library. CLIENT LIST shows it, so others read it under the loop's lock. */

#include <stddef.h>

struct conn;

/* A client's; NULL: none. */
struct client_names {
	char *client; /* CLIENT SETNAME */
	char *library;
	char *version; /* of the library */
};

/* The most bytes of one: CLIENT LIST shows those of all clients. */
enum { NAMES_MOST = 1024 };

/* Give this member of the client's names these bytes, without blanks; no bytes: none. Returns NULL, or why not. */
const char *names_set(struct conn *conn, char **name, const char *bytes, size_t size);
/* Free them all. */
void names_forget(struct conn *conn);

#endif
