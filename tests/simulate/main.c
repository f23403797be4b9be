/*
 * Simulates weeks of a job server: the server's own code from the socket to the disk, on a simulated system, with clients
 * and failures that one seed decides. Says what broke a promise, and the command to see it again.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "lib/jobs/store/store.h"
#include "tests/simulate/book.h"
#include "tests/simulate/client.h"
#include "tests/simulate/disk.h"
#include "tests/simulate/system.h"
#include "tests/simulate/wire.h"
#include "tests/simulate/world.h"
#include "tools/weekwheeld/run.h"

enum { SECONDS_A_RUN = 300 };
static const int deadly[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};

enum death { NOT_DEAD, KILLED, POWER };

static struct {
	uint64_t weeks, each, seed, processes;
	int is_verbose;
	const char *history; /* NULL: it is judged, and not kept */
	const char *judge;
} asked = {10, 10, 1, 1, 0, NULL, "tests/support/history.py"};

static const char *const modes[] = {"always", "interval", "system"};

static struct {
	enum death death;
	unsigned countdown; /* changes and syncs of the disk until it dies */
	enum death then;
	unsigned names; /* changes of names until its death is near */
	unsigned mode;
	int is_over; /* the weeks are; no failure any more */
	int may_lie, may_fail, may_fill, may_step;
	unsigned lives, refused, wiped;
	uint64_t end;
	uint64_t ahead; /* the clock was set forward by that in all */
	char said[300]; /* the last message of the server */
} run;

/* ---- Messages of the server, in place of those of tools/common */

const char *message_program = "weekwheeld";
enum message_level message_level = MESSAGE_INFO;
enum message_form message_form = MESSAGE_TEXT;

enum message_form message_form_found(void)
{
	return MESSAGE_TEXT;
}

static void take_message(const char *format, va_list arguments)
{
	(void)vsnprintf(run.said, sizeof run.said, format, arguments);
	if (!world.is_ghost && strncmp(run.said, "listening", 9) == 0)
		book_opened();
	world_say("%s%s", world.is_ghost ? "(dead) " : "weekwheeld: ", run.said);
}

void message_log(enum message_level level, const struct message_field *fields, const char *format, ...)
{
	va_list arguments;

	(void)level;
	(void)fields;
	va_start(arguments, format);
	take_message(format, arguments);
	va_end(arguments);
}

int message_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	take_message(format, arguments);
	va_end(arguments);
	return -1;
}

void message_line(const char *format, ...)
{
	(void)format;
}

const char *message_excerpt(char *out, size_t room, const char *text, size_t size)
{
	(void)snprintf(out, room, "%.*s", (int)size, text);
	return out;
}

/* ---- Failures */

static void die(enum death death)
{
	if (run.death || world.is_ghost)
		return;
	world_say("--- %s", death == POWER ? "the power fails" : "killed");
	run.death = death;
	run.countdown = 0;
	world_ghost_begin();
	loop_hang_up(death == POWER);
	loop_signal_server(SIGTERM);
}

static void before_change(int is_name)
{
	if (is_name && run.names && --run.names == 0) {
		run.countdown = (unsigned)world_between(1, 12);
		run.then = POWER;
	}
	if (run.countdown && --run.countdown == 0)
		die(run.then);
}

static void heal(void *context, uint64_t number)
{
	(void)context;
	(void)number;
	world_say("--- the disk is well");
	disk_faults = (struct disk_faults){0};
	book_well();
}

static void fall_ill(void)
{
	unsigned often = (unsigned)world_between(1, 300);

	switch (world_below(7)) {
	case 0:
		disk_faults.sync_eio = run.may_fail ? often : 0;
		break;
	case 1:
		disk_faults.write_eio = run.may_fail ? often : 0;
		break;
	case 2:
		disk_faults.is_full = run.may_fill;
		break;
	case 3:
		disk_faults.is_very_full = run.may_fill;
		break;
	case 4:
		disk_faults.slow = often;
		break;
	case 5:
		disk_faults.read_eio = run.may_fail ? often : 0;
		break;
	default:
		disk_faults.lies = run.may_lie ? often : 0;
	}
	world_say("--- the disk is ill: EIO %u %u %u, full %d %d, slow %u, lies %u", disk_faults.sync_eio,
	    disk_faults.write_eio, disk_faults.read_eio, disk_faults.is_full, disk_faults.is_very_full,
	    disk_faults.slow, disk_faults.lies);
	book_ill();
	world_at(world.now + world_between(SIM_S, SIM_HOUR), heal, NULL, 0);
}

static void step_clock(void)
{
	int64_t step = (int64_t)world_below(2 * SIM_HOUR) - (int64_t)SIM_HOUR;

	if (!run.may_step)
		return;
	world_say("--- the clock is set by %.3f s", (double)step / 1e9);
	system_step(step);
	book_stepped(step);
	run.ahead += step > 0 ? (uint64_t)step : 0;
}

