/*
 * An actor, the process that store_rig.h describes. It has no Check: a failure ends it, and the test that started it
 * sees that.
 */
/* For syscall. */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/redis/store_rig.h"

static struct ww_jobs *jobs;

/* ---- Its clock */

/* The seconds by which the actor's clock is wrong. */
static int shift;

/*
 * Replaces the C library's function in the whole program: the system's clock and the time of its boot are another
 * machine's. Only differences of the monotonic clock mean anything, and the kernel knows that clock too: it is left
 * alone.
 */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);

	if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME))
		time->tv_sec += shift;
	return result;
}

/* ---- Its commands */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	(void)vprintf(format, values);
	va_end(values);
	if (fflush(stdout))
		exit(4);
}

static void report(const char *sentence, void *context)
{
	(void)context;
	if (getenv("ACTOR_LOUD"))
		(void)fprintf(stderr, "%s\n", sentence);
}

static void put(const char *line)
{
	char tube[64], body[64];
	uint64_t delay, id;
	struct ww_job_spec spec;
	int error;

	if (sscanf(line, "put %63s %" SCNu64 " %63s", tube, &delay, body) != 3)
		exit(2);
	(void)ww_job_spec_default(&spec);
	spec.tube = tube;
	spec.due = delay * 1000;
	spec.body = body;
	spec.body_length = strlen(body);
	error = ww_jobs_put(jobs, &spec, &id, NULL);
	say("%" PRId64 "\n", error < 0 ? error : (int64_t)id);
}

/* Put jobs without end. Says "T BODY DUE_US" before each put and "P BODY ID" once it is acknowledged. RUN is in ms. */
static void produce(const char *line)
{
	char tube[64], name[32], body[64];
	uint64_t run, spread, id, now;
	struct timespec pause = {.tv_nsec = 2000000};

	if (sscanf(line, "produce %63s %31s %" SCNu64 " %" SCNu64, tube, name, &run, &spread) != 4)
		exit(2);
	for (uint64_t i = 0;; i++) {
		struct ww_job_spec spec;
		(void)ww_job_spec_default(&spec);
		if (ww_jobs_now(jobs, 0, &now))
			continue;
		(void)snprintf(body, sizeof body, "%s-%" PRIu64, name, i);
		spec.tube = tube;
		spec.body = body;
		spec.body_length = strlen(body);
		spec.run = run * 1000000;
		spec.flags = WW_JOB_AT;
		spec.due = now / 1000 * 1000 + (i * 2654435761U) % (spread + 1) * 1000;
		say("T %s %" PRIu64 "\n", body, spec.due / 1000);
		if (ww_jobs_put(jobs, &spec, &id, NULL) >= 0)
			say("P %s %" PRIu64 "\n", body, id);
		(void)nanosleep(&pause, NULL);
	}
}

static void wait_once(const char *line)
{
	char tube[64];
	const char *tubes[] = {tube};
	uint64_t timeout;
	struct ww_lease lease;
	int result;

	if (sscanf(line, "wait %63s %" SCNu64, tube, &timeout) != 2)
		exit(2);
	result = ww_jobs_wait(jobs, tubes, 1, timeout * 1000000, &lease);
	if (result != 1) {
		say("%d\n", result);
		return;
	}
	say("1 %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %.*s\n", lease.id, lease.token, lease.attempt,
	    lease.ends / 1000, (int)lease.body_length, lease.body ? (const char *)lease.body : "");
	ww_jobs_free(jobs, lease.body);
}

static void finish(const char *line)
{
	uint64_t id, token;

	if (sscanf(line, "finish %" SCNu64 " %" SCNu64, &id, &token) != 2)
		exit(2);
	say("%d\n", ww_jobs_finish(jobs, id, token));
}

static void stats(void)
{
	struct ww_jobs_redis_stats stats;

	if (ww_jobs_redis_stats(jobs, &stats))
		exit(2);
	say("%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRId64 "\n", stats.watched, stats.workers, stats.resets,
	    stats.skew / (int64_t)WW_SECOND);
}

static void rest(uint64_t us)
{
	struct timespec pause = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};

	(void)nanosleep(&pause, NULL);
}

/*
 * A worker's fence stands where its results are kept. Here that is the test that reads the lines: there the lines of all
 * actors have one order.
 */
static void work(const char *line)
{
	char tube[64];
	const char *tubes[] = {tube};
	const char *hold = getenv("ACTOR_HOLD_US");
	uint64_t most = hold ? strtoull(hold, NULL, 10) : 0;
	uint64_t turn = 0;

	if (sscanf(line, "work %63s", tube) != 1)
		exit(2);
	for (;;) {
		struct ww_lease lease;
		int result = ww_jobs_wait(jobs, tubes, 1, WW_SECOND, &lease);
		if (result < 0)
			rest(20000);
		if (result != 1)
			continue;
		if (most)
			rest(turn++ * 7919 % most);
		say("J %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %.*s\n", lease.id, lease.token, lease.attempt,
		    lease.ends / 1000, (int)lease.body_length, lease.body ? (const char *)lease.body : "");
		ww_jobs_free(jobs, lease.body);
		do {
			result = ww_jobs_finish(jobs, lease.id, lease.token);
			if (result == WW_EIO || result == WW_EAGAIN)
				rest(20000);
		} while (result == WW_EIO || result == WW_EAGAIN);
		say("F %" PRIu64 " %" PRIu64 " %d\n", lease.id, lease.token, result);
	}
}

static void obey(const char *line)
{
	if (strncmp(line, "put ", 4) == 0)
		put(line);
	else if (strncmp(line, "wait ", 5) == 0)
		wait_once(line);
	else if (strncmp(line, "finish ", 7) == 0)
		finish(line);
	else if (strncmp(line, "work ", 5) == 0)
		work(line);
	else if (strncmp(line, "produce ", 8) == 0)
		produce(line);
	else if (strncmp(line, "stats", 5) == 0)
		stats();
	else
		exit(2);
}

int actor_main(int argc, char **argv)
{
	struct ww_jobs_redis_config config;
	char line[512];
	int error;

	if (argc != 5)
		return 2;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getenv("ACTOR_SHIFT_S"))
		shift = atoi(getenv("ACTOR_SHIFT_S"));
	(void)ww_jobs_redis_config_default(&config);
	config.url = argv[2];
	config.prefix = argv[3];
	config.lease = strtoull(argv[4], NULL, 10) * WW_MILLISECOND;
	config.backoff_max = 200 * WW_MILLISECOND;
	config.report = report;
	for (int i = 0; (error = ww_jobs_redis_open(&jobs, &config)) != WW_OK; i++) {
		if (i == 600) {
			say("error %d\n", error);
			return 3;
		}
		rest(50000);
	}
	say("ok\n");
	while (fgets(line, sizeof line, stdin))
		obey(line);
	return ww_jobs_close(jobs) ? 3 : 0;
}
