/* A store of jobs in a real PostgreSQL, for the tests that run with every kind of store. */
#include "tests/support/postgres/kind.h"

#include "lib/postgres/far.h"
#include "lib/postgres/postgres_internal.h"

#include <stdlib.h>
#include <time.h>

static struct postgres_server server;

static void begin(void)
{
	if (!server.pid)
		postgres_server_start(&server);
}

const struct postgres_server *kind_postgres_server(void)
{
	return &server;
}

struct ww_jobs_postgres_config *kind_postgres_config(const struct world *world)
{
	return world->own;
}

int kind_postgres_is_emptying(struct world *world, unsigned part)
{
	const struct postgres *postgres = local_of(world->jobs)->store.self;
	int is_emptying;

	/* A batch keeps out the store's thread. */
	OK(ww_jobs_begin(world->jobs));
	is_emptying = postgres->is_emptying && postgres->emptying == part;
	OK(ww_jobs_commit(world->jobs));
	return is_emptying;
}

/* The store's thread reads both, so they change while nothing is open. */
void kind_postgres_reopen(struct world *world, uint64_t ring, unsigned hours)
{
	OK(ww_jobs_close(world->jobs));
	kind_postgres_config(world)->ring = ring;
	ww_postgres_far_hours = hours;
	OK(world->kind->open(world));
	world_settle(world);
}

long long kind_postgres_ask(const char *sql)
{
	return postgres_server_ask(&server, sql);
}

void kind_postgres_await(const char *sql, long long answer)
{
	long long is = 0;

	for (int i = 0; i < 6000 && (is = kind_postgres_ask(sql)) != answer; i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	ck_assert_msg(is == answer, "%s is %lld, not %lld", sql, is, answer);
}

static void say(const char *sentence, void *context)
{
	(void)context;
	(void)fprintf(stderr, "%s\n", sentence);
}

static void make(struct world *world)
{
	struct ww_jobs_postgres_config *config = calloc(1, sizeof *config);

	ck_assert_ptr_nonnull(config);
	postgres_server_empty(&server);
	OK(ww_jobs_postgres_config_default(config));
	config->url = server.url;
	config->ring = 50 * MS; /* of real time, so that much is written on */
	config->is_virtual = 1;
	config->report = say;
	ww_postgres_far_hours = 0;
	/* These tests do not ask what a power failure leaves. */
	world->config.sync = WW_SYNC_SYSTEM;
	world->own = config;
}

static int open_postgres(struct world *world)
{
	struct ww_jobs_postgres_config *config = world->own;

	config->jobs = world->config;
	return ww_jobs_postgres_open(&world->jobs, config);
}

static void end(struct world *world)
{
	free(world->own);
}

/* The store has a thread of its own, which writes as well: not amid one of its batches. */
static void fail_writes(struct world *world, enum failure what)
{
	int error = ww_jobs_begin(world->jobs);

	kinds_fail_embedded(world, what);
	if (!error)
		(void)ww_jobs_commit(world->jobs);
}

const struct kind kind_postgres = {.name = "postgres",
    .promises = KIND_KEEPS | KIND_ENDS_LEASES | KIND_LISTS_IN_ORDER | KIND_BATCHES | KIND_TELLS_MEMORY |
                KIND_TWO_CLOCKS | KIND_LIMITS | KIND_GROUPS | KIND_EXPIRES | KIND_CODES | KIND_WEIGHTS,
    .cost = 100,
    .is_there = postgres_server_is_there,
    .begin = begin,
    .make = make,
    .end = end,
    .open = open_postgres,
    .fail_writes = fail_writes};
