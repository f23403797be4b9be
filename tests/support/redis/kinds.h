#ifndef TESTS_SUPPORT_REDIS_KINDS_H
#define TESTS_SUPPORT_REDIS_KINDS_H

/*
 * Kinds of store in Redis, on a clock of the test's. The servers are of the whole program: each store has a prefix of
 * its own, and when it ends nothing of its jobs may be left there.
 */

#include "tests/lib/jobs/fixture.h"
#include "tests/support/redis/redis_server.h"
#include "weekwheel/jobs_redis.h"

extern const struct kind kind_redis;         /* one shard */
extern const struct kind kind_redis_shards;  /* several */
extern const struct kind kind_redis_cluster; /* several, on three nodes */

/* The server of the first two kinds. */
const struct redis_server *kinds_redis_server(void);
/* What the keys of that world's store begin with. */
const char *kinds_redis_prefix(const struct world *world);
/* What it is opened with. */
struct ww_jobs_redis_config *kinds_redis_config(const struct world *world);
/* Of the keys that begin so, none is left but those of a store without jobs. */
void kinds_redis_expect_bare(const struct redis_server *one, const char *prefix);

#endif
