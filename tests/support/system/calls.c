/* The functions of the C library that are played, each defined once, and how to reach the real ones. */
#include "tests/support/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- The C library's */

static int real_open(int at, const char *path, int flags, mode_t mode)
{
	return SYSTEM_REAL(openat)(at, path, flags, mode);
}

static int real_close(int fd)
{
	return SYSTEM_REAL(close)(fd);
}

static ssize_t real_read(int fd, void *data, size_t size, off_t offset)
{
	return offset == SYSTEM_HERE ? SYSTEM_REAL(read)(fd, data, size) : SYSTEM_REAL(pread)(fd, data, size, offset);
}

static ssize_t real_write(int fd, const struct iovec *parts, int count, off_t offset)
{
	return offset == SYSTEM_HERE ? SYSTEM_REAL(writev)(fd, parts, count)
	                             : SYSTEM_REAL(pwritev)(fd, parts, count, offset);
}

static int real_sync(int fd)
{
	return SYSTEM_REAL(fsync)(fd);
}

static int real_resize(int fd, off_t size)
{
	return SYSTEM_REAL(ftruncate)(fd, size);
}

/* Not every file system has fallocate, but posix_fallocate does without. */
static int real_allocate(int fd, int mode, off_t offset, off_t size)
{
	int error;

	if (mode)
		return SYSTEM_REAL(fallocate)(fd, mode, offset, size);
	error = SYSTEM_REAL(posix_fallocate)(fd, offset, size);
	errno = error ? error : errno;
	return error ? -1 : 0;
}

static int real_unlink(int at, const char *path, int flags)
{
	return SYSTEM_REAL(unlinkat)(at, path, flags);
}

static int real_rename(int from_at, const char *from, int to_at, const char *to)
{
	return SYSTEM_REAL(renameat)(from_at, from, to_at, to);
}

static int real_make_folder(const char *path, mode_t mode)
{
	return SYSTEM_REAL(mkdir)(path, mode);
}

static DIR *real_open_folder(const char *path)
{
	return SYSTEM_REAL(opendir)(path);
}

static void *real_map(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	return SYSTEM_REAL(mmap)(at, size, protection, flags, fd, offset);
}

const struct system_calls system_real = {real_open, real_close, real_read, real_write, real_sync, real_resize,
    real_allocate, real_unlink, real_rename, real_make_folder, real_open_folder, real_map};

void system_path(int at, const char *path, char *full, size_t size)
{
	char link[64];
	ssize_t length;

	if (path && *path == '/') {
		(void)snprintf(full, size, "%s", path);
		return;
	}
	(void)snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
	length = readlink(link, full, size - 1);
	length = length > 0 ? length : 0;
	full[length] = 0;
	if (path)
		(void)snprintf(full + length, size - (size_t)length, "/%s", path);
}

/* ---- In front of the C library's */

static int fails(enum call call, int at, const char *path)
{
	return system_policy.fails && system_policy.fails(call, at, path);
}

/* The policy plays the call, or lets it fail, or lets it be. */
#define PLAY(call, failed, kind, at, path, ...)                                                                        \
	(system_policy.plays.call   ? system_policy.plays.call(__VA_ARGS__)                                            \
	    : fails(kind, at, path) ? (failed)                                                                         \
	                            : system_real.call(__VA_ARGS__))

static int open_at(int at, const char *path, int flags, va_list more)
{
	mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;

	return PLAY(open, -1, flags & O_CREAT ? CALL_OPEN : CALL_LOOK, at, path, at, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list more;

	va_start(more, flags);
	int fd = open_at(AT_FDCWD, path, flags, more);
	va_end(more);
	return fd;
}

int openat(int at, const char *path, int flags, ...)
{
	va_list more;

	va_start(more, flags);
	int fd = open_at(at, path, flags, more);
	va_end(more);
	return fd;
}

SYSTEM_ALSO(open, open64);
SYSTEM_ALSO(openat, openat64);

int close(int fd)
{
	return system_policy.plays.close ? system_policy.plays.close(fd) : real_close(fd);
}

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
	return PLAY(read, -1, CALL_READ, fd, NULL, fd, data, size, offset);
}

ssize_t read(int fd, void *data, size_t size)
{
	return pread(fd, data, size, SYSTEM_HERE);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
	return PLAY(write, -1, CALL_WRITE, fd, NULL, fd, parts, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return pwritev(fd, parts, count, SYSTEM_HERE);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	return pwritev(fd, &(struct iovec){(void *)(uintptr_t)data, size}, 1, offset);
}

ssize_t write(int fd, const void *data, size_t size)
{
	return pwrite(fd, data, size, SYSTEM_HERE);
}

SYSTEM_ALSO(pread, pread64);
SYSTEM_ALSO(pwrite, pwrite64);
SYSTEM_ALSO(pwritev, pwritev64);

int fsync(int fd)
{
	return PLAY(sync, -1, CALL_SYNC, fd, NULL, fd);
}

int ftruncate(int fd, off_t size)
{
	return PLAY(resize, -1, CALL_SIZE, fd, NULL, fd, size);
}

int fallocate(int fd, int mode, off_t offset, off_t size)
{
	return PLAY(allocate, -1, CALL_SIZE, fd, NULL, fd, mode, offset, size);
}

int posix_fallocate(int fd, off_t offset, off_t size)
{
	return fallocate(fd, 0, offset, size) ? errno : 0;
}

SYSTEM_ALSO(fsync, fdatasync);
SYSTEM_ALSO(ftruncate, ftruncate64);
SYSTEM_ALSO(fallocate, fallocate64);
SYSTEM_ALSO(posix_fallocate, posix_fallocate64);

int unlinkat(int at, const char *path, int flags)
{
	return PLAY(unlink, -1, CALL_UNLINK, at, path, at, path, flags);
}

int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	return PLAY(rename, -1, CALL_RENAME, from_at, from, from_at, from, to_at, to);
}

int rename(const char *from, const char *to)
{
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int mkdir(const char *path, mode_t mode)
{
	return PLAY(make_folder, -1, CALL_OPEN, AT_FDCWD, path, path, mode);
}

DIR *opendir(const char *path)
{
	return PLAY(open_folder, NULL, CALL_LOOK, AT_FDCWD, path, path);
}

int statvfs(const char *path, struct statvfs *status)
{
	return fails(CALL_LOOK, AT_FDCWD, path) ? -1 : SYSTEM_REAL(statvfs)(path, status);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (fd < 0)
		return real_map(at, size, protection, flags, fd, offset);
	return PLAY(map, MAP_FAILED, CALL_LOOK, fd, NULL, at, size, protection, flags, fd, offset);
}

SYSTEM_ALSO(mmap, mmap64);
