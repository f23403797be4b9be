/*
 * Takes the time of what threads do together, each kept on a processor of its own: the scaling that lockstep.c explains.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/time.h"
#include "tools/bench/cores/scenario.h"
#include "tools/common/memory.h"
#include "tools/common/options.h"

enum { REPETITIONS = 5 };

static uint64_t passes = 4000;

static const char *const names[] = {"schedule", "heartbeat", "cancel", "fire"};

struct runner {
	struct scenario *scenario;
	pthread_barrier_t *start;
	unsigned number, deeds;
	pthread_t thread;
	uint64_t ns[DEEDS];
};

/* Keep this thread on the n-th of the processors that the process may use, counted from 0; if there is none, on any. */
static void pin_nth(unsigned n)
{
	cpu_set_t set, one;

	if (sched_getaffinity(0, sizeof set, &set))
		return;
	CPU_ZERO(&one);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && n-- == 0)
			CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof one, &one);
}

/* Each deed takes turns with the others, so that all timers are as it wants them. */
static void pass(struct runner *runner)
{
	for (enum deed deed = 0; deed < runner->deeds; deed++) {
		uint64_t began = time_now(CLOCK_MONOTONIC);
		for (unsigned i = 0; i < SCENARIO_TIMERS; i++)
			scenario_do(runner->scenario, deed, runner->number, i);
		runner->ns[deed] += time_now(CLOCK_MONOTONIC) - began;
	}
}

static void *run(void *argument)
{
	struct runner *runner = argument;

	pin_nth(runner->number);
	pass(runner);
	for (enum deed deed = 0; deed < DEEDS; deed++)
		runner->ns[deed] = 0;
	(void)pthread_barrier_wait(runner->start);
	for (uint64_t i = 0; i < passes; i++)
		pass(runner);
	return NULL;
}

/* Store in rates[] how many operations all threads did in a second, of each deed. */
static void race(unsigned threads, unsigned workers, unsigned deeds, double *rates)
{
	struct scenario *scenario = scenario_open(threads, workers);
	struct runner *runners = memory_aligned(threads, sizeof *runners);
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, threads);
	for (unsigned i = 0; i < threads; i++) {
		runners[i] = (struct runner){.scenario = scenario, .start = &start, .number = i, .deeds = deeds};
		if (pthread_create(&runners[i].thread, NULL, run, &runners[i])) {
			perror("bench-cores: a thread");
			exit(1);
		}
	}
	for (enum deed deed = 0; deed < deeds; deed++)
		rates[deed] = 0;
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(runners[i].thread, NULL);
		for (enum deed deed = 0; deed < deeds; deed++)
			rates[deed] += 1e9 * (double)passes * SCENARIO_TIMERS / (double)runners[i].ns[deed];
	}
	pthread_barrier_destroy(&start);
	free(runners);
	scenario_close(scenario);
}

/* ---- What is shown. Whatever else the machine does only slows a run: the best ones are compared. */

static int by_value(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

struct measured {
	double least, median, most;
};

static void measure(unsigned threads, unsigned workers, unsigned deeds, struct measured *measured)
{
	double rates[REPETITIONS][DEEDS];

	for (unsigned i = 0; i < REPETITIONS; i++)
		race(threads, workers, deeds, rates[i]);
	for (enum deed deed = 0; deed < deeds; deed++) {
		double sorted[REPETITIONS];
		for (unsigned i = 0; i < REPETITIONS; i++)
			sorted[i] = rates[i][deed];
		qsort(sorted, REPETITIONS, sizeof *sorted, by_value);
		measured[deed] = (struct measured){sorted[0], sorted[REPETITIONS / 2], sorted[REPETITIONS - 1]};
	}
}

static void show_all(unsigned most, unsigned workers)
{
	unsigned deeds = workers ? DEED_CANCEL + 1 : DEED_FIRE + 1;
	struct measured alone[DEEDS], now[DEEDS];

	measure(1, workers, deeds, alone);
	for (unsigned threads = 1; threads <= most;
	     threads = threads < most && 2 * threads > most ? most : 2 * threads) {
		measure(threads, workers, deeds, now);
		for (enum deed deed = 0; deed < deeds; deed++)
			printf("%-7s %-10s %7u %14.2f %14.2f %14.2f %9.2f\n", workers ? "shared" : "own", names[deed],
			    threads, now[deed].median / 1e6, now[deed].least / 1e6, now[deed].most / 1e6,
			    now[deed].most / alone[deed].most);
		fflush(stdout);
	}
}

/* ---- The command line */

enum { THREADS = 1, PASSES, HELP };

static const struct option table[] = {
    {THREADS, 't', "threads", "N", "how many threads at most (default: the processors that this process may use)"},
    {PASSES, 'p', "passes", "N", "how often a thread does all with its 256 timers (default 4000)"},
    {HELP, 'h', "help", NULL, "show this help"},
};

static uint64_t processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) ? 1 : (uint64_t)CPU_COUNT(&set);
}

int main(int argc, char **argv)
{
	struct options options = {
	    .command = "bench-cores", .table = table, .count = sizeof table / sizeof *table, .arguments = argv + 1};
	uint64_t threads = processors();
	int id;

	(void)argc;
	while ((id = options_next(&options)) != OPTIONS_END)
		switch (id) {
		case THREADS:
			if (options_whole(options.value, 1, 256, &threads))
				return 2;
			break;
		case PASSES:
			if (options_whole(options.value, 1, 1000000, &passes))
				return 2;
			break;
		case HELP:
			options_help(stdout, table, options.count);
			return 0;
		default:
			return 2;
		}
	printf("%-7s %-10s %7s %14s %14s %14s %9s\n", "drivers", "operation", "threads", "million/s", "least", "most",
	    "most x");
	show_all((unsigned)threads, 0);
	show_all((unsigned)threads, 8);
	return 0;
}