static void something_happens(void *context, uint64_t number)
{
	(void)context;
	(void)number;
	if (run.is_over)
		return;
	switch (world_below(10)) {
	case 8:
	case 9:
		/* Names change where the journal is cut and the index has taken over. */
		run.names = (unsigned)world_between(1, 6);
		break;
	case 0:
		die(KILLED);
		break;
	case 1:
		die(POWER);
		break;
	case 2:
	case 3:
		run.countdown = (unsigned)world_between(1, world_chance(500) ? 20 : 300);
		run.then = world_chance(500) ? POWER : KILLED;
		break;
	case 4:
		world_say("--- ended in order");
		loop_signal_server(SIGTERM);
		break;
	case 5:
	case 6:
		fall_ill();
		break;
	default:
		step_clock();
	}
	world_at(world.now + world_below(2 * SIM_DAY), something_happens, NULL, 0);
}

/* Who runs the server starts it again when it answers with errors. */
static void look_after(void *context, uint64_t number)
{
	(void)context;
	(void)number;
	if (clients_errors() && world_chance(700)) {
		world_say("--- restarted because of errors");
		loop_signal_server(SIGTERM);
	}
	world_at(world.now + SIM_MINUTE * (run.is_over ? 1 : world_between(1, 120)), look_after, NULL, 0);
}

/* When the weeks are over all is healthy, and each job is taken and deleted, up to the last one. */
static void end_weeks(void *context, uint64_t number)
{
	(void)context;
	(void)number;
	if (!run.is_over) {
		world_say("--- the weeks are over");
		run.is_over = 1;
		run.countdown = run.names = 0;
		run.end = world.now;
		load.is_draining = 1;
		heal(NULL, 0);
	}
	if (book_is_done() || world.now > book.last_due + SIM_DAY + run.ahead) {
		run.is_over = 2;
		loop_signal_server(SIGTERM);
		return;
	}
	world_at(world.now + SIM_HOUR, end_weeks, NULL, 0);
}

/* ---- Lives of the server */

static void down(uint64_t time)
{
	book_ill();
	world_sleep(time);
}

static void begun(void)
{
	book_well();
}

static void after_death(void)
{
	int is_power = run.death == POWER, lost = 0;

	if (run.death)
		world_ghost_end();
	loop_end_of_server();
	system_release();
	if (is_power) {
		lost = disk_power_failure();
		if (lost)
			world_say("--- the disk has lied, and lost what it had said was stable");
		system_boot();
	} else {
		disk_release();
	}
	book_server_died(is_power, lost);
	run.wiped += (unsigned)lost;
	run.death = NOT_DEAD;
}

static void live(const struct settings *settings)
{
	int status;

	run.lives++;
	*run.said = 0;
	world_say("--- life %u", run.lives);
	book_well();
	status = server_run(settings);
	if (status && !run.death && !loop_was_open()) {
		int is_well = !disk_faults.is_full && !disk_faults.is_very_full && !disk_faults.sync_eio &&
		              !disk_faults.write_eio && !disk_faults.read_eio && !disk_faults.lies;
		run.refused++;
		if (is_well && !run.wiped) {
			world_bad("the server does not start: %s", run.said);
			run.is_over = 2;
		}
		if (is_well) {
			world_say("--- a new disk");
			after_death();
			disk_end();
			disk_begin();
			book_forget_all();
			return;
		}
	}
	after_death();
	begun();
}

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

static struct store_limits usual;

static void simulate(uint64_t seed, uint64_t weeks, int verbose)
{
	static struct settings settings;
	char interval[16], *arguments[] = {"--unix", "/sim/socket", "--data", "/sim/data", "--sync", NULL,
	                       "--sync-interval", interval, NULL};
	static const struct store_limits small = {.active = 30000, .journal = 200000, .view = 40, .few = 5};
	static const char *const intervals[] = {"0.05", "1", "10"};

	world_begin(seed, verbose);
	(void)sqlite3_randomness(0, NULL);
	memset(&run, 0, sizeof run);
	memset(&settings, 0, sizeof settings);
	run.mode = (unsigned)world_below(3);
	run.may_fail = world_chance(500);
	run.may_fill = world_chance(500);
	run.may_lie = world_chance(100);
	run.may_step = world_chance(300);
	load = (struct load){.clients = (unsigned)world_between(2, 4), .tubes = (unsigned)world_between(1, TUBES)};
	load.body_most = world_chance(300) ? 60000 : 1000;
	/* With small limits the index takes over often. */
	ww_store_disk_limits = world_chance(500) ? small : usual;
	load.cuts = world_chance(500) ? 20 : 0;
	(void)snprintf(interval, sizeof interval, "%s", intervals[world_below(3)]);
	arguments[5] = (char *)(uintptr_t)modes[run.mode];
	arguments[run.mode == 1 ? 8 : 6] = NULL;
	system_begin();
	disk_begin();
	disk_before = before_change;
	disk_sync_failed = book_sync_failed;
	loop_begin();
	book_begin(run.mode == 0   ? 0
	           : run.mode == 1 ? (uint64_t)(atof(interval) * 1e9) + 3 * SIM_S
	                           : 36 * SIM_S,
	    run.may_step, history);
	if (settings_read(&settings, arguments) != 0)
		exit(2);
	clients_begin();
	world_at(world_below(SIM_DAY), something_happens, NULL, 0);
	world_at(SIM_HOUR, look_after, NULL, 0);
	world_at(weeks * SIM_WEEK, end_weeks, NULL, 0);
	while (run.is_over < 2) {
		live(&settings);
		if (run.is_over < 2)
			down(world_chance(500) ? world_below(10 * SIM_S) : world_below(SIM_HOUR));
	}
	book_final();
	/* A second of retrying, now and then, and a sync for each change at most: a server with nothing to do sleeps. */
	if (world.wakes > 2 * book.acknowledged + 20 * world.now / SIM_HOUR)
		world_bad("threads of the server have woken %" PRIu64 " times in %" PRIu64 " days", world.wakes,
		    world.now / SIM_DAY);
}

