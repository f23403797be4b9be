/* The command fsck: checks every record and index of a store. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/command.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/store/store.h"
#include "weekwheel/schedule.h"

enum { LOOKS_MAX = 10 };

/* What one look found. */
struct fsck_look {
	int is_open;     /* the numbers below are known */
	int is_unstable; /* another process writes to it */
	int refused;     /* there was nothing to look at, which was reported */
	uint64_t problems;
	uint64_t states[WW_JOB_BURIED + 1];
	uint64_t jobs;
	uint64_t schedules;
	struct ww_jobs_stats stats;
	uint32_t shards;
	uint64_t hash; /* of the problems */
};

struct fsck {
	struct store_place place;
	int json;
	FILE *problems; /* a line each */
	struct fsck_look look;
};

static const struct option table[] = {
    {JOBS_FLAG(struct fsck, json), 'j', "json", NULL, "write one JSON object"},
    PLACE_OPTIONS,
    JOBS_HELP_OPTION,
};

static void report(const char *problem, void *context)
{
	struct fsck *fsck = context;

	fsck->look.problems++;
	fprintf(fsck->problems, "%s\n", problem);
	for (const unsigned char *byte = (const unsigned char *)problem; *byte; byte++)
		fsck->look.hash = (fsck->look.hash ^ *byte) * UINT64_C(0x100000001b3);
}

static int count_job(const struct ww_job_info *info, void *context)
{
	struct fsck_look *look = context;
	unsigned state = info->state;

	if (strcmp(info->tube, WW_SCHEDULE_TUBE) == 0) {
		look->schedules++;
		return 0;
	}
	look->jobs++;
	look->states[state <= WW_JOB_BURIED ? state : 0]++;
	if (look->jobs % 1000 == 0)
		progress_show(look->jobs, look->stats.accepted - look->stats.ended);
	return 0;
}

static void report_error(struct fsck *fsck, int error)
{
	char text[STORE_REASON];

	if (error != WW_ECORRUPT) {
		fsck->look.refused = store_refused(&fsck->place, error);
		return;
	}
	/* The files have said it already. */
	if (fsck->look.problems && fsck->place.path)
		return;
	(void)store_reason(text, sizeof text, &fsck->place, error);
	for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		report(line, fsck);
}

static void look_at(struct fsck *fsck, const struct opened_store *store)
{
	struct fsck_look *look = &fsck->look;
	int error = ww_jobs_stats(store->jobs, &look->stats);

	look->shards = store->is_shared ? store_redis_shards(store) : 0;
	look->is_open = 1;
	progress_begin("checking");
	/* ww_jobs_check reports what cannot be read. */
	if (!error || !store->is_shared)
		error = store_each(store, 0, count_job, look);
	if (!error || error == WW_ECORRUPT || !store->is_shared)
		error = ww_jobs_check(store->jobs, report, fsck);
	progress_clear();
	if (error < 0 && !store->is_shared)
		report(ww_strerror(error), fsck);
	else if (error < 0)
		report_error(fsck, error);
}

/* The store may be damaged, and so refused. Then its files say more. */
static int examine(struct fsck *fsck, int error)
{
	int count;

	if (!fsck->place.path || (error && error != WW_ECORRUPT))
		return error;
	count = ww_jobs_examine(fsck->place.path, report, fsck);
	return count < 0 ? count : error;
}

/* Returns 0, or why there is nothing to look at. */
static int look_once(struct fsck *fsck)
{
	struct opened_store store;
	int opened;
	int error;

	memset(&fsck->look, 0, sizeof fsck->look);
	rewind(fsck->problems);
	opened = store_open(&store, &fsck->place, WW_JOBS_READONLY);
	error = examine(fsck, opened);
	if (!error)
		look_at(fsck, &store);
	if (!opened)
		(void)store_close(&store);
	return error;
}

/*
 * What a server writes during a look may seem to be a problem: one counts if two looks in a row find the same. A file
 * may also become shorter while it is read.
 */
static void look(struct fsck *fsck)
{
	const struct timespec pause = {0, 20000000};
	const struct fsck_look *look = &fsck->look;
	uint64_t problems = 0;
	uint64_t hash = 0;

	for (int i = 0; i < LOOKS_MAX; i++) {
		int error = look_once(fsck);

		if (error && (error != WW_EIO || i == LOOKS_MAX - 1))
			report_error(fsck, error);
		if ((!look->problems && !error) || look->refused)
			return;
		if (look->problems && look->problems == problems && look->hash == hash)
			return;
		problems = look->problems;
		hash = look->hash;
		nanosleep(&pause, NULL);
	}
	fsck->look.is_unstable = 1;
}

/* ---- Saying it */

/* Read the problems that were found, one after the other, and call say for each. */
static void each_problem(struct fsck *fsck, void (*say)(const char *problem, size_t size, uint64_t number))
{
	char *line = NULL;
	size_t room = 0;

	rewind(fsck->problems);
	for (uint64_t i = 0; i < fsck->look.problems; i++) {
		ssize_t size = getline(&line, &room, fsck->problems);

		if (size <= 0)
			break;
		say(line, (size_t)size - (line[size - 1] == '\n'), i);
	}
	free(line);
}

