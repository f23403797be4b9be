/*
 * Journals that something has happened to. What a power failure may have left is the end of the journal; what it cannot
 * have left is damage, and is told. Each byte of a file is lost or changed in turn.
 */
/* tier: quick */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/journal/fixture.h"

enum { HEAD = sizeof(struct journal_head), RECORD = sizeof(struct journal_record), SECTOR = 512 };

static struct book book;

/* Three records of known places. If all were stable one after the other, the third says that the second was. */
static struct places {
	uint64_t second, third, end;
} make_three(int synced)
{
	struct places places;

	book_make(&book);
	(synced ? book_append_synced : book_append)(&book, "one");
	places.second = book.journal.offset;
	(synced ? book_append_synced : book_append)(&book, "second");
	places.third = book.journal.offset;
	book_append(&book, "and third");
	places.end = book.journal.offset;
	return places;
}

/* What the reader says of a damaged record. */
static const char *damage_of(int file, int record, uint64_t at)
{
	static char sentence[128];

	(void)snprintf(sentence, sizeof sentence, "journal.%d: record %d at byte %d is damaged", file, record, (int)at);
	return sentence;
}

/* ---- Torn ----------------------------------------------------------------------------------------------------- */

START_TEST(a_last_record_that_ends_anywhere_is_the_end)
{
	struct places at = make_three(1);
	unsigned char whole[128];

	book_read_at(&book, 1, at.third, whole, at.end - at.third);
	size_t written = RECORD + strlen("and third") + 1;
	for (size_t have = 0; have <= written; have++) {
		book_zero(&book, 1, at.third, at.end);
		book_write_at(&book, 1, at.third, whole, have);
		ASSERT_READS(&book, have < written ? "one second" : "one second and third");
	}
	book_end(&book);
}
END_TEST

START_TEST(a_last_record_that_lacks_its_beginning_is_the_end)
{
	struct places at = make_three(1);
	unsigned char last[RECORD];

	/* A sector is written as a whole: what begins it is lost with its first byte. Here it is the record's head. */
	book_read_at(&book, 1, at.third, last, RECORD);
	book_zero(&book, 1, at.third, at.third + RECORD);
	ASSERT_READS(&book, "one second");
	/* Some bytes of it are there, so that its sector was written. */
	book_write_at(&book, 1, at.third + RECORD - 1, last + RECORD - 1, 1);
	ASSERT_DAMAGED(&book, "one second", damage_of(1, 3, at.third));
	book_end(&book);
}
END_TEST

/* A record of many sectors, each of which may be the one that was not written. */
START_TEST(a_last_record_that_lacks_a_sector_is_the_end)
{
	enum { SECTORS = 12 };
	unsigned char sector[SECTOR];
	uint64_t at;

	book_make(&book);
	book_append_synced(&book, "one");
	at = book.journal.offset;
	book_append_size(&book, SECTOR * SECTORS);
	for (uint64_t lost = 0; lost <= SECTORS; lost++) {
		uint64_t from = lost * SECTOR < at ? at : lost * SECTOR;
		uint64_t to = (lost + 1) * SECTOR;
		to = to < book.journal.offset ? to : book.journal.offset;
		book_read_at(&book, 1, from, sector, to - from);
		book_zero(&book, 1, from, to);
		ASSERT_READS(&book, "one");
		/* Part of a sector cannot be lost. */
		book_write_at(&book, 1, from, sector, to - from);
		if (lost > 0 && lost < SECTORS) {
			book_zero(&book, 1, from, to - 1);
			ASSERT_DAMAGED(&book, "one", damage_of(1, 2, at));
			book_write_at(&book, 1, from, sector, to - from);
			book_zero(&book, 1, from + 1, to);
			ASSERT_DAMAGED(&book, "one", damage_of(1, 2, at));
			book_write_at(&book, 1, from, sector, to - from);
		}
	}
	book_end(&book);
}
END_TEST

