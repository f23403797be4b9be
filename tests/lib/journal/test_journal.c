/* Journals that nothing has happened to: their bytes, the order of their files, and their bounds. */
/* tier: quick */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/journal/names.h"
#include "tests/lib/journal/fixture.h"

static struct book book;

/* ---- Bytes ---------------------------------------------------------------------------------------------------- */

/* What 0.1.0 writes, as a machine with the least byte first has it. */
static const unsigned char known[] = {
    /* the head: magic and version, number, first, unsynced, prepared, salt, flags, salt again, sum */
    'W', 'W', 'J', 'O', 'U', 'R', 'N', 2, 1, 0, 0, 0, 0, 0, 0, 0, 41, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 48, 0, 0, 0,
    0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0, 0x78, 0x56, 0x34, 0x12, 0xbd, 0xfa, 0xf8, 0x4f,
    /* a record: size, sum, number, unsynced, sum of these; its bytes; the last one */
    3, 0, 0, 0, 0x3e, 0xbf, 0xfd, 0x06, 41, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0x8b, 0x43, 0x91, 0xea, 'a', 'b', 'c', 'L',
    0, 0, 0, 0,
    /* the end */
    0, 0, 0, 0, 0x78, 0x56, 0x34, 0x12, 42, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x6f, 0x91, 0xd3, 0xf4, 'L'};

static int is_least_first(void)
{
	const uint16_t one = 1;

	return *(const unsigned char *)&one == 1;
}

