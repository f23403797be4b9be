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

/* Give this member of the client's names these bytes, without blanks; no bytes: none. Returns 0, or -1. */
int names_set(struct conn *conn, char **name, const char *bytes, size_t size);
/* Free them all. */
void names_forget(struct conn *conn);

#endif
