/*
 * Records what a program writes and syncs below one folder, so that a test can rebuild what a power failure would have
 * left. Load it with LD_PRELOAD. WW_RECORD_UNDER is the folder, and WW_RECORD the file that gets the events.
 *
 * An event is a struct event and `size` bytes behind it. The lock is held while a call changes a file and its event is
 * written, thus the order of the events is that of the changes. It is not held during a sync, which has two events: what
 * was written before the first is stable after the second. Writes through mappings are not seen.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OPEN = 1, WRITE, WRITE_SYNCED, RESIZE, SYNC_BEGIN, SYNC_END, SYNC_FAILED, UNLINK, RENAME, OPEN_FOLDER };

struct event {
	uint64_t time; /* CLOCK_MONOTONIC, in ns */
	uint32_t kind;
	uint32_t file;   /* the inode's number, from 1 */
	uint64_t offset; /* of a write; the size that RESIZE leaves */
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

#define REAL(name) ((__typeof__(&(name)))real(#name))

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void)
{
	const char *under = getenv("WW_RECORD_UNDER");
	const char *record = getenv("WW_RECORD");

	if (under && record && realpath(under, folder))
		out = (int)syscall(SYS_openat, AT_FDCWD, record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void note(uint32_t kind, uint32_t file, uint64_t offset, const void *data, uint64_t size)
{
	struct timespec now;
	struct event event = {0, kind, file, offset, size};
	struct iovec parts[] = {{&event, sizeof event}, {(void *)(uintptr_t)data, size}};

	clock_gettime(CLOCK_MONOTONIC, &now);
	event.time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (syscall(SYS_writev, out, parts, 2) != (long)(sizeof event + size))
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
	char start[PATH_MAX], link[64];
	const char *last = strrchr(path, '/');
	int length = last ? (int)(last - path) : 0;

	if (path[0] == '/')
		(void)snprintf(start, sizeof start, "%.*s", length ? length : 1, path);
	else {
		(void)snprintf(link, sizeof link, "/proc/self/fd/%d", at);
		(void)snprintf(start, sizeof start, "%s/%.*s", at == AT_FDCWD ? "." : link, length, path);
	}
	if (!realpath(start, full))
		return NULL;
	(void)snprintf(full + strlen(full), PATH_MAX - strlen(full), "/%s", last ? last + 1 : path);
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

static int note_open(int fd, int flags)
{
	char link[64], path[PATH_MAX];
	struct stat status;
	ssize_t length;
	const char *name;
	int error = errno;

	if (fd < 0 || fd >= DESCRIPTORS_MAX || out < 0)
		return fd;
	opened[fd].file = 0;
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof path - 1);
	path[length > 0 ? length : 0] = '\0';
	name = below(path);
	if (name && fstat(fd, &status) == 0) {
		pthread_mutex_lock(&lock);
		opened[fd].file = number_of(&status);
		opened[fd].synced = (flags & (O_SYNC | O_DSYNC)) != 0;
		note(S_ISDIR(status.st_mode) ? OPEN_FOLDER : OPEN, opened[fd].file, (uint64_t)status.st_size, name,
		    strlen(name));
		if (flags & O_TRUNC)
			note(RESIZE, opened[fd].file, 0, NULL, 0);
		pthread_mutex_unlock(&lock);
	}
	errno = error;
	return fd;
}

static mode_t mode_of(int flags, va_list list)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

#define OPEN_LIKE(name)                                                                                                \
	int name(const char *path, int flags, ...)                                                                     \
	{                                                                                                              \
		va_list list;                                                                                          \
		va_start(list, flags);                                                                                 \
		mode_t mode = mode_of(flags, list);                                                                    \
		va_end(list);                                                                                          \
		return note_open(REAL(name)(path, flags, mode), flags);                                                \
	}

#define OPENAT_LIKE(name)                                                                                              \
	int name(int at, const char *path, int flags, ...)                                                             \
	{                                                                                                              \
		va_list list;                                                                                          \
		va_start(list, flags);                                                                                 \
		mode_t mode = mode_of(flags, list);                                                                    \
		va_end(list);                                                                                          \
		return note_open(REAL(name)(at, path, flags, mode), flags);                                            \
	}

OPEN_LIKE(open)
OPEN_LIKE(open64)
OPENAT_LIKE(openat)
OPENAT_LIKE(openat64)

int close(int fd)
{
	if (file_of(fd))
		opened[fd].file = 0;
	return REAL(close)(fd);
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

static void note_write(int fd, uint32_t file, off_t offset, const void *data, ssize_t size)
{
	if (size > 0)
		note(opened[fd].synced ? WRITE_SYNCED : WRITE, file, (uint64_t)offset, data, (uint64_t)size);
}

static void note_parts(int fd, uint32_t file, off_t offset, const struct iovec *parts, int count, ssize_t written)
{
	for (int i = 0; i < count && written > 0; i++) {
		ssize_t size = (ssize_t)parts[i].iov_len < written ? (ssize_t)parts[i].iov_len : written;
		note_write(fd, file, offset, parts[i].iov_base, size);
		offset += size;
		written -= size;
	}
}

ssize_t write(int fd, const void *data, size_t size)
{
	uint32_t file = file_of(fd);

	if (!file)
		return REAL(write)(fd, data, size);
	pthread_mutex_lock(&lock);
	off_t offset = place_of(fd);
	ssize_t written = REAL(write)(fd, data, size);
	note_write(fd, file, offset, data, written);
	pthread_mutex_unlock(&lock);
	return written;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	uint32_t file = file_of(fd);

	if (!file)
		return REAL(writev)(fd, parts, count);
	pthread_mutex_lock(&lock);
	off_t offset = place_of(fd);
	ssize_t written = REAL(writev)(fd, parts, count);
	note_parts(fd, file, offset, parts, count, written);
	pthread_mutex_unlock(&lock);
	return written;
}

#define PWRITE_LIKE(name)                                                                                              \
	ssize_t name(int fd, const void *data, size_t size, off_t offset)                                              \
	{                                                                                                              \
		uint32_t file = file_of(fd);                                                                           \
		if (!file)                                                                                             \
			return REAL(name)(fd, data, size, offset);                                                     \
		pthread_mutex_lock(&lock);                                                                             \
		ssize_t written = REAL(name)(fd, data, size, offset);                                                  \
		note_write(fd, file, offset, data, written);                                                           \
		pthread_mutex_unlock(&lock);                                                                           \
		return written;                                                                                        \
	}

#define PWRITEV_LIKE(name)                                                                                             \
	ssize_t name(int fd, const struct iovec *parts, int count, off_t offset)                                       \
	{                                                                                                              \
		uint32_t file = file_of(fd);                                                                           \
		if (!file)                                                                                             \
			return REAL(name)(fd, parts, count, offset);                                                   \
		pthread_mutex_lock(&lock);                                                                             \
		ssize_t written = REAL(name)(fd, parts, count, offset);                                                \
		note_parts(fd, file, offset, parts, count, written);                                                   \
		pthread_mutex_unlock(&lock);                                                                           \
		return written;                                                                                        \
	}

PWRITE_LIKE(pwrite)
PWRITE_LIKE(pwrite64)
PWRITEV_LIKE(pwritev)
PWRITEV_LIKE(pwritev64)

#define TRUNCATE_LIKE(name)                                                                                            \
	int name(int fd, off_t size)                                                                                   \
	{                                                                                                              \
		uint32_t file = file_of(fd);                                                                           \
		if (!file)                                                                                             \
			return REAL(name)(fd, size);                                                                   \
		pthread_mutex_lock(&lock);                                                                             \
		int error = REAL(name)(fd, size);                                                                      \
		if (!error)                                                                                            \
			note(RESIZE, file, (uint64_t)size, NULL, 0);                                                   \
		pthread_mutex_unlock(&lock);                                                                           \
		return error;                                                                                          \
	}

TRUNCATE_LIKE(ftruncate)
TRUNCATE_LIKE(ftruncate64)

static int note_allocated(int fd, uint32_t file, off_t end)
{
	struct stat status;

	if (fstat(fd, &status) == 0 && status.st_size <= end)
		note(RESIZE, file, (uint64_t)status.st_size, NULL, 0);
	return 0;
}

#define ALLOCATE_LIKE(name, parameters, arguments)                                                                     \
	int name parameters                                                                                            \
	{                                                                                                              \
		uint32_t file = file_of(fd);                                                                           \
		if (!file)                                                                                             \
			return REAL(name) arguments;                                                                   \
		pthread_mutex_lock(&lock);                                                                             \
		int error = REAL(name) arguments;                                                                      \
		if (!error)                                                                                            \
			(void)note_allocated(fd, file, offset + length);                                               \
		pthread_mutex_unlock(&lock);                                                                           \
		return error;                                                                                          \
	}

ALLOCATE_LIKE(fallocate, (int fd, int mode, off_t offset, off_t length), (fd, mode, offset, length))
ALLOCATE_LIKE(fallocate64, (int fd, int mode, off_t offset, off_t length), (fd, mode, offset, length))
ALLOCATE_LIKE(posix_fallocate, (int fd, off_t offset, off_t length), (fd, offset, length))
ALLOCATE_LIKE(posix_fallocate64, (int fd, off_t offset, off_t length), (fd, offset, length))

/* ---- Syncing */

static int sync_noted(int fd, int (*call)(int))
{
	uint32_t file = file_of(fd);
	int error;

	if (!file)
		return call(fd);
	pthread_mutex_lock(&lock);
	note(SYNC_BEGIN, file, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	error = call(fd);
	pthread_mutex_lock(&lock);
	note(error ? SYNC_FAILED : SYNC_END, file, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	return error;
}

int fsync(int fd)
{
	return sync_noted(fd, REAL(fsync));
}

int fdatasync(int fd)
{
	return sync_noted(fd, REAL(fdatasync));
}

/* ---- Names */

static void note_names(uint32_t kind, const char *from, const char *to)
{
	char both[2 * PATH_MAX];
	int size = snprintf(both, sizeof both, "%s%c%s", from, '\0', to);

	note(kind, 0, 0, both, (uint64_t)size);
}

static int rename_noted(int from_at, const char *from, int to_at, const char *to)
{
	char from_path[PATH_MAX + 1], to_path[PATH_MAX + 1];
	const char *old = below_named(from_at, from, from_path);
	const char *new = below_named(to_at, to, to_path);

	pthread_mutex_lock(&lock);
	forget(to_at, to);
	int error = REAL(renameat)(from_at, from, to_at, to);
	if (!error && old && new)
		note_names(RENAME, old, new);
	pthread_mutex_unlock(&lock);
	return error;
}

int rename(const char *from, const char *to)
{
	return rename_noted(AT_FDCWD, from, AT_FDCWD, to);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	return rename_noted(from_at, from, to_at, to);
}

static int unlink_noted(int at, const char *path, int flags)
{
	char full[PATH_MAX + 1];
	const char *name = below_named(at, path, full);

	pthread_mutex_lock(&lock);
	forget(at, path);
	int error = REAL(unlinkat)(at, path, flags);
	if (!error && name)
		note(UNLINK, 0, 0, name, strlen(name));
	pthread_mutex_unlock(&lock);
	return error;
}

int unlink(const char *path)
{
	return unlink_noted(AT_FDCWD, path, 0);
}

int unlinkat(int at, const char *path, int flags)
{
	return unlink_noted(at, path, flags);
}
