/* Reading a journal again. */

#include "lib/journal/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/report.h"
#include "lib/base/system.h"
#include "lib/journal/format.h"
#include "lib/journal/names.h"

enum { SECTOR = 512, FILES_MOST = 4096 };

/* A file as a whole in memory. It has some megabytes, or one large job. */
struct replay_file {
	uint64_t number;
	char path[4096];
	unsigned char *bytes;
	size_t size;
	struct journal_head head;
};

/* ---- Problems */

__attribute__((format(printf, 2, 3))) static int damaged(const struct replay *replay, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_message(replay->problem, replay->problem_context, format, arguments);
	va_end(arguments);
	return WW_ECORRUPT;
}

/* ---- Files */

/* Files go while a process writes. */
static int error_of(int error)
{
	return error == ENOENT ? WW_ENOTFOUND : error_of_errno(error);
}

static int read_whole(int fd, struct replay_file *file)
{
	struct stat status;
	size_t have = 0;

	if (fstat(fd, &status))
		return error_of(errno);
	file->size = (size_t)status.st_size;
	file->bytes = malloc(file->size + 1);
	if (!file->bytes)
		return WW_ENOMEM;
	while (have < file->size) {
		ssize_t got = pread(fd, file->bytes + have, file->size - have, (off_t)have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_of(errno);
		if (got == 0)
			break;
		have += (size_t)got;
	}
	file->size = have;
	return WW_OK;
}

static void set_path(const struct replay *replay, uint64_t number, struct replay_file *file)
{
	*file = (struct replay_file){.number = number};
	(void)snprintf(file->path, sizeof file->path, "%s/journal.%" PRIu64, replay->folder, number);
}

static int is_there(const struct replay *replay, uint64_t number)
{
	struct replay_file file;

	set_path(replay, number, &file);
	return access(file.path, F_OK) == 0;
}

/* Read a file, and perhaps do something more with it. */
static int open_file(const struct replay *replay, uint64_t number, struct replay_file *file, int flags,
    int (*also)(int fd, const struct replay_file *file))
{
	int fd;
	int error;

	set_path(replay, number, file);
	fd = open_plain(AT_FDCWD, file->path, flags);
	if (fd < 0)
		return error_of(errno);
	error = read_whole(fd, file);
	if (!error && also)
		error = also(fd, file);
	close(fd);
	return error;
}

/* ---- Records */

static int are_zeros(const unsigned char *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Whether the end of these bytes was never written, or a sector as far as it belongs to them. */
static int is_torn(const struct replay_file *file, size_t at, size_t size)
{
	size_t end = at + size;

	if (end > file->size || file->bytes[end - 1] == 0)
		return 1;
	while (at < end) {
		size_t next = (at / SECTOR + 1) * SECTOR;
		next = next < end ? next : end;
		if (are_zeros(file->bytes + at, next - at))
			return 1;
		at = next;
	}
	return 0;
}

/* Read the head of a record. Returns whether it is whole. */
static int read_head(const struct replay_file *file, size_t at, struct journal_record *record)
{
	if (file->size < sizeof *record || at > file->size - sizeof *record)
		return 0;
	memcpy(record, file->bytes + at, sizeof *record);
	return record->head_sum == journal_record_sum(file->head.salt, record) && record->size < JOURNAL_RECORD_MAX;
}

static int is_whole(const struct replay_file *file, size_t at, const struct journal_record *record)
{
	return record->size < file->size - at - sizeof *record &&
	       file->bytes[at + sizeof *record + record->size] == JOURNAL_LAST &&
	       ww_crc32c(file->head.salt, file->bytes + at + sizeof *record, record->size) == record->sum;
}

/* The records below this number were stable, as the heads from `at` on say. Heads are at multiples of 8. */
static uint64_t stable_until(const struct replay_file *file, size_t at)
{
	struct journal_record record;
	uint64_t stable = 0;

	for (; at + sizeof record <= file->size; at += 8)
		if (read_head(file, at, &record) && record.number - record.unsynced > stable)
			stable = record.number - record.unsynced;
	return stable;
}

/* A file has ended: with its end mark, so that the next file exists; or where there is no whole record. */
enum { GOES_ON = 1, STOPPED = 2 };

/* Nothing that is whole is behind `at`, where the last record ends that a salvage has read. */
static int judge_rest(const struct replay *replay, const struct replay_file *file, size_t at)
{
	int is_short = file->head.sum == journal_head_sum(&file->head) && file->size < file->head.prepared;

	if (is_short || !are_zeros(file->bytes + at, at < file->size ? file->size - at : 0))
		(void)damaged(replay, "%s: what was behind record %" PRIu64 " is damaged or missing", file->path,
		    replay->record - 1);
	return WW_OK;
}

/* Read whatever is whole from `at` on. */
static int read_rest(struct replay *replay, const struct replay_file *file, size_t at)
{
	struct journal_record record = {.size = 1};
	size_t whole = 0;
	int error = WW_OK;

	while (!error && at + sizeof record <= file->size) {
		struct journal_record next;
		if (!read_head(file, at, &next) || !is_whole(file, at, &next)) {
			at += 8;
			continue;
		}
		record = next;
		replay->record = record.number;
		if (record.size)
			error = replay->read(replay->context, file->bytes + at + sizeof record, record.size);
		replay->record += record.size != 0;
		whole = at = journal_after(at, record.size);
	}
	if (error || whole == 0)
		return error;
	return record.size == 0 ? GOES_ON : judge_rest(replay, file, whole);
}

static void note_stable(struct replay *replay, uint64_t number)
{
	if (number > replay->stable)
		replay->stable = number;
}

/* ---- A file */

/* At `at` is no whole record with the expected number. */
static int judge_end(
    struct replay *replay, const struct replay_file *file, size_t at, const struct journal_record *record, int has_head)
{
	/* Head and bytes are two parts of a write. */
	size_t part = has_head ? at + sizeof *record : at;
	size_t size = has_head ? record->size + (size_t)1 : sizeof *record;

	if (at >= file->size || are_zeros(file->bytes + at, file->size - at))
		return STOPPED;
	if (!is_torn(file, part, size) || stable_until(file, at) > replay->record) {
		(void)damaged(replay, "%s: record %" PRIu64 " at byte %zu is damaged", file->path, replay->record, at);
		if (replay->salvage)
			return read_rest(replay, file, at);
		return WW_ECORRUPT;
	}
	return STOPPED;
}

static int read_records(struct replay *replay, const struct replay_file *file)
{
	size_t at = sizeof(struct journal_head);
	struct journal_record record;
	int error;

	replay->salt = file->head.salt;
	for (;;) {
		int has_head = read_head(file, at, &record);
		if (!has_head || record.number != replay->record || !is_whole(file, at, &record)) {
			replay->end = at;
			return judge_end(replay, file, at, &record, has_head);
		}
		note_stable(replay, record.number - record.unsynced);
		if (record.size == 0)
			return GOES_ON;
		error = replay->read(replay->context, file->bytes + at + sizeof record, record.size);
		if (error == WW_ECORRUPT)
			error =
			    damaged(replay, "%s: record %" PRIu64 " has what no record has", file->path, record.number);
		if (error)
			return error;
		replay->record++;
		at = journal_after(at, record.size);
	}
}

static int check_head(struct replay *replay, struct replay_file *file, int before)
{
	struct journal_head *head = &file->head;
	unsigned version;

	if (file->size >= sizeof *head)
		memcpy(head, file->bytes, sizeof *head);
	version = (unsigned)(head->magic >> 56);
	if (head->magic << 8 != JOURNAL_MAGIC << 8 || head->sum != journal_head_sum(head) ||
	    head->number != file->number)
		return damaged(replay, "%s: its head is damaged", file->path);
	if (version != JOURNAL_VERSION) {
		(void)damaged(replay, "%s: has format %u, and this weekwheel knows %u; use the one that wrote it",
		    file->path, version, JOURNAL_VERSION);
		return WW_EVERSION;
	}
	replay->is_closed = (head->flags & JOURNAL_CLOSED) != 0;
	note_stable(replay, head->first - head->unsynced);
	if (file->size < head->prepared)
		return damaged(replay, "%s: was cut short to %zu bytes", file->path, file->size);
	if (replay->record == 0)
		replay->record = head->first;
	if (head->first == replay->record)
		return WW_OK;
	if (before == STOPPED && head->first > replay->record)
		return STOPPED;
	return damaged(replay, "%s: begins with record %" PRIu64 " where %" PRIu64 " is expected", file->path,
	    head->first, replay->record);
}

/* Whether the file shows that the record which is not whole before it had been stable. */
static int is_after_loss(const struct replay *replay, const struct replay_file *file)
{
	return file->head.first - file->head.unsynced > replay->record ||
	       stable_until(file, sizeof(struct journal_head)) > replay->record;
}

/* Its head is damaged, or it is not where it belongs. One of the salts is right. */
static int read_headless(struct replay *replay, struct replay_file *file)
{
	uint64_t record = replay->record;
	int error = read_rest(replay, file, sizeof(struct journal_head));

	if (error || record != replay->record || file->head.salt == file->head.salt_again)
		return error;
	file->head.salt = file->head.salt_again;
	return read_rest(replay, file, sizeof(struct journal_head));
}

static int read_file(struct replay *replay, uint64_t number, int before)
{
	struct replay_file file;
	int result = open_file(replay, number, &file, O_RDONLY, NULL);

	replay->end = 0;
	if (!result)
		result = check_head(replay, &file, before);
	if (result == STOPPED && is_after_loss(replay, &file))
		result = damaged(replay, "%s: record %" PRIu64 ", which is before it, is damaged or missing", file.path,
		    replay->record);
	if (!result)
		result = read_records(replay, &file);
	else if (result == WW_ECORRUPT && replay->salvage)
		result = read_headless(replay, &file);
	free(file.bytes);
	return result;
}

/* ---- All of them */

static int missing(const struct replay *replay, uint64_t number)
{
	return damaged(replay, "%s/journal.%" PRIu64 " is missing", replay->folder, number);
}

/* Salvage has reported what is wrong, and continues. */
static int pass_over(const struct replay *replay, int result)
{
	return result == WW_ECORRUPT && replay->salvage ? WW_OK : result;
}

static int read_files(struct replay *replay, const uint64_t *numbers, int count)
{
	int is_any = replay->cut == UINT64_MAX;
	uint64_t expected = is_any ? numbers[0] : replay->cut + 1;
	int result = WW_OK;
	int i = 0;

	/* The index has those: removing them was cut short. */
	while (i < count && numbers[i] < expected)
		i++;
	if (i == count)
		return pass_over(replay, missing(replay, expected));
	for (; i < count && result >= 0; i++) {
		if (numbers[i] > expected)
			result = pass_over(replay, missing(replay, expected));
		if (result >= 0)
			result = pass_over(replay, read_file(replay, numbers[i], result));
		replay->last = numbers[i];
		expected = numbers[i] + 1;
	}
	/* A process that writes has ended the last file after we looked which ones there are: its next one is there. */
	for (; result == GOES_ON && is_there(replay, expected); expected++) {
		result = pass_over(replay, read_file(replay, expected, result));
		replay->last = expected;
	}
	if (result == GOES_ON)
		result = pass_over(replay, missing(replay, expected));
	return result < 0 ? result : WW_OK;
}

int ww_replay(struct replay *replay)
{
	uint64_t *numbers = malloc(FILES_MOST * sizeof *numbers);
	int count = numbers ? ww_journal_numbers(AT_FDCWD, replay->folder, numbers, FILES_MOST) : WW_ENOMEM;
	int result = count < 0 ? count : WW_OK;

	replay->last = replay->cut;
	if (count > 0)
		result = read_files(replay, numbers, count);
	replay->is_empty = result == WW_OK && replay->record == 1;
	free(numbers);
	return result;
}

/* ---- Once more */

/* Also the zeros: a record that could not be written, and was wiped in memory, may be on the disk. */
static int write_again(int fd, const struct replay_file *file)
{
	size_t done = 0;

	while (done < file->size) {
		ssize_t written = pwrite(fd, file->bytes + done, file->size - done, (off_t)done);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? error_of_errno(errno) : WW_EFULL;
		done += (size_t)written;
	}
	return fdatasync(fd) == 0 ? WW_OK : error_of_errno(errno);
}

int ww_replay_settle(const struct replay *replay)
{
	struct replay_file file;
	uint64_t first = UINT64_MAX;
	int error = WW_OK;

	for (uint64_t number = replay->last; number > replay->cut && first > replay->stable && !error; number--) {
		error = open_file(replay, number, &file, O_RDWR, write_again);
		if (!error && file.size >= sizeof file.head)
			memcpy(&file.head, file.bytes, sizeof file.head);
		first = file.head.first;
		free(file.bytes);
	}
	return error;
}

/* The zeros at its end stay: a file that is too short would be damaged. */
static int give_back(int fd, const struct replay_file *file)
{
	size_t end = file->size;

	while (end > 0 && file->bytes[end - 1] == 0)
		end--;
	if (end < file->size)
		(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)end, (off_t)(file->size - end));
	return WW_OK;
}

void ww_replay_give_back(const struct replay *replay)
{
	struct replay_file file;

	for (uint64_t number = replay->last; number > replay->cut; number--) {
		(void)open_file(replay, number, &file, O_RDWR, give_back);
		free(file.bytes);
	}
}
