/* Every allocation fails in turn: the call reports it, nothing has changed, and nothing leaks. */
/* tier: check, no-valgrind */

#include <string.h>
#include <unistd.h>

#include "lib/jobs/local/memory.h"
#include "lib/jobs/store/disk_internal.h"
#include "tests/lib/jobs/fixture.h"
#include "tests/support/memory.h"

static struct world world;
static struct test_memory memory;
static int failed;

static void step(int result)
{
	ck_assert(result >= 0 || result == WW_ENOMEM || result == WW_ENOTFOUND);
	failed += result == WW_ENOMEM;
}

/* The same with several jobs in one call. */
static void live_together(const char *const tubes[2])
{
	struct ww_job_spec spec = spec_of("body");
	struct ww_job_put given[] = {{.spec = &spec}, {.spec = &spec}, {.spec = &spec}};
	struct ww_lease leases[3];
	struct ww_job_end ends[3];

	step(ww_jobs_put_many(world.jobs, given, 3));
	int got = ww_jobs_reserve_many(world.jobs, tubes, 2, leases, 3);
	step(got);
	for (int i = 0; i < got; i++) {
		ww_jobs_free(world.jobs, leases[i].body);
		ends[i] = (struct ww_job_end){.id = leases[i].id, .token = leases[i].token};
	}
	step(ww_jobs_finish_many(world.jobs, ends, got > 0 ? (size_t)got : 0));
}

/* The lives of some jobs, with every kind of change. */
static void live(void)
{
	const char *const tubes[] = {WW_TUBE_DEFAULT, "other"};
	struct ww_job_spec spec = spec_of("body");
	struct ww_job_ref by_key = {.tube = "other", .key = "k", .key_length = 1};
	struct ww_job_info info;
	struct ww_lease lease;
	void *body;
	uint64_t count;

	step(ww_jobs_put(world.jobs, &spec, NULL, NULL));
	spec.tube = "other";
	spec.key = "k";
	spec.key_length = 1;
	spec.due = WW_SECOND;
	step(ww_jobs_put(world.jobs, &spec, NULL, NULL));
	spec.due = 0;
	step(ww_jobs_put(world.jobs, &spec, NULL, NULL));
	step(ww_jobs_move(world.jobs, &by_key, 0, 0, NULL));
	int result = ww_jobs_peek(world.jobs, &by_key, &info, &body);
	step(result);
	if (result == WW_OK)
		ww_jobs_free(world.jobs, body);
	for (int i = 0; i < 3; i++) {
		result = ww_jobs_reserve(world.jobs, tubes, 2, &lease);
		step(result);
		if (result != 1)
			continue;
		ww_jobs_free(world.jobs, lease.body);
		step(i == 0   ? ww_jobs_release(world.jobs, lease.id, lease.token, 5, WW_SECOND, "why")
		     : i == 1 ? ww_jobs_bury(world.jobs, lease.id, lease.token, 5, NULL)
		              : ww_jobs_finish(world.jobs, lease.id, lease.token));
	}
	live_together(tubes);
	step(ww_jobs_kick(world.jobs, "other", 10, &count));
	step(ww_jobs_cancel(world.jobs, &by_key));
}

START_TEST(each_failed_allocation_is_reported_and_leaves_a_sound_store)
{
	for (int kind = 0; kind < KINDS_EMBEDDED; kind++) {
		size_t calls = 1;
		int told = 0;
		for (size_t fail_at = 0; fail_at <= calls; fail_at++) {
			struct ww_jobs *jobs = NULL;
			world_make(&world, kind);
			OK(ww_jobs_close(world.jobs));
			test_memory_init(&memory, fail_at);
			world.config.allocator = &memory.table;
			failed = 0;
			int error = ww_jobs_open(&jobs, &world.config);
			ck_assert(error == WW_OK || error == WW_ENOMEM);
			if (error) {
				failed = 1;
				ck_assert_uint_eq(memory.blocks, 0);
				OK(ww_jobs_open(&jobs, &world.config));
			}
			world.jobs = jobs;
			live();
			world_pass(&world, 2 * WW_SECOND);
			if (fail_at == 0)
				calls = memory.calls;
			/* Loading tries again by itself, and no call reports its failure. */
			ck_assert_int_le(failed, 1);
			told += failed;
			memory.fail_at = 0;
			world_check(&world);
			world_end(&world);
			ck_assert_uint_eq(memory.blocks, 0);
		}
		ck_assert_uint_gt(calls, 10);
		ck_assert_int_gt(told, (int)calls / 2);
	}
}
END_TEST

