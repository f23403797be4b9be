/* The folder of a store: its lock, and whether it is whole. */

#include "lib/jobs/store/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weekwheel/error.h"

static int error_of(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case EPERM:
	case EROFS:
	case ELOOP:
		return WW_EDENIED;
	case ENOSPC:
	case EDQUOT:
		return WW_EFULL;
	default:
		return WW_EIO;
	}
}

static int name_in(const char *path, const char *file, char *name, size_t size)
{
	int length = snprintf(name, size, "%s/%s", path, file);

	return length < 0 || (size_t)length >= size ? WW_EINVAL : WW_OK;
}

static int has(const char *path, const char *file)
{
	struct stat status;
	char name[4096];

	return !name_in(path, file, name, sizeof name) && lstat(name, &status) == 0;
}

/* Whether the index is there and has something. */
static int has_index(const char *path)
{
	struct stat status;
	char name[4096];

	return !name_in(path, "index.db", name, sizeof name) && lstat(name, &status) == 0 && S_ISREG(status.st_mode) &&
	       status.st_size > 0;
}

static int is_ours(const char *name)
{
	static const char *const known[] = {
	    ".", "..", "index.db", "index.db-wal", "index.db-shm", "owner", "lost+found"};
	size_t i = 0;

	if (strncmp(name, "journal.", 8) == 0)
		return 1;
	while (i < sizeof known / sizeof *known && strcmp(name, known[i]) != 0)
		i++;
	return i < sizeof known / sizeof *known;
}

/* Whether the folder has files, and none of them an index: then it was hardly meant. */
static int is_foreign(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	int others = 0;

	if (!folder)
		return 0;
	while ((entry = readdir(folder)))
		others += !is_ours(entry->d_name);
	closedir(folder);
	return others && !has(path, "index.db");
}

/* The locked file also says whether the store was ever made. */
static int was_made(int lock)
{
	struct stat status;

	return fstat(lock, &status) == 0 && status.st_size > 0;
}

int ww_store_files_lock(const char *path, int *lock)
{
	char name[4096];
	int error = name_in(path, "owner", name, sizeof name);

	if (error)
		return error;
	if (mkdir(path, 0700) && errno != EEXIST)
		return error_of(errno);
	if (has(path, "data.mdb"))
		return WW_EVERSION;
	if (is_foreign(path))
		return WW_ECORRUPT;
	*lock = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*lock < 0)
		return error_of(errno);
	if (flock(*lock, LOCK_EX | LOCK_NB))
		return WW_EINUSE;
	return was_made(*lock) && !has_index(path) ? WW_ECORRUPT : WW_OK;
}

void ww_store_files_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

static int sync_folder(const char *path)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int failed = folder < 0 || fsync(folder);
	int error = errno;

	if (folder >= 0)
		close(folder);
	return failed ? error_of(error) : WW_OK;
}

int ww_store_files_made(const char *path, int lock)
{
	static const char text[] = "the store was made\n";
	char parent[4096];
	int error;

	if (was_made(lock))
		return WW_OK;
	error = name_in(path, "..", parent, sizeof parent);
	if (!error)
		error = sync_folder(path);
	if (!error)
		error = sync_folder(parent);
	if (!error && (pwrite(lock, text, sizeof text - 1, 0) < 0 || fsync(lock)))
		error = error_of(errno);
	return error;
}

int ww_store_files_exist(const char *path)
{
	if (has(path, "index.db"))
		return WW_OK;
	return has(path, "data.mdb") ? WW_EVERSION : has(path, "owner") ? WW_ECORRUPT : WW_EDENIED;
}

uint64_t ww_store_files_bytes(const char *path)
{
	static const char *const files[] = {"index.db", "index.db-wal"};
	struct stat status;
	uint64_t bytes = 0;
	char name[4096];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (!name_in(path, files[i], name, sizeof name) && stat(name, &status) == 0)
			bytes += (uint64_t)status.st_size;
	return bytes;
}
