#ifndef TOOLS_SERVICE_ACCESS_CROWD_H
#define TOOLS_SERVICE_ACCESS_CROWD_H

/*
 * Counts the clients of each address, if they are bounded: an address that opens connections without end shuts out no
 * other.
 */

#include <pthread.h>
#include <stdint.h>

#include "lib/base/address.h"

struct crowd_address;

struct crowd {
	const char *option; /* the option with the bound, for the log */
	uint64_t most;      /* of an address; 0: any number */
	pthread_mutex_t lock;
	struct crowd_address *addresses; /* hashed: those with clients */
	uint64_t turned_away;
};

void crowd_begin(struct crowd *crowd, const char *option, uint64_t most);

/*
 * A client has come, from a socket's peer. *place is for crowd_leave, or NULL if it is not counted. Returns 0, or -1
 * if its address is at the bound, or without memory. Any thread, as below.
 */
int crowd_enter(struct crowd *crowd, const struct sockaddr *peer, struct crowd_address **place);
/* NULL is harmless. */
void crowd_leave(struct crowd *crowd, struct crowd_address *place);

#endif
