/*
 * The policy that records what a program writes and syncs below one folder, so that a test can rebuild what a power
 * failure would have left. WW_RECORD_UNDER is the folder, and WW_RECORD the file that gets the events.
 *
 * An event is a struct event and `size` bytes behind it. The lock is held while a call changes a file and its event is
 * written, thus the order of the events is that of the changes. It is not held during a sync, which has two events: what
 * was written before the first is stable after the second. Writes through mappings are not seen.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/system/system.h"

/* Python reads their names here. */
enum {
	EVENT_OPEN = 1,
	EVENT_WRITE = 2,
	EVENT_WRITE_SYNCED = 3,
	EVENT_RESIZE = 4,
	EVENT_SYNC_BEGIN = 5,
	EVENT_SYNC_END = 6,
	EVENT_SYNC_FAILED = 7,
	EVENT_UNLINK = 8,
	EVENT_RENAME = 9,
	EVENT_OPEN_FOLDER = 10
};

struct event {
	uint64_t time; /* CLOCK_MONOTONIC, in ns */
	uint32_t kind;
	uint32_t file;   /* the inode's number, from 1 */
	uint64_t offset; /* of a write; the size that EVENT_RESIZE leaves */
	uint64_t size;   /* of what follows: bytes of a write, a name below the folder, or two with a zero between */
};

#define FILES_MAX 4096
#define DESCRIPTORS_MAX 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	dev_t device;
	ino_t inode;
} files[FILES_MAX];
static uint32_t file_count;
static struct {
	uint32_t file; /* 0: not below the folder */
	int synced;    /* opened with O_SYNC or O_DSYNC */
} opened[DESCRIPTORS_MAX];
static char folder[PATH_MAX];
static int out = -1;