/* A record that is larger than the space of a new file may have made the file longer, or not yet. */
START_TEST(a_file_that_ends_amid_its_last_record_ends_there)
{
	const uint64_t ends[] = {JOURNAL_PREPARED, JOURNAL_PREPARED + 1, JOURNAL_PREPARED + (JOURNAL_PREPARED / 2) - 1};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		book_make(&book);
		book_append_synced(&book, "one");
		book_append_size(&book, JOURNAL_PREPARED + (JOURNAL_PREPARED / 2));
		book_cut_short(&book, 1, ends[i]);
		ASSERT_READS(&book, "one");
		book_end(&book);
	}
}
END_TEST

START_TEST(what_is_no_record_behind_the_last_one_is_the_end)
{
	struct places at = make_three(1);

	/* The rest of a record that a failure made into zeros as far as it got. */
	book_write_at(&book, 1, at.end + 8, "left over", 9);
	ASSERT_READS(&book, "one second and third");
	book_end(&book);
}
END_TEST

/* The third one says that both before it may be lost, or that they may not. */
START_TEST(a_torn_record_that_was_stable_is_damage)
{
	struct places at = make_three(0);

	book_zero(&book, 1, at.second, at.third);
	ASSERT_READS(&book, "one");
	book_end(&book);
	at = make_three(1);
	book_zero(&book, 1, at.second, at.third);
	ASSERT_DAMAGED(&book, "one", damage_of(1, 2, at.second));
	book_zero(&book, 1, HEAD, at.second);
	ASSERT_DAMAGED(&book, "", damage_of(1, 1, HEAD));
	book_end(&book);
}
END_TEST

/* The count is exact: the first record was stable, the second one was not. */
START_TEST(only_what_was_stable_when_a_later_one_was_written_is_damage)
{
	struct places at;

	book_make(&book);
	book_append_synced(&book, "one");
	at.second = book.journal.offset;
	book_append(&book, "second");
	at.third = book.journal.offset;
	book_append(&book, "third");
	book_zero(&book, 1, at.second, at.third);
	ASSERT_READS(&book, "one");
	book_zero(&book, 1, HEAD, at.second);
	ASSERT_DAMAGED(&book, "", damage_of(1, 1, HEAD));
	book_end(&book);
}
END_TEST

/* ---- Damaged -------------------------------------------------------------------------------------------------- */

START_TEST(each_changed_bit_of_the_last_record_is_damage)
{
	struct places at = make_three(1);
	size_t written = RECORD + strlen("and third") + 1;

	for (uint64_t i = 0; i < written; i++)
		for (int bit = 0; bit < 8; bit++) {
			book_flip(&book, 1, at.third + i, (unsigned char)(1 << bit));
			ASSERT_DAMAGED(&book, "one second", damage_of(1, 3, at.third));
			book_flip(&book, 1, at.third + i, (unsigned char)(1 << bit));
		}
	ASSERT_READS(&book, "one second and third");
	book_end(&book);
}
END_TEST

START_TEST(each_changed_bit_of_a_record_amid_others_is_damage)
{
	for (int synced = 0; synced < 2; synced++) {
		struct places at = make_three(synced);
		size_t written = RECORD + strlen("second") + 1;

		for (uint64_t i = 0; i < written; i++)
			for (int bit = 0; bit < 8; bit++) {
				book_flip(&book, 1, at.second + i, (unsigned char)(1 << bit));
				ASSERT_DAMAGED(&book, "one", damage_of(1, 2, at.second));
				book_flip(&book, 1, at.second + i, (unsigned char)(1 << bit));
			}
		ASSERT_READS(&book, "one second and third");
		book_end(&book);
	}
}
END_TEST

START_TEST(each_changed_bit_of_a_head_is_damage)
{
	(void)make_three(1);
	for (uint64_t i = 0; i < HEAD; i++)
		for (int bit = 0; bit < 8; bit++) {
			book_flip(&book, 1, i, (unsigned char)(1 << bit));
			ASSERT_DAMAGED(&book, "", "journal.1: its head is damaged");
			book_flip(&book, 1, i, (unsigned char)(1 << bit));
		}
	ASSERT_READS(&book, "one second and third");
	book_end(&book);
}
END_TEST

