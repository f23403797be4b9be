/* Copies the files of a store while a server writes to them. */

#include "lib/jobs/store/copy.h"
#include "lib/base/system.h"
#include "lib/journal/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/jobs/store/files.h"
#include "lib/jobs/store/image.h"
#include "lib/jobs/store/salvage.h"
#include "weekwheel/error.h"

enum { TRIES = 20, LOOKS = 2, PIECE = 1 << 20, FILES_MAX = 256, SALT_AT = 16, SALT_SIZE = 8, PAGE = 4096 };

struct copy {
	const char *path;
	int from; /* folders: this one is at path */
	int to;
	unsigned char *piece;
};

/* ---- Files */

typedef int copy_fn(const struct copy *copy, int in, int out);

static int write_at(int fd, const unsigned char *bytes, size_t size, off_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t put = pwrite(fd, bytes + done, size - done, at + (off_t)done);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? error_of_errno(errno) : WW_EFULL;
		done += (size_t)put;
	}
	return WW_OK;
}

static int copy_first(const struct copy *copy, int in, int out, uint64_t size)
{
	uint64_t at = 0;
	ssize_t got;

	while ((got = read(in, copy->piece, size - at < PIECE ? size - at : PIECE)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_of_errno(errno);
		int error = write_at(out, copy->piece, (size_t)got, (off_t)at);
		if (error)
			return error;
		at += (uint64_t)got;
	}
	return fsync(out) ? error_of_errno(errno) : WW_OK;
}

/* Copy what the file has now. */
static int copy_bytes(const struct copy *copy, int in, int out)
{
	return copy_first(copy, in, out, UINT64_MAX);
}

/*
 * Copy the log up to its last commit. Behind it the server writes over what a former log has left: if it overtook the
 * copy, frames would be missing between others. Of a damaged log all is copied, for check_copy to find.
 */
static int copy_log(const struct copy *copy, int in, int out)
{
	struct pages_image image;
	int error = ww_image_open(&image, copy->path, NULL, NULL);
	uint64_t size = image.problems ? UINT64_MAX : image.log_size;

	if (error)
		return error;
	ww_image_close(&image);
	return copy_first(copy, in, out, size);
}

/* A page as it was at one moment: it is read again until nothing has changed. Returns its bytes, or an error. */
static int read_page(const struct copy *copy, int in, off_t at)
{
	unsigned char *again = copy->piece + PAGE;
	ssize_t got, more;

	do {
		got = pread(in, copy->piece, PAGE, at);
		more = pread(in, again, PAGE, at);
		if (got < 0 || more < 0)
			return error_of_errno(errno);
	} while (got != more || memcmp(copy->piece, again, (size_t)got) != 0);
	return (int)got;
}

/*
 * Copy a file that grows from its end to its beginning. What was written behind a page that was read before is there:
 * nothing is missing between two records.
 */
static int copy_back(const struct copy *copy, int in, int out)
{
	static const unsigned char zeros[PAGE];
	struct stat status;

	if (fstat(in, &status) || ftruncate(out, status.st_size))
		return error_of_errno(errno);
	for (off_t at = (status.st_size + PAGE - 1) / PAGE * PAGE - PAGE; at >= 0; at -= PAGE) {
		int got = read_page(copy, in, at);
		if (got < 0)
			return got;
		int error =
		    memcmp(copy->piece, zeros, (size_t)got) != 0 ? write_at(out, copy->piece, (size_t)got, at) : WW_OK;
		if (error)
			return error;
	}
	return fsync(out) ? error_of_errno(errno) : WW_OK;
}

/* A file that is missing is left out. */
static int copy_file(const struct copy *copy, const char *name, copy_fn *bytes)
{
	int in = open_plain(copy->from, name, O_RDONLY);
	int error = WW_OK;
	int out;

	if (in < 0)
		return errno == ENOENT ? WW_OK : error_of_errno(errno);
	out = openat(copy->to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		error = error_of_errno(errno);
	else
		error = bytes(copy, in, out);
	if (out >= 0)
		close(out);
	close(in);
	return error;
}

/* The part that differs between two logs. A missing or empty log has zeros. */
static int read_salt(const struct copy *copy, unsigned char salt[SALT_SIZE])
{
	int fd = open_plain(copy->from, "index.db-wal", O_RDONLY);
	int error = WW_OK;

	memset(salt, 0, SALT_SIZE);
	if (fd < 0)
		return errno == ENOENT ? WW_OK : error_of_errno(errno);
	if (pread(fd, salt, SALT_SIZE, SALT_AT) < 0)
		error = error_of_errno(errno);
	close(fd);
	return error;
}

/* ---- The journal */

static int copy_numbered(const struct copy *copy, uint64_t number)
{
	char name[64];

	(void)snprintf(name, sizeof name, "journal.%" PRIu64, number);
	(void)unlinkat(copy->to, name, 0);
	return copy_file(copy, name, copy_back);
}

/* When another file has been made meanwhile, the one before it has got its end only then: it is copied again. */
static int copy_journal(const struct copy *copy)
{
	uint64_t numbers[FILES_MAX];
	uint64_t last = 0;
	int error = WW_OK;

	while (!error) {
		int count = ww_journal_numbers(copy->from, ".", numbers, FILES_MAX);
		if (count <= 0 || numbers[count - 1] == last)
			return count < 0 ? count : WW_OK;
		for (int i = 0; i < count && !error; i++)
			if (numbers[i] >= last)
				error = copy_numbered(copy, numbers[i]);
		last = numbers[count - 1];
	}
	return error;
}

/* ---- All of it */

/* Returns 1 if it is a store at one moment, 0 if it has to begin again, or an error. */
static int copy_once(const struct copy *copy)
{
	uint64_t before[FILES_MAX], after[FILES_MAX];
	unsigned char salt[SALT_SIZE], salt_after[SALT_SIZE];
	int count = ww_journal_numbers(copy->from, ".", before, FILES_MAX);
	int error = count < 0 ? count : read_salt(copy, salt);

	if (!error)
		error = copy_file(copy, "index.db", copy_bytes);
	if (!error)
		error = copy_file(copy, "index.db-wal", copy_log);
	if (!error)
		error = read_salt(copy, salt_after);
	if (!error && memcmp(salt, salt_after, SALT_SIZE) != 0)
		return 0;
	if (!error)
		error = copy_journal(copy);
	if (error)
		return error;
	/* Files are cut in order. If the first is there, all of them were. */
	int count_after = ww_journal_numbers(copy->from, ".", after, FILES_MAX);
	if (count_after < 0)
		return count_after;
	return (count > 0) == (count_after > 0) && (!count || before[0] == after[0]);
}

/* Remove what was copied. */
static void empty(int fd)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = again < 0 ? NULL : fdopendir(again);
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(fd, entry->d_name, 0);
	if (folder)
		closedir(folder);
	else if (again >= 0)
		close(again);
}

static int check_empty(int fd)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = again < 0 ? NULL : fdopendir(again);
	const struct dirent *entry;
	int others = 0;

	while (folder && (entry = readdir(folder)))
		others += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	int error = !folder ? error_of_errno(errno) : others ? WW_EINUSE : WW_OK;
	if (folder)
		closedir(folder);
	else if (again >= 0)
		close(again);
	return error;
}

