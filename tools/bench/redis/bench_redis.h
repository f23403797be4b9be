#ifndef TOOLS_BENCH_REDIS_BENCH_REDIS_H
#define TOOLS_BENCH_REDIS_BENCH_REDIS_H

/*
 * Measures jobs in Redis as a program that uses the library sees them: what scripts/bench-redis runs. Public headers
 * only. Each command writes one line of JSON on standard output, and ends the program after a message if anything is
 * not as it should be.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/jobs.h"
#include "weekwheel/jobs_redis.h"

/* The number of elements of an array. */
#define COUNT(array) (sizeof array / sizeof *(array))

/* Ends the program. */
_Noreturn void bench_fail(const char *what, const char *why);
/* Returns what it was given, unless it is an error, which ends the program. */
int bench_check(const char *what, int result);

uint64_t bench_now(void); /* ns of the system's monotonic time */
void bench_sleep(uint64_t ns);
void *bench_allocate(size_t size); /* zeros */
/* Zeros that this process shares with those it forks. */
void *bench_share(size_t size);
/* KiB of memory that this process has of its own and shared. */
uint64_t bench_resident(void);

/* Sort values, and find the one that `part` of them are not above. */
void bench_sort(uint64_t *values, size_t count);
uint64_t bench_part(const uint64_t *sorted, size_t count, double part);

struct ww_jobs *bench_open(const char *url, uint32_t connections);

/* Fork a process that runs that and ends. */
int bench_fork(void (*run)(void *context, unsigned index), void *context, unsigned index);
/* Wait for it; one that failed ends this one. */
void bench_wait(int process);

/* ---- The commands, a file each. Words are what follows the url. */

void bench_put(const char *url, char **words);
void bench_deliver(const char *url, char **words);
void bench_idle(const char *url, char **words);
void bench_dead(const char *url, char **words);
void bench_push(const char *url, char **words);

#endif
