/*
 * Simulates weeks of a server: its own code from the socket to the disk, on a simulated system, with clients and
 * failures that one seed decides. Says what broke a promise, and the command to see it again.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simulate/disk.h"
#include "tests/simulate/failures.h"
#include "tests/simulate/simulated.h"
#include "tests/simulate/world.h"

enum { SECONDS_A_RUN = 300 };
static const int deadly[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};

static struct {
	uint64_t weeks, each, seed, processes;
	int is_verbose;
	const char *history; /* NULL: it is judged, and not kept */
	const char *judge;
} asked = {10, 10, 1, 1, 0, NULL, NULL};

/* ---- The history, which is written to a file, or to the program that judges it */

static FILE *history;
static pid_t judge;

static void open_history(void)
{
	int ends[2];

	if (asked.history) {
		history = fopen(asked.history, "w");
	} else if (pipe(ends) == 0) {
		judge = fork();
		if (judge == 0) {
			(void)dup2(ends[0], 0);
			(void)close(ends[1]);
			(void)execlp("python3", "python3", asked.judge, "--quiet", "/dev/stdin", NULL);
			_exit(127);
		}
		(void)close(ends[0]);
		history = judge > 0 ? fdopen(ends[1], "w") : NULL;
	}
	if (!history) {
		(void)fprintf(stderr, "simulate: no history can be written\n");
		exit(2);
	}
}

static void close_history(void)
{
	int status = 0;
	int is_lost = fclose(history) != 0;

	if (!asked.history && waitpid(judge, &status, 0) == judge && WIFEXITED(status) && WEXITSTATUS(status) == 127)
		(void)fprintf(stderr, "simulate: python3 does not start\n");
	if (is_lost || status)
		world_bad("that is what the judge of the history says");
	history = NULL;
}

static struct totals {
	uint64_t runs, bad, days, lives, powers, hash;
	uint64_t counts[SIMULATED_COUNTS];
	struct disk_counts disk;
} totals;

static void count_run(unsigned bads)
{
	struct simulated_count counts[SIMULATED_COUNTS] = {{NULL, 0}};

	simulated.count(counts);
	totals.runs++;
	totals.bad += bads != 0;
	totals.days += world.now / SIM_DAY;
	totals.lives += failures.lives;
	totals.powers += failures.powers;
	totals.hash += world.hash;
	for (size_t i = 0; i < SIMULATED_COUNTS; i++)
		totals.counts[i] += counts[i].value;
	for (size_t i = 0; i < sizeof totals.disk / sizeof(uint64_t); i++)
		((uint64_t *)&totals.disk)[i] += ((uint64_t *)&disk_counts)[i];
}

static void print_totals(const struct totals *all, const char *name)
{
	struct simulated_count counts[SIMULATED_COUNTS] = {{NULL, 0}};

	simulated.count(counts);
	printf("%s: %" PRIu64 " days, %" PRIu64 " lives of the server, %" PRIu64 " power failures;", name, all->days,
	    all->lives, all->powers);
	for (size_t i = 0; i < SIMULATED_COUNTS && counts[i].name; i++)
		printf("%s %" PRIu64 " %s", i ? "," : "", all->counts[i], counts[i].name);
	printf("; disk: %" PRIu64 " writes and %" PRIu64 " syncs, of which %" PRIu64 " and %" PRIu64 " failed, %" PRIu64
	       " found it full, %" PRIu64 " lies, %" PRIu64 " changes lost, %" PRIu64 " torn; trace %016" PRIx64 "\n",
	    all->disk.writes, all->disk.syncs, all->disk.failed_writes, all->disk.failed_syncs, all->disk.full,
	    all->disk.lies, all->disk.lost, all->disk.torn, all->hash);
}