/* ---- What was read and let go of */

static void spoil(void *user, void *block, size_t size)
{
	memset(block, 0xdd, size);
	test_memory_free(user, block, size);
}

/* Let the index take over what was put, so that the next write lets go of it. It may be faster than a call: put more. */
static void await_index(void)
{
	struct disk *disk = local_of(world.jobs)->store.self;
	struct ww_job_spec spec = spec_of("");
	char body[3000] = "";
	int waits = 1;

	spec.tube = "other";
	spec.body = body;
	spec.body_length = sizeof body;
	do
		(void)put_job(&world, &spec);
	while (!disk->frozen.ops);
	while (waits) {
		pthread_mutex_lock(&disk->mutex);
		waits = disk->waits;
		pthread_mutex_unlock(&disk->mutex);
		(void)usleep(1000);
	}
}

START_TEST(a_job_is_written_whole_when_the_index_has_just_taken_it_over)
{
	const char *const tube[] = {WW_TUBE_DEFAULT};
	char body[3000];
	struct ww_job_spec spec = spec_of("");
	struct ww_lease lease;
	uint64_t id;

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	test_memory_init(&memory, 0);
	memory.table.free = spoil;
	world.config.allocator = &memory.table;
	ww_store_sizes.active = 1000;
	OK(ww_jobs_open(&world.jobs, &world.config));
	memset(body, 'b', sizeof body);
	spec.body = body;
	spec.body_length = sizeof body;
	spec.attempts = 9;
	spec.run = 2 * WW_SECOND;
	spec.due = 60 * WW_SECOND;
	id = put_job(&world, &spec);
	await_index();
	/* It is stored as due, and later as one that was tried. */
	OK(ww_jobs_reserve_job(world.jobs, id, &lease));
	ck_assert_uint_eq(lease.body_length, sizeof body);
	ck_assert_mem_eq(lease.body, body, sizeof body);
	ww_jobs_free(world.jobs, lease.body);
	await_index();
	world_pass(&world, 3 * WW_SECOND);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tube, 1, &lease), 1);
	ck_assert_uint_eq(lease.attempt, 2);
	ck_assert_uint_eq(lease.body_length, sizeof body);
	ck_assert_mem_eq(lease.body, body, sizeof body);
	ww_jobs_free(world.jobs, lease.body);
	world_end(&world);
}
END_TEST

START_TEST(jobs_whose_loading_fails_are_loaded_later)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_tube_stats stats;

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	test_memory_init(&memory, 0);
	world.config.allocator = &memory.table;
	OK(ww_jobs_open(&world.jobs, &world.config));
	spec.due = 3600 * WW_SECOND;
	for (int i = 0; i < 20; i++)
		(void)put_job(&world, &spec);
	world_reopen(&world);
	memory.exhausted = 1;
	world_pass(&world, 3599 * WW_SECOND);
	memory.exhausted = 0;
	world_pass(&world, 3 * WW_SECOND);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &stats));
	ck_assert_uint_eq(stats.ready, 20);
	world_end(&world);
}
END_TEST

/* ---- Blocks */

START_TEST(a_store_counts_its_memory)
{
	static struct jobs_local jobs;
	char *block;

	test_memory_init(&memory, 3);
	jobs.allocator = &memory.table;
	block = ww_jobs_allocate(&jobs, 10);
	ck_assert_uint_eq(jobs.bytes, 10);
	memset(block, 'x', 10);
	block = ww_jobs_resize(&jobs, block, 10, 20);
	ck_assert_mem_eq(block, "xxxxxxxxxx\0\0\0\0\0\0\0\0\0\0", 20);
	ck_assert_uint_eq(jobs.bytes, 20);
	ck_assert_uint_eq(memory.bytes, 20);
	ck_assert_ptr_null(ww_jobs_resize(&jobs, block, 20, 40));
	ck_assert_uint_eq(jobs.bytes, 20);
	ww_jobs_give(&jobs, NULL, 7);
	ww_jobs_give(&jobs, block, 20);
	ck_assert_uint_eq(jobs.bytes, 0);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

TEST_MAIN("jobs/memory", a_store_counts_its_memory, each_failed_allocation_is_reported_and_leaves_a_sound_store,
    a_job_is_written_whole_when_the_index_has_just_taken_it_over, jobs_whose_loading_fails_are_loaded_later)
