#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_WALK_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_WALK_H

/*
 * A command that goes through all keys does so in pieces. Between two pieces the loop serves its other clients; the
 * next commands of this client wait. Several walks of a loop take turns. A client with many commands that has had its
 * share of a turn waits in the same way.
 */

#include <sys/queue.h>
#include <uv.h>

struct conn;

/* The time of a piece, in ns. */
enum { WALK_PIECE = 1000000 };

/* The head of the memory that a command allocates for its walk. */
struct key_walk {
	struct conn *conn;
	int (*take_piece)(struct key_walk *walk); /* returns 1 if it was the last, and the client has its answer */
	void (*leave)(struct key_walk *walk);     /* before it is freed; or NULL */
	TAILQ_ENTRY(key_walk) next;
};

/* A loop's. */
struct walks {
	TAILQ_HEAD(, key_walk) all;
	uv_idle_t more;                   /* runs while there are some */
	void (*go_on)(struct conn *conn); /* the client's next commands wait no more */
};

void walks_start(struct walks *walks, uv_loop_t *uv, void (*go_on)(struct conn *conn));

/* Continue it in the loop's next turns. It is freed at its end. */
void walk_begin(struct key_walk *walk);
/* The same for a walk that needs only its client. Returns 0, or -1 without memory. */
int walk_do(struct conn *conn, int (*take_piece)(struct key_walk *walk));
/* Hold the client's next commands until another turn. Returns 0, or -1 without memory: they are then not held. */
int walk_rest(struct conn *conn);
/* The client goes, perhaps in the middle of a walk. */
void walk_leave(struct conn *conn);

#endif
