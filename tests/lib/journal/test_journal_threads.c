/*
 * A journal and its fault in several threads at once, as the header allows: one appends and turns, one cuts, others sync and
 * ask. Most of what goes wrong without a lock only the thread sanitizer sees each time.
 */
/* tier: quick, threads */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/journal/fixture.h"

enum { RECORDS = 3000, OF_A_FILE = 40, TEXTS = 3000 };

static struct book book;
static atomic_uint_fast64_t may_cut;
static atomic_int done;

static void *append(void *unused)
{
	(void)unused;
	for (uint64_t i = 1; i <= RECORDS; i++) {
		OK(ww_journal_append(&book.journal, &i, sizeof i));
		if (i % OF_A_FILE)
			continue;
		atomic_store(&may_cut, i / OF_A_FILE);
		book_turn(&book);
	}
	atomic_store(&done, 1);
	return NULL;
}

static void *cut(void *unused)
{
	(void)unused;
	while (!atomic_load(&done))
		if (atomic_load(&may_cut) > 1)
			OK(ww_journal_cut(&book.journal, atomic_load(&may_cut) - 1));
	return NULL;
}

static void *sync_often(void *unused)
{
	uint64_t synced = 0;

	(void)unused;
	while (!atomic_load(&done)) {
		ck_assert_uint_gt(ww_journal_space(&book.journal), 0);
		ck_assert_uint_gt(ww_journal_bytes(&book.journal), 0);
		OK(ww_journal_room(&book.journal, 100));
		OK(ww_journal_sync(&book.journal));
		ck_assert_uint_ge(book.journal.synced, synced);
		synced = book.journal.synced;
	}
	return NULL;
}

static int read_next(void *context, const unsigned char *bytes, size_t size)
{
	uint64_t *last = context;
	uint64_t number;

	ck_assert_uint_eq(size, sizeof number);
	memcpy(&number, bytes, sizeof number);
	ck_assert(*last == 0 || number == *last + 1);
	*last = number;
	return WW_OK;
}

/* Run each at the same time, and return when all have ended. */
static void run_beside(int count, void *(*const run[])(void *))
{
	pthread_t thread[8];

	for (int i = 0; i < count; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, run[i], NULL), 0);
	for (int i = 0; i < count; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
}

START_TEST(threads_append_cut_and_sync_at_once)
{
	uint64_t last = 0;
	struct replay replay = {.read = read_next, .context = &last};

	book_make(&book);
	run_beside(4, (void *(*const[])(void *)){append, cut, sync_often, sync_often});
	OK(ww_journal_sync(&book.journal));
	ck_assert_uint_eq(book.journal.synced, RECORDS + 1);
	OK(ww_journal_cut(&book.journal, RECORDS / OF_A_FILE - 1));
	replay.folder = book.folder;
	replay.cut = RECORDS / OF_A_FILE - 1;
	OK(ww_replay(&replay));
	ck_assert_uint_eq(last, RECORDS);
	book_end(&book);
}
END_TEST

/* ---- Faults */

static void *say(char letter)
{
	char text[FAULT_TEXT] = "";

	memset(text, letter, sizeof text - 1);
	for (int i = 0; i < TEXTS; i++)
		ww_fault_full(&book.fault, text);
	return NULL;
}

static void *say_a(void *unused)
{
	(void)unused;
	return say('a');
}

static void *say_b(void *unused)
{
	(void)unused;
	return say('b');
}

static void *hear(void *unused)
{
	char text[FAULT_TEXT];

	(void)unused;
	for (int i = 0; i < TEXTS; i++)
		if (ww_fault_describe(&book.fault, text))
			ck_assert_uint_eq(strspn(text, (char[]){text[0], 0}), FAULT_TEXT - 1);
	return NULL;
}

START_TEST(threads_tell_a_fault_and_hear_of_it_at_once)
{
	ww_fault_init(&book.fault);
	run_beside(3, (void *(*const[])(void *)){say_a, say_b, hear});
	ck_assert_int_eq(ww_fault_describe(&book.fault, NULL), WW_EFULL);
	ww_fault_destroy(&book.fault);
}
END_TEST

TEST_MAIN("journal/threads", threads_append_cut_and_sync_at_once, threads_tell_a_fault_and_hear_of_it_at_once)
