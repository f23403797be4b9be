#ifndef TOOLS_WEEKWHEELD_STANDBY_STANDBY_H
#define TOOLS_WEEKWHEELD_STANDBY_STANDBY_H

/*
 * A server of jobs in PostgreSQL while another one owns them. It listens already, and passes its clients' bytes on to the
 * owner, so that tokens and TLS go from end to end:
 *
 *     client ---> guest: waits for the owner ---> [ relay ] ---> the owner's port of the same kind:
 *                   |                                            without TLS, with TLS, or HTTP
 *                   +--> /livez, /readyz, /healthz, /metrics without TLS: answered here
 *
 * Where the owner is, the store says (owner.h). A first connection tries that address before guests go there, and stays
 * open: if it comes in at this server's own door, the address leads in a circle. When another server becomes the owner, all
 * relays end, as if a server had been started again. A guest waits WAIT_MS for an owner, and then gets an error. If
 * this server becomes the owner, the guests become its clients.
 *
 * All calls are made in the loop's thread. The loop runs within `waits` of the store's config.
 */

#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <uv.h>

#include "tools/service/net/listen.h"
#include "tools/service/net/relay.h"
#include "tools/weekwheeld/standby/owner.h"

struct guest;
struct attempt;
struct server;

enum standby_door { STANDBY_JOBS, STANDBY_HTTP, STANDBY_DOORS };

typedef void standby_let_in_fn(void *context, int fd, const struct sockaddr *peer, int is_tls);

/* The first three are set by the server before standby_begin, the others are zeros. */
struct standby {
	struct listening *doors[STANDBY_DOORS];
	standby_let_in_fn *let_in[STANDBY_DOORS]; /* how clients come to this server itself */
	void *context;                            /* for these */

	struct server *server; /* NULL: it does not stand by */
	struct owner owner;
	struct relays relays;
	TAILQ_HEAD(, guest) guests;
	unsigned guest_count;
	struct owner_search *search; /* looks up the owner's host */
	struct attempt *first;       /* tries the owner's address */
	int line;                    /* the connection that it made, or -1 */
	int is_good;                 /* the owner can be reached there */
	uint64_t again;              /* ms: when to try again */
	uint64_t began;              /* ns */
	uint64_t notified;           /* ms: when systemd was told last */
	uv_timer_t tick;
	int is_tick;
};

/* The doors are open: begin to stand by. */
int standby_begin(struct standby *standby, struct server *server);

/* `waits` of the store's config, but for its context: run the loop for a moment. `owner` is as in owner.h. */
void standby_wait(struct standby *standby, const char *owner);

/* A client has come at a door. */
void standby_came(struct standby *standby, enum standby_door door, int fd, const struct sockaddr *peer, int is_tls);

/* It is over: the guests become clients of this server, if it owns the store. Relays end. */
void standby_end(struct standby *standby, int is_owner);

#endif
