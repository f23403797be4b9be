#ifndef TESTS_SUPPORT_POSTGRES_POSTGRES_SERVER_H
#define TESTS_SUPPORT_POSTGRES_POSTGRES_SERVER_H

/*
 * A real PostgreSQL 15 for tests, with a folder of its own below /tmp and a socket there, and the tables of a store in its
 * database "weekwheel". It runs as the user postgres if the test is root. However a test ends, it ends with its process.
 */

#include <sys/types.h>

#include "tests/support/suite.h"

struct postgres_server {
	pid_t pid; /* 0: it does not run */
	char folder[64];
	char url[128];
};

/* Whether PostgreSQL is installed. If not, says that the test is skipped. */
int postgres_server_is_there(void);
/* Start one, and wait until it answers. */
void postgres_server_start(struct postgres_server *server);
/* kill -9 of a server that this process has started, and start it again. */
void postgres_server_crash(struct postgres_server *server);
/* End it, and remove its folder. */
void postgres_server_stop(struct postgres_server *server);
/* Execute SQL on a connection of its own. The answer is the first field of the first row, as a number; 0: there is none. */
long long postgres_server_ask(const struct postgres_server *server, const char *sql);
/* Empty the store, while nobody has it open. */
void postgres_server_empty(const struct postgres_server *server);

#endif