static void add_totals(struct totals *to, const struct totals *from)
{
	for (size_t i = 0; i < sizeof *to / sizeof(uint64_t); i++)
		((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
}

static uint64_t number(const char *text, const char *name)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (!*text || *end) {
		(void)fprintf(stderr, "simulate: %s is not a number: %s\n", name, text);
		exit(2);
	}
	return value;
}

static const struct {
	const char *name;
	uint64_t *value;
} options[] = {
    {"--weeks", &asked.weeks}, {"--each", &asked.each}, {"--seed", &asked.seed}, {"--processes", &asked.processes}};

static int usage(int status)
{
	(void)fprintf(status ? stderr : stdout,
	    "Usage: %s [--weeks N] [--each N] [--seed N] [--processes N] [--verbose] [--judge FILE] [--history FILE]\n"
	    "Simulate N weeks of %s (10), in runs of 10 weeks each, whose seeds follow each other.\n"
	    "The history of each run is judged by a program (%s), or written to a file: that\n"
	    "of the last run.\n"
	    "Example: %s --weeks 1000 --seed 1 --processes 2\n",
	    simulated.program, simulated.server, simulated.judge, simulated.program);
	return status;
}

static int read_options(char **arguments)
{
	for (; *arguments; arguments++) {
		size_t i = 0;
		if ((strcmp(*arguments, "--history") == 0 || strcmp(*arguments, "--judge") == 0) && arguments[1]) {
			*(arguments[0][2] == 'h' ? &asked.history : &asked.judge) = arguments[1];
			arguments++;
			continue;
		}
		if (strcmp(*arguments, "--verbose") == 0) {
			asked.is_verbose = 1;
			continue;
		}
		while (i < sizeof options / sizeof *options && strcmp(*arguments, options[i].name) != 0)
			i++;
		if (i == sizeof options / sizeof *options || !arguments[1])
			return -1;
		*options[i].value = number(arguments[1], arguments[0]);
		arguments++;
	}
	return asked.processes && asked.each ? 0 : -1;
}

/* A run of a process: a seed that hangs or crashes is told all the same. */
static uint64_t seed_now, weeks_now;

static void say_again(void)
{
	printf("see it again: build/tests/%s --seed %" PRIu64 " --weeks %" PRIu64 " --verbose\n", simulated.program,
	    seed_now, weeks_now);
	(void)fflush(stdout);
}

static void on_signal(int signal_number)
{
	printf("seed %" PRIu64 ": %s\n", seed_now, signal_number == SIGALRM ? "it hangs" : strsignal(signal_number));
	say_again();
	_exit(1);
}

/* Every `step`-th run, from `first` on. */
static void simulate_some(uint64_t first, uint64_t step)
{
	for (uint64_t i = first; i * asked.each < asked.weeks; i += step) {
		unsigned before = world_bads;
		uint64_t left = asked.weeks - i * asked.each;
		seed_now = asked.seed + i;
		weeks_now = left < asked.each ? left : asked.each;
		(void)alarm(SECONDS_A_RUN);
		open_history();
		failures_play(seed_now, weeks_now, asked.is_verbose, history);
		close_history();
		count_run(world_bads - before);
		if (world_bads != before)
			say_again();
		failures_end();
	}
}

int main(int count, char **arguments)
{
	struct totals all = {0}, one;
	int ends[2], failed = 0, status;

	(void)count;
	asked.judge = simulated.judge;
	if (arguments[1] && strcmp(arguments[1], "--help") == 0)
		return usage(0);
	if (read_options(arguments + 1) != 0)
		return usage(2);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
		(void)signal(deadly[i], on_signal);
	if (pipe(ends) != 0)
		return 2;
	for (uint64_t i = 0; i < asked.processes; i++) {
		if (fork() != 0)
			continue;
		simulate_some(i, asked.processes);
		if (write(ends[1], &totals, sizeof totals) != sizeof totals)
			return 2;
		return totals.bad != 0;
	}
	(void)close(ends[1]);
	while (wait(&status) > 0)
		failed |= status != 0;
	while (read(ends[0], &one, sizeof one) == sizeof one)
		add_totals(&all, &one);
	print_totals(&all, "in all");
	if (failed)
		printf("%" PRIu64 " of %" PRIu64 " runs are bad\n", all.bad, all.runs);
	return failed;
}
