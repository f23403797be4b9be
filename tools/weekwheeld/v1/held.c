/* Leases that were given over HTTP, so that their ends are counted as those of other clients are. */
#include <stdlib.h>

#include "tools/weekwheeld/v1/v1.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

/* Those that ran out are not seen to end. Beyond this, the oldest is forgotten. */
enum { HELD_MAX = 100000 };

struct v1_held {
	UT_hash_handle hh; /* by id, in the order in which they were given */
	uint64_t id;
	uint64_t token;
	uint64_t given;
	struct counts_tube *counts;
};

static void forget(struct server *server, struct v1_held *held)
{
	HASH_DEL(server->v1->held, held);
	free(held);
}

void v1_held_add(struct server *server, const struct ww_lease *lease)
{
	struct v1_held *held;

	HASH_FIND(hh, server->v1->held, &lease->id, sizeof lease->id, held);
	if (held)
		forget(server, held);
	if (HASH_COUNT(server->v1->held) == HELD_MAX)
		forget(server, server->v1->held);
	held = calloc(1, sizeof *held);
	if (!held)
		return;
	held->id = lease->id;
	held->token = lease->token;
	held->given = store_now(server);
	held->counts = counts_of(&server->counts, lease->tube);
	HASH_ADD(hh, server->v1->held, id, sizeof held->id, held);
	if (!held->hh.tbl)
		free(held);
}

void v1_held_end(struct server *server, uint64_t id, uint64_t token, enum count count)
{
	uint64_t now = store_now(server);
	struct v1_held *held;

	HASH_FIND(hh, server->v1->held, &id, sizeof id, held);
	if (!held || held->token != token)
		return;
	if (count != COUNTS) {
		counts_add(held->counts, count);
		counts_ran(&server->counts, now > held->given ? now - held->given : 0, now);
	}
	forget(server, held);
}

void v1_held_free(struct server *server)
{
	while (server->v1->held)
		forget(server, server->v1->held);
}
