/* The command export. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "message.h"
#include "progress.h"
#include "store/line.h"
#include "store/store.h"

enum { OUTPUT = 1, HELP };

static const struct option table[] = {
    {OUTPUT, 'o', "output", "FILE", "write to this file, which appears when it is complete"},
    {HELP, 'h', "help", NULL, "show this help"},
};

enum { OPTION_COUNT = sizeof table / sizeof *table, NAME_ROOM = 4096 };

struct export
{
	const char *path;
	const char *output;   /* NULL: standard output */
	char part[NAME_ROOM]; /* what it is called until it is complete, or "" */
	FILE *out;
	int64_t shift;
	uint64_t total, written;
	uint64_t homeless; /* jobs without a tube */
};

static int write_job(const struct ww_job_info *info, void *context)
{
	struct export *export = context;

	if (!info->tube[0]) {
		export->homeless++;
		return 0;
	}
	line_write(export->out, info, export->shift);
	if (++export->written % 1000 == 0)
		progress_show(export->written, export->total);
	return ferror(export->out) != 0;
}

/* ---- The file */

static int output_failed(const struct export *export)
{
	int reason = errno;

	if (export->output)
		message_error("%s: %s", export->output, strerror(reason));
	else
		command_output_failed(reason);
	return STATUS_FAILED;
}

/* Something that is there and no plain file, such as /dev/null, is written to as it is. */
static int output_open(struct export *export)
{
	const char *name = export->output;
	struct stat status;

	export->out = stdout;
	if (!name)
		return 0;
	if (stat(name, &status) || S_ISREG(status.st_mode)) {
		if ((size_t)snprintf(export->part, sizeof export->part, "%s.part", name) >= sizeof export->part) {
			errno = ENAMETOOLONG;
			return output_failed(export);
		}
		name = export->part;
	}
	export->out = fopen(name, "w");
	return export->out ? 0 : output_failed(export);
}

/* A backup that is said to be there is on stable storage. */
static int output_close(struct export *export, int is_complete)
{
	int failed = fflush(export->out) != 0 || ferror(export->out);

	if (!export->output)
		return failed ? output_failed(export) : STATUS_OK;
	if (!failed && export->part[0])
		failed = fsync(fileno(export->out)) != 0;
	if (failed)
		(void)output_failed(export);
	if (fclose(export->out) && !failed)
		failed = output_failed(export);
	if (!export->part[0])
		return failed ? STATUS_FAILED : STATUS_OK;
	if (!failed && is_complete && rename(export->part, export->output))
		failed = output_failed(export);
	if (failed || !is_complete)
		(void)unlink(export->part);
	return failed ? STATUS_FAILED : STATUS_OK;
}

/* ---- All of it */

static int say_result(const struct export *export, int error)
{
	uint64_t lost = export->total > export->written ? export->total - export->written : 0;

	if (error == WW_ECORRUPT)
		message_error("%s: %" PRIu64 " of %" PRIu64 " jobs cannot be read and were left out; 'weekwheel fsck' "
		              "tells which",
		    export->path, lost, export->total);
	else if (export->homeless)
		message_error("%s: %" PRIu64
		              " jobs are in tubes that are not there, and were left out; if a server just "
		              "made the tubes, export again, otherwise 'weekwheel fsck' tells more",
		    export->path, export->homeless);
	else if (error < 0)
		store_refused(export->path, error);
	else if (error == 0 && export->output)
		message_line("%" PRIu64 " job%s written to %s", export->written, export->written == 1 ? "" : "s",
		    export->output);
	return error || export->homeless ? STATUS_FAILED : STATUS_OK;
}

static int export_open(struct export *export, const struct store *store)
{
	struct ww_jobs_stats stats;
	int error = ww_jobs_stats(store->jobs, &stats);

	export->total = stats.accepted - stats.ended;
	export->shift = store_shift(store);
	return error;
}

/* Runs in a process of its own. */
static int run(void *context)
{
	struct export *export = context;
	struct store store;
	int closed;
	int status;
	int error = store_open(&store, export->path, WW_JOBS_READONLY);

	if (error) {
		store_refused(export->path, error);
		return STATUS_FAILED;
	}
	if (output_open(export)) {
		(void)store_close(&store);
		return STATUS_FAILED;
	}
	progress_begin("exporting");
	error = export_open(export, &store);
	if (!error)
		error = store_each(&store, write_job, export);
	progress_clear();
	(void)store_close(&store);
	/* What could be read of a damaged store is better than nothing. */
	closed = output_close(export, error == 0 || error == WW_ECORRUPT);
	status = say_result(export, closed ? 1 : error);
	return closed ? closed : status;
}

static int run_apart(struct export *export)
{
	struct store_end end;

	if (store_apart(run, export, &end))
		return STATUS_FAILED;
	if (!end.signal)
		return end.status;
	message_error("%s: %s: %s; 'weekwheel fsck' tells more", export->path,
	    end.is_damage ? "is damaged, and not all of it could be read" : "not all of it was read", end.reason);
	if (export->output)
		message_line("What was read is in %s.part.", export->output);
	return STATUS_FAILED;
}

int command_export(char **arguments)
{
	struct options options = {"weekwheel export", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	static struct export export;
	int id;

	while ((id = options_next(&options)) != OPTIONS_END) {
		if (id == HELP) {
			command_export_help(stdout);
			return STATUS_OK;
		}
		if (id == OPTIONS_ERROR || (id == OPTIONS_OPERAND && store_operand(&options, &export.path)))
			return STATUS_USAGE;
		if (id == OUTPUT)
			export.output = strcmp(options.value, "-") == 0 ? NULL : options.value;
	}
	return store_needs_operand(&options, export.path) ? STATUS_USAGE : run_apart(&export);
}

void command_export_help(FILE *out)
{
	fputs("Usage: weekwheel export [OPTION]... DIR\n"
	      "\n"
	      "Write every job that weekwheeld keeps in DIR as a line of JSON, all as they are at\n"
	      "one moment. A server may have the directory at the same time.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Examples, a backup, and the bodies of jobs that were buried:\n"
	      "  weekwheel export jobs --output jobs.json\n"
	      "  weekwheel export jobs | jq -r 'select(.state == \"buried\") | .body | @base64d'\n",
	    out);
}
