/*
 * Calls of the system fail, each in turn. What was acknowledged is read again, a failed sync is final, and anything else
 * leaves the journal as it was.
 */
/* tier: quick */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/journal/fixture.h"
#include "tests/support/system/fail.h"

enum { ALL = (1 << CALL_KINDS) - 1 };

static struct book book;

/* ---- Why it cannot write -------------------------------------------------------------------------------------- */

static struct journal_fault fault;

static void expect_fault(int error, const char *text)
{
	char told[FAULT_TEXT];

	ck_assert_int_eq(ww_fault_describe(&fault, NULL), error);
	ck_assert_int_eq(ww_fault_describe(&fault, told), error);
	ck_assert_str_eq(told, text);
	ck_assert_int_eq(ww_fault_is_final(&fault), error == WW_EIO);
	ck_assert_int_eq(ww_fault_final(&fault), error == WW_EFULL ? WW_OK : error);
}

START_TEST(a_full_disk_is_not_final)
{
	ww_fault_init(&fault);
	expect_fault(WW_OK, "");
	ww_fault_full(&fault, NULL);
	expect_fault(WW_OK, "");
	ww_fault_full(&fault, "no room");
	expect_fault(WW_EFULL, "no room");
	ww_fault_full(&fault, "no room at all");
	expect_fault(WW_EFULL, "no room at all");
	ww_fault_full(&fault, NULL);
	expect_fault(WW_OK, "");
	ww_fault_destroy(&fault);
}
END_TEST

START_TEST(the_first_failed_sync_is_told)
{
	ww_fault_init(&fault);
	ww_fault_full(&fault, "no room");
	ck_assert_int_eq(ww_fault_sync(&fault, "one", EIO), WW_EIO);
	expect_fault(WW_EIO, "one could not be synced: Input/output error");
	ck_assert_int_eq(ww_fault_sync(&fault, "other", ENOSPC), WW_EIO);
	ck_assert_int_eq(ww_fault_damage(&fault, "damaged"), WW_ECORRUPT);
	ww_fault_full(&fault, "no room");
	ww_fault_full(&fault, NULL);
	expect_fault(WW_EIO, "one could not be synced: Input/output error");
	ww_fault_destroy(&fault);
}
END_TEST

START_TEST(damage_is_told_until_a_sync_fails)
{
	ww_fault_init(&fault);
	ck_assert_int_eq(ww_fault_damage(&fault, "damaged"), WW_ECORRUPT);
	expect_fault(WW_ECORRUPT, "damaged");
	ck_assert_int_eq(ww_fault_damage(&fault, "damaged again"), WW_ECORRUPT);
	ww_fault_full(&fault, "no room");
	ww_fault_full(&fault, NULL);
	expect_fault(WW_ECORRUPT, "damaged");
	ck_assert_int_eq(ww_fault_sync(&fault, "one", EIO), WW_EIO);
	expect_fault(WW_EIO, "one could not be synced: Input/output error");
	ww_fault_destroy(&fault);
}
END_TEST

START_TEST(a_long_text_is_cut)
{
	char text[FAULT_TEXT + 10];

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	ww_fault_init(&fault);
	ww_fault_full(&fault, text);
	text[FAULT_TEXT - 1] = 0;
	expect_fault(WW_EFULL, text);
	ww_fault_destroy(&fault);
}
END_TEST

/* ---- Appending ------------------------------------------------------------------------------------------------ */

static void expect_zeros(uint64_t from, uint64_t to)
{
	for (unsigned char byte; from < to; from++) {
		book_read_at(&book, 1, from, &byte, 1);
		ck_assert_msg(byte == 0, "byte %d", (int)from);
	}
}