static struct totals {
	uint64_t runs, bad, days, lives, powers, jobs, deliveries, acknowledged, unanswered, refused, late_ends, hash;
	struct disk_counts disk;
} totals;

static void count_run(unsigned bads)
{
	totals.runs++;
	totals.bad += bads != 0;
	totals.days += world.now / SIM_DAY;
	totals.lives += run.lives;
	totals.powers += book.powers;
	totals.jobs += book_count();
	totals.deliveries += book.deliveries;
	totals.acknowledged += book.acknowledged;
	totals.unanswered += book.unanswered;
	totals.refused += book.refused;
	totals.late_ends += book.late_ends;
	totals.hash += world.hash;
	for (size_t i = 0; i < sizeof totals.disk / sizeof(uint64_t); i++)
		((uint64_t *)&totals.disk)[i] += ((uint64_t *)&disk_counts)[i];
}

static void print_totals(const struct totals *all, const char *name)
{
	printf("%s: %" PRIu64 " days, %" PRIu64 " lives of the server, %" PRIu64 " power failures; %" PRIu64
	       " jobs, %" PRIu64 " deliveries, changes: %" PRIu64 " acknowledged, %" PRIu64 " unanswered, %" PRIu64
	       " refused, %" PRIu64 " ends of what was put again; disk: %" PRIu64 " writes and %" PRIu64
	       " syncs, of which %" PRIu64 " and %" PRIu64 " failed, %" PRIu64 " found it full, %" PRIu64
	       " lies, %" PRIu64 " changes lost, %" PRIu64 " torn; trace %016" PRIx64 "\n",
	    name, all->days, all->lives, all->powers, all->jobs, all->deliveries, all->acknowledged, all->unanswered,
	    all->refused, all->late_ends, all->disk.writes, all->disk.syncs, all->disk.failed_writes,
	    all->disk.failed_syncs, all->disk.full, all->disk.lies, all->disk.lost, all->disk.torn, all->hash);
}

static void add_totals(struct totals *to, const struct totals *from)
{
	for (size_t i = 0; i < sizeof *to / sizeof(uint64_t); i++)
		((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
}

static void finish(void)
{
	clients_end();
	book_end();
	loop_end_of_run();
	disk_end();
	world_end();
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
	    "Usage: simulate [--weeks N] [--each N] [--seed N] [--processes N] [--verbose] [--judge FILE] [--history FILE]\n"
	    "Simulate N weeks of a job server (10), in runs of 10 weeks each, whose seeds follow each other.\n"
	    "The history of each run is judged by a program (tests/support/history.py), or written to a file: that\n"
	    "of the last run.\n"
	    "Example: simulate --weeks 1000 --seed 1 --processes 2\n");
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
	printf("see it again: build/tests/simulate --seed %" PRIu64 " --weeks %" PRIu64 " --verbose\n", seed_now,
	    weeks_now);
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
		simulate(seed_now, weeks_now, asked.is_verbose);
		close_history();
		count_run(world_bads - before);
		if (world_bads != before)
			say_again();
		finish();
	}
}

int main(int count, char **arguments)
{
	struct totals all = {0}, one;
	int ends[2], failed = 0, status;

	(void)count;
	if (arguments[1] && strcmp(arguments[1], "--help") == 0)
		return usage(0);
	if (read_options(arguments + 1) != 0)
		return usage(2);
	usual = ww_store_disk_limits;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
		(void)signal(deadly[i], on_signal);
	if (pipe(ends) != 0 || sqlite3_initialize() != SQLITE_OK)
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
