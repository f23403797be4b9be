/* The model of coherent caches: which accesses are transfers of a line. */
/* tier: quick */

#include "tests/support/suite.h"
#include "tools/bench/cores/coherence.h"

enum { LINE = COHERENCE_LINE, LAST = COHERENCE_THREADS - 1 };

static struct coherence *model;

static void reads(unsigned thread, uintptr_t address)
{
	coherence_access(model, thread, address, 8, 0, 1);
}

static void writes(unsigned thread, uintptr_t address)
{
	coherence_access(model, thread, address, 8, 1, 2);
}

static void counts(uint64_t transfers, uint64_t shared)
{
	struct coherence_count count = coherence_counted(model);

	ck_assert_uint_eq(count.transfers, transfers);
	ck_assert_uint_eq(count.shared, shared);
}

START_TEST(memory_of_one_thread_is_never_transferred)
{
	model = coherence_make();
	for (uintptr_t address = LINE; address < 20000 * LINE; address += LINE / 2) {
		writes(3, address);
		reads(3, address);
	}
	counts(0, 0);
	coherence_free(model);
}
END_TEST

START_TEST(a_reader_fetches_a_line_once_until_it_is_written)
{
	model = coherence_make();
	writes(0, LINE);
	reads(1, LINE + 8);
	reads(1, LINE + 16);
	counts(1, 0);
	/* The writer has it still, and takes it from the reader. */
	writes(0, LINE);
	writes(0, LINE);
	counts(2, 0);
	reads(1, LINE);
	counts(3, 0);
	coherence_free(model);
}
END_TEST

START_TEST(readers_do_not_disturb_each_other)
{
	model = coherence_make();
	for (int round = 0; round < 3; round++)
		for (unsigned thread = 0; thread <= LAST; thread++)
			reads(thread, LINE);
	counts(LAST, 0);
	writes(LAST, LINE);
	counts(LAST + 1, 0);
	coherence_free(model);
}
END_TEST

START_TEST(writers_take_a_line_from_each_other)
{
	model = coherence_make();
	for (int round = 0; round < 10; round++) {
		writes(0, LINE);
		writes(LAST, LINE + 56);
	}
	counts(19, 1);
	coherence_begin(model);
	counts(0, 0);
	writes(LAST, LINE);
	counts(0, 0);
	writes(0, LINE);
	counts(1, 1);
	coherence_free(model);
}
END_TEST

START_TEST(an_access_across_lines_is_one_of_each)
{
	model = coherence_make();
	coherence_access(model, 0, 2 * LINE - 1, LINE + 2, 1, 1);
	coherence_access(model, 1, 2 * LINE - 1, LINE + 2, 1, 1);
	counts(3, 3);
	coherence_access(model, 0, LINE, 0, 1, 1);
	counts(3, 3);
	coherence_free(model);
}
END_TEST

START_TEST(the_worst_causes_come_first)
{
	struct coherence_cause causes[3];

	model = coherence_make();
	for (int round = 0; round < 4; round++) {
		writes(0, LINE);
		reads(1, LINE);
	}
	writes(1, LINE);
	ck_assert_uint_eq(coherence_causes(model, causes, 3), 2);
	ck_assert_uint_eq(causes[0].transfers + causes[1].transfers, 8);
	ck_assert_uint_eq(causes[0].transfers, 4);
	ck_assert_uint_eq(coherence_causes(model, causes, 1), 1);
	coherence_free(model);
}
END_TEST

TEST_MAIN("bench/coherence", memory_of_one_thread_is_never_transferred,
    a_reader_fetches_a_line_once_until_it_is_written, readers_do_not_disturb_each_other,
    writers_take_a_line_from_each_other, an_access_across_lines_is_one_of_each, the_worst_causes_come_first)
