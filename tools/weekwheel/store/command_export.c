/* The command export: writes all jobs and limits of a store as lines of JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/store/line.h"
#include "tools/weekwheel/store/store.h"

enum { OUTPUT = 1, NAME_ROOM = 4096 };

/* Those that have ended, too: their keys are still taken. */
#define EVERY_STATE (~0u)

static const struct option table[] = {
    {OUTPUT, 'o', "output", "FILE", "write to this file, which appears when it is complete"},
    PLACE_OPTIONS,
    JOBS_HELP_OPTION,
};

struct export
{
	struct store_place place;
	const char *output;   /* NULL: standard output */
	char part[NAME_ROOM]; /* its name until it is complete, or "" */
	FILE *out;
	struct buffer line;
	int64_t shift;
	uint64_t total, written;
	uint64_t homeless;        /* jobs without a tube */
	uint64_t reserved;        /* jobs that a worker has, if that is known */
	uint64_t accepted, ended; /* counts of the store before the export */
};

static int write_line(struct export *export)
{
	fwrite(export->line.data, 1, export->line.size, export->out);
	buffer_drop(&export->line, export->line.size);
	return ferror(export->out) != 0;
}

static int write_job(const struct ww_job_info *info, void *context)
{
	struct export *export = context;

	if (!info->tube[0]) {
		export->homeless++;
		return 0;
	}
	export->reserved += info->state == WW_JOB_RESERVED;
	if (line_write(&export->line, info, export->shift) || write_line(export))
		return 1;
	/* It is no job that is counted. */
	if (info->state != WW_JOB_ENDED && ++export->written % 1000 == 0)
		progress_show(export->written, export->total);
	return 0;
}

static int write_limit(const struct ww_limit_info *info, void *context)
{
	struct export *export = context;

	return line_write_limit(&export->line, info) || write_line(export);
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

/* Something other than a plain file, such as /dev/null, is written to directly. */
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

/* A backup that is reported as written must be on stable storage. */
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

/* Others may have changed a shared store meanwhile: warn what that means for the file. */
static void print_changes(const struct export *export, const struct opened_store *store)
{
	struct ww_jobs_stats stats;
	uint64_t came;
	uint64_t went;

	if (!store->is_shared || ww_jobs_stats(store->jobs, &stats))
		return;
	came = stats.accepted - export->accepted;
	went = stats.ended - export->ended;
	if (came || went)
		message_line("%s changed meanwhile: %" PRIu64 " job%s came, which may be missing, and %" PRIu64
		             " ended, which may be in it.\nStop its servers first if that matters.",
		    export->place.name, came, jobs_plural(came), went);
	if (export->reserved)
		message_line("%" PRIu64 " job%s had a worker, which may finish jobs that wait in the file.",
		    export->reserved, jobs_plural(export->reserved));
}

static int print_result(const struct export *export, int error)
{
	uint64_t lost = export->total > export->written ? export->total - export->written : 0;

	if (error == WW_ECORRUPT)
		message_error("%s: %" PRIu64 " of %" PRIu64 " jobs cannot be read and were left out; 'weekwheel fsck' "
		              "shows which",
		    export->place.name, lost, export->total);
	else if (export->homeless)
		message_error("%s: %" PRIu64
		              " jobs are in tubes that are not there, and were left out; if a server just "
		              "made the tubes, export again, otherwise 'weekwheel fsck' shows more",
		    export->place.name, export->homeless);
	else if (error < 0)
		store_refused(&export->place, error);
	else if (error == 0 && export->output)
		message_line(
		    "%" PRIu64 " job%s written to %s", export->written, jobs_plural(export->written), export->output);
	return error || export->homeless ? STATUS_FAILED : STATUS_OK;
}

static int export_open(struct export *export, const struct opened_store *store)
{
	struct ww_jobs_stats stats;
	int error = ww_jobs_stats(store->jobs, &stats);

	if (error)
		return error;
	export->accepted = stats.accepted;
	export->ended = stats.ended;
	export->total = stats.accepted - stats.ended;
	export->shift = store_shift(store);
	return WW_OK;
}

static int run(void *context)
{
	struct export *export = context;
	struct opened_store store;
	int closed;
	int status;
	int error = store_open(&store, &export->place, WW_JOBS_READONLY);

	if (error)
		return store_refused(&export->place, error);
	if (output_open(export)) {
		(void)store_close(&store);
		return STATUS_FAILED;
	}
	progress_begin("exporting");
	error = export_open(export, &store);
	/* First, so that a shared store keeps them while its jobs come. */
	if (!error)
		error = ww_jobs_limit_list(store.jobs, NULL, write_limit, export);
	if (!error)
		error = store_each(&store, EVERY_STATE, write_job, export);
	buffer_free(&export->line);
	progress_clear();
	if (!error)
		print_changes(export, &store);
	(void)store_close(&store);
	/* Some jobs of a damaged store are better than none. */
	closed = output_close(export, error == 0 || error == WW_ECORRUPT);
	status = print_result(export, closed ? 1 : error);
	return closed ? closed : status;
}

static int take_option(void *context, struct options *options, int id)
{
	struct export *export = context;

	if (id != OUTPUT)
		return place_take(&export->place, options, id);
	export->output = strcmp(options->value, "-") == 0 ? NULL : options->value;
	return 0;
}

const struct jobs_command command_export = {
    .name = "weekwheel export",
    JOBS_TABLE(table),
    .context = &(struct export){.place = PLACE_DEFAULT},
    .server = JOBS_NO_SERVER,
    .take = take_option,
    .check = place_check,
    .run = run,
    .usage = "Usage: weekwheel export [OPTION]... DIR|URL\n"
             "\n"
             "Write every job and limit that weekwheeld keeps in DIR as a line of JSON, all as they\n"
             "are at one moment. A server may use the directory at the same time. Jobs in Redis are read\n"
             "one by one in no order, while servers go on.\n",
    .examples = "Without DIR and URL, $WEEKWHEELD_STORE is the URL.\n"
                "\n"
                "Examples, a backup, and the bodies of jobs that were buried:\n"
                "  weekwheel export jobs --output jobs.json\n"
                "  weekwheel export jobs | jq -r 'select(.state == \"buried\") | .body'\n",
};
