#ifndef TOOLS_SERVICE_CULPRIT_H
#define TOOLS_SERVICE_CULPRIT_H

/*
 * Addresses that guess tokens. After a wrong token its address rests, and after each further one twice as long. Until
 * the rest is over, no other token from the address is checked, however many connections it uses. A client that sends a
 * token meanwhile waits for a turn.
 *
 * A right token that came from an address before is its guest: it is checked whatever the other clients of the address
 * do. A guesser thus locks out no client that works behind the same address.
 */

#include <stdint.h>

#include "lib/base/address.h"
#include "tools/service/tokens.h"

/* The number of addresses and guests that are remembered. */
enum { CULPRITS_MAX = 256, GUESTS_MAX = 512 };

struct culprit {
	struct address_key from;
	uint32_t failures; /* 0: free */
	uint64_t last;     /* ns: its last failure */
	uint64_t rests;    /* ns: until then; whoever waits has a turn before that */
};

struct guest {
	struct address_key from;
	unsigned char hash[TOKEN_HASH];
};

struct culprits {
	struct culprit list[CULPRITS_MAX];
	struct guest guests[GUESTS_MAX];
	uint64_t failures; /* wrong tokens in all */
};

/* Too many of the address wait for their turn. */
#define CULPRIT_CROWD UINT64_MAX

/* Return for how long the address still rests, in ns. */
uint64_t culprit_rests(const struct culprits *culprits, const struct address_key *from, uint64_t now);

/* Take a turn: return in how many ns a token of the address may be looked at, or CULPRIT_CROWD. */
uint64_t culprit_turn(struct culprits *culprits, const struct address_key *from, uint64_t now);

/*
 * A token was wrong: return how long its answer has to wait, in ns, and store in *number how many there were. If there is
 * no room, the address with the fewest is forgotten, and this one begins with as many: so those with the most stay,
 * however many others come, and a guesser gains nothing by coming from many addresses.
 */
uint64_t culprit_failed(struct culprits *culprits, const struct address_key *from, uint64_t now, uint32_t *number);

/* A token with this hash was right; whether it was right from there before. */
void culprit_welcome(struct culprits *culprits, const struct address_key *from, const unsigned char hash[TOKEN_HASH]);
int culprit_is_guest(
    const struct culprits *culprits, const struct address_key *from, const unsigned char hash[TOKEN_HASH]);

#endif
