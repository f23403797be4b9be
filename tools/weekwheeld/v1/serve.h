#ifndef TOOLS_WEEKWHEELD_V1_SERVE_H
#define TOOLS_WEEKWHEELD_V1_SERVE_H

/* The interface over HTTP under /v1, as the rest of the server sees it. */

#include <sys/queue.h>

#include "tools/service/http/web.h"

struct server;

struct v1 {
	TAILQ_HEAD(v1_list, v1_request) batch; /* requests that wait for the commit */
	struct v1_list waiting;                /* for a job, in order of arrival */
	struct v1_list looking;                /* lists that go on */
	struct v1_list arrived;                /* long requests that wait for a turn with time */
	uint64_t turn; /* the turn in which the last ones were carried out, and the ns that they took */
	uint64_t spent;
	int is_calling;           /* some that wait are called and have not asked yet */
	struct v1_held *held;     /* leases by id */
	struct events_feed *feed; /* events; NULL: HTTP is not served */
};

void v1_start(struct server *server);

/* A request has come for this path below /v1/. Stores in *visit what is called from then on. */
enum MHD_Result v1_begin(struct server *server, struct MHD_Connection *client, const char *path, const char *method,
    struct web_visit **visit);

/* The turn's write has been committed, or has failed: answer the requests that wait for it. */
void v1_settle(struct server *server, int error);

/* Tubes of requests that wait may have jobs: let them ask. */
void v1_wake(struct server *server);

/* Let those go who have to leave while they wait, and one list that goes on look at another part of the store. */
void v1_turn(struct server *server);

/* Answer all that wait. */
void v1_stop(struct server *server);

/* held.c: forget all leases. */
void v1_held_free(struct server *server);

#endif