START_TEST(a_record_that_cannot_be_written_leaves_the_journal_as_it_was)
{
	static const struct {
		int error;
		int answer;
	} errors[] = {{EIO, WW_EIO}, {ENOSPC, WW_EFULL}, {EDQUOT, WW_EFULL}, {EFBIG, WW_EFULL}, {0, WW_EFULL}};
	uint64_t offset;
	uint64_t record;

	book_make(&book);
	book_append_synced(&book, "one");
	offset = book.journal.offset;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		fault_arm(CALL_WRITE, NULL, 1, 1, errors[i].error);
		ck_assert_int_eq(ww_journal_append(&book.journal, "lost", 4), errors[i].answer);
		fault_disarm();
		/* What was written of it, half of it, is no longer there. */
		expect_zeros(offset, offset + 64);
		ck_assert_uint_eq(book.journal.offset, offset);
		ck_assert_uint_eq(ww_journal_end(&book.journal, &record), 1);
		ck_assert_uint_eq(record, 2);
		ck_assert_int_eq(ww_fault_describe(&book.fault, NULL), WW_OK);
		ASSERT_READS(&book, "one");
	}
	/* Even if nothing could make it undone, it looks torn and not damaged. */
	fault_arm(CALL_WRITE, NULL, 1, 2, 0);
	ck_assert_int_eq(ww_journal_append(&book.journal, "lost", 4), WW_EFULL);
	fault_disarm();
	ASSERT_READS(&book, "one");
	book_append(&book, "two");
	ASSERT_READS(&book, "one two");
	book_end(&book);
}
END_TEST

/* Make one whose first file is small, and quick to read. */
static void make_small(void)
{
	book_make(&book);
	struct journal_head head = book_head(&book, 1);
	head.prepared = 4096;
	book_set_head(&book, 1, head);
	book_cut_short(&book, 1, 4096);
}

static void expect_records(int records, const char *when, unsigned first, unsigned then)
{
	struct reading reading;

	book_read(&book, &reading);
	ck_assert_msg(reading.answer == WW_OK && reading.problems == 0 && reading.records == records,
	    "%u bytes, and %u of each write of zeros, %s: %d records, %s", first, then, when, reading.records,
	    reading.problem[0]);
}

/* Of the record only `first` bytes are written, and of what zeros them `then` in each write. Then one more succeeds. */
static void split_an_append(const char *text, unsigned first, unsigned then, int records)
{
	fault_plan.at[0] = first;
	fault_plan.at[1] = then;
	fault_arm(CALL_WRITE, NULL, 1, UINT32_MAX / 2, 0);
	ck_assert_int_eq(ww_journal_append(&book.journal, text, strlen(text)), WW_EFULL);
	/* A process that ends now leaves this. */
	expect_records(records, "written once", first, then);
	if (book.journal.stained) {
		ck_assert_int_eq(ww_journal_append(&book.journal, "2", 1), WW_EFULL);
		ck_assert_int_eq(ww_journal_turn(&book.journal, 0), WW_EFULL);
		expect_records(records, "refused", first, then);
	}
	fault_disarm();
	book_append(&book, "2");
	expect_records(records + 1, "written over", first, then);
}

START_TEST(a_write_may_be_short_anywhere_and_so_may_what_zeros_it)
{
	static const char *const texts[] = {
	    "lost", "a record that is longer than what comes after it: none of its bytes may be found behind that"};
	static const unsigned then[] = {0, 1, 8, 12, 19, 23, 24, 40, 4096};
	enum { THENS = sizeof then / sizeof *then };

	fault_plan.quick = 1;
	fault_plan.split = FAULT_AT;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		for (unsigned first = 0; first < sizeof(struct journal_record) + strlen(texts[i]) + 1; first++) {
			make_small();
			for (int j = 0; j < THENS; j++)
				split_an_append(texts[i], first, then[j], j);
			book_turn(&book);
			book_append(&book, "next");
			expect_records(THENS + 1, "and a file more", first, 0);
			book_end(&book);
		}
}
END_TEST

/* All of it may have been written by a call that says it failed. */
START_TEST(a_record_that_failed_never_counts_beside_the_next_file)
{
	for (unsigned done = 0; done <= 4; done++) {
		book_make(&book);
		book_append_synced(&book, "one");
		fault_arm(CALL_WRITE, "/journal.1", 1, UINT32_MAX / 2, EIO);
		fault_plan.done = done;
		ck_assert_int_eq(ww_journal_append(&book.journal, "lost", 4), WW_EIO);
		ck_assert_int_eq(ww_journal_turn(&book.journal, 0), WW_EIO);
		fault_disarm();
		fault_plan.done = 0;
		ck_assert_uint_eq(book.journal.last, 1);
		book_turn(&book);
		book_append(&book, "two");
		ASSERT_READS(&book, "one two");
		book_end(&book);
	}
}
END_TEST

