#ifndef TOOLS_BENCH_REDIS_REDIS_H
#define TOOLS_BENCH_REDIS_REDIS_H

/*
 * Measures jobs in Redis as a program that uses the library sees them: scripts/bench-redis runs it. It includes public
 * headers only. Each command writes a line of JSON on standard output. If anything is wrong, it ends the program after a
 * message.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/jobs.h"
#include "weekwheel/jobs_redis.h"

/* The number of elements of an array. */
#define COUNT(array) (sizeof array / sizeof *(array))

/* End the program after a message. */
_Noreturn void bench_fail(const char *what, const char *why);
/* Return the result, unless it is an error, which ends the program. */
int bench_check(const char *what, int result);

void bench_sleep(uint64_t ns);
/* Zeros that this process shares with those it forks. */
void *bench_share(size_t size);

/* connections 0: as many as the library takes by default. */
struct ww_jobs *bench_open(const char *url, uint32_t connections);
/* Put jobs by one call. */
void bench_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count);

/* Fork a process that runs the function and ends. */
int bench_fork(void (*run)(void *context, unsigned index), void *context, unsigned index);
/* Wait for it. If it failed, end this one too. */
void bench_wait(int process);

/* ---- The commands, a file each. `words` follow the URL on the command line. */

void bench_put(const char *url, char **words);
void bench_deliver(const char *url, char **words);
void bench_idle(const char *url, char **words);
void bench_dead(const char *url, char **words);
void bench_push(const char *url, char **words);

#endif
