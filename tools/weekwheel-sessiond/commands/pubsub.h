#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_PUBSUB_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_PUBSUB_H

/*
 * Channels and their subscribers. A message to a client of this thread's loop goes to its answers at once, and to other
 * clients by their loop's mail. Messages from one thread come in order.
 */

#include "tools/weekwheel-sessiond/server/server.h"

enum pubsub_kind { PUBSUB_CHANNEL, PUBSUB_PATTERN, PUBSUB_SHARD, PUBSUB_KINDS };
_Static_assert((int)PUBSUB_KINDS == (int)CONN_CHANNEL_KINDS, "a client has all kinds");

/* A string of any bytes. */
struct pubsub_text {
	const char *data;
	size_t size;
};

/* Return how many clients get the message. Adds to *steps what it took, as glob_matches_count does. */
size_t pubsub_publish(enum pubsub_kind kind, struct pubsub_text channel, struct pubsub_text message, size_t *steps);
/* Add only the cost that publishing an empty message would have. Returns how many would get it. */
size_t pubsub_weigh(struct pubsub_text channel, size_t *steps);
/* What the bytes of messages to so many cost besides. */
size_t pubsub_weigh_bytes(size_t heard, size_t bytes);
/*
 * Return why the message is refused, or NULL: others would wait for too long while it is copied for all listeners, or its
 * channel compared with all patterns. Adds to *steps what finding out took.
 */
const char *pubsub_refuses(
    enum pubsub_kind kind, struct pubsub_text channel, struct pubsub_text message, size_t *steps);
/* Return 0 if nobody has subscribed to anything. */
int pubsub_has_listeners(void);
/* A client begins. */
void pubsub_enter(struct conn *conn);
/* Forget subscriptions of the client. Returns 1 if it has more. */
int pubsub_leave_some(struct conn *conn);

#endif
