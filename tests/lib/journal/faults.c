/* Calls on files that fail when told to. */
#include "tests/lib/journal/faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

struct fault_plan fault_plan;

void fault_arm(unsigned which, const char *file, unsigned first, unsigned times, int error)
{
	fault_disarm();
	fault_plan.file = file;
	fault_plan.calls = 0;
	fault_plan.failed = 0;
	fault_plan.times = times;
	fault_plan.error = error;
	fault_plan.first = first;
	fault_plan.which = which;
}

void fault_disarm(void)
{
	fault_plan.which = 0;
}

static int fails_at(enum fault_call which, const char *path)
{
	unsigned call;

	if (!(fault_plan.which & which) || (fault_plan.file && !strstr(path, fault_plan.file)))
		return 0;
	call = ++fault_plan.calls;
	if (!fault_plan.first || call < fault_plan.first || call - fault_plan.first >= fault_plan.times)
		return 0;
	fault_plan.failed++;
	errno = fault_plan.error;
	return 1;
}

/* Only calls on files and folders of a test. */
static int fails_on(enum fault_call which, const char *path)
{
	return strncmp(path, "/tmp/", 5) == 0 && fails_at(which, path);
}

static int fails(enum fault_call which, int fd)
{
	char link[64];
	char path[4096];
	ssize_t size;

	if (!(fault_plan.which & which))
		return 0;
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	size = readlink(link, path, sizeof path - 1);
	path[size > 0 ? size : 0] = 0;
	return fails_on(which, path);
}

int fault_memory(void)
{
	return fails_at(FAULT_MEMORY, "");
}

/* The C library's function that this one replaces. */
#define REAL(name) (*(__typeof__(&name) *)&(void *){dlsym(RTLD_NEXT, #name)})

ssize_t write(int fd, const void *data, size_t size)
{
	if (!fails(FAULT_WRITE, fd))
		return REAL(write)(fd, data, size);
	return fault_plan.error ? -1 : REAL(write)(fd, data, size / 2);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	if (!fails(FAULT_WRITE, fd))
		return REAL(pwrite)(fd, data, size, offset);
	return fault_plan.error ? -1 : REAL(pwrite)(fd, data, size / 2, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
	if (!fails(FAULT_WRITE, fd))
		return REAL(pwrite64)(fd, data, size, offset);
	return fault_plan.error ? -1 : REAL(pwrite64)(fd, data, size / 2, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
	if (!fails(FAULT_WRITE, fd))
		return REAL(pwritev)(fd, parts, count, offset);
	return fault_plan.error ? -1 : REAL(pwrite)(fd, parts[0].iov_base, parts[0].iov_len / 2, offset);
}

ssize_t read(int fd, void *data, size_t size)
{
	return fails(FAULT_READ, fd) ? -1 : REAL(read)(fd, data, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
	return fails(FAULT_READ, fd) ? -1 : REAL(pread)(fd, data, size, offset);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t offset)
{
	return fails(FAULT_READ, fd) ? -1 : REAL(pread64)(fd, data, size, offset);
}

int fsync(int fd)
{
	return fails(FAULT_SYNC, fd) ? -1 : fault_plan.quick ? 0 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
	return fails(FAULT_SYNC, fd) ? -1 : fault_plan.quick ? 0 : REAL(fdatasync)(fd);
}

int ftruncate(int fd, off_t size)
{
	return fails(FAULT_SIZE, fd) ? -1 : REAL(ftruncate)(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
	return fails(FAULT_SIZE, fd) ? -1 : REAL(ftruncate64)(fd, size);
}

int posix_fallocate(int fd, off_t offset, off_t size)
{
	return fails(FAULT_SIZE, fd) ? fault_plan.error : REAL(posix_fallocate)(fd, offset, size);
}

int unlink(const char *path)
{
	return fails_on(FAULT_UNLINK, path) ? -1 : REAL(unlink)(path);
}

int unlinkat(int folder, const char *path, int flags)
{
	return fails(FAULT_UNLINK, folder) ? -1 : REAL(unlinkat)(folder, path, flags);
}

int rmdir(const char *path)
{
	return fails_on(FAULT_UNLINK, path) ? -1 : REAL(rmdir)(path);
}

int rename(const char *from, const char *to)
{
	return fails_on(FAULT_RENAME, from) ? -1 : REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode)
{
	return fails_on(FAULT_OPEN, path) ? -1 : REAL(mkdir)(path, mode);
}

DIR *opendir(const char *path)
{
	return fails_on(FAULT_LOOK, path) ? NULL : REAL(opendir)(path);
}

int statvfs(const char *path, struct statvfs *status)
{
	return fails_on(FAULT_LOOK, path) ? -1 : REAL(statvfs)(path, status);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
	return fd >= 0 && fails(FAULT_LOOK, fd) ? MAP_FAILED : REAL(mmap64)(at, size, protection, flags, fd, offset);
}

static enum fault_call kind_of_open(int flags)
{
	return flags & O_CREAT ? FAULT_OPEN : FAULT_LOOK;
}

int open(const char *path, int flags, ...)
{
	va_list more;

	va_start(more, flags);
	mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	return fails_on(kind_of_open(flags), path) ? -1 : REAL(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list more;

	va_start(more, flags);
	mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	return fails_on(kind_of_open(flags), path) ? -1 : REAL(open64)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	va_list more;

	va_start(more, flags);
	mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	return fails(kind_of_open(flags), folder) ? -1 : REAL(openat)(folder, path, flags, mode);
}
