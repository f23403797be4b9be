/*
 * bench-redis COMMAND URL WORDS...
 *
 *     put URL JOBS THREADS BATCH KEY FROM SPREAD   put jobs with bodies of 32 bytes and keys of KEY bytes (0: none), due
 *                                                  FROM to FROM + SPREAD seconds from now; BATCH 1: by ww_jobs_put, else
 *                                                  by ww_jobs_put_many
 *     deliver URL JOBS SECONDS WORKERS             jobs that come due over so many seconds (0: all at once), and
 *                                                  processes that reserve and finish them
 *     idle URL SECONDS                             do nothing with the store open
 *     dead URL TIMES                               kill a process that has leases, and see when another gets the jobs
 *     push URL JOBS IN_FLIGHT                      requests to a server of its own; URL may also be memory, or a folder
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/redis/redis.h"
#include "tools/common/command.h"
#include "tools/common/message.h"

_Noreturn void bench_fail(const char *what, const char *why)
{
	message_error("%s: %s", what, why);
	exit(STATUS_FAILED);
}

int bench_check(const char *what, int result)
{
	if (result < 0)
		bench_fail(what, ww_strerror(result));
	return result;
}

void bench_sleep(uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / WW_SECOND), .tv_nsec = (long)(ns % WW_SECOND)};

	(void)nanosleep(&time, NULL);
}

void *bench_share(size_t size)
{
	void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		bench_fail("memory", "none is left");
	return block;
}

static void report(const char *sentence, void *context)
{
	(void)context;
	/* The measured Redis has no log, and the head of the table says so. */
	if (!strstr(sentence, "appendonly"))
		message_error("%s", sentence);
}

struct ww_jobs *bench_open(const char *url, uint32_t connections)
{
	struct ww_jobs_redis_config config;
	struct ww_jobs *jobs;

	bench_check("config", ww_jobs_redis_config_default(&config));
	config.url = url;
	config.report = report;
	config.timeout = 20 * WW_SECOND; /* a busy machine makes it slow, but not fail */
	if (connections)
		config.connections = connections;
	bench_check(url, ww_jobs_redis_open(&jobs, &config));
	return jobs;
}

void bench_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count)
{
	bench_check("put", ww_jobs_put_many(jobs, puts, count));
	for (size_t i = 0; i < count; i++)
		bench_check("put", puts[i].result);
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
		bench_fail("process", "one that was started has failed");
}

static const struct {
	const char *name;
	int words;
	void (*run)(const char *url, char **words);
} commands[] = {
    {"put", 6, bench_put},
    {"deliver", 3, bench_deliver},
    {"idle", 1, bench_idle},
    {"dead", 1, bench_dead},
    {"push", 2, bench_push},
};

int main(int count, char **arguments)
{
	message_program = "bench-redis";
	for (size_t i = 0; i < COUNT(commands); i++) {
		if (count < 3 || strcmp(arguments[1], commands[i].name) != 0 || count != 3 + commands[i].words)
			continue;
		commands[i].run(arguments[2], arguments + 3);
		return 0;
	}
	message_error("the top of tools/bench/redis/main.c lists its commands");
	return STATUS_USAGE;
}
