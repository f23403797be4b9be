/* A process that has the store open and does nothing. Of its memory, what it has at the end of that time counts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/redis/bench_redis.h"

void bench_idle(const char *url, char **words)
{
	const char *const tubes[] = {WW_TUBE_DEFAULT};
	struct ww_jobs *jobs = bench_open(url, 0);
	struct ww_jobs_redis_stats before;
	struct ww_jobs_redis_stats after;
	uint64_t seconds = strtoull(words[0], NULL, 10);
	struct ww_lease lease;

	/* Once asked, it knows that nothing is ready. */
	bench_check("wait", ww_jobs_wait(jobs, tubes, 1, WW_SECOND, &lease));
	bench_check("stats", ww_jobs_redis_stats(jobs, &before));
	if (bench_check("wait", ww_jobs_wait(jobs, tubes, 1, seconds * WW_SECOND, &lease)))
		bench_fail("idle", "a job was due");
	bench_check("stats", ww_jobs_redis_stats(jobs, &after));
	printf("{\"seconds\":%" PRIu64 ",\"commands\":%" PRIu64 ",\"resident_kib\":%" PRIu64 ",\"store_bytes\":%" PRIu64
	       "}\n",
	    seconds, after.commands - before.commands, bench_resident(), after.bytes);
	bench_check("close", ww_jobs_close(jobs));
}
