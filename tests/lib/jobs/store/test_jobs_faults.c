/*
 * Calls of the store's write path fail, each in turn. Nothing that was acknowledged is lost, nothing that has ended comes
 * back, and the process lives on.
 */
/* tier: long, no-valgrind */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"
#include "tests/support/system/fail.h"

static struct world world;

enum { BODY = 60000, FOR_EVER = 1 << 30 };

static struct ww_job_spec large(void)
{
	static char body[BODY];
	struct ww_job_spec spec = spec_of("");

	memset(body, 'b', sizeof body);
	spec.body = body;
	spec.body_length = sizeof body;
	return spec;
}

static void make(enum ww_jobs_sync sync)
{
	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	world.config.sync = sync;
	OK(ww_jobs_open(&world.jobs, &world.config));
}

/* ---- A failed sync */

static int is_refused(void)
{
	const char *const tube[] = {WW_TUBE_DEFAULT};
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease;

	return ww_jobs_put(world.jobs, &spec, NULL, NULL) == WW_EIO &&
	       ww_jobs_reserve(world.jobs, tube, 1, &lease) == WW_EIO;
}

/* Put jobs until one is refused. Returns how many were accepted. */
static uint64_t put_until_refused(int expected)
{
	struct ww_job_spec spec = large();
	uint64_t accepted = 0;
	int error;

	while ((error = ww_jobs_put(world.jobs, &spec, NULL, NULL)) == WW_OK && accepted < 10000)
		accepted++;
	ck_assert_int_eq(error, expected);
	return accepted;
}

static uint64_t put_some(uint64_t count)
{
	struct ww_job_spec spec = large();

	for (uint64_t i = 0; i < count; i++)
		(void)put_job(&world, &spec);
	return count;
}

static uint64_t count_ready(void)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(world.jobs, &stats));
	return stats.all.ready;
}

static void expect_final(const char *file, unsigned call)
{
	struct ww_jobs_stats stats;

	make(WW_SYNC_ALWAYS);
	fault_arm(CALL_SYNC, file, call, 1, EIO);
	uint64_t accepted = put_until_refused(WW_EIO);
	ck_assert_uint_eq(fault_plan.failed, 1);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_int_eq(stats.fault, WW_EIO);
	ck_assert_msg(strstr(stats.fault_text, file) != NULL, "call %u of %s: %s", call, file, stats.fault_text);
	ck_assert_ptr_nonnull(strstr(stats.fault_text, strerror(EIO)));
	ck_assert(is_refused());
	ck_assert_uint_eq(count_ready(), accepted);
	/* Closing does not sync again what the system may have dropped. */
	unsigned calls = fault_plan.calls;
	int closed = ww_jobs_close(world.jobs);
	ck_assert_int_eq(closed, WW_EIO);
	ck_assert_uint_eq(fault_plan.calls, calls);
	fault_disarm();
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_check(&world);
	ck_assert_uint_ge(count_ready(), accepted);
	ck_assert_uint_le(count_ready(), accepted + 1);
	world_end(&world);
}

START_TEST(a_failed_sync_is_final)
{
	/* While a job is put. */
	expect_final("/journal.", 3);
	/* At commits, before them at the head of a log that begins anew, and before pages leave it. */
	for (unsigned call = 1; call <= 14; call++)
		expect_final("/index.db-wal", call);
	for (unsigned call = 2; call <= 3; call++)
		expect_final("/index.db", call);
}
END_TEST

/* ---- When a change is on stable storage */

static unsigned syncs(void)
{
	return fault_plan.calls;
}

/* Put a job; return how many syncs of the journal there were when the call returned. */
static unsigned put_one(void)
{
	const unsigned before = syncs();
	struct ww_job_spec spec = spec_of("x");

	(void)put_job(&world, &spec);
	return syncs() - before;
}

START_TEST(each_mode_syncs_when_it_says)
{
	struct ww_jobs_config config;

	for (int mode = WW_SYNC_ALWAYS; mode <= WW_SYNC_SYSTEM; mode++) {
		make((enum ww_jobs_sync)mode);
		/* In each mode an opening is synced, so that no token comes twice. Nothing else happens to the journal then. */
		fault_arm(CALL_SYNC, "/journal.", FOR_EVER, 1, EIO);
		unsigned put = 0;
		for (int i = 0; i < 5; i++) {
			unsigned one = put_one();
			ck_assert(mode != WW_SYNC_ALWAYS || one >= 1);
			put += one;
		}
		ck_assert(mode != WW_SYNC_SYSTEM || put == 0);
		unsigned before = syncs();
		OK(ww_jobs_close(world.jobs));
		ck_assert(mode != WW_SYNC_SYSTEM || syncs() > before);
		fault_disarm();
		OK(ww_jobs_open(&world.jobs, &world.config));
		ck_assert_uint_eq(count_ready(), 5);
		world_end(&world);
	}
	/* The interval may pass in the middle of a put, so that one is not looked at, but the sync after it is. */
	make(WW_SYNC_ALWAYS);
	config = world.config;
	OK(ww_jobs_close(world.jobs));
	world.config.sync = WW_SYNC_INTERVAL;
	world.config.sync_ns = 10 * MS;
	OK(ww_jobs_open(&world.jobs, &world.config));
	fault_arm(CALL_SYNC, "/journal.", FOR_EVER, 1, EIO);
	for (unsigned i = 0; i < 3; i++) {
		unsigned before = syncs();
		(void)put_one();
		for (int waits = 0; syncs() == before; waits++) {
			ck_assert_int_lt(waits, 60000);
			(void)usleep(1000);
		}
	}
	/* An hour is not over when the store is closed, which syncs. */
	fault_disarm();
	OK(ww_jobs_close(world.jobs));
	world.config.sync_ns = 3600 * WW_SECOND;
	OK(ww_jobs_open(&world.jobs, &world.config));
	fault_arm(CALL_SYNC, "/journal.", FOR_EVER, 1, EIO);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(put_one(), 0);
	ck_assert_uint_eq(syncs(), 0);
	OK(ww_jobs_close(world.jobs));
	ck_assert_uint_gt(syncs(), 0);
	fault_disarm();
	world.config = config;
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}
END_TEST

