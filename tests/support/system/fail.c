/* Calls that fail by a plan. Sockets and pipes are left alone. */
#include "tests/support/system/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum how { WORKS, FAILS, FAILS_DONE };

struct fault_plan fault_plan;
static struct fault_plan *plan = &fault_plan;

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("FAULTS");
	int fd = name ? system_real.open(AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0) : -1;
	void *page;

	if (fd < 0)
		return;
	page = system_real.map(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	system_real.close(fd);
	if (page != MAP_FAILED)
		plan = page;
}

void fault_arm(unsigned which, const char *file, unsigned first, unsigned times, int error)
{
	fault_disarm();
	(void)snprintf(plan->file, sizeof plan->file, "%s", file ? file : "");
	plan->first = first;
	plan->times = times;
	plan->error = (unsigned)error;
	plan->calls = 0;
	plan->failed = 0;
	plan->which = which;
}

void fault_disarm(void)
{
	plan->which = 0;
}

/* Count a call, and say whether it works. */
static enum how next(void)
{
	unsigned call = ++plan->calls;
	unsigned first = plan->first;

	if (!first || call < first || call - first >= plan->times)
		return WORKS;
	plan->failed++;
	errno = plan->error ? (int)plan->error : ENOSPC;
	return call - first < plan->done ? FAILS_DONE : FAILS;
}

/* A device. What is not there yet will be a file or a folder. */
static int is_special(int at, const char *path)
{
	struct stat about;
	int before = errno;
	int error = path ? fstatat(at, path, &about, 0) : fstat(at, &about);

	errno = before;
	return error == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

static enum how how_of(enum call call, int at, const char *path)
{
	char full[PATH_MAX];

	if (!(plan->which & call))
		return WORKS;
	system_path(at, path, full, sizeof full);
	if (*full != '/' || strncmp(full, "/proc/", 6) == 0 || !strstr(full, plan->file) || is_special(at, path))
		return WORKS;
	return next();
}

int fault_memory(void)
{
	return plan->which & CALL_MEMORY && next() != WORKS;
}

static int fails(enum call call, int at, const char *path)
{
	return how_of(call, at, path) != WORKS;
}

/* How many bytes a short write writes. */
static size_t split(const struct iovec *parts, size_t size)
{
	size_t at;

	switch ((unsigned)plan->split) {
	case FAULT_HALF:
		at = size / 2;
		break;
	case FAULT_LAST:
		at = size ? size - 1 : 0;
		break;
	case FAULT_AT:
		at = plan->at[plan->failed > 1];
		break;
	default:
		at = parts[0].iov_len / 2;
	}
	return at < size ? at : size;
}

static ssize_t write_short(int fd, const struct iovec *parts, int count, off_t offset)
{
	struct iovec short_parts[IOV_MAX];
	size_t size = 0;
	int used = 0;

	for (int i = 0; i < count; i++)
		size += parts[i].iov_len;
	for (size_t left = split(parts, size); used < count && used < IOV_MAX && left; used++) {
		short_parts[used] = parts[used];
		if (short_parts[used].iov_len > left)
			short_parts[used].iov_len = left;
		left -= short_parts[used].iov_len;
	}
	return used ? system_real.write(fd, short_parts, used, offset) : 0;
}

static ssize_t fail_write(int fd, const struct iovec *parts, int count, off_t offset)
{
	int before = errno;
	enum how how = how_of(CALL_WRITE, fd, NULL);
	ssize_t written;

	if (how == FAILS) {
		if (plan->error)
			return -1;
		/* A short write is no error. */
		errno = before;
		return write_short(fd, parts, count, offset);
	}
	written = system_real.write(fd, parts, count, offset);
	if (how == WORKS)
		return written;
	errno = (int)plan->error;
	return -1;
}

static int fail_sync(int fd)
{
	return fails(CALL_SYNC, fd, NULL) ? -1 : plan->quick ? 0 : system_real.sync(fd);
}

const struct system_policy system_policy = {.plays = {.write = fail_write, .sync = fail_sync}, .fails = fails};