/* Else a power failure could leave a shorter record, and behind it what was not zeroed yet. */
START_TEST(what_is_zeroed_is_stable_before_something_else_is_written)
{
	book_make(&book);
	book_append_synced(&book, "one");
	fault_arm(CALL_WRITE | CALL_SYNC, NULL, 1, 1, ENOSPC);
	ck_assert_int_eq(ww_journal_append(&book.journal, "lost", 4), WW_EFULL);
	/* The record, the end of its head, all of it, and a sync. */
	ck_assert_uint_eq(fault_plan.calls, 4);
	book_append(&book, "two");
	ck_assert_uint_eq(fault_plan.calls, 5);
	fault_arm(CALL_WRITE, NULL, 1, 2, ENOSPC);
	ck_assert_int_eq(ww_journal_append(&book.journal, "lost", 4), WW_EFULL);
	fault_arm(CALL_SYNC, NULL, 1, 1, EIO);
	ck_assert_int_eq(ww_journal_append(&book.journal, "lost", 4), WW_EIO);
	fault_disarm();
	ck_assert_int_eq(ww_fault_describe(&book.fault, NULL), WW_EIO);
	ASSERT_READS(&book, "one two");
	book_end(&book);
}
END_TEST

START_TEST(space_is_taken_before_a_record_is_written)
{
	unsigned char *bytes = calloc(1, JOURNAL_PREPARED);
	uint64_t offset;

	ck_assert_ptr_nonnull(bytes);
	book_make(&book);
	book_append(&book, "one");
	offset = book.journal.offset;
	fault_arm(CALL_SIZE | CALL_WRITE, NULL, 1, 1, ENOSPC);
	ck_assert_int_eq(ww_journal_append(&book.journal, bytes, JOURNAL_PREPARED), WW_EFULL);
	/* Nothing was written without it. */
	ck_assert_uint_eq(fault_plan.calls, 1);
	fault_arm(CALL_SIZE | CALL_WRITE, NULL, 1, 1, ENOSPC);
	ck_assert_int_eq(ww_journal_room(&book.journal, JOURNAL_PREPARED), WW_EFULL);
	fault_arm(CALL_SIZE, NULL, 1, 1, EIO);
	ck_assert_int_eq(ww_journal_room(&book.journal, JOURNAL_PREPARED), WW_EIO);
	fault_disarm();
	ck_assert_uint_eq(book.journal.offset, offset);
	ck_assert_uint_eq(ww_journal_space(&book.journal), JOURNAL_PREPARED);
	/* An interrupted call is made again. */
	fault_arm(CALL_SIZE, NULL, 1, 2, EINTR);
	OK(ww_journal_room(&book.journal, JOURNAL_PREPARED));
	ck_assert_uint_eq(fault_plan.calls, 3);
	fault_disarm();
	/* The largest record asks for space, and a larger one does not. */
	fault_arm(CALL_SIZE, NULL, 1, 2, EIO);
	ck_assert_int_eq(ww_journal_append(&book.journal, bytes, JOURNAL_RECORD_MAX - 1), WW_EIO);
	ck_assert_uint_eq(fault_plan.calls, 1);
	ck_assert_int_eq(ww_journal_append(&book.journal, bytes, JOURNAL_RECORD_MAX), WW_EFULL);
	ck_assert_uint_eq(fault_plan.calls, 1);
	fault_disarm();
	free(bytes);
	book_append(&book, "two");
	ASSERT_READS(&book, "one two");
	book_end(&book);
}
END_TEST

START_TEST(zeros_that_cannot_be_written_ahead_are_no_matter)
{
	for (int error = 0; error <= EIO; error += EIO) {
		book_make(&book);
		book.journal.fills = 1;
		book.journal.filled = 0;
		/* The record itself is the first write. */
		fault_arm(CALL_WRITE, NULL, 2, UINT32_MAX / 2, error);
		book_append(&book, "one");
		ck_assert_uint_eq(fault_plan.failed, 1);
		fault_disarm();
		ck_assert_uint_eq(book.journal.filled, 0);
		book_append(&book, "two");
		ck_assert_uint_gt(book.journal.filled, book.journal.offset);
		ASSERT_READS(&book, "one two");
		book_end(&book);
	}
}
END_TEST

/* ---- Syncing -------------------------------------------------------------------------------------------------- */