/* A record with right sums in the wrong place. */
START_TEST(a_record_with_another_number_is_damage)
{
	struct places at = make_three(1);
	unsigned char bytes[64];

	book_read_at(&book, 1, at.second, bytes, at.third - at.second);
	book_write_at(&book, 1, HEAD, bytes, at.third - at.second);
	ASSERT_DAMAGED(&book, "", damage_of(1, 1, HEAD));
	book_end(&book);
}
END_TEST

/* Whatever size damage makes of it, a reader asks for no such memory and stays within the file. */
START_TEST(a_size_beyond_the_file_is_no_whole_record)
{
	struct places at = make_three(1);
	struct journal_record record;
	const struct {
		uint32_t size;
		int is_head;
	} sizes[] = {{JOURNAL_PREPARED, 1}, {JOURNAL_RECORD_MAX - 1, 1}, {JOURNAL_RECORD_MAX, 0}, {UINT32_MAX, 0}};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		book_read_at(&book, 1, at.third, &record, sizeof record);
		record.size = sizes[i].size;
		record.head_sum = journal_record_sum(book_head(&book, 1).salt, &record);
		book_write_at(&book, 1, at.third, &record, sizeof record);
		/* A head of a record that the file is too short for: it is torn. There is no head of a larger one. */
		if (sizes[i].is_head)
			ASSERT_READS(&book, "one second");
		else
			ASSERT_DAMAGED(&book, "one second", damage_of(1, 3, at.third));
	}
	/* The largest size that the file has no last byte for, and the next smaller one. */
	for (uint32_t less = 0; less < 2; less++) {
		record.size = (uint32_t)(JOURNAL_PREPARED - at.third - RECORD - less);
		record.head_sum = journal_record_sum(book_head(&book, 1).salt, &record);
		book_write_at(&book, 1, at.third, &record, sizeof record);
		ASSERT_READS(&book, "one second");
	}
	book_end(&book);
}
END_TEST

/* Sums of records have their file's salt. A body that has a journal's bytes has no records. */
START_TEST(records_in_a_body_are_none)
{
	struct reading reading;
	struct {
		struct journal_record record;
		unsigned char bytes[8];
	} inner = {.record = {.size = 2, .number = 4711}, .bytes = {'x', 'y', JOURNAL_LAST}};
	uint64_t at;

	inner.record.sum = ww_crc32c(0, "xy", 2);
	inner.record.head_sum = journal_record_sum(0, &inner.record);
	book_make(&book);
	at = book.journal.offset;
	OK(ww_journal_append(&book.journal, &inner, sizeof inner));
	book_append(&book, "after");
	/* It is torn, and what it has inside does not say that it was stable. */
	book_zero(&book, 1, at, at + RECORD);
	ASSERT_READS(&book, "");
	book_salvage(&book, &reading);
	ck_assert_str_eq(reading_words(&reading), "");
	/* A file of the same numbers with another salt. */
	struct journal_head head = book_head(&book, 1);
	head.salt ^= 1;
	head.salt_again = head.salt;
	book_set_head(&book, 1, head);
	ASSERT_READS(&book, "");
	book_end(&book);
}
END_TEST

/* ---- Heads and files ------------------------------------------------------------------------------------------ */

START_TEST(a_file_that_was_cut_short_is_damaged)
{
	char sentence[128];
	uint64_t lengths[] = {JOURNAL_PREPARED - 1, 4096, HEAD + 1, HEAD, HEAD - 1, 1, 0};

	(void)make_three(1);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		book_cut_short(&book, 1, lengths[i]);
		(void)snprintf(sentence, sizeof sentence,
		    lengths[i] >= HEAD ? "journal.1: was cut short to %d bytes" : "journal.1: its head is damaged",
		    (int)lengths[i]);
		ASSERT_DAMAGED(&book, "", sentence);
	}
	book_end(&book);
}
END_TEST

