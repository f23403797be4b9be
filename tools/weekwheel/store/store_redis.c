/* Opens a store in Redis, explains its errors, and reads every job once. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/common/memory.h"
#include "tools/weekwheel/store/store.h"

#ifdef HAVE_REDIS
#include "weekwheel/jobs_redis.h"

/* The last report of the library. Without a worker it reports in the thread of the caller. */
static char said[1024];

static void note(const char *sentence, void *context)
{
	(void)context;
	snprintf(said, sizeof said, "%s", sentence);
}

int store_redis_open(struct opened_store *store, const struct store_place *place, uint32_t flags)
{
	struct ww_jobs_redis_config config;

	said[0] = '\0';
	(void)ww_jobs_redis_config_default(&config);
	config.url = place->url;
	config.prefix = place->prefix;
	if (place->shards)
		config.shards = (uint32_t)place->shards;
	config.timeout = place->timeout;
	/* The limit of its server applied when the jobs were put. */
	config.body_max = WW_JOB_BODY_MAX;
	/* A program that runs for a moment must not take shards from a server. */
	config.flags = WW_REDIS_PASSIVE | (flags & WW_JOBS_READONLY ? WW_REDIS_EXISTING : 0);
	config.report = note;
	return ww_jobs_redis_open(&store->jobs, &config);
}

uint32_t store_redis_shards(const struct opened_store *store)
{
	struct ww_jobs_redis_stats stats;

	return ww_jobs_redis_stats(store->jobs, &stats) ? 0 : stats.shards;
}
#else
static const char said[] = "this weekwheel was built without Redis: it needs hiredis (libhiredis-dev)";

int store_redis_open(struct opened_store *store, const struct store_place *place, uint32_t flags)
{
	(void)place;
	(void)flags;
	store->jobs = NULL;
	return WW_ESYSTEM;
}

uint32_t store_redis_shards(const struct opened_store *store)
{
	(void)store;
	return 0;
}
#endif

const char *store_redis_reason(char *text, size_t room, const struct store_place *place, int error)
{
	if (error == WW_ENOTFOUND)
		snprintf(text, room, "%s: has no jobs with the prefix '%s'; give the --redis-prefix of their server",
		    place->name, place->prefix);
	else if (error == WW_EVERSION)
		snprintf(text, room, "%s: was written by a later version of weekwheel; use that one", place->name);
	else if (error == WW_EFULL)
		snprintf(text, room, "%s: Redis has no memory left, or cannot write; %s", place->name,
		    said[0] ? said : "make room");
	else
		snprintf(text, room, "%s: %s", place->name, said[0] ? said : ww_strerror(error));
	return text;
}

/* ---- Every job */

/* The ids that came, in a hash table with open addressing; 0: a free place. */
struct seen {
	uint64_t *ids;
	unsigned bits;
	size_t count;
};

/* Add an id. Returns whether it was there already. */
static int add(struct seen *seen, uint64_t id)
{
	const size_t mask = ((size_t)1 << seen->bits) - 1;
	size_t at = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> (64 - seen->bits));

	while (seen->ids[at] && seen->ids[at] != id)
		at = (at + 1) & mask;
	if (seen->ids[at])
		return 1;
	seen->ids[at] = id;
	return 0;
}

static void grow(struct seen *seen)
{
	uint64_t *old = seen->ids;
	size_t size = old ? (size_t)1 << seen->bits : 0;

	seen->bits = old ? seen->bits + 1 : 12;
	seen->ids = memory_zeroed((size_t)1 << seen->bits, sizeof *seen->ids);
	for (size_t i = 0; i < size; i++)
		if (old[i])
			(void)add(seen, old[i]);
	free(old);
}

struct redis_walk {
	ww_job_fn *fn;
	void *context;
	struct seen seen;
};

/* A job may come twice while the store grows or shrinks. */
static int walk_one(const struct ww_job_info *info, void *context)
{
	struct redis_walk *walk = context;

	if (!walk->seen.ids || walk->seen.count >= (size_t)1 << (walk->seen.bits - 1))
		grow(&walk->seen);
	if (add(&walk->seen, info->id))
		return 0;
	walk->seen.count++;
	return walk->fn(info, walk->context);
}

int store_redis_each(const struct opened_store *store, unsigned states, ww_job_fn *fn, void *context)
{
	struct ww_job_filter filter = {.states = states};
	struct redis_walk walk = {.fn = fn, .context = context};
	int error = ww_jobs_list(store->jobs, &filter, SIZE_MAX, walk_one, &walk, NULL);

	free(walk.seen.ids);
	return error;
}
