#ifndef TOOLS_SERVICE_HTTP_HEALTH_H
#define TOOLS_SERVICE_HTTP_HEALTH_H

/*
 * Whether a server is ready, and if not, why: from the states that have begun (state.h), and from what the server adds. It
 * asks nobody, so it answers at once whatever is away.
 */

#include "tools/common/buffer.h"

struct health {
	unsigned stops; /* STATE_STOPS_... */
	int is_json;
	int bad; /* no memory for all of it */
	int count;
	struct buffer reasons;
	struct buffer more; /* further members of the object, each after a comma */
};

/* Add a reason. */
void health_reason(struct health *health, const char *text);

/* Add the states that have begun. */
void health_states(struct health *health);

/*
 * Write it, as text or as an object; `things` are what the server keeps: "jobs". Frees what it has. Returns 1 if the
 * server is ready, 0 if not, or -1 without memory.
 */
int health_write(struct health *health, const char *things, struct buffer *out);

#endif
