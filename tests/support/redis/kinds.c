/* Stores of jobs in real Redis servers and clusters, for the tests that run with every kind of store. */
#include "tests/support/redis/kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A prime: nothing divides evenly. */
enum { SHARDS = 5, NODES = 3 };

struct in_redis {
	struct ww_jobs_redis_config config;
	char url[128];
	char prefix[WW_REDIS_PREFIX_MAX];
	uint64_t settled; /* the time at which all shards were last asked */
};

static struct redis_server server;
static struct redis_cluster cluster;

/* ---- Servers, which live as long as the program */

static void begin_server(void)
{
	if (!server.pid)
		redis_server_start(&server, NULL);
}

static void begin_cluster(void)
{
	if (!cluster.count)
		redis_cluster_start(&cluster, NODES, 0, NULL);
}

const struct redis_server *kinds_redis_server(void)
{
	return &server;
}

const char *kinds_redis_prefix(const struct world *world)
{
	const struct in_redis *own = world->own;

	return own->prefix;
}

/* ---- Stores */

static uint64_t now_of(void *context)
{
	const struct world *world = context;
	uint64_t now = 0;

	(void)ww_clock_now(world->clock, &now);
	return now;
}

static void say(const char *sentence, void *context)
{
	(void)context;
	(void)fprintf(stderr, "%s\n", sentence);
}

static void make(struct world *world, uint32_t shards, const char *url)
{
	static unsigned made;
	struct in_redis *own = calloc(1, sizeof *own);

	ck_assert_ptr_nonnull(own);
	world->own = own;
	(void)snprintf(own->url, sizeof own->url, "%s", url);
	(void)snprintf(own->prefix, sizeof own->prefix, "test.%ld.%u", (long)getpid(), made++);
	OK(ww_jobs_redis_config_default(&own->config));
	own->config.url = own->url;
	own->config.prefix = own->prefix;
	own->config.shards = shards;
	/* The load of the machine is not under test. */
	own->config.timeout = 60 * WW_SECOND;
	own->config.now = now_of;
	own->config.report = say;
	own->config.context = world;
}

static void make_redis(struct world *world)
{
	char url[64];

	redis_server_url(&server, url, sizeof url);
	make(world, 1, url);
}

static void make_redis_shards(struct world *world)
{
	char url[64];

	redis_server_url(&server, url, sizeof url);
	make(world, SHARDS, url);
}

static void make_redis_cluster(struct world *world)
{
	char url[128];

	(void)snprintf(url, sizeof url, "redis://127.0.0.1:%d,127.0.0.1:%d", cluster.servers[0].port,
	    cluster.servers[NODES - 1].port);
	make(world, SHARDS, url);
}

struct ww_jobs_redis_config *kinds_redis_config(const struct world *world)
{
	struct in_redis *own = world->own;

	return &own->config;
}

static int open_redis(struct world *world)
{
	return ww_jobs_redis_open(&world->jobs, kinds_redis_config(world));
}

/* Each call moves what is due, but only in the shards that it concerns. */
static void settle(struct world *world)
{
	struct in_redis *own = world->own;
	struct ww_jobs_stats stats;
	uint64_t now = now_of(world);

	if (own->settled != now)
		OK(ww_jobs_stats(world->jobs, &stats));
	own->settled = now;
}

/* ---- Keys left behind */

struct found {
	uint64_t ids[200];
	size_t count;
};

static int note(const struct ww_job_info *info, void *context)
{
	struct found *found = context;

	found->ids[found->count++] = info->id;
	return 0;
}

static int unpause(const struct ww_tube_stats *tube, void *context)
{
	(void)snprintf(context, WW_TUBE_MAX + 1, "%s", tube->name);
	return tube->pause != 0;
}

struct found_limit {
	struct ww_limit_info info;
	char tube[WW_TUBE_MAX + 1];
	char group[WW_JOB_GROUP_MAX];
};

static int note_limit(const struct ww_limit_info *info, void *context)
{
	struct found_limit *found = context;

	found->info = *info;
	(void)snprintf(found->tube, sizeof found->tube, "%s", info->ref.tube);
	if (info->ref.group_length)
		memcpy(found->group, info->ref.group, info->ref.group_length);
	return 1;
}