static unsigned syncs_of(int (*call)(struct journal *journal))
{
	fault_arm(CALL_SYNC, NULL, 0, 0, 0);
	OK(call(&book.journal));
	unsigned calls = fault_plan.calls;
	fault_disarm();
	return calls;
}

static int turn(struct journal *journal)
{
	return ww_journal_turn(journal, 0);
}

START_TEST(each_file_with_something_new_is_synced_and_no_other)
{
	book_make(&book);
	ck_assert_uint_eq(syncs_of(ww_journal_sync), 0);
	book_append(&book, "one");
	ck_assert_uint_eq(book.journal.synced, 1);
	ck_assert_uint_eq(syncs_of(ww_journal_sync), 1);
	ck_assert_uint_eq(book.journal.synced, 2);
	ck_assert_uint_eq(syncs_of(ww_journal_sync), 0);
	book_append(&book, "two");
	/* The new file, and its name. */
	ck_assert_uint_eq(syncs_of(turn), 2);
	ck_assert_uint_eq(book.journal.synced, 2);
	book_append(&book, "three");
	ck_assert_uint_eq(syncs_of(ww_journal_sync), 2);
	ck_assert_uint_eq(book.journal.synced, 4);
	ck_assert_uint_eq(syncs_of(ww_journal_sync), 0);
	/* The mark at the end of a file. */
	book_turn(&book);
	ck_assert_uint_eq(syncs_of(ww_journal_sync), 1);
	book_end(&book);
}
END_TEST

START_TEST(a_failed_sync_is_final_whatever_the_error)
{
	static const int errors[] = {EIO, ENOSPC, EDQUOT, EINTR};
	char text[FAULT_TEXT];
	char expected[512];

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		book_make(&book);
		book_append_synced(&book, "one");
		book_append(&book, "two");
		fault_arm(CALL_SYNC, "/journal.1", 1, 1, errors[i]);
		ck_assert_int_eq(ww_journal_sync(&book.journal), WW_EIO);
		fault_arm(ALL, NULL, 0, 0, 0);
		/* What was not stable never is, for all that is known, and nothing follows it. */
		ck_assert_int_eq(ww_journal_sync(&book.journal), WW_EIO);
		ck_assert_int_eq(ww_journal_append(&book.journal, "three", 5), WW_EIO);
		ck_assert_uint_eq(fault_plan.calls, 0);
		fault_disarm();
		ck_assert_uint_eq(book.journal.synced, 2);
		ck_assert_int_eq(ww_fault_describe(&book.fault, text), WW_EIO);
		(void)snprintf(
		    expected, sizeof expected, "%s could not be synced: %s", book_path(&book, 1), strerror(errors[i]));
		ck_assert_str_eq(text, expected);
		book_end(&book);
	}
}
END_TEST

START_TEST(no_file_is_synced_after_one_that_failed)
{
	book_make(&book);
	book_append(&book, "one");
	book_turn(&book);
	book_append(&book, "two");
	fault_arm(CALL_SYNC, NULL, 1, 1, EIO);
	ck_assert_int_eq(ww_journal_sync(&book.journal), WW_EIO);
	ck_assert_uint_eq(fault_plan.calls, 1);
	fault_disarm();
	ck_assert_uint_eq(book.journal.synced, 1);
	book_end(&book);
}
END_TEST

/* ---- Turning -------------------------------------------------------------------------------------------------- */

/* Fail the call of that number in a turn. Returns whether there was one. */
static int fail_in_turn(unsigned which, unsigned call, int error, int is_last)
{
	uint64_t record;
	int answer;

	book_make(&book);
	book_append_synced(&book, "one");
	fault_arm(which, NULL, call, 1, error);
	answer = ww_journal_turn(&book.journal, is_last);
	unsigned failed = fault_plan.failed;
	fault_disarm();
	int is_final = ww_fault_is_final(&book.fault);
	ck_assert_uint_eq(ww_journal_end(&book.journal, &record), answer ? 1 : 2);
	ck_assert_uint_eq(record, 2);
	ck_assert(!book_has(&book, "journal.new"));
	ck_assert_int_eq(book_has(&book, "journal.2"), !answer);
	if (answer && !is_final)
		ck_assert_int_eq(answer, error == EACCES ? WW_EDENIED : error == EIO ? WW_EIO : WW_EFULL);
	if (is_final)
		ck_assert_int_eq(answer, WW_EIO);
	if (is_final) {
		ck_assert_int_eq(ww_journal_append(&book.journal, "two", 3), WW_EIO);
		ASSERT_READS(&book, "one");
	} else if (answer || !is_last) {
		book_append_synced(&book, "two");
		ASSERT_READS(&book, "one two");
		book_turn(&book);
		book_append(&book, "three");
		ASSERT_READS(&book, "one two three");
	}
	book_end(&book);
	return failed != 0;
}

