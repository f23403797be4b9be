/*
 * Delivers jobs that come due to processes that reserve and finish them. Only Redis's clock counts for how late a job
 * is: from its due time to the beginning of its lease.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/redis/redis.h"
#include "tools/common/memory.h"
#include "tools/common/percentile.h"

enum { MANY = 256, PUT_MANY = 2048 };

#define RUN (60 * WW_SECOND)

struct deliver {
	const char *url;
	uint64_t count;
	uint64_t first; /* when the first one is due; of Redis's time */
	uint64_t span;
	_Atomic uint64_t done;
	_Atomic uint64_t taken;
	_Atomic uint64_t early;
	_Atomic uint64_t begin; /* lease of the first, and of the last */
	_Atomic uint64_t end;
	_Atomic unsigned ready; /* processes */
	_Atomic uint64_t of[8]; /* each process */
	uint64_t late[];
};

static void fill(struct deliver *deliver, struct ww_jobs *jobs)
{
	struct ww_job_spec *specs = memory_zeroed(PUT_MANY, sizeof *specs);
	struct ww_job_put *puts = memory_zeroed(PUT_MANY, sizeof *puts);
	uint64_t(*bodies)[4] = memory_zeroed(PUT_MANY, sizeof *bodies);

	for (uint64_t at = 0; at < deliver->count;) {
		size_t some = deliver->count - at < PUT_MANY ? (size_t)(deliver->count - at) : PUT_MANY;
		for (size_t i = 0; i < some; i++) {
			uint64_t due = deliver->first +
			               (uint64_t)((double)deliver->span * (double)(at + i) / (double)deliver->count);
			(void)ww_job_spec_default(&specs[i]);
			specs[i].due = bodies[i][0] = due / 1000 * 1000;
			specs[i].flags = WW_JOB_AT;
			specs[i].run = RUN;
			specs[i].body = bodies[i];
			specs[i].body_length = sizeof bodies[i];
			puts[i].spec = &specs[i];
		}
		bench_put_many(jobs, puts, some);
		at += some;
	}
	free(specs);
	free(puts);
	free(bodies);
}

static void note(struct deliver *deliver, const struct ww_lease *lease)
{
	uint64_t due;
	uint64_t began = lease->ends - RUN;
	uint64_t end = atomic_load(&deliver->end);
	uint64_t none = 0;

	if (lease->body_length != 32)
		bench_fail("deliver", "a job has another body than was put");
	memcpy(&due, lease->body, sizeof due);
	uint64_t place = atomic_fetch_add(&deliver->taken, 1);
	if (place >= deliver->count)
		bench_fail("deliver", "a job was delivered twice");
	if (began < due)
		atomic_fetch_add(&deliver->early, 1);
	deliver->late[place] = began > due ? began - due : 0;
	(void)atomic_compare_exchange_strong(&deliver->begin, &none, began);
	while (began > end && !atomic_compare_exchange_weak(&deliver->end, &end, began))
		;
}

static void work(void *context, unsigned index)
{
	static const char *const tubes[] = {WW_TUBE_DEFAULT};
	static struct ww_lease leases[MANY];
	static struct ww_job_end ends[MANY];
	struct deliver *deliver = context;
	struct ww_jobs *jobs = bench_open(deliver->url, 0);

	atomic_fetch_add(&deliver->ready, 1);
	while (atomic_load(&deliver->done) < deliver->count) {
		int count = bench_check("reserve", ww_jobs_reserve_many(jobs, tubes, 1, leases, MANY));
		if (!count)
			count = bench_check("wait", ww_jobs_wait(jobs, tubes, 1, 20 * WW_MILLISECOND, leases));
		for (int i = 0; i < count; i++) {
			note(deliver, &leases[i]);
			ww_jobs_free(jobs, leases[i].body);
			ends[i] = (struct ww_job_end){.id = leases[i].id, .token = leases[i].token};
		}
		if (!count)
			continue;
		bench_check("finish", ww_jobs_finish_many(jobs, ends, (size_t)count));
		for (int i = 0; i < count; i++)
			bench_check("finish", ends[i].result);
		atomic_fetch_add(&deliver->done, (uint64_t)count);
		atomic_fetch_add(&deliver->of[index], (uint64_t)count);
	}
	bench_check("close", ww_jobs_close(jobs));
}

static void notify(struct deliver *deliver, unsigned workers)
{
	uint64_t begin = atomic_load(&deliver->begin);
	double seconds = (double)(atomic_load(&deliver->end) - begin) / 1e9;
	size_t count = deliver->count;
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < workers; i++)
		if (atomic_load(&deliver->of[i]) < least)
			least = atomic_load(&deliver->of[i]);
	percentile_sort(deliver->late, count);
	printf("{\"jobs\":%zu,\"seconds\":%.3f,\"per_second\":%.0f,\"early\":%" PRIu64
	       ",\"p50_ms\":%.1f,\"p99_ms\":%.1f,\"p999_ms\":%.1f,\"max_ms\":%.1f,\"least_of_a_worker\":%" PRIu64 "}\n",
	    count, seconds, seconds > 0 ? (double)count / seconds : 0, atomic_load(&deliver->early),
	    percentile_ms(deliver->late, count, 0.5), percentile_ms(deliver->late, count, 0.99),
	    percentile_ms(deliver->late, count, 0.999), percentile_ms(deliver->late, count, 1), least);
}

void bench_deliver(const char *url, char **words)
{
	uint64_t count = strtoull(words[0], NULL, 10);
	unsigned workers = (unsigned)strtoul(words[2], NULL, 10);
	struct deliver *deliver = bench_share(sizeof *deliver + count * sizeof *deliver->late);
	struct ww_jobs *jobs;
	int processes[COUNT(deliver->of)];
	uint64_t now;

	if (!workers || workers > COUNT(processes))
		bench_fail("deliver", "a number is out of range");
	deliver->url = url;
	deliver->count = count;
	deliver->span = (uint64_t)(strtod(words[1], NULL) * 1e9);
	/* All are put before the first one is due, unless they are due at once. */
	jobs = bench_open(url, 0);
	bench_check("now", ww_jobs_now(jobs, 0, &now));
	deliver->first = now + (deliver->span ? count * 50000 + 2 * WW_SECOND : 0);
	fill(deliver, jobs);
	bench_check("now", ww_jobs_now(jobs, 0, &now));
	bench_check("close", ww_jobs_close(jobs));
	if (deliver->span && now + WW_SECOND > deliver->first)
		bench_fail("deliver", "putting the jobs took too long: this machine is too busy");
	for (unsigned i = 0; i < workers; i++)
		processes[i] = bench_fork(work, deliver, i);
	for (unsigned i = 0; i < workers; i++)
		bench_wait(processes[i]);
	notify(deliver, workers);
}
