/* The command fsck. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "command.h"
#include "jobs/json.h"
#include "memory.h"
#include "message.h"
#include "progress.h"
#include "store/store.h"

enum { JSON = 1, HELP };

static const struct option table[] = {
    {JSON, 'j', "json", NULL, "write one JSON object"},
    {HELP, 'h', "help", NULL, "show this help"},
};

enum { OPTION_COUNT = sizeof table / sizeof *table, LOOKS_MAX = 10 };

/* How far a look has come, in the words of a message. */
static const char *const phases[] = {"it was opened", "its jobs were counted", "its indices were compared"};

/* What one look has found; shared with the process that looks. */
struct look {
	int phase;
	int is_open;     /* the numbers below are known */
	int is_unstable; /* another process writes to it */
	int is_refused;  /* there is nothing to look at, and that was said */
	uint64_t problems;
	uint64_t states[WW_JOB_BURIED + 1];
	uint64_t jobs;
	struct ww_jobs_stats stats;
};

struct fsck {
	const char *path;
	int json;
	FILE *problems; /* a line each */
	struct look *look;
};

static void tell(const char *problem, void *context)
{
	struct fsck *fsck = context;

	fsck->look->problems++;
	fprintf(fsck->problems, "%s\n", problem);
}

static int count_job(const struct ww_job_info *info, void *context)
{
	struct look *look = context;
	unsigned state = info->state;

	look->jobs++;
	look->states[state <= WW_JOB_BURIED ? state : 0]++;
	if (look->jobs % 1000 == 0)
		progress_show(look->jobs, look->stats.accepted - look->stats.ended);
	return 0;
}

/* Runs in a process of its own, which may be ended by what it reads. */
static int look_into(void *context)
{
	struct fsck *fsck = context;
	struct look *look = fsck->look;
	struct store store;
	char text[4200];
	int error = store_open(&store, fsck->path, WW_JOBS_READONLY);

	/* An empty file is an error of reading. */
	if (error == WW_ECORRUPT || error == WW_EIO)
		tell(store_reason(text, sizeof text, fsck->path, error), fsck);
	else if (error)
		store_refused(fsck->path, error);
	if (error) {
		look->is_refused = error != WW_ECORRUPT && error != WW_EIO;
		fflush(fsck->problems);
		return STATUS_FAILED;
	}
	(void)ww_jobs_stats(store.jobs, &look->stats);
	look->is_open = 1;
	look->phase = 1;
	progress_begin("checking");
	/* What cannot be read is told below. */
	(void)store_each(&store, count_job, look);
	look->phase = 2;
	error = ww_jobs_check(store.jobs, tell, fsck);
	if (error < 0)
		tell(ww_strerror(error), fsck);
	progress_clear();
	(void)store_close(&store);
	fflush(fsck->problems);
	return look->problems ? STATUS_FAILED : STATUS_OK;
}

static int look_once(struct fsck *fsck)
{
	struct store_end end;
	char text[200];

	memset(fsck->look, 0, sizeof *fsck->look);
	rewind(fsck->problems);
	if (store_apart(look_into, fsck, &end))
		return -1;
	if (!end.signal)
		return 0;
	/* It got so far as what it had to say is in the file; the numbers of a look that was not finished mean little. */
	fsck->look->problems++;
	fsck->look->is_open = 0;
	fseek(fsck->problems, 0, SEEK_END);
	snprintf(text, sizeof text, "%s while %s: %s",
	    end.is_damage ? "the file is damaged: reading it failed" : "ended", phases[fsck->look->phase], end.reason);
	fprintf(fsck->problems, "%s\n", text);
	return 0;
}

/*
 * What a server writes between this opening and this checking looks like an error of its counts, and is none: look again, until once
 * nothing came between.
 */
static int look(struct fsck *fsck)
{
	const struct timespec pause = {0, 20000000};
	int i;

	for (i = 0; i < LOOKS_MAX; i++) {
		if (look_once(fsck))
			return -1;
		if (!fsck->look->problems || fsck->look->is_refused || !store_is_used(fsck->path))
			return 0;
		nanosleep(&pause, NULL);
	}
	fsck->look->is_unstable = 1;
	return 0;
}

/* ---- Saying it */

/* Read the problems that were found, one after the other, and call say for each. */
static void each_problem(struct fsck *fsck, void (*say)(const char *problem, size_t size, uint64_t number))
{
	char *line = NULL;
	size_t room = 0;
	uint64_t i;

	rewind(fsck->problems);
	for (i = 0; i < fsck->look->problems; i++) {
		ssize_t size = getline(&line, &room, fsck->problems);

		if (size <= 0)
			break;
		say(line, (size_t)size - (line[size - 1] == '\n'), i);
	}
	free(line);
}