START_TEST(each_call_of_a_turn_may_fail)
{
	/* Half a write is no error of other calls. */
	static const int errors[] = {EIO, ENOSPC, EACCES};

	for (int is_last = 0; is_last < 2; is_last++) {
		for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
			unsigned call = 1;
			while (fail_in_turn(ALL, call, errors[i], is_last))
				call++;
			/* open, fallocate, pwrite, fsync, rename, open, fsync and the mark at the end */
			ck_assert_uint_gt(call, 8);
		}
		for (unsigned split = FAULT_HALF_PART; split <= FAULT_LAST; split++) {
			fault_plan.split = split;
			ck_assert_int_eq(fail_in_turn(CALL_WRITE, 1, 0, is_last), 1);
		}
	}
}
END_TEST

/* As 0.1.0 could leave it: a record cut short, of whose head the first bytes were zeroed. */
START_TEST(a_head_that_was_zeroed_in_part_is_passed_over_by_salvage)
{
	struct reading reading;
	uint64_t at;

	book_make(&book);
	book_append_synced(&book, "one");
	at = book.journal.offset;
	book_append(&book, "lost");
	book_zero(&book, 1, at, at + 19);
	book_zero(&book, 1, at + sizeof(struct journal_record), book.journal.offset);
	ASSERT_DAMAGED(&book, "one", "journal.1: record 2 at byte 80 is damaged");
	book_salvage(&book, &reading);
	ck_assert_str_eq(reading_words(&reading), "one");
	book_end(&book);
}
END_TEST

/* Without it nothing is wrong, and so with a part of it. */
START_TEST(the_mark_at_the_end_of_a_file_may_be_cut_short_anywhere)
{
	fault_plan.quick = 1;
	fault_plan.split = FAULT_AT;
	for (unsigned at = 0; at < sizeof(struct journal_record) + 1; at++) {
		fault_plan.at[0] = at;
		ck_assert_int_eq(fail_in_turn(CALL_WRITE, 2, 0, 0), 1);
	}
}
END_TEST

START_TEST(an_interrupted_turn_goes_on)
{
	book_make(&book);
	fault_arm(CALL_SIZE, NULL, 1, 2, EINTR);
	book_turn(&book);
	ck_assert_uint_eq(fault_plan.calls, 3);
	fault_disarm();
	book_end(&book);
}
END_TEST

/* A name comes when the file is stable, and counts when it is stable itself. */
START_TEST(a_turn_syncs_the_file_then_names_it_then_syncs_the_name)
{
	static const struct {
		int error;
		int is_final;
	} calls[] = {{EIO, 1}, {EIO, 0}, {EIO, 1}, {ENOSPC, 0}, {ENOSPC, 0}, {ENOSPC, 0}};
	char expected[512];
	char text[FAULT_TEXT];

	for (unsigned i = 0; i < 6; i++) {
		book_make(&book);
		fault_arm(CALL_SYNC | CALL_RENAME, NULL, i % 3 + 1, 1, calls[i].error);
		ck_assert_int_eq(ww_journal_turn(&book.journal, 0), calls[i].error != ENOSPC ? WW_EIO : WW_EFULL);
		fault_disarm();
		ck_assert_int_eq(ww_fault_is_final(&book.fault), calls[i].is_final);
		(void)ww_fault_describe(&book.fault, text);
		(void)snprintf(expected, sizeof expected, "%s%s could not be synced: Input/output error", book.folder,
		    i == 0 ? "/journal.new" : "");
		ck_assert_str_eq(text, calls[i].is_final ? expected : "");
		ck_assert(!book_has(&book, "journal.2"));
		book_end(&book);
	}
}
END_TEST

