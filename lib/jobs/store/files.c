/* The folder of a store: its lock, and whether it is whole. */

#include "lib/jobs/store/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/report.h"
#include "lib/base/system.h"
#include "lib/jobs/store/pages.h"
#include "lib/journal/format.h"
#include "lib/journal/names.h"

int ww_store_files_refuse(const struct ww_jobs_config *config, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_message(config->problem, config->context, format, arguments);
	va_end(arguments);
	return error;
}

static int refuse_system(const struct ww_jobs_config *config, const char *path)
{
	int reason = errno;

	return ww_store_files_refuse(config, error_of_errno(reason), "%s: %s", path, words_of_errno(reason));
}

/* ---- What is in the folder */

static int refuse_sessions(const struct ww_jobs_config *config)
{
	return ww_store_files_refuse(config, WW_EDENIED,
	    "%s: weekwheel-sessiond keeps its sessions there, and nothing was changed; name another directory",
	    config->path);
}

static int is_ours(const char *name)
{
	static const char *const known[] = {".", "..", "index.db", "index.db-wal", "index.db-shm", "index.db-journal",
	    "journal.new", "reserve", "lost+found"};
	uint64_t number;
	size_t i = 0;

	if (ww_journal_number(name, &number))
		return 1;
	while (i < sizeof known / sizeof *known && strcmp(name, known[i]) != 0)
		i++;
	return i < sizeof known / sizeof *known;
}

/* SQLite would follow a link. */
static int check_plain(const struct ww_jobs_config *config, int folder, const char *name, struct stat *status)
{
	if (fstatat(folder, name, status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? WW_OK : refuse_system(config, name);
	if (S_ISREG(status->st_mode) || strcmp(name, "lost+found") == 0 || name[0] == '.')
		return WW_OK;
	return ww_store_files_refuse(config, WW_EDENIED,
	    "%s/%s: is %s, which is not followed; put the file itself there", config->path, name,
	    S_ISLNK(status->st_mode) ? "a symbolic link" : "no plain file");
}

static int look_at(struct store_files *files, const struct ww_jobs_config *config, int folder, const char *name)
{
	struct stat status = {0};
	uint64_t number;
	int error = check_plain(config, folder, name, &status);

	if (error) {
		/* Then there is nothing to go on from. */
		files->has_log = 0;
		return error;
	}
	if (strcmp(name, "index.db") == 0)
		files->has_index = status.st_size >= PAGES_SIZE;
	else if (strcmp(name, "index.db-wal") == 0)
		files->has_log = 1;
	else if (ww_journal_number(name, &number))
		files->has_journal = 1;
	return WW_OK;
}

static int look_through(struct store_files *files, const struct ww_jobs_config *config, DIR *folder)
{
	const struct dirent *entry;
	char other[256] = "";
	int has_sessions = 0;
	int error = WW_OK;

	while (!error && (entry = readdir(folder))) {
		if (is_ours(entry->d_name))
			error = look_at(files, config, dirfd(folder), entry->d_name);
		else if (strcmp(entry->d_name, "data.mdb") == 0)
			error = ww_store_files_refuse(config, WW_EVERSION,
			    "%s/data.mdb: is a store of a former weekwheel; export it with that one, and import it",
			    config->path);
		else
			(void)snprintf(other, sizeof other, "%s", entry->d_name);
		has_sessions |= strcmp(entry->d_name, "sessions") == 0;
	}
	/* A file of that name beside an index may be anybody's. */
	if (!error && ((has_sessions && !files->has_index) || ww_journal_is_other(dirfd(folder), JOURNAL_JOBS)))
		error = refuse_sessions(config);
	/* Then it was hardly meant. */
	if (!error && other[0] && !files->has_index && !files->has_journal)
		error = ww_store_files_refuse(config, WW_ECORRUPT,
		    "%s: is not empty, and has no store of jobs but for instance %s; name another directory",
		    config->path, other);
	return error;
}

static int look_into(struct store_files *files, const struct ww_jobs_config *config)
{
	DIR *folder = opendir(config->path);
	int error;

	if (!folder)
		return refuse_system(config, config->path);
	error = look_through(files, config, folder);
	closedir(folder);
	return error;
}

/* ---- The lock is on the folder itself: a file in it could be deleted and made again */

/* Whoever made the folder: make its name durable before a new store in it has anything. */
static int sync_name(const struct ww_jobs_config *config, int was_there)
{
	char parent[4096];
	int error = WW_OK;

	if ((size_t)snprintf(parent, sizeof parent, "%s/..", config->path) >= sizeof parent)
		return WW_EINVAL;
	int folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 && was_there && (errno == EACCES || errno == EPERM))
		return WW_OK;
	if (folder < 0 || fsync(folder))
		error = refuse_system(config, parent);
	if (folder >= 0)
		close(folder);
	return error;
}

static int make_folder(const struct ww_jobs_config *config, int *was_there)
{
	*was_there = mkdir(config->path, 0700) != 0;
	return !*was_there || errno == EEXIST ? WW_OK : refuse_system(config, config->path);
}

/* Readers hold the lock for a moment, to see whether it is taken. */
static int lock_folder(int folder, int how)
{
	const struct timespec moment = {0, 5000000};

	for (int tries = 0; tries < 20; tries++) {
		if (flock(folder, how | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -1;
		(void)nanosleep(&moment, NULL);
	}
	return -1;
}

int ww_store_files_lock(struct store_files *files, const struct ww_jobs_config *config)
{
	int was_there;
	int error = make_folder(config, &was_there);

	*files = (struct store_files){.lock = -1};
	if (error)
		return error;
	files->lock = open(config->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (files->lock < 0 || is_read_only(config->path))
		return refuse_system(config, config->path);
	if (lock_folder(files->lock, LOCK_EX))
		return errno == EWOULDBLOCK
		           ? ww_store_files_refuse(config, WW_EINUSE, "%s: another process has it open", config->path)
		           : refuse_system(config, config->path);
	error = look_into(files, config);
	if (!error && !files->has_index && !files->has_journal)
		error = sync_name(config, was_there);
	return error;
}

int ww_store_files_look(struct store_files *files, const struct ww_jobs_config *config)
{
	int error;

	*files = (struct store_files){.lock = -1};
	error = look_into(files, config);
	if (!error && !files->has_index && !files->has_journal)
		error = ww_store_files_refuse(config, WW_EDENIED,
		    "%s: has no jobs in it; name the directory that weekwheeld has as --data", config->path);
	return error;
}

void ww_store_files_unlock(struct store_files *files)
{
	if (files->lock >= 0)
		close(files->lock);
	files->lock = -1;
}

int ww_store_files_used(const char *path)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int used = folder >= 0 && flock(folder, LOCK_SH | LOCK_NB) != 0;

	if (folder >= 0)
		close(folder);
	return used;
}

int ww_store_files_copied(const char *path, uint64_t bytes)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	struct stat status = {0};
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int copied = folder >= 0 && fcntl(folder, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;

	if (copied && fstatat(folder, "index.db", &status, 0))
		status.st_size = 0;
	if (folder >= 0)
		close(folder);
	return copied && (bytes < STORE_PATIENCE || bytes < (uint64_t)status.st_size);
}

uint64_t ww_store_files_bytes(const char *path)
{
	static const char *const files[] = {"index.db", "index.db-wal", "reserve"};
	struct stat status;
	uint64_t bytes = 0;
	char name[4096];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if ((size_t)snprintf(name, sizeof name, "%s/%s", path, files[i]) < sizeof name &&
		    lstat(name, &status) == 0)
			bytes += (uint64_t)status.st_size;
	return bytes;
}
