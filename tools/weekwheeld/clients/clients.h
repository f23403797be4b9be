#ifndef TOOLS_WEEKWHEELD_CLIENTS_CLIENTS_H
#define TOOLS_WEEKWHEELD_CLIENTS_CLIENTS_H

/*
 * The clients of the protocol. A command takes this way:
 *
 *     accept.c -> input.c -> protocol/line.c -> call.c, verbs/ -> the store -> answer.c -> output.c
 *     a client    its bytes  are parsed         carried out       lib/jobs     answered    sent
 *
 * Clients that wait for a job are served after the commit of a turn, in order of arrival at each tube (serve.c).
 */

#include "tools/weekwheeld/clients/connection.h"

struct clients {
	LIST_HEAD(, connection) all;
	SLIST_HEAD(, connection) flush;                   /* they have answers to send */
	STAILQ_HEAD(connection_queue, connection) resume; /* they have commands left, or are being closed */
	struct connection_queue looks;                    /* the same, of those whose next command may take long */
	STAILQ_HEAD(, connection) fresh;                  /* they have begun to wait in this turn */
	SLIST_HEAD(, connection) batch;                   /* they have answers that wait for the commit */
	size_t resuming;                                  /* how many are in `resume` and `looks` */
	unsigned is_looks_turn : 1;                       /* `looks` comes before `resume` */

	const struct steps *const *steps;             /* of each verb (call.h) */
	void (*go_on)(struct connection *connection); /* when its task is done */

	struct watch *watches; /* of all connections */
	struct lease *leases;  /* hashed by id */
	struct leases ended;   /* leases that the current write ends */
	size_t past_count;     /* past leases of all connections */

	unsigned now; /* how many there are */
	unsigned most;
	unsigned producers;
	unsigned workers;
	uint64_t total;
	uint64_t commands[VERBS]; /* how many of each were carried out */
};

/* ---- clients.c: all together */

extern const struct face clients_face;

void clients_start(struct server *server);

/*
 * Process those that were resumed, in this order, as far as the turn allows. Every other time those with a long command come
 * first, and every other time the rest: neither waits for all of the others.
 */
void clients_resume(struct server *server);

/* The tokens are others now: let go whose line has changed or is gone. Return how many. */
unsigned clients_reload(struct server *server);

#endif