START_TEST(a_file_that_cannot_be_removed_stays_with_those_after_it)
{
	struct reading reading = {.replay = {.cut = 2, .record = 3}};

	book_make_files(&book);
	fault_arm(CALL_UNLINK, "journal.1", 1, 1, EACCES);
	ck_assert_int_eq(ww_journal_cut(&book.journal, 2), WW_EDENIED);
	fault_disarm();
	ck_assert(book_has(&book, "journal.1") && book_has(&book, "journal.2") && book_has(&book, "journal.3"));
	book_read_as(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	ck_assert_str_eq(reading_words(&reading), "three");
	OK(ww_journal_cut(&book.journal, 2));
	ck_assert(!book_has(&book, "journal.1") && !book_has(&book, "journal.2"));
	book_end(&book);
}
END_TEST

/* ---- Reading -------------------------------------------------------------------------------------------------- */

START_TEST(a_read_that_fails_is_no_damage)
{
	static const struct {
		unsigned which;
		int error;
		int answer;
	} calls[] = {{CALL_READ, EIO, WW_EIO}, {CALL_READ, EINTR, WW_OK}, {CALL_LOOK, EACCES, WW_EDENIED},
	    {CALL_LOOK, ENOENT, WW_ENOTFOUND}, {CALL_LOOK, EMFILE, WW_EIO}, {CALL_LOOK, ENOMEM, WW_ENOMEM}};
	struct reading reading;

	book_make(&book);
	book_append(&book, "one");
	book_turn(&book);
	book_append(&book, "two");
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		fault_arm(calls[i].which, "/journal.2", 1, 1, calls[i].error);
		book_read(&book, &reading);
		ck_assert_uint_eq(fault_plan.failed, 1);
		fault_disarm();
		ck_assert_int_eq(reading.answer, calls[i].answer);
		ck_assert_int_eq(reading.problems, 0);
		ck_assert_str_eq(reading_words(&reading), calls[i].answer ? "one" : "one two");
	}
	book_end(&book);
}
END_TEST

/* ---- What a sync may have lost --------------------------------------------------------------------------------- */

/* Settle what is read, and count these calls on a file. The one with this number fails. */
static unsigned calls_of_settle(unsigned which, const char *file, unsigned first, int answer)
{
	struct reading reading;
	unsigned calls;

	book_read(&book, &reading);
	ck_assert_int_eq(reading.answer, WW_OK);
	fault_arm(which, file, first, 1, EIO);
	ck_assert_int_eq(ww_replay_settle(&reading.replay), answer);
	calls = fault_plan.calls;
	fault_disarm();
	return calls;
}

/* With the records one, two and three, in a file each; those up to `synced` are stable, and each later one says so. */
static void make_synced(int synced)
{
	static const char *const words[] = {"one", "two", "three"};

	book_make(&book);
	for (int i = 0; i < 3; i++) {
		if (i > 0)
			book_turn(&book);
		book_append(&book, words[i]);
		if (i < synced)
			OK(ww_journal_sync(&book.journal));
	}
}

START_TEST(what_may_be_in_memory_alone_is_written_again_and_then_synced)
{
	static const struct {
		int synced;
		unsigned again[3]; /* whether a file is written again */
	} cases[] = {{0, {1, 1, 1}}, {1, {0, 1, 1}}, {2, {0, 0, 1}}, {3, {0, 0, 1}}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		make_synced(cases[i].synced);
		for (unsigned file = 1; file <= 3; file++) {
			char name[16];
			(void)snprintf(name, sizeof name, "/journal.%u", file);
			unsigned again = cases[i].again[file - 1];
			ck_assert_uint_eq(calls_of_settle(CALL_WRITE, name, 0, WW_OK), again);
			ck_assert_uint_eq(calls_of_settle(CALL_SYNC, name, 0, WW_OK), again);
			if (!again)
				continue;
			/* If it cannot be written, it is not synced; and the second call is the sync. */
			ck_assert_uint_eq(calls_of_settle(CALL_WRITE | CALL_SYNC, name, 1, WW_EIO), 1);
			ck_assert_uint_eq(calls_of_settle(CALL_WRITE | CALL_SYNC, name, 2, WW_EIO), 2);
			ck_assert_uint_eq(calls_of_settle(CALL_SYNC, name, 1, WW_EIO), 1);
		}
		ASSERT_READS(&book, "one two three");
		book_end(&book);
	}
}
END_TEST

