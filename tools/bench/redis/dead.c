/*
 * Kills a process that has leased jobs. When does another one get them? Both have the store open, and each watches some
 * of the shards. All shards have jobs.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tools/bench/redis/redis.h"
#include "tools/common/memory.h"
#include "tools/common/percentile.h"

enum { JOBS = 64 };

#define RUN (2 * WW_SECOND)

struct dead {
	const char *url;
	_Atomic unsigned has_leased;
	uint64_t ends; /* of the last of its leases; of Redis's time */
	uint64_t late; /* how long after that the last job came */
};

static const char *const tubes[] = {WW_TUBE_DEFAULT};

static void victim(void *context, unsigned index)
{
	struct dead *dead = context;
	struct ww_jobs *jobs = bench_open(dead->url, 0);
	struct ww_jobs_redis_stats stats;
	struct ww_lease leases[JOBS];
	int count = 0;

	(void)index;
	do {
		bench_sleep(50 * WW_MILLISECOND);
		bench_check("stats", ww_jobs_redis_stats(jobs, &stats));
	} while (stats.workers < 2 || stats.watched == stats.shards);
	while (count < JOBS)
		count += bench_check(
		    "reserve", ww_jobs_reserve_many(jobs, tubes, 1, leases + count, (size_t)(JOBS - count)));
	for (int i = 0; i < count; i++)
		if (leases[i].ends > dead->ends)
			dead->ends = leases[i].ends;
	atomic_store(&dead->has_leased, 1);
	for (;;)
		bench_sleep(WW_SECOND);
}

static void put_all(struct ww_jobs *jobs)
{
	struct ww_job_spec spec;

	(void)ww_job_spec_default(&spec);
	spec.run = RUN;
	for (int i = 0; i < JOBS; i++)
		bench_check("put", ww_jobs_put(jobs, &spec, NULL, NULL));
}

static void once(struct dead *dead)
{
	struct ww_jobs *jobs = bench_open(dead->url, 0);
	struct ww_lease lease;
	int process;

	put_all(jobs);
	atomic_store(&dead->has_leased, 0);
	dead->ends = dead->late = 0;
	process = bench_fork(victim, dead, 0);
	while (!atomic_load(&dead->has_leased))
		bench_sleep(5 * WW_MILLISECOND);
	(void)kill(process, SIGKILL);
	(void)waitpid(process, NULL, 0);
	for (int i = 0; i < JOBS; i++) {
		if (bench_check("wait", ww_jobs_wait(jobs, tubes, 1, 60 * WW_SECOND, &lease)) != 1)
			bench_fail("dead", "a job was lost");
		uint64_t began = lease.ends - RUN;
		if (began > dead->ends && began - dead->ends > dead->late)
			dead->late = began - dead->ends;
		bench_check("finish", ww_jobs_finish(jobs, lease.id, lease.token));
		ww_jobs_free(jobs, lease.body);
	}
	bench_check("close", ww_jobs_close(jobs));
}

void bench_dead(const char *url, char **words)
{
	struct dead *dead = bench_share(sizeof *dead);
	size_t times = strtoul(words[0], NULL, 10);
	uint64_t *late = memory_zeroed(times, sizeof *late);

	dead->url = url;
	for (size_t i = 0; i < times; i++) {
		once(dead);
		late[i] = dead->late;
	}
	percentile_sort(late, times);
	printf("{\"times\":%zu,\"min_ms\":%.0f,\"median_ms\":%.0f,\"max_ms\":%.0f}\n", times,
	    percentile_ms(late, times, 0), percentile_ms(late, times, 0.5), percentile_ms(late, times, 1));
	free(late);
}
