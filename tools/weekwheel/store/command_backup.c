/* The commands backup and restore: copy the directory of a store while a server uses it, and put such a copy in its place. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/store/store.h"

struct backup {
	const char *path;
	const char *target;
	const char *example;
	int json;
};

static const struct option table[] = {
    {JOBS_FLAG(struct backup, json), 'j', "json", NULL, "write what was done as a JSON object"},
    JOBS_HELP_OPTION,
};

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
	return options_fail(
	    options, "the directory of a store and one for the copy are expected, as in '%s'", backup->example);
}

/* Why the copy cannot be made at its place, or NULL. */
static const char *target_refusal(const char *path)
{
	struct stat status;

	if (stat(path, &status) == 0) {
		if (!S_ISDIR(status.st_mode))
			return "is not a directory; name an empty one, or one that is to be made";
		return access(path, R_OK | W_OK | X_OK) ? strerror(errno) : NULL;
	}
	if (lstat(path, &status) == 0)
		return "is a link that leads to no directory; make that, or remove the link";
	if (mkdir(path, S_IRWXU))
		return errno == ENOENT ? "cannot be made, as the directory above is missing; make that first"
		                       : strerror(errno);
	(void)rmdir(path);
	return NULL;
}

/* Only opening the directory shows whose it is. */
static int listen_and_refuse(const struct store_place *place, int error)
{
	struct opened_store store;

	if (error == WW_EDENIED && store_open(&store, place, WW_JOBS_READONLY) == WW_OK)
		(void)store_close(&store);
	return store_refused(place, error);
}

/* What backup and restore say alike. */
static int refused_alike(const struct backup *backup, int error)
{
	const char *why = error == WW_EDENIED ? target_refusal(backup->target) : NULL;
	struct store_place place = {.path = backup->path};

	if (why)
		return message_error("%s: %s", backup->target, why);
	if (error == WW_EINVAL)
		return message_error("%s: lies in %s; name a directory elsewhere", backup->target, backup->path);
	return listen_and_refuse(&place, error);
}

