#ifndef TESTS_SUPPORT_REDIS_KINDS_H
#define TESTS_SUPPORT_REDIS_KINDS_H

/*
 * The kinds of store in Redis, on the test's clock. All stores share the program's servers: each has its own prefix,
 * and when it ends, nothing of its jobs may be left there.
 */

#include "tests/lib/jobs/fixture.h"
#include "tests/support/redis/redis_server.h"
#include "weekwheel/jobs_redis.h"

extern const struct kind kind_redis;         /* one shard */
extern const struct kind kind_redis_shards;  /* several */
extern const struct kind kind_redis_cluster; /* several, on three nodes */

/* The server of the first two kinds. */
const struct redis_server *kinds_redis_server(void);
/* The prefix of the keys of that world's store. */
const char *kinds_redis_prefix(const struct world *world);
/* The configuration that it is opened with. */
struct ww_jobs_redis_config *kinds_redis_config(const struct world *world);
/* Assert that the only keys with this prefix are those of a store without jobs. */
void kinds_redis_expect_bare(const struct redis_server *one, const char *prefix);

#endif
