/* The journal: appending, syncing, cutting, and reading it again. */

#include "lib/jobs/store/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/crc32c.h"
#include "weekwheel/error.h"

#define MAGIC UINT64_C(0x314e52554f4a5757) /* "WWJOURN1" */
/* Space that a file gets in advance: a sync then has no size to write. */
#define PREPARED (1 << 20)
/* A record is at most this: bounds what damage can make a reader allocate. */
#define RECORD_MAX (UINT32_C(1) << 31)

struct journal_head {
	uint64_t magic;
	uint64_t number;
	uint64_t first; /* number of its first record */
	uint32_t unused;
	uint32_t sum; /* of the bytes before it */
};

struct journal_record {
	uint32_t size; /* of the bytes behind this */
	uint32_t sum;  /* of number and bytes */
	uint64_t number;
};

static int error_of(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return WW_EFULL;
	case EACCES:
	case EPERM:
	case EROFS:
		return WW_EDENIED;
	case ENOMEM:
		return WW_ENOMEM;
	default:
		return WW_EIO;
	}
}

static void path_of(const struct journal *journal, uint64_t number, char *path, size_t size)
{
	(void)snprintf(path, size, "%s/journal.%" PRIu64, journal->folder, number);
}

static int sync_file(const struct journal *journal, int fd, const char *path)
{
	if (fsync(fd) == 0)
		return WW_OK;
	/* Nothing was lost if there was no room for it: it was never needed. */
	if (error_of(errno) == WW_EFULL)
		return WW_EFULL;
	return ww_store_fault_sync(journal->fault, path, errno);
}

