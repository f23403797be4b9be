/* The journal: appending, syncing and cutting. */

#include "lib/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/system.h"
#include "lib/base/time.h"
#include "lib/journal/format.h"
#include "lib/journal/names.h"
#include "weekwheel/error.h"

/* How far ahead the file is filled with zeros. */
enum { FILLED = 128 << 10 };
/* The most files: those that may exist at a time, and those that crashes leave. */
enum { FILES_MOST = 2 * JOURNAL_FILES };

static void path_of(const struct journal *journal, uint64_t number, char *path, size_t size)
{
	(void)snprintf(path, size, "%s/journal.%" PRIu64, journal->folder, number);
}

static int sync_file(const struct journal *journal, int fd, const char *path)
{
	if (fsync(fd) == 0)
		return WW_OK;
	/* Nothing was lost if there was no room for it: it was never needed. */
	if (error_of_errno(errno) == WW_EFULL)
		return WW_EFULL;
	return ww_fault_sync(journal->fault, path, errno);
}

/* What a failed sync of records has lost is not known: it is final. */
static int sync_records(const struct journal *journal, const struct journal_file *file)
{
	char path[4096];

	if (fdatasync(file->fd) == 0)
		return WW_OK;
	int error = errno;
	path_of(journal, file->number, path, sizeof path);
	return ww_fault_sync(journal->fault, path, error);
}