static int refused(const struct backup *backup, int error)
{
	if (error == WW_EINUSE)
		return message_error(
		    "%s: is not empty; name an empty directory, or one that is to be made", backup->target);
	if (error == WW_ECORRUPT)
		return message_error("%s: is damaged, and its copy would be, too: none was kept; 'weekwheel fsck %s' "
		                     "shows what is wrong, and 'weekwheel recover %s %s' saves what can be read",
		    backup->path, backup->path, backup->path, backup->target);
	if (error == WW_EFULL)
		return message_error("%s: the disk is full; make room, or name a directory elsewhere", backup->target);
	if (error == WW_EAGAIN)
		return message_error(
		    "%s: the server wrote too much meanwhile; try again when it has less to do, or name a "
		    "directory on a faster disk",
		    backup->path);
	if (error == WW_EIO)
		return message_error("%s or %s: could not be read or written; 'weekwheel fsck' shows more",
		    backup->path, backup->target);
	return refused_alike(backup, error);
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

typedef int refused_fn(const struct backup *backup, int error);

/* Returns 0, or -1 after a message. A copy that cannot be opened would be none. */
static int copy(const struct backup *backup, struct ww_jobs_stats *stats, refused_fn *refuse)
{
	struct stat status;
	int was_there = stat(backup->target, &status) == 0;
	int error = ww_jobs_backup(backup->path, backup->target);

	if (error)
		return refuse(backup, error);
	error = look_at_copy(backup, stats);
	if (!error)
		return 0;
	remove_copy(backup, was_there);
	if (error == WW_ECORRUPT)
		return refuse(backup, error);
	return message_error("%s: its copy cannot be opened (%s), and was removed; 'weekwheel fsck %s' shows more",
	    backup->path, ww_strerror(error), backup->path);
}

/* `before`: where what was there before is now; NULL: nothing was. */
static void write_json(const char *path, const char *before, const struct ww_jobs_stats *stats)
{
	fputs("{\"path\": ", stdout);
	json_write_string(stdout, path, strlen(path));
	printf(", \"jobs\": %" PRIu64 ", \"bytes\": %" PRIu64, stats->accepted - stats->ended, stats->disk);
	if (before) {
		fputs(", \"before\": ", stdout);
		json_write_string(stdout, before, strlen(before));
	}
	puts("}");
}

static int run(void *context)
{
	const struct backup *backup = context;
	struct ww_jobs_stats stats;

	if (copy(backup, &stats, refused))
		return STATUS_FAILED;
	if (backup->json)
		write_json(backup->target, NULL, &stats);
	else
		message_line("%" PRIu64 " job%s copied to %s, %" PRIu64 " bytes", stats.accepted - stats.ended,
		    jobs_plural(stats.accepted - stats.ended), backup->target, stats.disk);
	return STATUS_OK;
}

const struct jobs_command command_backup = {
    .name = "weekwheel backup",
    JOBS_TABLE(table),
    .context = &(struct backup){.example = "weekwheel backup jobs jobs.copy"},
    .server = JOBS_NO_SERVER,
    .take = take_operand,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel backup [OPTION]... DIR TARGET\n"
             "\n"
             "Copy the jobs that weekwheeld keeps in DIR to the directory TARGET, which is empty\n"
             "or made, all as they are at one moment. A server may use DIR at the same time. The\n"
             "copy is complete and synced when the command ends, and a server can be started on it.\n"
             "Its checksums are read again: of a damaged DIR no copy is kept.\n",
    .examples = "Example, a copy that is looked into:\n"
                "  weekwheel backup jobs jobs.copy\n"
                "  sqlite3 jobs.copy/index.db .tables\n",
};

/* ---- Restore */

/* The directory that gets the copy. The names have room for ".restored" and the like. */
struct restored {
	char path[PATH_MAX], copy[PATH_MAX + 20], former[PATH_MAX + 20];
	int fd;            /* the directory, locked; -1: it does not exist yet */
	struct stat owner; /* the directory, or the one above it */
};

static int refuse_mount(const char *path)
{
	return message_error(
	    "%s: a file system is mounted there, so it cannot get another name; empty it, and fill it by "
	    "'weekwheel backup COPY DIR'",
	    path);
}

static int failed(const char *path)
{
	if (errno == EBUSY)
		return refuse_mount(path);
	return message_error("%s: %s", path, strerror(errno));
}

static int restore_refused(const struct backup *backup, int error)
{
	if (error == WW_EINUSE)
		return message_error(
		    "%s: is not empty; it is left of a restore that was cut short, or somebody's: remove or rename it",
		    backup->target);
	if (error == WW_ECORRUPT)
		return message_error(
		    "%s: is damaged, and nothing was restored; 'weekwheel fsck %s' shows what is wrong, and "
		    "'weekwheel recover' saves what can be read into a new directory",
		    backup->path, backup->path);
	if (error == WW_EFULL)
		return message_error("%s: the disk is full: a restore needs room for a second store", backup->target);
	if (error == WW_EIO)
		return message_error("%s or %s: could not be read or written", backup->path, backup->target);
	return refused_alike(backup, error);
}

/* Whether a directory is empty or has a store. With any other, a name was mistaken, and all that is in it would move. */
static int may_move(int folder)
{
	DIR *entries = fdopendir(dup(folder));
	const struct dirent *entry;
	int others = 0, has_store = 0, has_sessions = 0;

	while (entries && (entry = readdir(entries))) {
		others += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
		has_store |= strcmp(entry->d_name, "index.db") == 0 || strncmp(entry->d_name, "journal.", 8) == 0;
		has_sessions |= strcmp(entry->d_name, "sessions") == 0;
	}
	if (entries)
		closedir(entries);
	/* Those of weekwheel-sessiond have a journal, too. */
	return entries && ((has_store && !has_sessions) || !others);
}

/* A directory that is there. A server has it locked. */
static int take_place(struct restored *place, const char *path)
{
	struct stat above;

	if (!realpath(path, place->path) || fstat(place->fd, &place->owner) || fstatat(place->fd, "..", &above, 0))
		return failed(path);
	if (!may_move(place->fd))
		return message_error(
		    "%s: has files in it, but no jobs; name the directory that weekwheeld has as --data", path);
	if (above.st_dev != place->owner.st_dev)
		return refuse_mount(path);
	return flock(place->fd, LOCK_EX | LOCK_NB) == 0
	           ? 0
	           : message_error("%s: a server has it open; end that one first", path);
}

/* Find out where it is, without links, and to whom its files belong. */
static int find_place(struct restored *place, const char *path)
{
	char above[PATH_MAX];
	size_t length;
	char *name;

	place->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place->fd >= 0)
		return take_place(place, path);
	if (errno != ENOENT || !path[0] || (size_t)snprintf(above, sizeof above, "./%s", path) >= sizeof above)
		return failed(path);
	for (length = strlen(above); above[length - 1] == '/'; length--)
		above[length - 1] = 0;
	name = strrchr(above, '/');
	*name = 0;
	if (!realpath(path[0] == '/' ? above + 1 : above, place->path) || stat(place->path, &place->owner))
		return failed(path);
	place->owner.st_mode = S_IRWXU;
	length = strlen(place->path);
	(void)snprintf(place->path + length, sizeof place->path - length, "/%s", name + 1);
	return 0;
}

