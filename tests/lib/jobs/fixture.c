/* Worlds for the tests of jobs: a store of each kind on a virtual clock, and the table of what each kind promises. */
#include "tests/lib/jobs/fixture.h"

#ifdef HAVE_REDIS
#include "tests/support/redis/kinds.h"
#endif
#ifdef HAVE_POSTGRES
#include "tests/support/postgres/kind.h"
#endif

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const default_tube[] = {WW_TUBE_DEFAULT};

/* ---- The embedded kinds */

static int open_embedded(struct world *world)
{
	return ww_jobs_open(&world->jobs, &world->config);
}

static void make_memory(struct world *world)
{
	world->config.flags = WW_JOBS_MEMORY;
}

static void make_disk(struct world *world)
{
	(void)snprintf(world->path, sizeof world->path, "/tmp/weekwheel-jobs-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(world->path));
	world->config.path = world->path;
	/* These tests do not ask what a power failure leaves. */
	world->config.sync = WW_SYNC_SYSTEM;
}

static void end_disk(struct world *world)
{
	DIR *folder = opendir(world->path);
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		(void)unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	(void)rmdir(world->path);
}

static const struct store_ops *real_ops;

static int fail_put(void *self, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	(void)self;
	(void)table;
	(void)key;
	(void)value;
	return WW_EFULL;
}

static int fail_commit(void *self)
{
	real_ops->abort(self);
	return WW_EFULL;
}

void kinds_fail_embedded(struct world *world, enum failure what)
{
	static struct store_ops failing;
	struct store *store = &local_of(world->jobs)->store;

	if (store->ops != &failing)
		real_ops = store->ops;
	failing = *real_ops;
	if (what == FAIL_PUT)
		failing.put = fail_put;
	else if (what == FAIL_COMMIT)
		failing.commit = fail_commit;
	store->ops = what == FAIL_NOTHING ? real_ops : &failing;
}

#define EMBEDDED                                                                                                       \
	(KIND_ENDS_LEASES | KIND_ONE_ROW | KIND_LISTS_IN_ORDER | KIND_BATCHES | KIND_TELLS_MEMORY | KIND_TWO_CLOCKS |  \
	    KIND_IN_PROCESS | KIND_LIMITS | KIND_GROUPS | KIND_EXPIRES | KIND_CODES | KIND_WEIGHTS)

static const struct kind memory = {.name = "memory",
    .promises = EMBEDDED,
    .make = make_memory,
    .open = open_embedded,
    .fail_writes = kinds_fail_embedded};
static const struct kind disk = {.name = "disk",
    .promises = EMBEDDED | KIND_KEEPS,
    .make = make_disk,
    .end = end_disk,
    .open = open_embedded,
    .fail_writes = kinds_fail_embedded};

const struct kind *const kinds[] = {[KIND_MEMORY] = &memory,
    [KIND_DISK] = &disk,
#ifdef HAVE_POSTGRES
    &kind_postgres,
#endif
#ifdef HAVE_REDIS
    &kind_redis,
    &kind_redis_shards,
    &kind_redis_cluster
#endif
};

#ifdef HAVE_REDIS
#define COSTLY 1
#else
#define COSTLY 0
#endif

static size_t counted;

size_t kinds_count(int is_all)
{
	size_t count = sizeof kinds / sizeof *kinds - (is_all ? 0 : COSTLY);

	counted = 0;
	while (counted < count && (!kinds[counted]->is_there || kinds[counted]->is_there()))
		counted++;
	return counted;
}

/* Valgrind translates code as it runs, and each test is a fork that would begin anew: let it have what all use. */
static void warm_up(void)
{
	static struct world world;
	struct ww_job_spec spec;
	struct ww_lease lease;
	struct ww_jobs_stats stats;
	const char *tube = WW_TUBE_DEFAULT;

	world_make(&world, KIND_DISK);
	OK(ww_job_spec_default(&spec));
	for (int i = 0; i < 2; i++) {
		spec.due = (uint64_t)i * 3600 * WW_SECOND;
		ck_assert_int_ge(ww_jobs_put(world.jobs, &spec, NULL, NULL), 0);
	}
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, &tube, 1, &lease), 1);
	OK(ww_jobs_release(world.jobs, lease.id, lease.token, 0, WW_SECOND, NULL));
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = lease.id}), 1);
	OK(ww_jobs_stats(world.jobs, &stats));
	world_pass(&world, 10 * WW_SECOND);
	world_reopen(&world);
	world_end(&world);
}