START_TEST(a_foreign_file_is_none_of_the_journals)
{
	static const char text[] = "root:x:0:0:root:/root:/bin/sh, which is longer than a head would have to be here\n";
	struct journal_head head;

	(void)make_three(1);
	book_make_file(&book, 1, text, sizeof text);
	ASSERT_DAMAGED(&book, "", "journal.1: its head is damaged");
	/* The file of another number under this one's name. */
	book_turn(&book);
	head = book_head(&book, 2);
	book_set_head(&book, 1, head);
	ASSERT_DAMAGED(&book, "", "journal.1: its head is damaged");
	/* Right but for the magic. */
	head.number = head.first = 1;
	head.magic ^= 1;
	book_set_head(&book, 1, head);
	ASSERT_DAMAGED(&book, "", "journal.1: its head is damaged");
	book_end(&book);
}
END_TEST

START_TEST(what_is_no_file_is_not_read)
{
	struct reading reading;
	char path[128];

	(void)make_three(1);
	(void)snprintf(path, sizeof path, "%s/elsewhere", book.folder);
	ck_assert_int_eq(rename(book_path(&book, 1), path), 0);
	ck_assert_int_eq(symlink(path, book_path(&book, 1)), 0);
	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_EDENIED);
	book_remove(&book, 1);
	ck_assert_int_eq(mkdir(book_path(&book, 1), 0700), 0);
	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_EDENIED);
	ck_assert_int_eq(rmdir(book_path(&book, 1)), 0);
	ck_assert_int_eq(mkfifo(book_path(&book, 1), 0600), 0);
	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_EDENIED);
	book_remove(&book, 1);
	reading.replay.folder = "/nonexistent";
	ck_assert_int_eq(ww_replay(&reading.replay), WW_EDENIED);
	book_end(&book);
}
END_TEST

START_TEST(a_later_version_is_named)
{
	struct reading reading;
	struct journal_head head;

	(void)make_three(1);
	for (unsigned version = JOURNAL_VERSION - 1; version <= JOURNAL_VERSION + 1; version += 2) {
		char sentence[128];
		head = book_head(&book, 1);
		head.magic = JOURNAL_MAGIC | (uint64_t)version << 56;
		book_set_head(&book, 1, head);
		book_read(&book, &reading);
		ck_assert_int_eq(reading.answer, WW_EVERSION);
		(void)snprintf(sentence, sizeof sentence,
		    "journal.1: has format %u, and this weekwheel knows 2; use the one that wrote it", version);
		ck_assert_str_eq(reading_problem(&book, &reading), sentence);
		ck_assert_int_eq(reading.records, 0);
	}
	book_end(&book);
}
END_TEST

/* Five files, with a record in each. */
static void make_five(int synced)
{
	book_make(&book);
	for (char name[] = "a"; *name <= 'e'; ++*name) {
		(synced ? book_append_synced : book_append)(&book, name);
		if (*name < 'e')
			book_turn(&book);
	}
}

START_TEST(a_missing_file_is_noticed_wherever_it_was)
{
	static const struct {
		uint64_t number;
		const char *words;
		const char *sentence;
	} missing[] = {{1, "", "journal.1 is missing"}, {3, "a b", "journal.3 is missing"},
	    {5, "a b c d", "journal.5 is missing"}};

	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
		make_five(0);
		book_remove(&book, missing[i].number);
		ASSERT_DAMAGED(&book, missing[i].words, missing[i].sentence);
		book_end(&book);
	}
	/* All of them, but for those that the index has. */
	struct reading reading = {.replay = {.cut = 5, .record = 6}};
	make_five(0);
	book_read_as(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_ECORRUPT);
	ck_assert_str_eq(reading_problem(&book, &reading), "journal.6 is missing");
	book_end(&book);
}
END_TEST