__attribute__((constructor)) static void begin(void)
{
	const char *under = getenv("WW_RECORD_UNDER");
	const char *record = getenv("WW_RECORD");

	if (under && record && realpath(under, folder))
		out = system_real.open(AT_FDCWD, record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void note(uint32_t kind, uint32_t file, uint64_t offset, const void *data, uint64_t size)
{
	struct timespec now;
	struct event event = {0, kind, file, offset, size};
	struct iovec parts[] = {{&event, sizeof event}, {(void *)(uintptr_t)data, size}};

	clock_gettime(CLOCK_MONOTONIC, &now);
	event.time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (system_real.write(out, parts, 2, SYSTEM_HERE) != (ssize_t)(sizeof event + size))
		abort(); /* A record with a hole proves nothing. */
}

/* The file of a descriptor, or 0. */
static uint32_t file_of(int fd)
{
	return out >= 0 && fd >= 0 && fd < DESCRIPTORS_MAX ? opened[fd].file : 0;
}

/* A path below the folder, or NULL. */
static const char *below(const char *path)
{
	size_t length = strlen(folder);

	if (out < 0 || strncmp(path, folder, length) != 0 || (path[length] && path[length] != '/'))
		return NULL;
	return path[length] ? path + length + 1 : "";
}

/* The same for the name of what need not exist: its folder does. */
static const char *below_named(int at, const char *path, char *full)
{
	char start[PATH_MAX];
	char *last;

	system_path(at, path, start, sizeof start);
	last = strrchr(start, '/');
	if (!last)
		return NULL;
	*last = 0;
	if (!realpath(*start ? start : "/", full))
		return NULL;
	(void)snprintf(full + strlen(full), PATH_MAX - strlen(full), "/%s", last + 1);
	return below(full);
}

static uint32_t number_of(const struct stat *status)
{
	for (uint32_t i = 0; i < file_count; i++)
		if (files[i].device == status->st_dev && files[i].inode == status->st_ino)
			return i + 1;
	if (file_count == FILES_MAX)
		abort();
	files[file_count].device = status->st_dev;
	files[file_count].inode = status->st_ino;
	return ++file_count;
}

/* The name leads to a file no more. If its inode's number is given to another file, that one gets a number of its own. */
static void forget(int at, const char *path)
{
	struct stat status;

	if (fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_nlink < 2)
		for (uint32_t i = 0; i < file_count; i++)
			if (files[i].device == status.st_dev && files[i].inode == status.st_ino)
				files[i].inode = 0;
}

static int record_open(int at, const char *path, int flags, mode_t mode)
{
	char full[PATH_MAX];
	struct stat status;
	const char *name;
	int fd = system_real.open(at, path, flags, mode);
	int error = errno;

	if (fd < 0 || fd >= DESCRIPTORS_MAX || out < 0)
		return fd;
	opened[fd].file = 0;
	system_path(fd, NULL, full, sizeof full);
	name = below(full);
	if (name && fstat(fd, &status) == 0) {
		pthread_mutex_lock(&lock);
		opened[fd].file = number_of(&status);
		opened[fd].synced = (flags & (O_SYNC | O_DSYNC)) != 0;
		note(S_ISDIR(status.st_mode) ? EVENT_OPEN_FOLDER : EVENT_OPEN, opened[fd].file,
		    (uint64_t)status.st_size, name, strlen(name));
		if (flags & O_TRUNC)
			note(EVENT_RESIZE, opened[fd].file, 0, NULL, 0);
		pthread_mutex_unlock(&lock);
	}
	errno = error;
	return fd;
}

static int record_close(int fd)
{
	if (file_of(fd))
		opened[fd].file = 0;
	return system_real.close(fd);
}

/* ---- Writing */

/* Where write would write. */
static off_t place_of(int fd)
{
	struct stat status;

	if (fcntl(fd, F_GETFL) & O_APPEND)
		return fstat(fd, &status) ? 0 : status.st_size;
	return lseek(fd, 0, SEEK_CUR);
}

static ssize_t record_write(int fd, const struct iovec *parts, int count, off_t offset)
{
	uint32_t file = file_of(fd);
	ssize_t written, left;

	if (!file)
		return system_real.write(fd, parts, count, offset);
	pthread_mutex_lock(&lock);
	uint32_t kind = opened[fd].synced ? EVENT_WRITE_SYNCED : EVENT_WRITE;
	off_t place = offset == SYSTEM_HERE ? place_of(fd) : offset;
	left = written = system_real.write(fd, parts, count, offset);
	for (int i = 0; i < count && left > 0; i++) {
		ssize_t size = (ssize_t)parts[i].iov_len < left ? (ssize_t)parts[i].iov_len : left;
		if (size)
			note(kind, file, (uint64_t)place, parts[i].iov_base, (uint64_t)size);
		place += size;
		left -= size;
	}
	pthread_mutex_unlock(&lock);
	return written;
}

static int record_resize(int fd, off_t size)
{
	uint32_t file = file_of(fd);

	if (!file)
		return system_real.resize(fd, size);
	pthread_mutex_lock(&lock);
	int error = system_real.resize(fd, size);
	if (!error)
		note(EVENT_RESIZE, file, (uint64_t)size, NULL, 0);
	pthread_mutex_unlock(&lock);
	return error;
}

static int record_allocate(int fd, int mode, off_t offset, off_t size)
{
	uint32_t file = file_of(fd);
	struct stat status;

	if (!file)
		return system_real.allocate(fd, mode, offset, size);
	pthread_mutex_lock(&lock);
	int error = system_real.allocate(fd, mode, offset, size);
	if (!error && fstat(fd, &status) == 0 && status.st_size <= offset + size)
		note(EVENT_RESIZE, file, (uint64_t)status.st_size, NULL, 0);
	pthread_mutex_unlock(&lock);
	return error;
}

/* ---- Syncing */

static int record_sync(int fd)
{
	uint32_t file = file_of(fd);
	int error;

	if (!file)
		return system_real.sync(fd);
	pthread_mutex_lock(&lock);
	note(EVENT_SYNC_BEGIN, file, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	error = system_real.sync(fd);
	pthread_mutex_lock(&lock);
	note(error ? EVENT_SYNC_FAILED : EVENT_SYNC_END, file, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	return error;
}

/* ---- Names */

static void note_names(uint32_t kind, const char *from, const char *to)
{
	char both[2 * PATH_MAX];
	int size = snprintf(both, sizeof both, "%s%c%s", from, '\0', to);

	note(kind, 0, 0, both, (uint64_t)size);
}

static int record_rename(int from_at, const char *from, int to_at, const char *to)
{
	char from_path[PATH_MAX + 1], to_path[PATH_MAX + 1];
	const char *old = below_named(from_at, from, from_path);
	const char *new = below_named(to_at, to, to_path);

	pthread_mutex_lock(&lock);
	forget(to_at, to);
	int error = system_real.rename(from_at, from, to_at, to);
	if (!error && old && new)
		note_names(EVENT_RENAME, old, new);
	pthread_mutex_unlock(&lock);
	return error;
}

static int record_unlink(int at, const char *path, int flags)
{
	char full[PATH_MAX + 1];
	const char *name = below_named(at, path, full);

	pthread_mutex_lock(&lock);
	forget(at, path);
	int error = system_real.unlink(at, path, flags);
	if (!error && name)
		note(EVENT_UNLINK, 0, 0, name, strlen(name));
	pthread_mutex_unlock(&lock);
	return error;
}

const struct system_policy system_policy = {.plays = {.open = record_open,
                                                .close = record_close,
                                                .write = record_write,
                                                .sync = record_sync,
                                                .resize = record_resize,
                                                .allocate = record_allocate,
                                                .unlink = record_unlink,
                                                .rename = record_rename}};
