/* The program weekwheel: choose the subcommand. */
#include <stdio.h>
#include <string.h>

#include "tools/common/command.h"
#include "tools/common/message.h"
#include "tools/common/program.h"
#include "tools/common/suggest.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "weekwheel/version.h"

static const struct {
	const char *name;
	const struct jobs_command *command;
	const char *summary;
} commands[] = {
    {"put", &command_put, "put a job, to be delivered now or when it is due"},
    {"move", &command_move, "give a job another time to be due"},
    {"cancel", &command_cancel, "delete jobs"},
    {"list", &command_list, "list jobs"},
    {"peek", &command_peek, "show a job and its body"},
    {"bury", &command_bury, "keep jobs, and deliver them no more"},
    {"kick", &command_kick, "make buried jobs ready"},
    {"purge", &command_purge, "delete all jobs of a tube"},
    {"pause", &command_pause, "let a tube deliver no jobs for a time"},
    {"resume", &command_resume, "end the pause of a tube"},
    {"limit", &command_limit, "limit how many jobs of a tube run, and how often they start"},
    {"history", &command_history, "show how the last runs of jobs ended"},
    {"stats", &command_stats, "count the jobs of each tube"},
    {"forecast", &command_forecast, "count the jobs of the next hour, day and week"},
    {"work", &command_work, "run a command for each job"},
    {"top", &command_top, "watch the tubes"},
    {"token", &command_token, "make a token for a server, and its line"},
    {"advance", &command_advance, "move a server's virtual clock"},
#ifdef HAVE_CALENDAR
    {"cron", &command_cron, "explain an expression of cron, and show its next times"},
    {"schedule", &command_schedule, "put jobs at the times of an expression of cron"},
#endif
#ifdef HAVE_REDIS
    {"sessions", &command_sessions, "count the sessions of a server, by when they expire"},
#endif
#ifdef HAVE_POSTGRES
    {"postgres", &command_postgres, "make, check or remove the tables for jobs in PostgreSQL"},
#endif
#ifdef HAVE_JOBS
    {"fsck", &command_fsck, "check the jobs that a server keeps"},
    {"backup", &command_backup, "copy the jobs of a server that goes on"},
    {"restore", &command_restore, "put such a copy in the place of a server's jobs"},
    {"recover", &command_recover, "save what a damaged directory still has"},
    {"export", &command_export, "write all jobs of a server as lines of JSON"},
    {"import", &command_import, "put such lines into a store; move in a crontab or a queue"},
#endif
    {"replay", &command_replay, "drive a timing wheel with real or synthetic timeouts"},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void write_help(FILE *out)
{
	int i;

	fputs("Usage: weekwheel COMMAND [OPTION]... [FILE]...\n"
	      "\n"
	      "Jobs that weekwheeld keeps until they are due, and how its timing wheel takes millions of them.\n"
	      "\n"
	      "Commands:\n",
	    out);
	for (i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("  help       show this help, or that of a command: weekwheel help put\n"
	      "\n"
	      "Options:\n"
	      "  -h, --help     show this help\n"
	      "      --version  show the version\n"
	      "\n"
	      "Example, a week of synthetic sessions, checked against an oracle:\n"
	      "  weekwheel replay --verify\n",
	    out);
}

static int find_command(const char *name)
{
	int i;

	for (i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return i;
	return -1;
}

/* Words of beanstalkd's protocol and of other programs, and what does that here. */
static const struct {
	const char *word, *hint;
} others[] = {
    {"bench",
        "the benchmark is a program of its own, weekwheel-bench\nIn the sources, 'make bench' builds and runs it."},
    {"drain", "'weekwheel work --drain' ends when no job is ready\n"
              "A server that gets SIGUSR1 takes no new jobs, and delivers those it has."},
    {"delete", "'weekwheel cancel' deletes jobs"},
    {"remove", "'weekwheel cancel' deletes jobs, 'weekwheel schedule remove' a schedule"},
    {"reserve", "'weekwheel work -- COMMAND' runs a command for each job"},
    {"release", "'weekwheel work' gives back the job of a command that fails"},
    {"show", "'weekwheel peek' shows a job, 'weekwheel schedule show' a schedule"},
    {"tubes", "'weekwheel stats' lists the tubes"},
};

static int unknown_command(const char *typed)
{
	const char *words[COMMANDS + 3] = {"help", "--help", "--version"};
	const char *meant;
	int i;

	for (i = 0; i < (int)(sizeof others / sizeof *others); i++) {
		if (strcmp(typed, others[i].word) == 0) {
			message_error("unknown command '%s': %s", typed, others[i].hint);
			return STATUS_USAGE;
		}
	}
	for (i = 0; i < COMMANDS; i++)
		words[3 + i] = commands[i].name;
	meant = suggest(typed, words, COMMANDS + 3);
	if (meant)
		message_error("unknown command '%s'; did you mean '%s'?\nTry 'weekwheel --help'.", typed, meant);
	else
		message_error("unknown command '%s'%s\nTry 'weekwheel --help'.", typed,
		    *typed == '-' ? ": options follow the command" : "");
	return STATUS_USAGE;
}

static int show_help(const char *name)
{
	char *arguments[] = {"--help", NULL};
	int command;

	if (!name) {
		write_help(stdout);
		return STATUS_OK;
	}
	command = find_command(name);
	return command < 0 ? unknown_command(name) : jobs_command(commands[command].command, arguments);
}

static int is_one_of(const char *text, const char *a, const char *b)
{
	return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* The command import is three: of a file, of a crontab, and from another server. */
static const struct jobs_command *find_import(char **arguments)
{
#ifdef HAVE_CALENDAR
	if (*arguments && strcmp(*arguments, "crontab") == 0)
		return &command_crontab;
#endif
	for (; *arguments && strcmp(*arguments, "--") != 0; arguments++)
		if (strcmp(*arguments, "--from") == 0 || strncmp(*arguments, "--from=", 7) == 0)
			return &command_from;
	return NULL;
}

static int run(int count, char **arguments)
{
	const struct jobs_command *import;
	int command;

	if (count < 2) {
		write_help(stderr);
		return STATUS_USAGE;
	}
	if (is_one_of(arguments[1], "--help", "-h"))
		return show_help(NULL);
	if (strcmp(arguments[1], "help") == 0)
		return show_help(arguments[2]);
	if (strcmp(arguments[1], "--version") == 0) {
		printf("weekwheel %s\n", ww_version());
		return STATUS_OK;
	}
	import = strcmp(arguments[1], "import") == 0 ? find_import(arguments + 2) : NULL;
#ifdef HAVE_REDIS
	if (count > 2 && strcmp(arguments[1], "sessions") == 0 && strcmp(arguments[2], "import") == 0)
		return jobs_command(&command_sessions_import, arguments + 3);
#endif
	if (import)
		return jobs_command(import, arguments + (import == &command_from ? 2 : 3));
	command = find_command(arguments[1]);
	if (command < 0)
		return unknown_command(arguments[1]);
	return jobs_command(commands[command].command, arguments + 2);
}

int main(int count, char **arguments)
{
	program_begin("weekwheel", PROGRAM_PARENT);
	return command_finish_output(run(count, arguments));
}