START_TEST(each_byte_is_written_again_in_its_place)
{
	struct reading reading;

	make_synced(0);
	uint64_t size = book_size(&book, 3);
	unsigned char *before = malloc(size);
	unsigned char *after = malloc(size);
	book_read_at(&book, 3, 0, before, size);
	book_read(&book, &reading);
	/* Half of the first write, and the rest in another. */
	fault_arm(CALL_WRITE, "/journal.3", 1, 1, 0);
	fault_plan.split = FAULT_HALF;
	OK(ww_replay_settle(&reading.replay));
	ck_assert_uint_eq(fault_plan.calls, 2);
	/* A write of nothing would be made again without end. */
	fault_plan.split = FAULT_AT;
	fault_plan.at[0] = 0;
	fault_arm(CALL_WRITE, "/journal.3", 1, 1, 0);
	ck_assert_int_eq(ww_replay_settle(&reading.replay), WW_EFULL);
	fault_disarm();
	fault_plan.split = FAULT_HALF_PART;
	ck_assert_uint_eq(book_size(&book, 3), size);
	book_read_at(&book, 3, 0, after, size);
	ck_assert_mem_eq(after, before, size);
	free(before);
	free(after);
	book_end(&book);
}
END_TEST

START_TEST(a_journal_without_a_file_is_settled)
{
	OK(ww_replay_settle(&(struct replay){.folder = "/nowhere"}));
}
END_TEST

/* ---- Giving back room ------------------------------------------------------------------------------------------ */

static unsigned calls_of_giving_back(const struct reading *reading, uint64_t number)
{
	char name[16];

	(void)snprintf(name, sizeof name, "/journal.%u", (unsigned)number);
	fault_arm(CALL_SIZE, name, 0, 0, 0);
	ww_replay_give_back(&reading->replay);
	unsigned calls = fault_plan.calls;
	fault_disarm();
	return calls;
}

/* The index has the first file, the second one is full, and the third one has room. */
START_TEST(room_is_given_back_in_each_file_above_the_cut_that_has_some)
{
	struct reading reading = {.replay = {.cut = 1, .record = 2}};
	static const unsigned calls[] = {0, 0, 1};

	book_make_files(&book);
	book_cut_short(&book, 2, sizeof(struct journal_head) + 2 * sizeof(struct journal_record) + 8 + 1);
	struct journal_head head = book_head(&book, 2);
	head.prepared = sizeof head;
	book_set_head(&book, 2, head);
	book_read_as(&book, &reading);
	OK(reading.answer);
	for (uint64_t number = 1; number <= 3; number++)
		ck_assert_uint_eq(calls_of_giving_back(&reading, number), calls[number - 1]);
	ck_assert_uint_eq(book_size(&book, 3), JOURNAL_PREPARED);
	ASSERT_READS(&book, "one two three");
	book_end(&book);
}
END_TEST

TEST_MAIN("journal/faults", a_full_disk_is_not_final, the_first_failed_sync_is_told, damage_is_told_until_a_sync_fails,
    a_long_text_is_cut, a_record_that_cannot_be_written_leaves_the_journal_as_it_was,
    a_write_may_be_short_anywhere_and_so_may_what_zeros_it, a_record_that_failed_never_counts_beside_the_next_file,
    what_is_zeroed_is_stable_before_something_else_is_written, space_is_taken_before_a_record_is_written,
    zeros_that_cannot_be_written_ahead_are_no_matter, each_file_with_something_new_is_synced_and_no_other,
    a_failed_sync_is_final_whatever_the_error, no_file_is_synced_after_one_that_failed, each_call_of_a_turn_may_fail,
    a_head_that_was_zeroed_in_part_is_passed_over_by_salvage, the_mark_at_the_end_of_a_file_may_be_cut_short_anywhere,
    an_interrupted_turn_goes_on, a_turn_syncs_the_file_then_names_it_then_syncs_the_name,
    a_file_that_cannot_be_removed_stays_with_those_after_it, a_read_that_fails_is_no_damage,
    what_may_be_in_memory_alone_is_written_again_and_then_synced, each_byte_is_written_again_in_its_place,
    a_journal_without_a_file_is_settled, room_is_given_back_in_each_file_above_the_cut_that_has_some)