static void say_text(const char *problem, size_t size, uint64_t number)
{
	(void)number;
	printf("%.*s\n", (int)size, problem);
}

static void say_json(const char *problem, size_t size, uint64_t number)
{
	if (number)
		fputs(", ", stdout);
	json_write_string(stdout, problem, size);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void write_text(struct fsck *fsck)
{
	const struct look *look = fsck->look;
	const uint64_t *states = look->states;

	each_problem(fsck, say_text);
	if (look->is_open) {
		printf("%" PRIu64 " job%s in %" PRIu64 " tube%s: %" PRIu64 " delayed, %" PRIu64 " ready, %" PRIu64
		       " buried\n",
		    look->jobs, plural(look->jobs), look->stats.tubes, plural(look->stats.tubes),
		    states[WW_JOB_DELAYED], states[WW_JOB_READY] + states[WW_JOB_RESERVED], states[WW_JOB_BURIED]);
		printf("%" PRIu64 " accepted since it was made, %" PRIu64 " ended; %" PRIu64 " bytes on disk\n",
		    look->stats.accepted, look->stats.ended, look->stats.disk);
	}
	if (!look->problems)
		puts("sound");
	else
		printf("%" PRIu64 " problem%s\n", look->problems, plural(look->problems));
}

static void write_json(struct fsck *fsck)
{
	const struct look *look = fsck->look;
	const uint64_t *states = look->states;

	printf("{\"sound\": %s, \"problems\": [", look->problems ? "false" : "true");
	each_problem(fsck, say_json);
	putchar(']');
	if (look->is_open)
		printf(", \"jobs\": %" PRIu64 ", \"delayed\": %" PRIu64 ", \"ready\": %" PRIu64 ", \"buried\": %" PRIu64
		       ", \"tubes\": %" PRIu64 ", \"accepted\": %" PRIu64 ", \"ended\": %" PRIu64
		       ", \"disk\": %" PRIu64,
		    look->jobs, states[WW_JOB_DELAYED], states[WW_JOB_READY] + states[WW_JOB_RESERVED],
		    states[WW_JOB_BURIED], look->stats.tubes, look->stats.accepted, look->stats.ended,
		    look->stats.disk);
	puts("}");
}

static int run(struct fsck *fsck)
{
	struct look *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int failed;

	if (shared == MAP_FAILED)
		memory_exhausted();
	fsck->look = shared;
	fsck->problems = tmpfile();
	if (!fsck->problems) {
		message_error("no temporary file can be made; set TMPDIR to a directory with room");
		return STATUS_FAILED;
	}
	failed = look(fsck) != 0 || shared->is_refused;
	if (!failed && fsck->json)
		write_json(fsck);
	else if (!failed)
		write_text(fsck);
	failed |= shared->problems != 0;
	if (shared->problems) {
		fflush(stdout);
		if (shared->is_unstable)
			message_line("A server writes to it: what changed while this looked may count as a problem.\n"
			             "Look again when it is idle.");
		else if (shared->is_open)
			message_line("What can still be read is saved by 'weekwheel export', for 'weekwheel import'.");
	}
	fclose(fsck->problems);
	munmap(shared, sizeof *shared);
	return failed ? STATUS_FAILED : STATUS_OK;
}

int command_fsck(char **arguments)
{
	struct options options = {"weekwheel fsck", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	struct fsck fsck = {.path = NULL};
	int id;

	while ((id = options_next(&options)) != OPTIONS_END) {
		if (id == HELP) {
			command_fsck_help(stdout);
			return STATUS_OK;
		}
		if (id == OPTIONS_ERROR || (id == OPTIONS_OPERAND && store_operand(&options, &fsck.path)))
			return STATUS_USAGE;
		fsck.json |= id == JSON;
	}
	if (store_needs_operand(&options, fsck.path))
		return STATUS_USAGE;
	return run(&fsck);
}

void command_fsck_help(FILE *out)
{
	fputs("Usage: weekwheel fsck [OPTION]... DIR\n"
	      "\n"
	      "Read every record and every index of the jobs that weekwheeld keeps in DIR, compare\n"
	      "them, and account for all jobs ever accepted. Nothing is changed; a server may have\n"
	      "the directory at the same time. The exit status is 0 if all is well.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Example:\n"
	      "  weekwheel fsck /var/lib/weekwheeld/jobs\n",
	    out);
}
