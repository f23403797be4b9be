#ifndef TOOLS_WEEKWHEELD_STANDBY_OWNER_H
#define TOOLS_WEEKWHEELD_STANDBY_OWNER_H

/*
 * Where the owner of a store in PostgreSQL listens. It tells the other servers by the store (`advertise` of its config), as
 * "HOST CLEAR TLS HTTP": a host and three ports, 0 for what is not there.
 */

#include <netdb.h>
#include <sys/socket.h>
#include <uv.h>

#include "weekwheel/jobs_postgres.h"

struct listening;

enum owner_port { OWNER_CLEAR, OWNER_TLS, OWNER_HTTP, OWNER_PORTS };

enum { OWNER_TEXT = WW_JOBS_POSTGRES_ADVERTISE_MAX + 1, OWNER_HEARD = 128 };

struct owner {
	char text[OWNER_HEARD]; /* as it was heard; "": nobody says that he is the owner */
	char host[OWNER_HEARD];
	unsigned ports[OWNER_PORTS];
	struct sockaddr_storage address; /* of the host */
	socklen_t size;
	unsigned failures; /* how often it was tried in vain: the next of the host's addresses has its turn */
};

/*
 * Write what this server tells, from where it listens for jobs and HTTP. `host` is that of --advertise, or NULL. Returns
 * 0, or -1 after a message.
 */
int owner_tell(const char *host, const struct listening *jobs, const struct listening *http, char text[OWNER_TEXT]);

/* Read what another server tells. Returns 0, or -1: it tells nothing. */
int owner_read(struct owner *owner, const char *text);

/*
 * Look up the host, in a thread: a server of names may be silent for long. `found` is called with the addresses, or why
 * there are none, unless owner_search_end was. Returns NULL without memory.
 */
typedef void owner_found_fn(void *context, const struct addrinfo *addresses, const char *why);
struct owner_search *owner_search(const struct owner *owner, uv_loop_t *loop, owner_found_fn *found, void *context);
void owner_search_end(struct owner_search *search);

/* Take the one of these addresses whose turn it is. */
void owner_take(struct owner *owner, const struct addrinfo *addresses);

/* Begin to connect. Returns a descriptor that becomes writable, or -1 with errno set. */
int owner_connect(const struct owner *owner, enum owner_port port);

#endif
