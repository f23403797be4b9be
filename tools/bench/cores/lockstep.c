/*
 * Counts the cache lines that go from one thread to another in each operation, on any machine: threads take turns, one
 * operation each, and a model of as many processors is shown what they read and write (recorder.h).
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/cores/recorder.h"
#include "tools/bench/cores/scenario.h"
#include "tools/common/memory.h"
#include "tools/common/options.h"

enum { ROUNDS = 3, CAUSES_SHOWN = 24 };
/* Threads whose timers have long callbacks. */
enum { THREADS_LONG = 4 };

/* A callback that sleeps so long is long enough for each worker to take one meanwhile. */
#define LONG_NS 300000

static const char *const names[DEEDS] = {"schedule", "heartbeat", "cancel", "fire", NULL, "cancel others'"};

struct player {
	struct stage *stage;
	unsigned number;
	sem_t turn;
	pthread_t thread;
};

struct stage {
	struct scenario *scenario;
	unsigned threads;
	struct player *players;
	sem_t ended; /* all have had their turns with all of their timers */
	enum deed deed;
	unsigned due; /* in place of the deed, so many of the threads schedule timers that are due */
	int over;
};

static void *play(void *argument)
{
	struct player *player = argument;
	struct stage *stage = player->stage;
	sem_t *next = &stage->players[(player->number + 1) % stage->threads].turn;

	for (unsigned i = 0;; i = (i + 1) % SCENARIO_TIMERS) {
		sem_wait(&player->turn);
		if (stage->over)
			return NULL;
		if (!stage->due)
			scenario_do(stage->scenario, stage->deed, player->number, i);
		else if (i == 0 && player->number < stage->due)
			scenario_schedule_due(stage->scenario, player->number);
		if (i + 1 == SCENARIO_TIMERS && player->number + 1 == stage->threads)
			sem_post(&stage->ended);
		else
			sem_post(next);
	}
}

static void play_all(struct stage *stage)
{
	sem_post(&stage->players[0].turn);
	sem_wait(&stage->ended);
}

static struct stage *open_stage(unsigned threads, unsigned workers)
{
	struct stage *stage = memory_zeroed(1, sizeof *stage);

	stage->scenario = scenario_open(threads, workers);
	stage->threads = threads;
	stage->players = memory_zeroed(threads, sizeof *stage->players);
	sem_init(&stage->ended, 0, 0);
	for (unsigned i = 0; i < threads; i++) {
		struct player *player = &stage->players[i];
		player->stage = stage;
		player->number = i;
		sem_init(&player->turn, 0, 0);
		if (pthread_create(&player->thread, NULL, play, player)) {
			perror("bench-cores: a thread");
			exit(1);
		}
	}
	return stage;
}

static void close_stage(struct stage *stage)
{
	stage->over = 1;
	for (unsigned i = 0; i < stage->threads; i++) {
		sem_post(&stage->players[i].turn);
		pthread_join(stage->players[i].thread, NULL);
		sem_destroy(&stage->players[i].turn);
	}
	sem_destroy(&stage->ended);
	scenario_close(stage->scenario);
	free(stage->players);
	free(stage);
}

/* ---- What is shown */

static int causes_wanted;

static void show_causes(const struct coherence *model)
{
	struct coherence_cause causes[CAUSES_SHOWN];
	size_t count = causes_wanted ? coherence_causes(model, causes, CAUSES_SHOWN) : 0;

	for (size_t i = 0; i < count; i++)
		printf("cause %#lx %lu\n", (unsigned long)causes[i].code, (unsigned long)causes[i].transfers);
}

static void show(const char *drivers, const char *deed, unsigned threads, unsigned workers, double operations,
    struct coherence_count count, const struct coherence *model)
{
	printf("%-7s %-15s %7u %7u %12.3f %14.3f\n", drivers, deed, threads, workers,
	    (double)count.transfers / operations, (double)count.shared / operations);
	fflush(stdout);
	show_causes(model);
}

/* ---- The two arrangements */

static void count_deed(struct stage *stage, struct coherence *model, enum deed deed, unsigned workers, int shows)
{
	struct coherence_count count;

	stage->deed = deed;
	recorder_begin();
	play_all(stage);
	count = recorder_counted();
	if (shows && names[deed])
		show(workers ? "shared" : "own", names[deed], stage->threads, workers,
		    (double)stage->threads * SCENARIO_TIMERS, count, model);
}

static void count_due(
    struct stage *stage, struct coherence *model, unsigned workers, const char *name, uint64_t callback_ns, int shows)
{
	unsigned threads = callback_ns && stage->threads > THREADS_LONG ? THREADS_LONG : stage->threads;
	struct coherence_count count;

	scenario_set_callback(stage->scenario, callback_ns);
	stage->due = threads;
	play_all(stage);
	stage->due = 0;
	recorder_begin();
	(void)scenario_wait_due(stage->scenario);
	count = recorder_counted();
	if (shows)
		show("shared", name, stage->threads, workers, (double)threads * SCENARIO_TIMERS, count, model);
}

static void count_all(unsigned threads, unsigned workers)
{
	struct coherence *model = coherence_make();
	struct stage *stage;

	recorder_record(model);
	stage = open_stage(threads, workers);
	/* Rounds before the last one bring all memory to where it is in the long run. */
	for (int round = 1; round <= ROUNDS; round++)
		for (enum deed deed = DEED_SCHEDULE; deed <= DEED_CANCEL; deed++)
			count_deed(stage, model, deed, workers, round == ROUNDS);
	for (int round = 1; round <= ROUNDS; round++)
		if (!workers)
			count_deed(stage, model, DEED_FIRE, workers, round == ROUNDS);
		else
			count_due(stage, model, workers, "fire", 0, round == ROUNDS);
	for (int round = 1; workers && round <= ROUNDS; round++)
		count_due(stage, model, workers, "fire, long", LONG_NS, round == ROUNDS);
	for (int round = 1; round <= ROUNDS; round++) {
		count_deed(stage, model, DEED_SCHEDULE_AGAIN, workers, 0);
		count_deed(stage, model, DEED_CANCEL_OTHERS, workers, round == ROUNDS);
	}
	recorder_record(NULL);
	close_stage(stage);
	coherence_free(model);
}

/* ---- The command line */

enum { THREADS = 1, WORKERS, CAUSES, HELP };

static const struct option table[] = {
    {THREADS, 't', "threads", "N", "how many threads use timers (default 2)"},
    {WORKERS, 'w', "workers", "N", "of the driver that they share; 0: each has a driver of its own (default 0)"},
    {CAUSES, 'c', "causes", NULL, "also list the code that causes most transfers"},
    {HELP, 'h', "help", NULL, "show this help"},
};

int main(int argc, char **argv)
{
	struct options options = {
	    .command = "bench-cores", .table = table, .count = sizeof table / sizeof *table, .arguments = argv + 1};
	uint64_t threads = 2, workers = 0;
	int id, error = 0;

	(void)argc;
	while (!error && (id = options_next(&options)) != OPTIONS_END)
		switch (id) {
		case THREADS:
			error = options_whole(options.value, 2, 256, &threads);
			break;
		case WORKERS:
			error = options_whole(options.value, 0, 128, &workers);
			break;
		case CAUSES:
			causes_wanted = 1;
			break;
		case HELP:
			options_help(stdout, table, options.count);
			return 0;
		default:
			return 2;
		}
	if (error)
		return 2;
	count_all((unsigned)threads, (unsigned)workers);
	return 0;
}