void kinds_begin(void)
{
	const char *wrap = getenv("WRAP");

	if (wrap && *wrap)
		warm_up();
	for (size_t i = 0; i < counted; i++)
		if (kinds[i]->begin)
			kinds[i]->begin();
}

const char *kinds_name(size_t i)
{
	return kinds[i]->name;
}

/* ---- Worlds */

void world_make(struct world *world, int kind)
{
	struct ww_driver_config config;

	memset(world, 0, sizeof *world);
	world->kind = kinds[kind];
	OK(ww_clock_virtual_create(&world->clock, 1000 * WW_SECOND, NULL));
	OK(ww_driver_config_default(&config));
	config.clock = world->clock;
	config.flags = WW_DRIVER_THREADLESS;
	OK(ww_driver_create(&world->driver, &config));
	OK(ww_jobs_config_default(&world->config));
	world->config.driver = world->driver;
	world->config.wall = world->driver;
	if (world->kind->make)
		world->kind->make(world);
	OK(world->kind->open(world));
}

int world_promises(const struct world *world, unsigned promise)
{
	return (world->kind->promises & promise) != 0;
}

void world_share(struct world *world)
{
	world->other = world->jobs;
	OK(world->kind->open(world));
}

void world_turn(struct world *world)
{
	struct ww_jobs *jobs = world->jobs;

	world->jobs = world->other;
	world->other = jobs;
}

void world_reopen(struct world *world)
{
	OK(ww_jobs_close(world->jobs));
	OK(world->kind->open(world));
	world_settle(world);
}

void world_end(struct world *world)
{
	if (!world->is_damaged)
		world_check(world);
	if (!world->is_damaged && world->kind->empty)
		world->kind->empty(world);
	OK(ww_jobs_close(world->other));
	OK(ww_jobs_close(world->jobs));
	OK(ww_driver_destroy(world->driver));
	OK(ww_clock_virtual_destroy(world->clock));
	if (world->kind->end)
		world->kind->end(world);
}

static void dispatch(struct world *world)
{
	int quiet = 0;

	/* A load may plan the next load: dispatch until nothing runs any more. */
	while (quiet < 3) {
		int ran = ww_driver_dispatch(world->driver, 1000);
		ck_assert_int_ge(ran, 0);
		quiet = ran ? 0 : quiet + 1;
	}
}

void world_settle(struct world *world)
{
	if (world->kind->settle)
		world->kind->settle(world);
	else
		dispatch(world);
}

void world_fail(struct world *world, enum failure what)
{
	world->kind->fail_writes(world, what);
}

void world_pass(struct world *world, uint64_t ns)
{
	uint64_t now;

	OK(ww_clock_now(world->clock, &now));
	OK(ww_clock_virtual_set(world->clock, now + ns));
	world_settle(world);
}

uint64_t world_now(struct world *world)
{
	uint64_t now;

	OK(ww_jobs_now(world->jobs, 0, &now));
	return now;
}

static void print(const char *problem, void *context)
{
	(void)context;
	(void)fprintf(stderr, "%s\n", problem);
}

void world_check(struct world *world)
{
	ck_assert_int_eq(ww_jobs_check(world->jobs, print, NULL), 0);
}

struct ww_job_spec spec_of(const char *body)
{
	struct ww_job_spec spec;

	OK(ww_job_spec_default(&spec));
	spec.body = body;
	spec.body_length = strlen(body);
	return spec;
}

uint64_t put_job(struct world *world, const struct ww_job_spec *spec)
{
	uint64_t id;

	OK(ww_jobs_put(world->jobs, spec, &id, NULL));
	return id;
}

struct ww_lease reserve_job(struct world *world)
{
	struct ww_lease lease;

	ck_assert_int_eq(ww_jobs_reserve(world->jobs, default_tube, 1, &lease), 1);
	ww_jobs_free(world->jobs, lease.body);
	lease.body = NULL;
	return lease;
}

void expect_none(struct world *world)
{
	struct ww_lease lease;

	ck_assert_int_eq(ww_jobs_reserve(world->jobs, default_tube, 1, &lease), 0);
}

void expect_job_in(struct world *world, uint64_t ns, uint64_t id)
{
	world_pass(world, ns - MS);
	expect_none(world);
	world_pass(world, MS);
	ck_assert_uint_eq(reserve_job(world).id, id);
}

struct ww_job_info info_of(struct world *world, uint64_t id)
{
	struct ww_job_ref ref = {.id = id};
	struct ww_job_info info;

	OK(ww_jobs_peek(world->jobs, &ref, &info, NULL));
	return info;
}