static int sync_folder(const struct journal *journal)
{
	int fd = open(journal->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int error = fd < 0 ? error_of_errno(errno) : sync_file(journal, fd, journal->folder);

	if (fd >= 0)
		close(fd);
	return error;
}

/* Write all of it, or fail. A short write is how a disk becomes full: the system has no error for it. */
static int write_all(int fd, const void *bytes, size_t size, uint64_t at)
{
	ssize_t written = pwrite(fd, bytes, size, (off_t)at);

	if (written < 0)
		return error_of_errno(errno);
	return (size_t)written == size ? WW_OK : WW_EFULL;
}

static int write_zeros(int fd, uint64_t at, uint64_t size)
{
	/*
	 * One page at a time: the system later writes back whole what was written whole. Each write ends with its
	 * page, so that a failure of the next one leaves no sector half zeroed.
	 */
	static const char zeros[4096];
	int error = WW_OK;

	for (uint64_t part; size && !error; size -= part, at += part) {
		part = sizeof zeros - at % sizeof zeros;
		if (part > size)
			part = size;
		error = write_all(fd, zeros, part, at);
	}
	return error;
}

/* Have space, so that to be out of it leaves nothing that is half written. */
static int allocate(int fd, uint64_t at, uint64_t size)
{
	int error;

	do
		error = posix_fallocate(fd, (off_t)at, (off_t)size);
	while (error == EINTR);
	return error ? error_of_errno(error) : WW_OK;
}

/* ---- Files */

static uint32_t unsynced(const struct journal *journal)
{
	uint64_t count = journal->record - journal->synced;

	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static struct journal_head head_of(const struct journal *journal, uint64_t number, int is_last)
{
	struct journal_head head = {.magic = JOURNAL_MAGIC | (uint64_t)JOURNAL_VERSION << 56,
	    .number = number,
	    .first = journal->record,
	    .unsynced = unsynced(journal),
	    .prepared = is_last ? (uint32_t)sizeof head : JOURNAL_PREPARED,
	    .salt = (uint32_t)(time_now(CLOCK_REALTIME) * UINT64_C(0x9e3779b97f4a7c15) >> 32),
	    .flags = journal->kind | (is_last ? JOURNAL_CLOSED : 0)};

	head.salt_again = head.salt;
	head.sum = journal_head_sum(&head);
	return head;
}

/*
 * Give the file zeros ahead of the records. What is only allocated would be marked as written with each sync, and what
 * lies beyond the end makes the file longer with each: a second write of the device. Failing is harmless.
 */
static int fill(int fd, uint64_t from)
{
	return write_zeros(fd, from, FILLED);
}

/* Write a file that has no name yet which counts, and give it its name when it is stable. */
static int write_file(const struct journal *journal, int fd, const char *unnamed, const struct journal_head *head)
{
	char path[4096];

	int error = allocate(fd, 0, head->prepared);
	if (!error && journal->fills)
		error = fill(fd, 0);
	if (!error)
		error = write_all(fd, head, sizeof *head, 0);
	if (!error)
		error = sync_file(journal, fd, unnamed);
	if (error)
		return error;
	path_of(journal, head->number, path, sizeof path);
	if (rename(unnamed, path))
		return error_of_errno(errno);
	error = sync_folder(journal);
	if (error)
		(void)unlink(path);
	return error;
}

static int make_file(struct journal *journal, uint64_t number, int is_last)
{
	struct journal_head head = head_of(journal, number, is_last);
	char unnamed[4096];
	int error;
	int fd;

	pthread_mutex_lock(&journal->lock);
	int full = journal->files == JOURNAL_FILES;
	pthread_mutex_unlock(&journal->lock);
	if (full)
		return WW_EFULL;
	(void)snprintf(unnamed, sizeof unnamed, "%s/journal.new", journal->folder);
	/* A crash may have left one. */
	(void)unlink(unnamed);
	fd = open(unnamed, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_of_errno(errno);
	error = write_file(journal, fd, unnamed, &head);
	if (error) {
		close(fd);
		(void)unlink(unnamed);
		return error;
	}
	pthread_mutex_lock(&journal->lock);
	journal->file[journal->files++] = (struct journal_file){.number = number, .fd = fd, .prepared = head.prepared};
	journal->last = number;
	journal->offset = sizeof head;
	journal->first = head.first;
	journal->filled = FILLED;
	journal->salt = head.salt;
	pthread_mutex_unlock(&journal->lock);
	return WW_OK;
}

void ww_journal_open(
    struct journal *journal, const char *folder, struct journal_fault *fault, uint64_t last, uint64_t record)
{
	*journal = (struct journal){.folder = folder, .last = last, .record = record, .synced = record, .fault = fault};
	pthread_mutex_init(&journal->syncing, NULL);
	pthread_mutex_init(&journal->lock, NULL);
}

uint64_t ww_journal_end(const struct journal *journal, uint64_t *record)
{
	*record = journal->record;
	return journal->last;
}

/* Say in a file that another one follows. Without it nothing is wrong. */
static int write_end(const struct journal *journal, int fd, uint64_t offset, uint32_t salt)
{
	struct journal_record end = {.sum = salt, .number = journal->record, .unsynced = unsynced(journal)};
	unsigned char bytes[sizeof end + 1];

	end.head_sum = journal_record_sum(salt, &end);
	memcpy(bytes, &end, sizeof end);
	bytes[sizeof end] = JOURNAL_LAST;
	return write_all(fd, bytes, sizeof bytes, offset);
}

/* Of a file that a killed process has left, nothing else is synced any more. */
static void end_left(const struct journal *journal, uint64_t offset, uint32_t salt)
{
	char path[4096];
	int fd;

	path_of(journal, journal->last - 1, path, sizeof path);
	fd = open_plain(AT_FDCWD, path, O_WRONLY);
	if (fd < 0)
		return;
	if (write_end(journal, fd, offset, salt) == WW_OK)
		(void)fdatasync(fd);
	close(fd);
}

static void end_file(struct journal *journal, uint64_t offset, uint32_t salt)
{
	struct journal_file *file;

	if (journal->files == 1 && offset) {
		end_left(journal, offset, salt);
	} else if (journal->files > 1) {
		file = &journal->file[journal->files - 2];
		file->dirty |= write_end(journal, file->fd, offset, salt) == WW_OK;
	}
}

/*
 * Zero what a failed write may have left, before anything is written over it. The last byte of the head goes first:
 * without it the rest looks torn and not damaged, whatever part of the zeros is written. They are stable before a
 * shorter record can be: behind it, what is left would look like damage.
 */
static int wipe(struct journal *journal)
{
	const struct journal_file *file;

	if (!journal->stained)
		return WW_OK;
	file = &journal->file[journal->files - 1];
	int error = write_zeros(file->fd, journal->offset + sizeof(struct journal_record) - 1, 1);
	if (!error)
		error = write_zeros(file->fd, journal->offset, journal->stained);
	if (!error)
		error = sync_records(journal, file);
	if (!error)
		journal->stained = 0;
	return error;
}

int ww_journal_turn(struct journal *journal, int is_last)
{
	uint64_t offset = journal->offset;
	uint32_t salt = journal->salt;

	pthread_mutex_lock(&journal->lock);
	int error = wipe(journal);
	pthread_mutex_unlock(&journal->lock);
	/* All of a record may be there that the next file does not count. */
	if (error)
		return error;
	error = make_file(journal, journal->last + 1, is_last);
	pthread_mutex_lock(&journal->lock);
	if (!error)
		end_file(journal, offset, salt);
	pthread_mutex_unlock(&journal->lock);
	return error;
}

/* Remove them in order, also those that no process has open: who finds one finds those after it. */
static int remove_files(const struct journal *journal, uint64_t number)
{
	uint64_t found[FILES_MOST];
	int count = ww_journal_numbers(AT_FDCWD, journal->folder, found, FILES_MOST);
	char path[4096];

	for (int i = 0; i < count && found[i] <= number; i++) {
		path_of(journal, found[i], path, sizeof path);
		if (unlink(path))
			return error_of_errno(errno);
	}
	return count < 0 ? count : WW_OK;
}

int ww_journal_cut(struct journal *journal, uint64_t number)
{
	uint32_t gone = 0;

	pthread_mutex_lock(&journal->syncing);
	pthread_mutex_lock(&journal->lock);
	while (gone + 1 < journal->files && journal->file[gone].number <= number)
		close(journal->file[gone++].fd);
	journal->files -= gone;
	memmove(journal->file, journal->file + gone, journal->files * sizeof journal->file[0]);
	pthread_mutex_unlock(&journal->lock);
	pthread_mutex_unlock(&journal->syncing);
	return remove_files(journal, number);
}

uint64_t ww_journal_left(const struct journal *journal)
{
	uint64_t prepared = journal->files > 0 ? journal->file[journal->files - 1].prepared : 0;

	/* Behind a failed write there may be more than zeros, which have to be written first. */
	return prepared > journal->offset && !journal->stained ? prepared - journal->offset : 0;
}

uint64_t ww_journal_space(struct journal *journal)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&journal->lock);
	for (uint32_t i = 0; i < journal->files; i++)
		bytes += journal->file[i].prepared;
	pthread_mutex_unlock(&journal->lock);
	return bytes;
}

uint64_t ww_journal_bytes(struct journal *journal)
{
	uint64_t bytes = 0;
	struct stat status;

	pthread_mutex_lock(&journal->lock);
	for (uint32_t i = 0; i < journal->files; i++)
		if (fstat(journal->file[i].fd, &status) == 0)
			bytes += (uint64_t)status.st_blocks * 512;
	pthread_mutex_unlock(&journal->lock);
	return bytes;
}

/* ---- Appending */

/* Space is taken in pieces before it is written. */
static int prepare(struct journal *journal, uint64_t size)
{
	struct journal_file *file = &journal->file[journal->files - 1];
	uint64_t end = journal_after(journal->offset, 0) + size + sizeof(uint64_t);

	if (end <= file->prepared)
		return WW_OK;
	end = (end + JOURNAL_PREPARED - 1) / JOURNAL_PREPARED * JOURNAL_PREPARED;
	int error = allocate(file->fd, file->prepared, end - file->prepared);
	if (!error)
		file->prepared = end;
	return error;
}

int ww_journal_room(struct journal *journal, uint64_t size)
{
	int error;

	pthread_mutex_lock(&journal->lock);
	error = prepare(journal, size);
	pthread_mutex_unlock(&journal->lock);
	return error;
}

static int append(struct journal *journal, const void *bytes, size_t size)
{
	struct journal_file *file = &journal->file[journal->files - 1];
	struct journal_record record = {
	    .size = (uint32_t)size, .number = journal->record, .unsynced = unsynced(journal)};
	unsigned char last = JOURNAL_LAST;
	struct iovec parts[] = {{&record, sizeof record}, {(void *)(uintptr_t)bytes, size}, {&last, 1}};
	ssize_t written;

	if (ww_fault_is_final(journal->fault))
		return WW_EIO;
	int error = size < JOURNAL_RECORD_MAX ? prepare(journal, size) : WW_EFULL;
	if (!error)
		error = wipe(journal);
	if (error)
		return error;
	record.sum = ww_crc32c(journal->salt, bytes, size);
	record.head_sum = journal_record_sum(journal->salt, &record);
	written = pwritev(file->fd, parts, 3, (off_t)journal->offset);
	if (written != (ssize_t)(sizeof record + size + 1)) {
		error = written < 0 ? error_of_errno(errno) : WW_EFULL;
		/* Also a call that failed may have written. If this fails, the next append tries again. */
		journal->stained = sizeof record + size + 1;
		(void)wipe(journal);
		return error;
	}
	journal->offset = journal_after(journal->offset, record.size);
	journal->record++;
	file->dirty = 1;
	if (journal->fills && journal->offset > journal->filled && fill(file->fd, journal->offset) == WW_OK)
		journal->filled = journal->offset + FILLED;
	return WW_OK;
}

int ww_journal_append(struct journal *journal, const void *bytes, size_t size)
{
	int error;

	pthread_mutex_lock(&journal->lock);
	error = append(journal, bytes, size);
	pthread_mutex_unlock(&journal->lock);
	return error;
}

int ww_journal_sync(struct journal *journal)
{
	struct journal_file dirty[JOURNAL_FILES];
	struct journal_file *file;
	uint32_t count = 0;
	uint64_t record;
	int is_lost;

	pthread_mutex_lock(&journal->syncing);
	pthread_mutex_lock(&journal->lock);
	record = journal->record;
	for (uint32_t i = 0; i < journal->files; i++) {
		file = &journal->file[i];
		if (file->dirty) {
			file->dirty = 0;
			dirty[count++] = *file;
		}
	}
	pthread_mutex_unlock(&journal->lock);
	for (uint32_t i = 0; i < count && !ww_fault_is_final(journal->fault); i++)
		(void)sync_records(journal, &dirty[i]);
	/*
	 * The system reports an error to one sync alone, perhaps to that of a wipe, which notes it before it releases
	 * the lock.
	 */
	pthread_mutex_lock(&journal->lock);
	is_lost = ww_fault_is_final(journal->fault);
	if (!is_lost)
		journal->synced = record;
	pthread_mutex_unlock(&journal->lock);
	pthread_mutex_unlock(&journal->syncing);
	return is_lost ? WW_EIO : WW_OK;
}

void ww_journal_close(struct journal *journal)
{
	for (uint32_t i = 0; i < journal->files; i++)
		close(journal->file[i].fd);
	pthread_mutex_destroy(&journal->lock);
	pthread_mutex_destroy(&journal->syncing);
}