START_TEST(files_in_the_wrong_order_are_noticed)
{
	struct journal_head head;
	char aside[128];

	make_five(0);
	(void)snprintf(aside, sizeof aside, "%s/aside", book.folder);
	ck_assert_int_eq(rename(book_path(&book, 2), aside), 0);
	char *third = strdup(book_path(&book, 3));
	ck_assert_int_eq(rename(third, book_path(&book, 2)), 0);
	ck_assert_int_eq(rename(aside, third), 0);
	free(third);
	ASSERT_DAMAGED(&book, "a", "journal.2: its head is damaged");
	book_end(&book);
	/* A file that begins with a record too late or too early, behind one that says that it goes on. */
	make_five(1);
	head = book_head(&book, 3);
	for (head.first = 2; head.first <= 4; head.first += 2) {
		char sentence[128];
		(void)snprintf(
		    sentence, sizeof sentence, "journal.3: begins with record %d where 3 is expected", (int)head.first);
		book_set_head(&book, 3, head);
		ASSERT_DAMAGED(&book, "a b", sentence);
	}
	book_end(&book);
}
END_TEST

/* ---- A file that ends without its mark ------------------------------------------------------------------------ */

START_TEST(a_lost_end_mark_loses_nothing)
{
	uint64_t end;

	book_make(&book);
	book_append(&book, "one");
	end = book.journal.offset;
	book_turn(&book);
	book_append(&book, "two");
	ASSERT_READS(&book, "one two");
	book_zero(&book, 1, end, end + RECORD + 1);
	ASSERT_READS(&book, "one two");
	/* Only with it does the loss of the next file show. */
	book_remove(&book, 2);
	ASSERT_READS(&book, "one");
	book_end(&book);
	book_make(&book);
	book_append(&book, "one");
	book_turn(&book);
	book_remove(&book, 2);
	ASSERT_DAMAGED(&book, "one", "journal.2 is missing");
	book_end(&book);
}
END_TEST

/* The last record of a file is torn, and there is a next file. What is in it comes after the loss. */
START_TEST(a_torn_record_at_the_end_of_a_file_ends_the_journal_unless_it_was_stable)
{
	for (int synced = 0; synced < 3; synced++) {
		uint64_t second;

		book_make(&book);
		book_append_synced(&book, "one");
		second = book.journal.offset;
		(synced == 1 ? book_append_synced : book_append)(&book, "two");
		book_turn(&book);
		if (synced == 2)
			OK(ww_journal_sync(&book.journal));
		book_append(&book, "three");
		book_zero(&book, 1, second, second + 128);
		if (synced == 0)
			ASSERT_READS(&book, "one");
		else
			/* The next file's head, or a record in it, says so. */
			ASSERT_DAMAGED(&book, "one", "journal.2: record 2, which is before it, is damaged or missing");
		book_end(&book);
	}
}
END_TEST

/* ---- Saving what is whole ------------------------------------------------------------------------------------- */

START_TEST(salvage_reads_what_is_whole_on_both_sides_of_the_damage)
{
	struct places at = make_three(1);
	struct reading reading;

	for (uint64_t i = 0; i < at.third - at.second; i++) {
		book_flip(&book, 1, at.second + i, 0x10);
		book_salvage(&book, &reading);
		ck_assert_int_eq(reading.answer, WW_OK);
		/* What only rounds a record up to 8 bytes is nothing. */
		int is_damage = i < RECORD + strlen("second") + 1;
		ck_assert_str_eq(reading_words(&reading), is_damage ? "one and third" : "one second and third");
		ck_assert_int_eq(reading.problems, is_damage);
		ck_assert_uint_eq(reading.replay.record, 4);
		book_flip(&book, 1, at.second + i, 0x10);
	}
	book_end(&book);
}
END_TEST

