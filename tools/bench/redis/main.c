/*
 * bench-redis COMMAND URL WORDS...
 *
 *     put URL JOBS THREADS BATCH KEY FROM SPREAD put jobs with bodies of 32 bytes; KEY: bytes of a key, 0: none; they
 *     are due FROM to
 *                                                FROM + SPREAD seconds from now; BATCH 1: by ww_jobs_put, else by
 *                                                ww_jobs_put_many
 *     deliver URL JOBS SECONDS WORKERS           jobs that come due over so many seconds (0: all at once) to processes that reserve and
 *                                                finish them
 *     idle URL SECONDS                           do nothing with the store open
 *     dead URL TIMES                             kill a process with leased jobs, and see when another one gets them
 *     push URL JOBS IN_FLIGHT                    requests to a server of its own; URL may also be memory, or a directory
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/redis/bench_redis.h"
#include "tools/common/clock.h"

_Noreturn void bench_fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "bench-redis: %s: %s\n", what, why);
	exit(1);
}

int bench_check(const char *what, int result)
{
	if (result < 0)
		bench_fail(what, ww_strerror(result));
	return result;
}

uint64_t bench_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void bench_sleep(uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / WW_SECOND), .tv_nsec = (long)(ns % WW_SECOND)};

	(void)nanosleep(&time, NULL);
}

void *bench_allocate(size_t size)
{
	void *block = calloc(1, size);

	if (!block)
		bench_fail("memory", "none is left");
	return block;
}

void *bench_share(size_t size)
{
	void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		bench_fail("memory", "none is left");
	return block;
}

uint64_t bench_resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long pages = 0;

	if (!file || fscanf(file, "%*u %llu", &pages) != 1)
		bench_fail("/proc/self/statm", "cannot be read");
	(void)fclose(file);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static int by_size(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

void bench_sort(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof *values, by_size);
}

uint64_t bench_part(const uint64_t *sorted, size_t count, double part)
{
	return count ? sorted[(size_t)((double)(count - 1) * part)] : 0;
}

static void report(const char *sentence, void *context)
{
	(void)context;
	/* It is measured without a log, and the table's head says so. */
	if (!strstr(sentence, "appendonly"))
		(void)fprintf(stderr, "bench-redis: %s\n", sentence);
}

struct ww_jobs *bench_open(const char *url, uint32_t connections)
{
	struct ww_jobs_redis_config config;
	struct ww_jobs *jobs;

	bench_check("config", ww_jobs_redis_config_default(&config));
	config.url = url;
	config.report = report;
	config.timeout = 20 * WW_SECOND; /* so that a machine that is busy only makes it slow */
	if (connections)
		config.connections = connections;
	bench_check(url, ww_jobs_redis_open(&jobs, &config));
	return jobs;
}

int bench_fork(void (*run)(void *context, unsigned index), void *context, unsigned index)
{
	int process;

	(void)fflush(stdout);
	process = fork();
	if (process < 0)
		bench_fail("fork", "not possible");
	if (process == 0) {
		run(context, index);
		_exit(0);
	}
	return process;
}

void bench_wait(int process)
{
	int status;

	if (waitpid(process, &status, 0) != process || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		bench_fail("process", "one of those that were started has failed");
}

struct redis_command {
	const char *name;
	int words;
	void (*run)(const char *url, char **words);
};

static const struct redis_command commands[] = {
    {"put", 6, bench_put},
    {"deliver", 3, bench_deliver},
    {"idle", 1, bench_idle},
    {"dead", 1, bench_dead},
    {"push", 2, bench_push},
};

int main(int count, char **arguments)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		if (count < 3 || strcmp(arguments[1], commands[i].name) != 0 || count != 3 + commands[i].words)
			continue;
		commands[i].run(arguments[2], arguments + 3);
		return 0;
	}
	(void)fprintf(stderr, "bench-redis: what it is asked for is told at the top of tools/bench/redis/main.c\n");
	return 2;
}
