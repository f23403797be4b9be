/* The command postgres: makes, checks and removes the tables and functions for jobs in a database. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/command.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "weekwheel/jobs_postgres.h"

enum action { ACTION_NONE, ACTION_SETUP, ACTION_CHECK, ACTION_REMOVE };

static const char *const actions[] = {[ACTION_SETUP] = "setup", [ACTION_CHECK] = "check", [ACTION_REMOVE] = "remove"};

struct postgres {
	enum action action;
	const char *url;
	int json;
	int with_jobs;
	size_t problems; /* that were reported */
};

static const struct option table[] = {
    {JOBS_FLAG(struct postgres, with_jobs), 0, "with-jobs", NULL, "of remove: even if there may be jobs"},
    {JOBS_FLAG(struct postgres, json), 'j', "json", NULL, "of check: write JSON"},
    JOBS_HELP_OPTION,
};

/* ---- The command line */

static int take(void *context, struct options *options, int id)
{
	struct postgres *postgres = context;

	(void)id;
	if (postgres->action && postgres->url)
		return options_fail(options, "'%s': one URL is expected", options->value);
	if (postgres->action) {
		postgres->url = options->value;
		return 0;
	}
	for (int i = ACTION_SETUP; i <= ACTION_REMOVE; i++)
		if (strcmp(options->value, actions[i]) == 0)
			postgres->action = (enum action)i;
	return postgres->action ? 0 : options_fail(options, "'%s': expected setup, check or remove", options->value);
}

/* A URL, or "host=... password=...", on the command line is in the list of processes. */
static void warn_of_password(const char *url)
{
	const char *host = strstr(url, "://");
	const char *end = host ? strchr(host + 3, '@') : NULL;

	if (strstr(url, "password=") || (end && memchr(host + 3, ':', (size_t)(end - host) - 3)))
		message_line(
		    "warning: everybody on this machine can read the password of the URL; use ~/.pgpass, a service "
		    "file, or WEEKWHEEL_POSTGRES");
}

static int check(void *context, const struct options *options)
{
	struct postgres *postgres = context;
	const char *url = getenv("WEEKWHEEL_POSTGRES");

	if (!postgres->action)
		return options_fail(options, "expected setup, check or remove, and a URL");
	if (postgres->with_jobs && postgres->action != ACTION_REMOVE)
		return options_fail(options, "--with-jobs is of remove; leave it out");
	if (postgres->json && postgres->action != ACTION_CHECK)
		return options_fail(options, "--json is of check; leave it out");
	if (postgres->url)
		warn_of_password(postgres->url);
	else if (url && *url)
		postgres->url = url;
	else
		return options_fail(
		    options, "expected a URL, such as postgresql:///shop, behind '%s'", actions[postgres->action]);
	return 0;
}

/* ---- Doing it */

static void report(const char *sentence, void *context)
{
	struct postgres *postgres = context;

	postgres->problems++;
	(void)message_error("%s", sentence);
}

/* Every error but those of arguments and memory has been reported. */
static int failed(const struct postgres *postgres, int error)
{
	if (!postgres->problems)
		(void)message_error("%s: %s", actions[postgres->action], ww_strerror(error));
	if (postgres->action == ACTION_REMOVE && error == WW_EBUSY)
		message_line("'weekwheel postgres remove --with-jobs' removes them with the jobs.");
	return STATUS_FAILED;
}

static void write_counts(const char *name, const uint64_t *counts)
{
	printf(", \"%s\": [", name);
	for (int i = 0; i < WW_JOBS_POSTGRES_PARTS; i++)
		printf("%s%" PRIu64, i ? ", " : "", counts[i]);
	fputs("]", stdout);
}

static void write_json(const struct ww_jobs_postgres_facts *facts, int problems)
{
	printf("{\"version\": %" PRIu32 ", \"cluster\": \"%" PRIu64 "\", \"owned\": %s, \"part\": %" PRIu32,
	    facts->version, facts->cluster, facts->is_owned ? "true" : "false", facts->part);
	write_counts("inbox", facts->inbox);
	write_counts("turns", facts->turns);
	printf(", \"bytes\": %" PRIu64 ", \"writers\": %" PRIu32
	       ", \"synchronous_commit\": \"%s\", \"problems\": %d}\n",
	    facts->bytes, facts->writers, facts->sync, problems);
}

static void write_text(const struct ww_jobs_postgres_facts *facts, int problems)
{
	printf("version %" PRIu32 ", %s, synchronous_commit %s, %" PRIu64 " bytes\n", facts->version,
	    facts->is_owned ? "open in a weekwheeld" : "open nowhere", facts->sync, facts->bytes);
	puts("part       by SQL   by weekwheeld");
	for (uint32_t i = 0; i < WW_JOBS_POSTGRES_PARTS; i++)
		printf("%" PRIu32 "    %12" PRIu64 "    %12" PRIu64 "%s\n", i, facts->inbox[i], facts->turns[i],
		    i == facts->part ? "  current" : "");
	printf("%" PRIu32 " transaction%s under way that put jobs\n", facts->writers, jobs_plural(facts->writers));
	printf("%d problem%s\n", problems, jobs_plural((uint64_t)problems));
}

static int run_check(struct postgres *postgres)
{
	struct ww_jobs_postgres_facts facts;
	int problems = ww_jobs_postgres_check(postgres->url, &facts, report, postgres);

	if (problems < 0)
		return failed(postgres, problems);
	(postgres->json ? write_json : write_text)(&facts, problems);
	return problems ? STATUS_FAILED : STATUS_OK;
}

static int run(void *context)
{
	struct postgres *postgres = context;
	int error;

	if (postgres->action == ACTION_CHECK)
		return run_check(postgres);
	error = postgres->action == ACTION_SETUP
	            ? ww_jobs_postgres_setup(postgres->url, report, postgres)
	            : ww_jobs_postgres_remove(postgres->url, postgres->with_jobs, report, postgres);
	if (error)
		return failed(postgres, error);
	message_line(postgres->action == ACTION_SETUP
	                 ? "The tables and functions are there: SELECT weekwheel.put('mail', 'hello')"
	                 : "The tables and functions are removed");
	return STATUS_OK;
}

const struct jobs_command command_postgres = {
    .name = "weekwheel postgres",
    JOBS_TABLE(table),
    .context = &(struct postgres){.action = ACTION_NONE},
    .server = JOBS_NO_SERVER,
    .take = take,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel postgres setup [URL]\n"
             "       weekwheel postgres check [--json] [URL]\n"
             "       weekwheel postgres remove [--with-jobs] [URL]\n"
             "\n"
             "Make, check or remove the schema weekwheel in a database of PostgreSQL, with which jobs\n"
             "are put by SQL. URL is what libpq takes: postgresql://USER@HOST/DATABASE, or \"service=NAME\"\n"
             "(default $WEEKWHEEL_POSTGRES). The role needs the right CREATE on the database. Setup\n"
             "may be repeated: it then only makes the functions anew.\n",
    .examples = "Example:\n"
                "  weekwheel postgres setup postgresql:///shop\n"
                "  psql shop -c \"SELECT weekwheel.put('mail', 'hello', delay => '5 minutes')\"\n",
};