START_TEST(salvage_reads_each_file_there_is)
{
	struct reading reading;

	make_five(1);
	book_remove(&book, 5);
	book_salvage(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_str_eq(reading_words(&reading), "a b c d");
	ck_assert_int_eq(reading.problems, 1);
	ck_assert_str_eq(reading_problem(&book, &reading), "journal.5 is missing");
	book_end(&book);
	make_five(1);
	book_remove(&book, 1);
	book_remove(&book, 3);
	book_salvage(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_str_eq(reading_words(&reading), "b d e");
	ck_assert_int_eq(reading.problems, 2);
	ck_assert_str_eq(reading_problem(&book, &reading), "journal.3 is missing");
	ck_assert_uint_eq(reading.replay.last, 5);
	book_end(&book);
}
END_TEST

START_TEST(salvage_reads_records_behind_a_damaged_head)
{
	struct reading reading;

	for (uint64_t i = 0; i < HEAD; i++) {
		(void)make_three(1);
		book_flip(&book, 1, i, 0x01);
		book_salvage(&book, &reading);
		ck_assert_int_eq(reading.answer, WW_OK);
		ck_assert_str_eq(reading_words(&reading), "one second and third");
		ck_assert_str_eq(reading_problem(&book, &reading), "journal.1: its head is damaged");
		ck_assert_int_eq(reading.problems, 1);
		book_end(&book);
	}
	/* Without either salt there is nothing to know them by. */
	(void)make_three(1);
	book_zero(&book, 1, 0, HEAD);
	book_salvage(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_int_eq(reading.records, 0);
	ck_assert_int_eq(reading.problems, 1);
	book_end(&book);
}
END_TEST

START_TEST(salvage_reads_a_file_that_was_cut_short_up_to_there)
{
	struct places at = make_three(1);
	struct reading reading;

	book_cut_short(&book, 1, at.third + RECORD + 3);
	book_salvage(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_str_eq(reading_words(&reading), "one second");
	/* The last byte of a file may be the last one of a record. */
	book_cut_short(&book, 1, at.second + RECORD + strlen("second") + 1);
	book_salvage(&book, &reading);
	ck_assert_str_eq(reading_words(&reading), "one second");
	book_cut_short(&book, 1, at.second + RECORD + strlen("second"));
	book_salvage(&book, &reading);
	ck_assert_str_eq(reading_words(&reading), "one");
	ck_assert_int_eq(reading.problems, 2);
	ck_assert_ptr_nonnull(strstr(reading.problem[1], "what was behind record 1 is damaged or missing"));
	book_end(&book);
}
END_TEST

START_TEST(salvage_reports_damage_behind_the_last_whole_record)
{
	struct places at = make_three(1);
	struct reading reading;

	for (int is_last = 0; is_last < 2; is_last++) {
		/* The numbers of records show all but the last one. */
		book_flip(&book, 1, 0, 0x01);
		book_flip(&book, 1, is_last ? at.third : at.second, 0x10);
		book_salvage(&book, &reading);
		ck_assert_str_eq(reading_words(&reading), is_last ? "one second" : "one and third");
		ck_assert_int_eq(reading.problems, 1 + is_last);
		ck_assert_uint_eq(reading.number[1], is_last ? 2 : 3);
		book_flip(&book, 1, 0, 0x01);
		book_flip(&book, 1, is_last ? at.third : at.second, 0x10);
	}
	book_end(&book);
}
END_TEST

TEST_MAIN("journal/damage", a_last_record_that_ends_anywhere_is_the_end,
    a_last_record_that_lacks_its_beginning_is_the_end, a_last_record_that_lacks_a_sector_is_the_end,
    a_file_that_ends_amid_its_last_record_ends_there, what_is_no_record_behind_the_last_one_is_the_end,
    a_torn_record_that_was_stable_is_damage, only_what_was_stable_when_a_later_one_was_written_is_damage,
    each_changed_bit_of_the_last_record_is_damage, each_changed_bit_of_a_record_amid_others_is_damage,
    each_changed_bit_of_a_head_is_damage, a_record_with_another_number_is_damage,
    a_size_beyond_the_file_is_no_whole_record, records_in_a_body_are_none, a_file_that_was_cut_short_is_damaged,
    a_foreign_file_is_none_of_the_journals, what_is_no_file_is_not_read, a_later_version_is_named,
    a_missing_file_is_noticed_wherever_it_was, files_in_the_wrong_order_are_noticed, a_lost_end_mark_loses_nothing,
    a_torn_record_at_the_end_of_a_file_ends_the_journal_unless_it_was_stable,
    salvage_reads_what_is_whole_on_both_sides_of_the_damage, salvage_reads_each_file_there_is,
    salvage_reads_records_behind_a_damaged_head, salvage_reads_a_file_that_was_cut_short_up_to_there,
    salvage_reports_damage_behind_the_last_whole_record)
