/* Many threads use one store: they share syncs and wait for jobs, and each job goes to one of them. */
/* tier: check, threads, no-valgrind */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/jobs/fixture.h"

enum { THREADS = 8, EACH = 250 };

static const char *const tube[] = {WW_TUBE_DEFAULT};
static struct ww_driver *driver;
static struct ww_jobs *jobs;
static struct world world;
static _Atomic int delivered[THREADS * EACH + 1];
static _Atomic int count;
static _Atomic int wrong;

/* A driver with threads, on the real clock. */
static void open_real(int kind, enum ww_jobs_sync sync)
{
	world_make(&world, kind);
	OK(ww_jobs_close(world.jobs));
	OK(ww_driver_create(&driver, NULL));
	world.config.driver = driver;
	world.config.wall = NULL;
	world.config.sync = sync;
	OK(ww_jobs_open(&jobs, &world.config));
}

static void close_real(void)
{
	OK(ww_jobs_close(jobs));
	OK(ww_driver_destroy(driver));
	world.config.driver = world.driver;
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_check(&world);
	world_end(&world);
}

static void *put_many(void *argument)
{
	struct ww_job_spec spec;

	(void)argument;
	wrong += ww_job_spec_default(&spec) != WW_OK;
	spec.body = "x";
	spec.body_length = 1;
	for (int i = 0; i < EACH; i++) {
		spec.due = (uint64_t)(i % 50) * MS;
		wrong += ww_jobs_put(jobs, &spec, NULL, NULL) != WW_OK;
	}
	return NULL;
}

static void *take_many(void *argument)
{
	struct ww_lease lease;

	(void)argument;
	while (count < THREADS * EACH) {
		int result = ww_jobs_wait(jobs, tube, 1, 50 * MS, &lease);
		if (result == 0)
			continue;
		wrong += result != 1;
		ww_jobs_free(jobs, lease.body);
		delivered[lease.id]++;
		wrong += ww_jobs_finish(jobs, lease.id, lease.token) != WW_OK;
		count++;
	}
	return NULL;
}

static void start(pthread_t *threads, void *(*work)(void *))
{
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, work, NULL), 0);
}

static void join(const pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

START_TEST(each_job_goes_to_one_thread_and_none_is_lost)
{
	for (int kind = 0; kind < KINDS_EMBEDDED; kind++) {
		pthread_t putting[THREADS];
		pthread_t taking[THREADS];
		memset(delivered, 0, sizeof delivered);
		count = 0;
		open_real(kind, WW_SYNC_SYSTEM);
		start(taking, take_many);
		start(putting, put_many);
		join(putting);
		join(taking);
		ck_assert_int_eq(wrong, 0);
		for (int i = 1; i <= THREADS * EACH; i++)
			ck_assert_int_eq(delivered[i], 1);
		close_real();
	}
}
END_TEST

START_TEST(writers_share_syncs)
{
	pthread_t threads[THREADS];
	struct ww_jobs_stats stats;

	open_real(KIND_DISK, WW_SYNC_ALWAYS);
	start(threads, put_many);
	join(threads);
	ck_assert_int_eq(wrong, 0);
	OK(ww_jobs_stats(jobs, &stats));
	ck_assert_uint_eq(stats.accepted, THREADS * EACH);
	ck_assert_uint_eq(stats.syncs, stats.commits);
	/* Alone, each write would have its own sync. */
	ck_assert_uint_lt(stats.syncs, THREADS * EACH);
	close_real();
}
END_TEST

START_TEST(a_wait_ends_with_its_time_and_with_a_job)
{
	struct ww_lease lease;
	struct ww_job_spec spec = spec_of("x");

	open_real(KIND_MEMORY, WW_SYNC_SYSTEM);
	ck_assert_int_eq(ww_jobs_wait(jobs, tube, 1, MS, &lease), 0);
	spec.due = 5 * MS;
	OK(ww_jobs_put(jobs, &spec, NULL, NULL));
	ck_assert_int_eq(ww_jobs_wait(jobs, tube, 1, 3600 * WW_SECOND, &lease), 1);
	ww_jobs_free(jobs, lease.body);
	close_real();
}
END_TEST

static _Atomic int is_closed;
static _Atomic int told_late;

static void note_ready(const char *of, void *context)
{
	(void)of;
	(void)context;
	told_late += is_closed;
}

/*
 * Timers fire in the driver's threads while the store is closed. It leaves no timer behind and reports nothing any
 * more. A sanitizer sees any late access of a callback.
 */
START_TEST(a_store_is_closed_while_its_timers_fire)
{
	struct ww_driver_config config;
	struct ww_driver_stats stats;

	for (int round = 0; round < 50; round++) {
		struct ww_job_spec spec = spec_of("x");
		world_make(&world, KIND_MEMORY);
		OK(ww_driver_config_default(&config));
		config.clock = world.clock;
		OK(ww_driver_create(&driver, &config));
		OK(ww_jobs_close(world.jobs));
		world.config.driver = driver;
		world.config.wall = NULL;
		world.config.ready = note_ready;
		is_closed = 0;
		OK(ww_jobs_open(&jobs, &world.config));
		for (int i = 0; i < 200; i++) {
			spec.due = (uint64_t)(1 + i) * MS;
			OK(ww_jobs_put(jobs, &spec, NULL, NULL));
		}
		/* From none to all of the timers are due, and the threads get a longer and longer start. */
		OK(ww_clock_virtual_advance(world.clock, (uint64_t)round * 5 * MS));
		for (int i = 0; i < round; i++)
			sched_yield();
		OK(ww_jobs_close(jobs));
		is_closed = 1;
		OK(ww_driver_stats(driver, &stats));
		ck_assert_uint_eq(stats.pending, 0);
		ck_assert_uint_eq(stats.queued, 0);
		OK(ww_driver_destroy(driver));
		ck_assert_int_eq(told_late, 0);
		world.config.driver = world.driver;
		OK(ww_jobs_open(&world.jobs, &world.config));
		world_end(&world);
	}
}
END_TEST

TEST_MAIN("jobs/threads", each_job_goes_to_one_thread_and_none_is_lost, writers_share_syncs,
    a_wait_ends_with_its_time_and_with_a_job, a_store_is_closed_while_its_timers_fire)
