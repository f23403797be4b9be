/* The command backup: copies the directory of a store while a server uses it. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/store/store.h"

struct backup {
	const char *path;
	const char *target;
};

static const struct option table[] = {JOBS_HELP_OPTION};

static int take_operand(void *context, struct options *options, int id)
{
	struct backup *backup = context;

	(void)id;
	if (backup->target)
		return options_fail(
		    options, "'%s': the directory of a store and another one are expected", options->value);
	*(backup->path ? &backup->target : &backup->path) = options->value;
	return 0;
}

static int check(void *context, const struct options *options)
{
	const struct backup *backup = context;

	if (backup->target)
		return 0;
	return options_fail(options, "the directory of a store and one for the copy are expected, as in "
	                             "'weekwheel backup jobs jobs.copy'");
}

static int refused(const struct backup *backup, int error)
{
	struct store_place place = {.path = backup->path};

	if (error == WW_EINUSE)
		return message_error(
		    "%s: is not empty; name an empty directory, or one that is to be made", backup->target);
	if (error == WW_EINVAL)
		return message_error("%s: lies in %s; name a directory elsewhere", backup->target, backup->path);
	if (error == WW_ECORRUPT)
		return message_error("%s: is damaged, and its copy would be, too: none was kept; 'weekwheel fsck %s' "
		                     "tells what is wrong, and 'weekwheel recover %s %s' saves what can be read",
		    backup->path, backup->path, backup->path, backup->target);
	if (error == WW_EFULL)
		return message_error("%s: the disk is full; make room, or name a directory elsewhere", backup->target);
	if (error == WW_EAGAIN)
		return message_error(
		    "%s: the server wrote too much meanwhile; try again when it has less to do, or name a "
		    "directory on a faster disk",
		    backup->path);
	if (error == WW_EIO)
		return message_error("%s or %s: could not be read or written; 'weekwheel fsck' tells more",
		    backup->path, backup->target);
	return store_refused(&place, error);
}

/* The directory was empty or missing. */
static void remove_copy(const struct backup *backup, int was_there)
{
	DIR *folder = opendir(backup->target);
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	if (!was_there)
		(void)rmdir(backup->target);
}

static int look_at_copy(const struct backup *backup, struct ww_jobs_stats *stats)
{
	struct store_place place = {.path = backup->target};
	struct opened_store store;
	int error = store_open(&store, &place, WW_JOBS_READONLY);

	if (error)
		return error;
	error = ww_jobs_stats(store.jobs, stats);
	(void)store_close(&store);
	return error;
}

/* A copy that cannot be opened would be none. */
static int say(const struct backup *backup, int was_there)
{
	struct ww_jobs_stats stats;
	int error = look_at_copy(backup, &stats);

	if (error) {
		remove_copy(backup, was_there);
		return message_error(
		    "%s: its copy cannot be opened (%s), and was removed; 'weekwheel fsck %s' tells more", backup->path,
		    ww_strerror(error), backup->path);
	}
	message_line("%" PRIu64 " job%s copied to %s, %" PRIu64 " bytes", stats.accepted - stats.ended,
	    jobs_plural(stats.accepted - stats.ended), backup->target, stats.disk);
	return STATUS_OK;
}

static int run(void *context)
{
	const struct backup *backup = context;
	struct stat status;
	int was_there = stat(backup->target, &status) == 0;
	int error = ww_jobs_backup(backup->path, backup->target);

	if (error) {
		(void)refused(backup, error);
		return STATUS_FAILED;
	}
	return say(backup, was_there) ? STATUS_FAILED : STATUS_OK;
}

const struct jobs_command command_backup = {
    .name = "weekwheel backup",
    JOBS_TABLE(table),
    .context = &(struct backup){0},
    .server = JOBS_NO_SERVER,
    .take = take_operand,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel backup DIR TARGET\n"
             "\n"
             "Copy the jobs that weekwheeld keeps in DIR to the directory TARGET, which is empty\n"
             "or made, all as they are at one moment. A server may use DIR at the same time. The\n"
             "copy is complete and synced when the command ends, and a server can be started on it.\n"
             "Its checksums are read again: of a damaged DIR no copy is kept.\n",
    .examples = "Example, a copy that is looked into:\n"
                "  weekwheel backup jobs jobs.copy\n"
                "  sqlite3 jobs.copy/index.db .tables\n",
};
