/* A journal in a folder of its own, and a reader that keeps what it has read and heard. */
#include "tests/lib/journal/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The journal */

static int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	ck_assert_ptr_nonnull(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

void book_make(struct book *book)
{
	book->descriptors = open_descriptors();
	(void)snprintf(book->folder, sizeof book->folder, "/tmp/weekwheel-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(book->folder));
	ww_fault_init(&book->fault);
	ww_journal_open(&book->journal, book->folder, &book->fault, 0, 1);
	book_turn(book);
}

void book_make_files(struct book *book)
{
	book_make(book);
	book_append(book, "one");
	book_turn(book);
	book_append(book, "two");
	book_turn(book);
	book_append(book, "three");
}

void book_end(struct book *book)
{
	ww_journal_close(&book->journal);
	ck_assert_int_eq(open_descriptors(), book->descriptors);
	ww_fault_destroy(&book->fault);
	DIR *folder = opendir(book->folder);
	const struct dirent *entry;
	ck_assert_ptr_nonnull(folder);
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(folder), entry->d_name, 0);
	closedir(folder);
	ck_assert_int_eq(rmdir(book->folder), 0);
}

void book_append(struct book *book, const char *text)
{
	OK(ww_journal_append(&book->journal, text, strlen(text)));
}

void book_append_synced(struct book *book, const char *text)
{
	book_append(book, text);
	OK(ww_journal_sync(&book->journal));
}

void book_append_size(struct book *book, size_t size)
{
	unsigned char *bytes = malloc(size);

	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)('a' + i % 26);
	OK(ww_journal_append(&book->journal, bytes, size));
	free(bytes);
}

void book_turn(struct book *book)
{
	OK(ww_journal_turn(&book->journal, 0));
}

/* ---- Its files */

const char *book_path(const struct book *book, uint64_t number)
{
	static char path[128];

	(void)snprintf(path, sizeof path, "%s/journal.%" PRIu64, book->folder, number);
	return path;
}

int book_has(const struct book *book, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/%s", book->folder, name);
	return access(path, F_OK) == 0;
}

static int open_file(const struct book *book, uint64_t number)
{
	int fd = open(book_path(book, number), O_RDWR);

	ck_assert_int_ge(fd, 0);
	return fd;
}

uint64_t book_size(const struct book *book, uint64_t number)
{
	struct stat status;

	ck_assert_int_eq(stat(book_path(book, number), &status), 0);
	return (uint64_t)status.st_size;
}

void book_read_at(const struct book *book, uint64_t number, uint64_t at, void *bytes, size_t size)
{
	int fd = open_file(book, number);

	ck_assert_int_eq(pread(fd, bytes, size, (off_t)at), (ssize_t)size);
	close(fd);
}

void book_write_at(const struct book *book, uint64_t number, uint64_t at, const void *bytes, size_t size)
{
	int fd = open_file(book, number);

	ck_assert_int_eq(pwrite(fd, bytes, size, (off_t)at), (ssize_t)size);
	close(fd);
}

void book_flip(const struct book *book, uint64_t number, uint64_t at, unsigned char bits)
{
	unsigned char byte;

	book_read_at(book, number, at, &byte, 1);
	byte ^= bits;
	book_write_at(book, number, at, &byte, 1);
}

void book_zero(const struct book *book, uint64_t number, uint64_t from, uint64_t to)
{
	void *zeros = calloc(1, to - from + 1);

	ck_assert_ptr_nonnull(zeros);
	book_write_at(book, number, from, zeros, to - from);
	free(zeros);
}

void book_cut_short(const struct book *book, uint64_t number, uint64_t size)
{
	ck_assert_int_eq(truncate(book_path(book, number), (off_t)size), 0);
}

void book_make_file(const struct book *book, uint64_t number, const void *bytes, size_t size)
{
	int fd = open(book_path(book, number), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
	close(fd);
}

void book_remove(const struct book *book, uint64_t number)
{
	ck_assert_int_eq(unlink(book_path(book, number)), 0);
}

struct journal_head book_head(const struct book *book, uint64_t number)
{
	struct journal_head head;

	book_read_at(book, number, 0, &head, sizeof head);
	return head;
}

void book_set_head(const struct book *book, uint64_t number, struct journal_head head)
{
	head.sum = journal_head_sum(&head);
	book_write_at(book, number, 0, &head, sizeof head);
}

/* ---- Reading it */

static int read_one(void *context, const unsigned char *bytes, size_t size)
{
	struct reading *reading = context;
	size_t shown = size < READING_TEXT ? size : READING_TEXT - 1;

	ck_assert_int_lt(reading->records, READING_RECORDS);
	if (reading->records + 1 == reading->refused)
		return reading->refusal;
	reading->number[reading->records] = reading->replay.record;
	memcpy(reading->text[reading->records], bytes, shown);
	reading->text[reading->records][shown] = 0;
	reading->size[reading->records++] = size;
	return WW_OK;
}

static void hear(const char *problem, void *context)
{
	struct reading *reading = context;

	ck_assert_int_lt(reading->problems, READING_PROBLEMS);
	(void)snprintf(reading->problem[reading->problems++], sizeof reading->problem[0], "%s", problem);
}

void book_read_as(const struct book *book, struct reading *reading)
{
	reading->replay.folder = book->folder;
	reading->replay.read = read_one;
	reading->replay.context = reading;
	reading->replay.problem = hear;
	reading->replay.problem_context = reading;
	reading->answer = ww_replay(&reading->replay);
}

void book_read(const struct book *book, struct reading *reading)
{
	*reading = (struct reading){.replay = {.record = 1}};
	book_read_as(book, reading);
}

void book_salvage(const struct book *book, struct reading *reading)
{
	*reading = (struct reading){.replay = {.cut = UINT64_MAX, .salvage = 1}};
	book_read_as(book, reading);
}

const char *reading_words(const struct reading *reading)
{
	static char words[READING_RECORDS * READING_TEXT];

	words[0] = 0;
	for (int i = 0; i < reading->records; i++) {
		(void)strcat(words, i ? " " : "");
		(void)strcat(words, reading->text[i]);
	}
	return words;
}

const char *reading_problem(const struct book *book, const struct reading *reading)
{
	size_t length = strlen(book->folder);

	ck_assert(strncmp(reading->problem[0], book->folder, length) == 0);
	return reading->problem[0] + length + 1;
}