START_TEST(the_name_of_a_new_store_is_synced_whoever_made_its_folder)
{
	unsigned calls[2];
	char path[128];

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	(void)snprintf(path, sizeof path, "%s/new", world.path);
	world.config.path = path;
	for (int is_there = 0; is_there < 2; is_there++) {
		if (is_there)
			ck_assert_int_eq(mkdir(path, 0700), 0);
		fault_arm(CALL_SYNC, world.path, 0, 0, 0);
		OK(ww_jobs_open(&world.jobs, &world.config));
		calls[is_there] = fault_plan.calls;
		fault_disarm();
		OK(ww_jobs_close(world.jobs));
		char command[160];
		(void)snprintf(command, sizeof command, "rm -r %s", path);
		ck_assert_int_eq(system(command), 0);
	}
	ck_assert_uint_eq(calls[0], calls[1]);
	world.config.path = world.path;
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}
END_TEST

/* ---- A full disk */

static int fault_now(void)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(world.jobs, &stats));
	return stats.fault;
}

/* Finish this many jobs, and return how many that worked for. */
static uint64_t finish(uint64_t most)
{
	const char *const tube[] = {WW_TUBE_DEFAULT};
	struct ww_lease lease;
	uint64_t done = 0;

	while (done < most && ww_jobs_reserve(world.jobs, tube, 1, &lease) == 1) {
		ww_jobs_free(world.jobs, lease.body);
		if (ww_jobs_finish(world.jobs, lease.id, lease.token))
			break;
		done++;
	}
	return done;
}

/* The index's thread makes room in its own time. */
static void until_room(void)
{
	struct ww_job_spec spec = spec_of("x");

	for (int tries = 0; tries < 1000 && ww_jobs_put(world.jobs, &spec, NULL, NULL) == WW_EFULL; tries++)
		(void)usleep(10000);
	ck_assert_int_eq(fault_now(), WW_OK);
}

START_TEST(a_full_disk_refuses_new_jobs_and_lets_others_end)
{
	/* Nothing can be made larger; or only the files that are named. */
	static const char *const files[] = {NULL, "/index.db", "/journal."};
	static const int errors[] = {ENOSPC, EDQUOT};

	for (size_t i = 0; i < 6; i++) {
		struct ww_job_spec spec = spec_of("x");
		make(WW_SYNC_SYSTEM);
		uint64_t before = put_some(100);
		/* What has space already can still be written, except by SQLite, which takes none in advance. */
		unsigned writes = i / 2 == 1 ? CALL_WRITE : 0;
		fault_arm(CALL_SIZE | CALL_OPEN | writes, files[i / 2], 1, FOR_EVER, errors[i % 2]);
		uint64_t accepted = before + put_until_refused(WW_EFULL);
		ck_assert_int_eq(fault_now(), WW_EFULL);
		ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EFULL);
		ck_assert_uint_eq(count_ready(), accepted);
		/* Refused ones take nothing of what is kept for ends. */
		for (int refused = 0; refused < seed_rounds(10000); refused++)
			ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EFULL);
		uint64_t gone = finish(50);
		if (files[i / 2] == NULL || strcmp(files[i / 2], "/journal.") != 0)
			ck_assert_uint_eq(gone, 50);
		world_check(&world);
		fault_disarm();
		until_room();
		gone += finish(10);
		OK(ww_jobs_close(world.jobs));
		OK(ww_jobs_open(&world.jobs, &world.config));
		ck_assert_uint_eq(count_ready(), accepted + 1 - gone);
		world_end(&world);
	}
}
END_TEST

/* ---- A copy */

START_TEST(a_copy_goes_on_after_a_write_that_was_interrupted_or_cut_short)
{
	static const int errors[] = {EINTR, 0};

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		struct world copy = {.kind = NULL};
		make(WW_SYNC_SYSTEM);
		(void)put_some(10);
		(void)snprintf(copy.path, sizeof copy.path, "%.50s.copy", world.path);
		fault_plan.split = FAULT_HALF;
		fault_arm(CALL_WRITE, ".copy/", 1, 3, errors[i]);
		OK(ww_jobs_backup(world.path, copy.path));
		ck_assert_uint_eq(fault_plan.failed, 3);
		fault_disarm();
		ck_assert_int_eq(ww_jobs_examine(copy.path, NULL, NULL), 0);
		world.kind->end(&copy);
		world_end(&world);
	}
}
END_TEST

TEST_MAIN("jobs/faults", a_failed_sync_is_final, each_mode_syncs_when_it_says,
    the_name_of_a_new_store_is_synced_whoever_made_its_folder, a_full_disk_refuses_new_jobs_and_lets_others_end,
    a_copy_goes_on_after_a_write_that_was_interrupted_or_cut_short)