/* Nobody else has to read the files, but the server must. */
static int hand_over(const struct restored *place)
{
	DIR *folder = opendir(place->copy);
	const struct dirent *entry;
	int bad = !folder;

	while (!bad && (entry = readdir(folder)))
		bad = entry->d_name[0] != '.' && fchownat(dirfd(folder), entry->d_name, place->owner.st_uid,
		                                     place->owner.st_gid, AT_SYMLINK_NOFOLLOW) != 0;
	bad = bad || fchown(dirfd(folder), place->owner.st_uid, place->owner.st_gid) ||
	      fchmod(dirfd(folder), place->owner.st_mode & 07777) || fsync(dirfd(folder));
	if (bad)
		(void)message_error("%s: cannot be given to the owner of %s: %s; restore as root or as that user",
		    place->copy, place->path, strerror(errno));
	if (folder)
		closedir(folder);
	return bad;
}

/*
 * At no moment is there no store, or a server that starts then would make one. Some file systems cannot exchange names.
 * Returns -1 if nothing has changed.
 */
static int exchange_names(struct restored *place)
{
	if (place->fd < 0)
		return rename(place->copy, place->path);
	if (renameat2(AT_FDCWD, place->copy, AT_FDCWD, place->path, RENAME_EXCHANGE) == 0) {
		if (rename(place->copy, place->former) != 0)
			strcpy(place->former, place->copy);
		return 0;
	}
	if ((errno != EINVAL && errno != ENOSYS) || rename(place->path, place->former))
		return -1;
	if (rename(place->copy, place->path) == 0)
		return 0;
	(void)rename(place->former, place->path);
	return -1;
}

static void sync_names(const struct restored *place)
{
	char above[PATH_MAX + 4];
	int folder;

	(void)snprintf(above, sizeof above, "%s/..", place->path);
	folder = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || fsync(folder))
		message_warning("%s: %s; the new names may not outlast a power failure", above, strerror(errno));
	if (folder >= 0)
		close(folder);
}

/* What was there is kept under the first name that is free. */
static void name_former(struct restored *place)
{
	struct stat status;
	unsigned number = 1;

	do
		(void)snprintf(place->former, sizeof place->former, "%s.before.%u", place->path, number);
	while (lstat(place->former, &status) == 0 && ++number);
}

static int restore(const struct backup *backup, struct restored *place)
{
	const struct backup made = {.path = backup->path, .target = place->copy};
	struct ww_jobs_stats stats;

	(void)snprintf(place->copy, sizeof place->copy, "%s.restored", place->path);
	name_former(place);
	if (copy(&made, &stats, restore_refused))
		return -1;
	if (hand_over(place) || (exchange_names(place) && failed(place->path))) {
		remove_copy(&made, 0);
		return -1;
	}
	sync_names(place);
	if (backup->json) {
		write_json(place->path, place->fd >= 0 ? place->former : NULL, &stats);
		return 0;
	}
	message_line("%" PRIu64 " job%s restored in %s", stats.accepted - stats.ended,
	    jobs_plural(stats.accepted - stats.ended), backup->target);
	if (place->fd >= 0)
		message_line(
		    "What was there before is in %s; remove it when you do not need it any more", place->former);
	return 0;
}

static int run_restore(void *context)
{
	const struct backup *backup = context;
	struct restored place;
	int bad = find_place(&place, backup->target) || restore(backup, &place);

	if (place.fd >= 0)
		close(place.fd);
	return bad ? STATUS_FAILED : STATUS_OK;
}

const struct jobs_command command_restore = {
    .name = "weekwheel restore",
    JOBS_TABLE(table),
    .context = &(struct backup){.example = "weekwheel restore jobs.copy jobs"},
    .server = JOBS_NO_SERVER,
    .take = take_operand,
    .check = check,
    .run = run_restore,
    .usage = "Usage: weekwheel restore [OPTION]... COPY DIR\n"
             "\n"
             "Put a copy that backup made in the place of DIR, the directory that weekwheeld has as\n"
             "--data, while no server uses it. COPY stays as it is; its checksums are read first. The\n"
             "files get the owner of DIR, or of the directory above it if DIR is missing. What was in\n"
             "DIR is kept beside it under another name. Jobs that ended since the copy come again.\n",
    .examples = "Example, after the server has ended:\n"
                "  weekwheel restore jobs.copy jobs\n"
                "  weekwheel fsck jobs\n",
};