static int sync_folder(const struct journal *journal)
{
	int fd = open(journal->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int error = fd < 0 ? error_of(errno) : sync_file(journal, fd, journal->folder);

	if (fd >= 0)
		close(fd);
	return error;
}

/* ---- Files */

static uint32_t head_sum(const struct journal_head *head)
{
	return ww_crc32c(0, head, offsetof(struct journal_head, sum));
}

/* Make the next file, with a stable name. */
static int make_file(struct journal *journal, uint64_t number)
{
	struct journal_head head = {.magic = MAGIC, .number = number, .first = journal->record};
	char path[4096];
	int error = WW_OK;
	int fd;

	pthread_mutex_lock(&journal->lock);
	int full = journal->files == JOURNAL_FILES;
	pthread_mutex_unlock(&journal->lock);
	if (full)
		return WW_EFULL;
	path_of(journal, number, path, sizeof path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_of(errno);
	head.sum = head_sum(&head);
	errno = posix_fallocate(fd, 0, PREPARED);
	if (errno || pwrite(fd, &head, sizeof head, 0) != sizeof head)
		error = error_of(errno);
	if (!error)
		error = sync_file(journal, fd, path);
	if (!error)
		error = sync_folder(journal);
	if (error) {
		close(fd);
		unlink(path);
		return error;
	}
	pthread_mutex_lock(&journal->lock);
	journal->file[journal->files++] = (struct journal_file){.number = number, .fd = fd};
	journal->last = number;
	journal->offset = sizeof head;
	pthread_mutex_unlock(&journal->lock);
	return WW_OK;
}

uint64_t ww_journal_end(const struct journal *journal, uint64_t *record)
{
	*record = journal->record;
	return journal->last;
}

int ww_journal_turn(struct journal *journal)
{
	return make_file(journal, journal->last + 1);
}

int ww_journal_cut(struct journal *journal, uint64_t number)
{
	char path[4096];
	uint32_t gone = 0;

	pthread_mutex_lock(&journal->syncing);
	pthread_mutex_lock(&journal->lock);
	while (gone + 1 < journal->files && journal->file[gone].number <= number) {
		path_of(journal, journal->file[gone].number, path, sizeof path);
		close(journal->file[gone].fd);
		unlink(path);
		gone++;
	}
	journal->files -= gone;
	memmove(journal->file, journal->file + gone, journal->files * sizeof journal->file[0]);
	pthread_mutex_unlock(&journal->lock);
	pthread_mutex_unlock(&journal->syncing);
	return WW_OK;
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

static int append(struct journal *journal, const void *bytes, size_t size)
{
	struct journal_file *file = &journal->file[journal->files - 1];
	struct journal_record record = {.size = (uint32_t)size, .number = journal->record};
	struct iovec parts[] = {{&record, sizeof record}, {(void *)(uintptr_t)bytes, size}};
	ssize_t written;

	if (ww_store_fault_is_final(journal->fault))
		return WW_EIO;
	if (size >= RECORD_MAX)
		return WW_EFULL;
	record.sum = ww_crc32c(ww_crc32c(0, &record.number, sizeof record.number), bytes, size);
	written = pwritev(file->fd, parts, 2, (off_t)journal->offset);
	if (written != (ssize_t)(sizeof record + size))
		return written < 0 ? error_of(errno) : WW_EFULL;
	journal->offset += (uint64_t)written;
	journal->record++;
	file->dirty = 1;
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
	char path[4096];
	uint32_t count = 0;

	pthread_mutex_lock(&journal->syncing);
	pthread_mutex_lock(&journal->lock);
	for (uint32_t i = 0; i < journal->files; i++) {
		file = &journal->file[i];
		if (file->dirty) {
			file->dirty = 0;
			dirty[count++] = *file;
		}
	}
	pthread_mutex_unlock(&journal->lock);
	for (uint32_t i = 0; i < count && !ww_store_fault_is_final(journal->fault); i++)
		if (fdatasync(dirty[i].fd)) {
			int error = errno;
			path_of(journal, dirty[i].number, path, sizeof path);
			(void)ww_store_fault_sync(journal->fault, path, error);
		}
	pthread_mutex_unlock(&journal->syncing);
	return ww_store_fault_is_final(journal->fault) ? WW_EIO : WW_OK;
}

/* ---- Reading */

/* Read exactly so many bytes. Returns 0 at the end of the file, and an error otherwise. */
static int read_exactly(int fd, void *to, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t got = pread(fd, to, size, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? error_of(errno) : 0;
		to = (char *)to + got;
		size -= (size_t)got;
		offset += (uint64_t)got;
	}
	return 1;
}

/* Read the records of a file. Returns 1 when it ended at a record that is not there. */
static int read_records(struct journal *journal, int fd, journal_read_fn *read, void *context)
{
	uint64_t offset = sizeof(struct journal_head);
	unsigned char *bytes = NULL;
	struct stat status;
	struct journal_record record;
	int result;

	if (fstat(fd, &status))
		return error_of(errno);
	while ((result = read_exactly(fd, &record, sizeof record, offset)) == 1) {
		unsigned char *more;
		offset += sizeof record;
		if (record.number != journal->record || offset + record.size > (uint64_t)status.st_size)
			break;
		more = realloc(bytes, record.size ? record.size : 1);
		if (!more) {
			result = WW_ENOMEM;
			break;
		}
		bytes = more;
		result = read_exactly(fd, bytes, record.size, offset);
		if (result != 1 ||
		    ww_crc32c(ww_crc32c(0, &record.number, sizeof record.number), bytes, record.size) != record.sum)
			break;
		offset += record.size;
		result = read(context, bytes, record.size);
		if (result < 0)
			break;
		journal->record++;
	}
	free(bytes);
	return result < 0 ? result : 1;
}

static int read_head(int fd, uint64_t number, struct journal_head *head)
{
	int result = read_exactly(fd, head, sizeof *head, 0);

	if (result < 0)
		return result;
	return result == 1 && head->magic == MAGIC && head->number == number && head->sum == head_sum(head);
}

/*
 * Read a file. Returns 1 if it continues what was read before, 0 if it does not: a power failure took records between.
 */
static int read_file(struct journal *journal, uint64_t number, journal_read_fn *read, void *context)
{
	char path[4096];
	struct journal_head head;
	int result;
	int fd;

	path_of(journal, number, path, sizeof path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_of(errno);
	result = read_head(fd, number, &head);
	if (result == 1 && head.first != journal->record)
		result = 0;
	if (result == 1)
		result = read_records(journal, fd, read, context);
	close(fd);
	return result;
}

static int by_number(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return (one > other) - (one < other);
}

/* The numbers of the files that exist, in order. Returns how many, or an error. */
static int list_files(const struct journal *journal, uint64_t *numbers)
{
	DIR *folder = opendir(journal->folder);
	const struct dirent *entry;
	int count = 0;

	if (!folder)
		return error_of(errno);
	while ((entry = readdir(folder))) {
		char end;
		uint64_t number;
		if (sscanf(entry->d_name, "journal.%" SCNu64 "%c", &number, &end) != 1)
			continue;
		if (count == JOURNAL_FILES - 1) {
			closedir(folder);
			return WW_ECORRUPT;
		}
		numbers[count++] = number;
	}
	closedir(folder);
	qsort(numbers, (size_t)count, sizeof *numbers, by_number);
	return count;
}

int ww_journal_open(struct journal *journal, const char *folder, struct store_fault *fault, uint64_t cut,
    uint64_t record, journal_read_fn *read, void *context)
{
	uint64_t numbers[JOURNAL_FILES];
	int result = 1;
	int count;

	*journal = (struct journal){.folder = folder, .last = cut, .record = record, .fault = fault};
	pthread_mutex_init(&journal->syncing, NULL);
	pthread_mutex_init(&journal->lock, NULL);
	count = list_files(journal, numbers);
	for (int i = 0; i < count && result >= 0; i++) {
		if (numbers[i] > cut && result == 1)
			result = read_file(journal, numbers[i], read, context);
		if (numbers[i] > journal->last)
			journal->last = numbers[i];
	}
	return count < 0 ? count : result < 0 ? result : WW_OK;
}

int ww_journal_start(struct journal *journal)
{
	uint64_t numbers[JOURNAL_FILES];
	char path[4096];
	int count = list_files(journal, numbers);
	int error = count < 0 ? count : ww_journal_turn(journal);

	for (int i = 0; i < count && !error; i++) {
		path_of(journal, numbers[i], path, sizeof path);
		if (unlink(path))
			error = error_of(errno);
	}
	return error;
}

int ww_journal_forget(struct journal *journal)
{
	uint64_t numbers[JOURNAL_FILES];
	char path[4096];
	int count = list_files(journal, numbers);

	for (int i = 0; i < count; i++) {
		path_of(journal, numbers[i], path, sizeof path);
		(void)unlink(path);
	}
	return count < 0 ? count : WW_OK;
}

void ww_journal_close(struct journal *journal)
{
	for (uint32_t i = 0; i < journal->files; i++)
		close(journal->file[i].fd);
	journal->files = 0;
	pthread_mutex_destroy(&journal->lock);
	pthread_mutex_destroy(&journal->syncing);
}
