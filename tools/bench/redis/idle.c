/* Has the store open and does nothing. Its memory is measured at the end of that time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/bench/redis/redis.h"

/* KiB of memory that this process has of its own and shared. */
static uint64_t resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long pages = 0;

	if (!file || fscanf(file, "%*u %llu", &pages) != 1)
		bench_fail("/proc/self/statm", "cannot be read");
	(void)fclose(file);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

void bench_idle(const char *url, char **words)
{
	const char *const tubes[] = {WW_TUBE_DEFAULT};
	struct ww_jobs *jobs = bench_open(url, 0);
	struct ww_jobs_redis_stats before;
	struct ww_jobs_redis_stats after;
	uint64_t seconds = strtoull(words[0], NULL, 10);
	struct ww_lease lease;

	/* After one call it knows that nothing is ready. */
	bench_check("wait", ww_jobs_wait(jobs, tubes, 1, WW_SECOND, &lease));
	bench_check("stats", ww_jobs_redis_stats(jobs, &before));
	if (bench_check("wait", ww_jobs_wait(jobs, tubes, 1, seconds * WW_SECOND, &lease)))
		bench_fail("idle", "a job was due");
	bench_check("stats", ww_jobs_redis_stats(jobs, &after));
	printf("{\"seconds\":%" PRIu64 ",\"commands\":%" PRIu64 ",\"resident_kib\":%" PRIu64 ",\"store_bytes\":%" PRIu64
	       "}\n",
	    seconds, after.commands - before.commands, resident_kib(), after.bytes);
	bench_check("close", ww_jobs_close(jobs));
}
