/*
 * Failures of loaders that are kept for a while. Each shard has an array of cells, in which a newer failure overwrites
 * an older one. The array cannot grow, however many missing keys are asked for. A key is identified by its whole hash,
 * which is keyed: nobody can find two keys with one hash.
 */

#include <string.h>

#include "lib/core/session/session_internal.h"

#define CELLS 1024u

struct session_failure {
	uint64_t hash;
	uint64_t until;
	int error; /* 0: unused */
};

/* The low bits chose the shard. */
static struct session_failure *cell(const struct session_sought *sought)
{
	return &sought->shard->failures[(sought->hash >> 32) % CELLS];
}

int ww_session_failure_find(const struct session_sought *sought)
{
	const struct session_failure *failure = sought->shard->failures ? cell(sought) : NULL;

	return failure && failure->hash == sought->hash && sought->now < failure->until ? failure->error : 0;
}

void ww_session_failure_keep(const struct session_sought *sought, int error, uint64_t time)
{
	struct session_shard *shard = sought->shard;
	const struct ww_allocator *allocator = shard->session->allocator;
	struct session_failure *made = shard->failures;

	if (!made) {
		made = allocator->allocate(allocator->user, CELLS * sizeof *made);
		/* Then it is not kept, and the next call loads again. */
		if (!made)
			return;
		memset(made, 0, CELLS * sizeof *made);
		shard->failures = made;
	}
	*cell(sought) = (struct session_failure){
	    .hash = sought->hash,
	    .until = time > UINT64_MAX - sought->now ? UINT64_MAX : sought->now + time,
	    .error = error,
	};
}

void ww_session_failure_forget(const struct session_sought *sought)
{
	if (ww_session_failure_find(sought))
		*cell(sought) = (struct session_failure){0};
}

void ww_session_failure_forget_all(struct session_shard *shard)
{
	if (shard->failures)
		memset(shard->failures, 0, CELLS * sizeof *shard->failures);
}

size_t ww_session_failure_bytes(const struct session_shard *shard)
{
	return shard->failures ? CELLS * sizeof *shard->failures : 0;
}

void ww_session_failure_free(struct session_shard *shard)
{
	const struct ww_allocator *allocator = shard->session->allocator;
	struct session_failure *made = shard->failures;

	/* In this order a child of the process frees it at most once. */
	shard->failures = NULL;
	if (made)
		allocator->free(allocator->user, made, CELLS * sizeof *made);
}
