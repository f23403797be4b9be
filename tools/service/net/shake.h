#ifndef TOOLS_SERVICE_NET_SHAKE_H
#define TOOLS_SERVICE_NET_SHAKE_H

/*
 * The queue of a loop's handshakes of TLS, whose signatures take milliseconds each. Each turn takes one from it, or as
 * many as a millisecond allows, and stream_read (stream.h) makes it. Strangers who begin thousands thus delay each other, but not the
 * clients that are already connected.
 */

#include <sys/queue.h>

/* A connection that has bytes for its handshake. */
struct shake {
	STAILQ_ENTRY(shake) next;
	void (*go_on)(struct shake *shake);
	int is_waiting;
};

/* A loop's. */
struct shakes {
	STAILQ_HEAD(, shake) waiting;
	void (*wake)(void *context); /* another turn is scheduled */
	void *context;
};

void shakes_begin(struct shakes *shakes, void (*wake)(void *context), void *context);

/* Queue the connection for a turn, in which go_on is called. Queueing it again changes nothing. */
void shake_wait(struct shakes *shakes, struct shake *shake);

/* Wait no more. */
void shake_leave(struct shakes *shakes, struct shake *shake);

/* In each turn. */
void shake_turn(struct shakes *shakes);

#endif
