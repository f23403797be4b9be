#ifndef TOOLS_WEEKWHEELD_SHAKE_H
#define TOOLS_WEEKWHEELD_SHAKE_H

/*
 * Handshakes of TLS, whose signatures take milliseconds each. They wait in a queue, from which each turn of the loop takes
 * one, or as many as a millisecond allows: so strangers who begin thousands delay each other, and not those who are in.
 */

#include <sys/queue.h>

struct server;

/* A connection that has bytes for its handshake. */
struct shake {
	STAILQ_ENTRY(shake) next;
	void (*go_on)(struct shake *shake);
	int is_waiting;
};

/* Wait for a turn, in which go_on is called. Once is enough. */
void shake_wait(struct server *server, struct shake *shake);

/* Wait no more. */
void shake_leave(struct server *server, struct shake *shake);

/* In each turn. */
void shake_turn(struct server *server);

#endif