static void print_text(const char *problem, size_t size, uint64_t number)
{
	(void)number;
	printf("%.*s\n", (int)size, problem);
}

static void print_json(const char *problem, size_t size, uint64_t number)
{
	if (number)
		fputs(", ", stdout);
	json_write_string(stdout, problem, size);
}

static void write_text(struct fsck *fsck)
{
	const struct fsck_look *look = &fsck->look;
	const uint64_t *states = look->states;

	each_problem(fsck, print_text);
	if (look->is_open) {
		printf("%" PRIu64 " job%s in %" PRIu64 " tube%s: %" PRIu64 " delayed, %" PRIu64 " ready, ", look->jobs,
		    jobs_plural(look->jobs), look->stats.tubes - (look->schedules > 0),
		    jobs_plural(look->stats.tubes - (look->schedules > 0)), states[WW_JOB_DELAYED],
		    states[WW_JOB_READY] + (look->shards ? 0 : states[WW_JOB_RESERVED]));
		if (look->shards)
			printf("%" PRIu64 " reserved, ", states[WW_JOB_RESERVED]);
		printf("%" PRIu64 " buried", states[WW_JOB_BURIED]);
		if (look->schedules)
			printf("; %" PRIu64 " schedule%s", look->schedules, jobs_plural(look->schedules));
		putchar('\n');
		printf("%" PRIu64 " accepted since it was made, %" PRIu64 " ended; ", look->stats.accepted,
		    look->stats.ended);
		if (look->shards)
			printf("%u shard%s\n", (unsigned)look->shards, jobs_plural(look->shards));
		else
			printf("%" PRIu64 " bytes on disk\n", look->stats.disk);
	}
	if (!look->problems)
		puts("sound");
	else
		printf("%" PRIu64 " problem%s\n", look->problems, jobs_plural(look->problems));
}

static void write_json(struct fsck *fsck)
{
	const struct fsck_look *look = &fsck->look;
	const uint64_t *states = look->states;

	printf("{\"sound\": %s, \"problems\": [", look->problems ? "false" : "true");
	each_problem(fsck, print_json);
	putchar(']');
	if (look->is_open) {
		printf(", \"jobs\": %" PRIu64 ", \"delayed\": %" PRIu64 ", \"ready\": %" PRIu64, look->jobs,
		    states[WW_JOB_DELAYED], states[WW_JOB_READY] + (look->shards ? 0 : states[WW_JOB_RESERVED]));
		if (look->shards)
			printf(", \"reserved\": %" PRIu64, states[WW_JOB_RESERVED]);
		printf(", \"buried\": %" PRIu64 ", \"tubes\": %" PRIu64 ", \"accepted\": %" PRIu64
		       ", \"ended\": %" PRIu64,
		    states[WW_JOB_BURIED], look->stats.tubes - (look->schedules > 0), look->stats.accepted,
		    look->stats.ended);
		if (look->schedules)
			printf(", \"schedules\": %" PRIu64, look->schedules);
		if (look->shards)
			printf(", \"shards\": %u", (unsigned)look->shards);
		else
			printf(", \"disk\": %" PRIu64, look->stats.disk);
	}
	puts("}");
}

static int run(void *context)
{
	struct fsck *fsck = context;
	const struct fsck_look *found = &fsck->look;

	fsck->problems = tmpfile();
	if (!fsck->problems)
		return message_error("no temporary file can be made; set TMPDIR to a directory with room");
	look(fsck);
	if (!found->refused)
		(fsck->json ? write_json : write_text)(fsck);
	if (found->problems) {
		fflush(stdout);
		if (found->is_unstable)
			message_line("Servers may write to it: changes during this look may count as a problem.\n"
			             "Look again when it is idle.");
		else if (fsck->place.path)
			message_line("'weekwheel recover %s NEW' saves what can still be read.", fsck->place.path);
		else if (found->is_open)
			message_line("'weekwheel export' saves what can still be read, for 'weekwheel import'.");
	}
	fclose(fsck->problems);
	return found->refused || found->problems != 0;
}

const struct jobs_command command_fsck = {
    .name = "weekwheel fsck",
    JOBS_TABLE(table),
    .context = &(struct fsck){.place = PLACE_DEFAULT},
    .server = JOBS_NO_SERVER,
    .take = place_take,
    .check = place_check,
    .run = run,
    .usage = "Usage: weekwheel fsck [OPTION]... DIR|URL\n"
             "\n"
             "Check the checksums of all files of the jobs that weekwheeld keeps in DIR. There and\n"
             "in Redis, read every record and every index, compare them, and account for all jobs\n"
             "ever accepted. Nothing is changed, and servers may go on at the same time. The exit\n"
             "status is 0 if all is well.\n",
    .examples = "Without DIR and URL, $WEEKWHEELD_STORE is the URL.\n"
                "\n"
                "Example:\n"
                "  weekwheel fsck /var/lib/weekwheeld/jobs\n",
};
