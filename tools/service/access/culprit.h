#ifndef TOOLS_SERVICE_ACCESS_CULPRIT_H
#define TOOLS_SERVICE_ACCESS_CULPRIT_H

/*
 * Addresses that guess tokens. After a wrong token its address rests, and after each further one twice as long. The answers
 * to wrong ones that come meanwhile, however many connections bring them, wait for turns, one after the other. access.h says
 * what else waits.
 */

#include <stdint.h>

#include "lib/base/address.h"

/* The number of addresses that are remembered. */
enum { CULPRITS_MAX = 256 };

struct culprit {
	struct address_key from;
	uint32_t failures; /* 0: free */
	uint64_t last;     /* ns: its last failure */
	uint64_t rests;    /* ns: when the rest ends; every turn given out is before that */
};

struct culprits {
	struct culprit list[CULPRITS_MAX];
	_Atomic uint64_t failures; /* wrong tokens in all; any thread may read it */
};

/* Too many of the address wait for their turn. */
#define CULPRIT_CROWD UINT64_MAX

/* Return how long the address still rests, in ns. */
uint64_t culprit_rests(const struct culprits *culprits, const struct address_key *from, uint64_t now);

/* Take a turn: return in how many ns it comes, or CULPRIT_CROWD. */
uint64_t culprit_turn(struct culprits *culprits, const struct address_key *from, uint64_t now);

/*
 * A token was wrong: return how long its answer waits, in ns, and store in *number how many were wrong. If there is no
 * room, the address with the fewest is forgotten, and this one begins with as many: so those with the most stay,
 * however many others come, and a guesser gains nothing by coming from many addresses.
 */
uint64_t culprit_failed(struct culprits *culprits, const struct address_key *from, uint64_t now, uint32_t *number);

/* Another token was wrong during the rest, and was answered at once: count it. Returns how many were wrong. */
uint32_t culprit_again(struct culprits *culprits, const struct address_key *from, uint64_t now);

#endif