START_TEST(the_format_stays_what_it_is)
{
	struct reading reading = {.replay = {.cut = 0, .record = 41}};

	ck_assert_uint_eq(sizeof(struct journal_head), 48);
	ck_assert_uint_eq(sizeof(struct journal_record), 24);
	if (!is_least_first())
		return;
	book_make(&book);
	book_turn(&book);
	book_make_file(&book, 1, known, sizeof known);
	struct journal_head head = book_head(&book, 2);
	head.first = 42;
	book_set_head(&book, 2, head);
	book_read_as(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_str_eq(reading_words(&reading), "abc");
	ck_assert_uint_eq(reading.replay.record, 42);
	ck_assert_uint_eq(reading.replay.last, 2);
	book_end(&book);
}
END_TEST

START_TEST(a_file_begins_with_a_head_that_says_which_one_it_is)
{
	struct journal_head head;
	struct stat status;

	book_make(&book);
	book_append_synced(&book, "one");
	book_append(&book, "two");
	book_append(&book, "three");
	book_turn(&book);
	head = book_head(&book, 2);
	ck_assert_uint_eq(head.magic, JOURNAL_MAGIC | (uint64_t)JOURNAL_VERSION << 56);
	ck_assert_uint_eq(head.number, 2);
	ck_assert_uint_eq(head.first, 4);
	ck_assert_uint_eq(head.unsynced, 2);
	ck_assert_uint_eq(head.prepared, JOURNAL_PREPARED);
	ck_assert_uint_eq(head.salt, head.salt_again);
	ck_assert_uint_eq(head.flags, 0);
	ck_assert_uint_eq(head.sum, journal_head_sum(&head));
	ck_assert_uint_ne(head.salt, book_head(&book, 1).salt);
	ck_assert_int_eq(stat(book_path(&book, 2), &status), 0);
	ck_assert_uint_eq(status.st_mode & 0777, 0600);
	ck_assert_uint_eq((uint64_t)status.st_size, JOURNAL_PREPARED);
	ck_assert(!book_has(&book, "journal.new"));
	book_end(&book);
}
END_TEST

START_TEST(a_record_says_how_many_before_it_may_be_lost)
{
	struct journal_record record;
	uint64_t at = sizeof(struct journal_head);
	const uint32_t unsynced[] = {0, 1, 2, 0};

	book_make(&book);
	book_append(&book, "a");
	book_append(&book, "of 7 b.");
	book_append_synced(&book, "three");
	book_append(&book, "four");
	for (uint64_t i = 0; i < 4; i++) {
		book_read_at(&book, 1, at, &record, sizeof record);
		ck_assert_uint_eq(record.number, i + 1);
		ck_assert_uint_eq(record.unsynced, unsynced[i]);
		ck_assert_uint_eq(at % 8, 0);
		at = journal_after(at, record.size);
	}
	book_end(&book);
}
END_TEST

START_TEST(sums_end_with_a_byte_that_is_not_zero)
{
	struct journal_record record = {.size = 1};

	for (record.number = 0; record.number < 1000; record.number++) {
		ck_assert_uint_ge(journal_record_sum(0, &record) >> 24, 0xc0);
		ck_assert_uint_ne(journal_record_sum(0, &record), journal_record_sum(1, &record));
	}
	/* Behind the head and the bytes is one more, and then zeros up to a multiple of 8. */
	ck_assert_uint_eq(journal_after(48, 0), 80);
	ck_assert_uint_eq(journal_after(48, 7), 80);
	ck_assert_uint_eq(journal_after(48, 8), 88);
	ck_assert_uint_eq(journal_after(0, JOURNAL_RECORD_MAX - 1), UINT64_C(0x7ffff000));
}
END_TEST

/* ---- Records -------------------------------------------------------------------------------------------------- */

START_TEST(records_of_each_size_come_back)
{
	struct reading reading;

	book_make(&book);
	for (size_t size = 1; size <= 40; size++)
		book_append_size(&book, size);
	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_int_eq(reading.records, 40);
	for (size_t size = 1; size <= 40; size++)
		ck_assert_uint_eq(reading.size[size - 1], size);
	ck_assert_str_eq(reading.text[25], "abcdefghijklmnopqrstuvwxyz");
	ck_assert_uint_eq(reading.replay.record, 41);
	ck_assert_uint_eq(reading.replay.last, 1);
	ck_assert_int_eq(reading.replay.is_closed, 0);
	ck_assert_int_eq(reading.replay.is_empty, 0);
	book_end(&book);
}
END_TEST

/* A record may end anywhere before the end of the space, or behind it. The file always has space for it. */
START_TEST(records_about_the_end_of_the_space_come_back)
{
	struct reading reading;

	for (int fills = 0; fills < 2; fills++)
		for (size_t less = 0; less <= 96; less += 8) {
			size_t size =
			    JOURNAL_PREPARED - sizeof(struct journal_head) - sizeof(struct journal_record) - less;

			book_make(&book);
			book.journal.fills = fills;
			book_append_size(&book, size);
			book_append(&book, "behind");
			uint64_t space = ww_journal_space(&book.journal);
			ck_assert_uint_eq(space % JOURNAL_PREPARED, 0);
			ck_assert_uint_ge(book_size(&book, 1), space);
			ck_assert_uint_ge(space, book.journal.offset);
			book_read(&book, &reading);
			ck_assert_int_eq(reading.answer, WW_OK);
			ck_assert_int_eq(reading.records, 2);
			ck_assert_uint_eq(reading.size[0], size);
			ck_assert_str_eq(reading.text[1], "behind");
			book_end(&book);
		}
}
END_TEST

START_TEST(a_record_may_be_larger_than_the_space_of_a_file)
{
	struct reading reading;

	book_make(&book);
	book_append(&book, "before");
	book_append_size(&book, (3 << 20) + 5);
	book_append(&book, "after");
	ck_assert_uint_eq(ww_journal_space(&book.journal), 4 << 20);
	ck_assert_uint_eq(book_size(&book, 1), 4 << 20);
	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_uint_eq(reading.size[1], (3 << 20) + 5);
	ck_assert_str_eq(reading.text[2], "after");
	book_end(&book);
}
END_TEST

START_TEST(a_record_beyond_what_one_call_writes_is_too_large)
{
	void *bytes;

	book_make(&book);
	book_append(&book, "before");
	/* Nothing reads them. */
	bytes = mmap(NULL, JOURNAL_RECORD_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(bytes, MAP_FAILED);
	ck_assert_int_eq(ww_journal_append(&book.journal, bytes, JOURNAL_RECORD_MAX), WW_EFULL);
	ck_assert_int_eq(ww_journal_append(&book.journal, bytes, SIZE_MAX), WW_EFULL);
	ck_assert_int_eq(munmap(bytes, JOURNAL_RECORD_MAX), 0);
	ck_assert_uint_eq(ww_journal_space(&book.journal), JOURNAL_PREPARED);
	book_append(&book, "after");
	ASSERT_READS(&book, "before after");
	book_end(&book);
}
END_TEST

START_TEST(room_is_taken_before_it_is_needed)
{
	book_make(&book);
	OK(ww_journal_room(&book.journal, 100));
	ck_assert_uint_eq(ww_journal_space(&book.journal), JOURNAL_PREPARED);
	OK(ww_journal_room(&book.journal, JOURNAL_PREPARED));
	ck_assert_uint_eq(ww_journal_space(&book.journal), 2 * JOURNAL_PREPARED);
	ck_assert_uint_eq(book_size(&book, 1), 2 * JOURNAL_PREPARED);
	ck_assert_uint_ge(ww_journal_bytes(&book.journal), 2 * JOURNAL_PREPARED);
	book_append(&book, "a");
	ASSERT_READS(&book, "a");
	book_end(&book);
}
END_TEST

START_TEST(what_is_left_can_be_appended_without_room)
{
	book_make(&book);
	ck_assert_uint_eq(ww_journal_left(&book.journal), JOURNAL_PREPARED - sizeof(struct journal_head));
	book_append(&book, "one");
	ck_assert_uint_eq(ww_journal_left(&book.journal), JOURNAL_PREPARED - book.journal.offset);
	/* A failed write left something: zeros come first. */
	book.journal.stained = 1;
	ck_assert_uint_eq(ww_journal_left(&book.journal), 0);
	book.journal.stained = 0;
	OK(ww_journal_turn(&book.journal, 1));
	ck_assert_uint_eq(ww_journal_left(&book.journal), 0);
	ww_journal_close(&book.journal);
	/* No file is open yet, and the offset is that of the file before. */
	ww_journal_open(&book.journal, book.folder, &book.fault, 2, 2);
	book.journal.offset = 100;
	ck_assert_uint_eq(ww_journal_left(&book.journal), 0);
	book_end(&book);
}
END_TEST

START_TEST(zeros_ahead_of_the_records_overwrite_none)
{
	struct reading reading;
	struct stat status;

	book_make(&book);
	book.journal.fills = 1;
	book_turn(&book);
	for (int i = 0; i < 60; i++)
		book_append_size(&book, 10000);
	/* The blocks of what is only allocated count, too: what was never written would be marked so. */
	ck_assert_uint_ge(book.journal.filled, book.journal.offset);
	ck_assert_int_eq(stat(book_path(&book, 2), &status), 0);
	ck_assert_uint_eq((uint64_t)status.st_size, JOURNAL_PREPARED);
	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_int_eq(reading.records, 60);
	book_end(&book);
}
END_TEST

START_TEST(a_reader_may_stop)
{
	struct reading reading = {.replay = {.record = 1}, .refused = 2, .refusal = WW_ENOMEM};

	book_make(&book);
	book_append(&book, "one");
	book_append(&book, "two");
	book_append(&book, "three");
	book_read_as(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_ENOMEM);
	ck_assert_str_eq(reading_words(&reading), "one");
	ck_assert_int_eq(reading.problems, 0);
	reading = (struct reading){.replay = {.record = 1}, .refused = 3, .refusal = WW_ECORRUPT};
	book_read_as(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_ECORRUPT);
	ck_assert_str_eq(reading_problem(&book, &reading), "journal.1: record 3 has what no record has");
	book_end(&book);
}
END_TEST

/* ---- Files ---------------------------------------------------------------------------------------------------- */

START_TEST(a_journal_without_a_record_is_empty)
{
	struct reading reading;

	book_make(&book);
	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_int_eq(reading.records, 0);
	ck_assert_int_eq(reading.replay.is_empty, 1);
	ck_assert_uint_eq(reading.replay.record, 1);
	ck_assert_uint_eq(reading.replay.last, 1);
	/* So is a folder without a file. */
	book_remove(&book, 1);
	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_int_eq(reading.replay.is_empty, 1);
	ck_assert_uint_eq(reading.replay.last, 0);
	/* Beside an index, the next file comes after those that the index has. */
	reading = (struct reading){.replay = {.cut = 4, .record = 3}};
	book_read_as(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_int_eq(reading.replay.is_empty, 0);
	ck_assert_uint_eq(reading.replay.last, 4);
	book_end(&book);
}
END_TEST

START_TEST(files_are_read_in_the_order_of_their_numbers)
{
	struct reading reading;
	char words[256] = "";
	char word[16];

	/* As names, 10 comes before 2. */
	book_make(&book);
	for (int i = 1; i <= 12; i++) {
		(void)snprintf(word, sizeof word, "r%d", i);
		book_append(&book, word);
		(void)snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", i > 1 ? " " : "", word);
		if (i < 12)
			book_turn(&book);
	}
	ASSERT_READS(&book, words);
	reading = (struct reading){.replay = {.cut = 9, .record = 10}};
	book_read_as(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_str_eq(reading_words(&reading), "r10 r11 r12");
	ck_assert_uint_eq(reading.replay.last, 12);
	ck_assert_uint_eq(reading.replay.record, 13);
	/* Any record may be the first where none is expected. */
	reading = (struct reading){.replay = {.cut = 10}};
	book_read_as(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_str_eq(reading_words(&reading), "r11 r12");
	book_end(&book);
}
END_TEST

START_TEST(a_journal_goes_on_where_it_ended)
{
	struct reading reading;
	uint64_t record;

	book_make(&book);
	book_append(&book, "one");
	book_append(&book, "two");
	ck_assert_uint_eq(ww_journal_end(&book.journal, &record), 1);
	ck_assert_uint_eq(record, 3);
	ww_journal_close(&book.journal);
	book_read(&book, &reading);
	ww_journal_open(&book.journal, book.folder, &book.fault, reading.replay.last, reading.replay.record);
	book_turn(&book);
	book_append(&book, "three");
	ASSERT_READS(&book, "one two three");
	ck_assert_uint_eq(ww_journal_end(&book.journal, &record), 2);
	ck_assert_uint_eq(record, 4);
	book_end(&book);
}
END_TEST

START_TEST(a_file_that_a_killed_process_left_gets_its_end)
{
	struct reading reading;

	book_make(&book);
	book_append_synced(&book, "one");
	book_append(&book, "two");
	uint64_t end = book.journal.offset;
	ww_journal_close(&book.journal);
	book_read(&book, &reading);
	ck_assert_uint_eq(reading.replay.end, end);
	ck_assert_uint_eq(reading.replay.salt, book_head(&book, 1).salt);
	/* The second record says that the first was stable. */
	ck_assert_uint_eq(reading.replay.stable, 2);
	ww_journal_open(&book.journal, book.folder, &book.fault, reading.replay.last, reading.replay.record);
	book.journal.offset = reading.replay.end;
	book.journal.salt = reading.replay.salt;
	book_turn(&book);
	book_read(&book, &reading);
	ck_assert_str_eq(reading_words(&reading), "one two");
	ck_assert_uint_eq(reading.replay.end, sizeof(struct journal_head));
	ck_assert_uint_eq(reading.replay.stable, 3);
	/* Without the end, the new file says that both were stable. */
	unsigned char mark[sizeof(struct journal_record) + 1];
	book_read_at(&book, 1, end, mark, sizeof mark);
	book_zero(&book, 1, end, end + sizeof mark);
	book_read(&book, &reading);
	ck_assert_str_eq(reading_words(&reading), "one two");
	ck_assert_uint_eq(reading.replay.stable, 3);
	book_write_at(&book, 1, end, mark, sizeof mark);
	/* So the next one is missed. */
	book_remove(&book, 2);
	ASSERT_DAMAGED(&book, "one two", "journal.2 is missing");
	book_end(&book);
}
END_TEST

START_TEST(a_closed_journal_says_so)
{
	struct reading reading;

	book_make(&book);
	book_append_synced(&book, "one");
	OK(ww_journal_turn(&book.journal, 1));
	ck_assert_uint_eq(book_size(&book, 2), sizeof(struct journal_head));
	ck_assert_uint_eq(book_head(&book, 2).flags, JOURNAL_CLOSED);
	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_str_eq(reading_words(&reading), "one");
	ck_assert_int_eq(reading.replay.is_closed, 1);
	ck_assert_uint_eq(reading.replay.last, 2);
	/* It has been opened again. */
	ck_assert_int_eq(ww_journal_turn(&book.journal, 0), WW_OK);
	book_append(&book, "two");
	book_read(&book, &reading);
	ck_assert_int_eq(reading.replay.is_closed, 0);
	ck_assert_str_eq(reading_words(&reading), "one two");
	book_end(&book);
}
END_TEST

START_TEST(a_cut_removes_files_up_to_its_number_and_never_the_last)
{
	struct reading reading = {.replay = {.cut = 2, .record = 3}};

	book_make_files(&book);
	/* A crash left one that nobody has open. */
	book_make_file(&book, 0, "x", 1);
	OK(ww_journal_cut(&book.journal, 0));
	ck_assert(!book_has(&book, "journal.0"));
	ck_assert_uint_eq(ww_journal_space(&book.journal), 3 * JOURNAL_PREPARED);
	OK(ww_journal_cut(&book.journal, 2));
	ck_assert(!book_has(&book, "journal.1") && !book_has(&book, "journal.2") && book_has(&book, "journal.3"));
	ck_assert_uint_eq(ww_journal_space(&book.journal), JOURNAL_PREPARED);
	book_append(&book, "four");
	OK(ww_journal_sync(&book.journal));
	book_read_as(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_str_eq(reading_words(&reading), "three four");
	book_end(&book);
}
END_TEST

static int open_other(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* What it had open before, the process may have given to something else. */
START_TEST(only_its_own_files_are_closed_and_each_once)
{
	int other[3];

	book_make_files(&book);
	book_turn(&book);
	OK(ww_journal_cut(&book.journal, 2));
	/* They get the numbers of the files that were cut, whose places in the list still have them. */
	for (int i = 0; i < 3; i++)
		other[i] = open_other();
	OK(ww_journal_cut(&book.journal, 2));
	OK(ww_journal_cut(&book.journal, 3));
	int more = open_other();
	/* The last one stays open, whatever is cut. */
	int last = book.journal.file[0].fd;
	ck_assert_uint_eq(book.journal.files, 1);
	OK(ww_journal_cut(&book.journal, 4));
	ck_assert_int_ge(fcntl(last, F_GETFD), 0);
	ck_assert_uint_eq(book.journal.files, 1);
	/* The place behind the last one. */
	ck_assert_int_eq(book.journal.file[1].fd, last);
	book.journal.file[1].fd = more;
	ww_journal_close(&book.journal);
	ck_assert_int_eq(fcntl(last, F_GETFD), -1);
	ck_assert_int_ge(fcntl(more, F_GETFD), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(close(other[i]), 0);
	ck_assert_int_eq(close(more), 0);
	ww_journal_open(&book.journal, book.folder, &book.fault, 4, 4);
	book_end(&book);
}
END_TEST

/* A crash may come between the removal of two files, or before it. */
START_TEST(files_that_the_index_has_may_be_there_or_not)
{
	struct reading reading;

	book_make(&book);
	for (int i = 0; i < 4; i++) {
		book_append(&book, "x");
		book_turn(&book);
	}
	for (uint64_t gone = 0; gone < 3; gone++) {
		if (gone)
			book_remove(&book, gone);
		reading = (struct reading){.replay = {.cut = 2, .record = 3}};
		book_read_as(&book, &reading);
		ck_assert_int_eq(reading.answer, WW_OK);
		ck_assert_int_eq(reading.records, 2);
	}
	book_end(&book);
}
END_TEST

START_TEST(so_many_files_may_exist_and_no_more)
{
	uint64_t record;

	book_make(&book);
	for (int i = 1; i < JOURNAL_FILES; i++)
		book_turn(&book);
	ck_assert_int_eq(ww_journal_turn(&book.journal, 0), WW_EFULL);
	ck_assert_uint_eq(ww_journal_end(&book.journal, &record), JOURNAL_FILES);
	book_append(&book, "still");
	ASSERT_READS(&book, "still");
	OK(ww_journal_cut(&book.journal, 1));
	book_turn(&book);
	ck_assert_uint_eq(ww_journal_end(&book.journal, &record), JOURNAL_FILES + 1);
	book_end(&book);
}
END_TEST

START_TEST(a_file_that_a_crash_left_unnamed_is_in_nobodys_way)
{
	char path[128];

	book_make(&book);
	(void)snprintf(path, sizeof path, "%s/journal.new", book.folder);
	int fd = open(path, O_WRONLY | O_CREAT, 0400);
	ck_assert_int_eq(write(fd, "half", 4), 4);
	close(fd);
	book_append(&book, "one");
	ASSERT_READS(&book, "one");
	book_turn(&book);
	ck_assert(!book_has(&book, "journal.new"));
	book_append(&book, "two");
	ASSERT_READS(&book, "one two");
	book_end(&book);
}
END_TEST

/* ---- Names ---------------------------------------------------------------------------------------------------- */

START_TEST(a_name_has_a_number_and_nothing_else)
{
	static const char *const bad[] = {"", "journal", "journal.", "journal.x", "journal.05", "journal.+6",
	    "journal.-1", "journal. 7", "journal.7 ", "journal.7.bak", "journal.7~", "xjournal.7", "Journal.7",
	    "journal.new", "journal.18446744073709551616", "journal.99999999999999999999999999"};
	static const struct {
		const char *name;
		uint64_t number;
	} good[] = {
	    {"journal.0", 0}, {"journal.1", 1}, {"journal.10", 10}, {"journal.18446744073709551615", UINT64_MAX}};
	uint64_t number;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(!ww_journal_number(bad[i], &number), "%s", bad[i]);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		ck_assert_msg(ww_journal_number(good[i].name, &number), "%s", good[i].name);
		ck_assert_uint_eq(number, good[i].number);
	}
}
END_TEST

START_TEST(numbers_come_in_order_whatever_else_a_folder_has)
{
	static const char *const others[] = {"journal.3.bak", "journal.new", "index.db"};
	static const uint64_t made[] = {7, 100, 3, 20, 1};
	static const uint64_t sorted[] = {1, 3, 7, 20, 100};
	uint64_t numbers[8];
	char path[128];

	book_make(&book);
	book_remove(&book, 1);
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		book_make_file(&book, made[i], "x", 1);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", book.folder, others[i]);
		ck_assert_int_eq(close(open(path, O_WRONLY | O_CREAT, 0600)), 0);
	}
	ck_assert_int_eq(ww_journal_numbers(AT_FDCWD, book.folder, numbers, 8), 5);
	ck_assert_mem_eq(numbers, sorted, sizeof sorted);
	numbers[2] = 4711;
	ck_assert_int_eq(ww_journal_numbers(AT_FDCWD, book.folder, numbers, 2), 2);
	ck_assert_uint_lt(numbers[0], numbers[1]);
	ck_assert_uint_eq(numbers[2], 4711);
	ck_assert_int_eq(ww_journal_numbers(AT_FDCWD, book_path(&book, 7), numbers, 8), WW_EDENIED);
	ck_assert_int_eq(ww_journal_numbers(AT_FDCWD, "/nonexistent", numbers, 8), WW_EDENIED);
	book_end(&book);
}
END_TEST

static int is_other(uint32_t kind)
{
	int folder = open(book.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int other = ww_journal_is_other(folder, kind);

	close(folder);
	return other;
}

START_TEST(a_file_says_of_which_kind_it_is)
{
	book_make(&book);
	book_turn(&book);
	ck_assert(!is_other(JOURNAL_JOBS) && !is_other(JOURNAL_SESSIONS));
	book.journal.kind = JOURNAL_JOBS;
	book_turn(&book);
	ck_assert(!is_other(JOURNAL_JOBS) && is_other(JOURNAL_SESSIONS));
	OK(ww_journal_turn(&book.journal, 1));
	ck_assert_uint_eq(book_head(&book, 4).flags, JOURNAL_CLOSED | JOURNAL_JOBS);
	/* Damage says nothing. */
	for (uint64_t number = 3; number <= 4; number++) {
		struct journal_head head = book_head(&book, number);
		head.sum++;
		book_make_file(&book, number, (const unsigned char *)&head, sizeof head);
	}
	ck_assert(!is_other(JOURNAL_JOBS) && !is_other(JOURNAL_SESSIONS));
	book_end(&book);
}
END_TEST

TEST_MAIN("journal", the_format_stays_what_it_is, a_file_begins_with_a_head_that_says_which_one_it_is,
    a_record_says_how_many_before_it_may_be_lost, sums_end_with_a_byte_that_is_not_zero, records_of_each_size_come_back,
    records_about_the_end_of_the_space_come_back, a_record_may_be_larger_than_the_space_of_a_file,
    a_record_beyond_what_one_call_writes_is_too_large, room_is_taken_before_it_is_needed,
    what_is_left_can_be_appended_without_room, zeros_ahead_of_the_records_overwrite_none, a_reader_may_stop,
    a_journal_without_a_record_is_empty, files_are_read_in_the_order_of_their_numbers, a_journal_goes_on_where_it_ended,
    a_file_that_a_killed_process_left_gets_its_end, a_closed_journal_says_so,
    a_cut_removes_files_up_to_its_number_and_never_the_last, only_its_own_files_are_closed_and_each_once,
    files_that_the_index_has_may_be_there_or_not, so_many_files_may_exist_and_no_more,
    a_file_that_a_crash_left_unnamed_is_in_nobodys_way, a_name_has_a_number_and_nothing_else,
    numbers_come_in_order_whatever_else_a_folder_has, a_file_says_of_which_kind_it_is)