static void clear_limits(struct world *world)
{
	struct ww_limit limit;
	struct found_limit found;

	OK(ww_jobs_limit_default(&limit));
	while (ww_jobs_limit_list(world->jobs, NULL, note_limit, &found) == 1) {
		found.info.ref.tube = found.tube;
		found.info.ref.group = found.info.ref.group_length ? found.group : NULL;
		OK(ww_jobs_limit_set(world->jobs, &found.info.ref, &limit));
	}
}

static int note_one(const struct ww_job_info *info, void *context)
{
	*(struct ww_job_info *)context = *info;
	return 1;
}

/* Make the keys free that jobs have which ended. */
static void free_keys(struct world *world)
{
	struct ww_job_filter filter = {.states = 1u << WW_JOB_ENDED};
	struct ww_job_info ended;

	while (ww_jobs_list(world->jobs, &filter, 1, note_one, &ended, NULL) == 1) {
		struct ww_job_ref ref = {.tube = ended.tube, .key = ended.key, .key_length = ended.key_length};
		ck_assert_int_eq(ww_jobs_cancel(world->jobs, &ref), 1);
	}
}

static void cancel_all(struct world *world)
{
	struct ww_job_filter filter = {0};
	struct found found = {.count = 0};
	char tube[WW_TUBE_MAX + 1];

	while (ww_jobs_tubes(world->jobs, unpause, tube) == 1)
		OK(ww_jobs_pause(world->jobs, tube, 0));
	clear_limits(world);
	do {
		found.count = 0;
		OK(ww_jobs_list(
		    world->jobs, &filter, sizeof found.ids / sizeof *found.ids, note, &found, &filter.after));
		for (size_t i = 0; i < found.count; i++) {
			struct ww_job_ref ref = {.id = found.ids[i]};
			int result = ww_jobs_cancel(world->jobs, &ref);
			ck_assert_msg(result >= 0 || result == WW_ENOTFOUND, "%s", ww_strerror(result));
		}
	} while (filter.after);
	free_keys(world);
}

void kinds_redis_expect_bare(const struct redis_server *one, const char *prefix)
{
	redisReply *keys = redis_server_ask(one, "KEYS {%s*", prefix);
	const char *rest;

	for (size_t i = 0; i < keys->elements; i++) {
		rest = strrchr(keys->element[i]->str, '}');
		/* Runs are kept for their time. */
		ck_assert_msg(
		    rest && (strcmp(rest, "}:m") == 0 || strcmp(rest, "}:x") == 0 || strcmp(rest, "}:store") == 0),
		    "%s is left although the store has no jobs", keys->element[i]->str);
	}
	freeReplyObject(keys);
}

/* Without jobs, nothing is left of them. */
static void empty(struct world *world)
{
	const struct in_redis *own = world->own;
	int is_cluster = world->kind == &kind_redis_cluster;

	cancel_all(world);
	world_check(world);
	for (int i = 0; i < (is_cluster ? NODES : 1); i++)
		kinds_redis_expect_bare(is_cluster ? &cluster.servers[i] : &server, own->prefix);
}

static void end(struct world *world)
{
	int is_cluster = world->kind == &kind_redis_cluster;

	for (int i = 0; i < (is_cluster ? NODES : 1); i++)
		redis_server_tell(is_cluster ? &cluster.servers[i] : &server, "FLUSHALL");
	free(world->own);
}

#define IN_REDIS (KIND_KEEPS | KIND_IN_REDIS | KIND_LIMITS | KIND_GROUPS)

const struct kind kind_redis = {.name = "redis",
    .promises = IN_REDIS | KIND_ONE_ROW,
    .cost = 150,
    .is_there = redis_server_is_there,
    .begin = begin_server,
    .make = make_redis,
    .empty = empty,
    .end = end,
    .open = open_redis,
    .settle = settle};
const struct kind kind_redis_shards = {.name = "redis-shards",
    .promises = IN_REDIS,
    .cost = 400,
    .is_there = redis_server_is_there,
    .begin = begin_server,
    .make = make_redis_shards,
    .empty = empty,
    .end = end,
    .open = open_redis,
    .settle = settle};
const struct kind kind_redis_cluster = {.name = "redis-cluster",
    .promises = IN_REDIS,
    .cost = 400,
    .is_there = redis_server_is_there,
    .begin = begin_cluster,
    .make = make_redis_cluster,
    .empty = empty,
    .end = end,
    .open = open_redis,
    .settle = settle};
