/* Counts the clients of each address: see crowd.h. */
#include "tools/service/access/crowd.h"

#include <stdlib.h>

#include "lib/base/seeded.h"
#include "tools/service/state/state.h"

/* Without memory hh.tbl stays NULL. */
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

struct crowd_address {
	UT_hash_handle hh;
	struct address_key from;
	uint64_t count;
};

void crowd_begin(struct crowd *crowd, const char *option, uint64_t most)
{
	*crowd = (struct crowd){.option = option, .most = most};
	pthread_mutex_init(&crowd->lock, NULL);
}

/* Return the address with this client counted, or NULL. */
static struct crowd_address *count(struct crowd *crowd, const struct address_key *from)
{
	struct crowd_address *found;

	HASH_FIND(hh, crowd->addresses, from, sizeof *from, found);
	if (!found) {
		found = calloc(1, sizeof *found);
		if (!found)
			return NULL;
		found->from = *from;
		HASH_ADD(hh, crowd->addresses, from, sizeof found->from, found);
		if (!found->hh.tbl) {
			free(found);
			return NULL;
		}
	}
	if (found->count >= crowd->most)
		return NULL;
	found->count++;
	return found;
}

int crowd_enter(struct crowd *crowd, const struct sockaddr *peer, struct crowd_address **place)
{
	struct address_key from = address_key(peer);

	*place = NULL;
	if (crowd->most == 0 || (peer->sa_family != AF_INET && peer->sa_family != AF_INET6))
		return 0;
	pthread_mutex_lock(&crowd->lock);
	*place = count(crowd, &from);
	crowd->turned_away += !*place;
	pthread_mutex_unlock(&crowd->lock);
	if (*place)
		return 0;
	state_seen("address", "one address has %llu clients, as many as --%s allows: more of it are turned away",
	    (unsigned long long)crowd->most, crowd->option);
	return -1;
}

void crowd_leave(struct crowd *crowd, struct crowd_address *place)
{
	if (!place)
		return;
	pthread_mutex_lock(&crowd->lock);
	if (--place->count == 0) {
		HASH_DEL(crowd->addresses, place);
		free(place);
	}
	pthread_mutex_unlock(&crowd->lock);
}