static int copy_again(const struct copy *copy)
{
	const struct timespec pause = {0, 20000000};
	int result = 0;

	for (int i = 0; i < TRIES && !result; i++) {
		if (i)
			(void)nanosleep(&pause, NULL);
		empty(copy->to);
		result = copy_once(copy);
	}
	return result > 0 ? WW_OK : result ? result : WW_EAGAIN;
}

static int sync_names(int to)
{
	int parent = openat(to, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int failed = fsync(to) || parent < 0 || fsync(parent);
	int error = errno;

	if (parent >= 0)
		close(parent);
	return failed ? error_of_errno(error) : WW_OK;
}

static int copy_folders(struct copy *copy)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
	int error;

	if (faccessat(copy->from, "index.db", F_OK, 0))
		return WW_EDENIED;
	error = check_empty(copy->to);
	if (error)
		return error;
	/* Without it the copy may have to begin again more often. */
	(void)fcntl(copy->from, F_OFD_SETLK, &lock);
	copy->piece = malloc(PIECE);
	if (!copy->piece)
		return WW_ENOMEM;
	error = copy_again(copy);
	if (!error)
		error = sync_names(copy->to);
	if (error)
		empty(copy->to);
	free(copy->piece);
	return error;
}

/* Whether a folder is the other one, or lies in it: the copy would be copied. */
static int check_outside(int folder, int other)
{
	int at = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat status, above, forbidden;
	int error = at < 0 || fstat(other, &forbidden) || fstat(at, &above) ? error_of_errno(errno) : WW_OK;

	while (!error) {
		status = above;
		if (status.st_dev == forbidden.st_dev && status.st_ino == forbidden.st_ino) {
			error = WW_EINVAL;
			break;
		}
		int parent = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = parent;
		if (at < 0 || fstat(at, &above))
			error = error_of_errno(errno);
		else if (above.st_dev == status.st_dev && above.st_ino == status.st_ino)
			break;
	}
	if (at >= 0)
		close(at);
	return error;
}

/*
 * Damage in the original is also in the copy, and is not the copy's fault. It counts only if a second copy has it,
 * too: a server may have zeroed the end of its journal between two pages of the first.
 */
static int copy_whole(struct copy *copy, const char *to)
{
	int problems = 1;
	int error = WW_OK;

	for (int looks = 0; looks < LOOKS && problems > 0; looks++) {
		error = copy_folders(copy);
		if (error)
			break;
		problems = ww_salvage_examine(to, NULL, NULL);
		if (problems)
			empty(copy->to);
	}
	return error ? error : problems > 0 ? WW_ECORRUPT : problems;
}

int ww_store_copy(const char *from, const char *to)
{
	struct copy copy = {.path = from, .from = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .to = -1};
	int made = 0;
	int error = copy.from < 0 ? error_of_errno(errno) : WW_OK;

	if (!error && mkdir(to, 0700) == 0)
		made = 1;
	else if (!error && errno != EEXIST)
		error = error_of_errno(errno);
	if (!error) {
		copy.to = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = copy.to < 0 ? error_of_errno(errno) : check_outside(copy.to, copy.from);
	}
	if (!error)
		error = copy_whole(&copy, to);
	if (copy.from >= 0)
		close(copy.from);
	if (copy.to >= 0)
		close(copy.to);
	if (error && made)
		(void)rmdir(to);
	return error;
}
