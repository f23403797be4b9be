/* A batch begins one write, and only if it may. Its notes are kept in order, and its first error ends it. */
/* tier: check */
#include "lib/jobs/local/writing.h"

#include "tests/lib/jobs/fixture.h"
#include "tests/support/memory.h"

static struct world world;
static struct jobs_local *jobs;
static struct store_ops ops;
static const struct store_ops *real;
static int begins;
static int room_error;
static size_t asked;

static int count_begin(void *self)
{
	begins++;
	return real->begin(self);
}

static int answer_room(void *self, size_t size)
{
	(void)self;
	asked = size;
	return room_error;
}

static void make(void)
{
	world_make(&world, KIND_MEMORY);
	jobs = local_of(world.jobs);
	real = jobs->store.ops;
	ops = *real;
	ops.begin = count_begin;
	ops.room = answer_room;
	jobs->store.ops = &ops;
	begins = room_error = 0;
	OK(ww_jobs_begin(world.jobs));
}

static void end(int result)
{
	ck_assert_int_eq(ww_jobs_commit(world.jobs), result);
	jobs->store.ops = real;
	world_end(&world);
}

START_TEST(a_batch_begins_one_write)
{
	make();
	OK(ww_jobs_writing(jobs));
	OK(ww_jobs_writing(jobs));
	OK(ww_jobs_writing_more(jobs, 10));
	ck_assert_int_eq(begins, 1);
	ck_assert(jobs->writing);
	end(WW_OK);
}
END_TEST

START_TEST(without_room_no_write_begins)
{
	make();
	room_error = WW_EFULL;
	ck_assert_int_eq(ww_jobs_writing_more(jobs, 10000), WW_EFULL);
	ck_assert_uint_gt(asked, 10000);
	ck_assert_int_eq(begins, 0);
	/* An end is written all the same. */
	OK(ww_jobs_writing(jobs));
	ck_assert_int_eq(begins, 1);
	end(WW_OK);
}
END_TEST

START_TEST(a_store_that_may_only_be_read_is_not_written)
{
	make();
	jobs->config.flags |= WW_JOBS_READONLY;
	room_error = WW_EFULL;
	ck_assert_int_eq(ww_jobs_writing(jobs), WW_EDENIED);
	ck_assert_int_eq(ww_jobs_writing_more(jobs, 1), WW_EDENIED);
	jobs->config.flags &= ~(uint32_t)WW_JOBS_READONLY;
	ck_assert_int_eq(begins, 0);
	end(WW_OK);
}
END_TEST

START_TEST(the_first_error_ends_the_batch)
{
	make();
	OK(ww_jobs_broken(jobs, WW_OK));
	OK(ww_jobs_writing(jobs));
	ck_assert_int_eq(ww_jobs_broken(jobs, WW_ENOMEM), WW_ENOMEM);
	ck_assert_int_eq(ww_jobs_broken(jobs, WW_EIO), WW_EIO);
	ck_assert_int_eq(ww_jobs_writing(jobs), WW_ENOMEM);
	end(WW_ENOMEM);
	ck_assert_int_eq(begins, 1);
}
END_TEST

START_TEST(notes_are_kept_in_order_as_far_as_there_is_memory)
{
	const struct ww_allocator *allocator;
	struct test_memory memory;
	struct undo undo = {.kind = UNDO_COUNTS};
	size_t room;

	make();
	for (uint64_t i = 0; i < 100; i++) {
		undo.id = i;
		OK(ww_jobs_note(jobs, &undo));
	}
	ck_assert_uint_eq(jobs->undo_count, 100);
	for (uint64_t i = 0; i < 100; i++)
		ck_assert_uint_eq(jobs->undo[i].id, i);
	room = jobs->undo_room;
	while (jobs->undo_count < room)
		OK(ww_jobs_note(jobs, &undo));
	test_memory_init(&memory, 1);
	allocator = jobs->allocator;
	jobs->allocator = &memory.table;
	ck_assert_int_eq(ww_jobs_note(jobs, &undo), WW_ENOMEM);
	jobs->allocator = allocator;
	ck_assert_uint_eq(jobs->undo_count, room);
	jobs->undo_count = 0;
	end(WW_OK);
}
END_TEST

TEST_MAIN("jobs/writing", a_batch_begins_one_write, without_room_no_write_begins,
    a_store_that_may_only_be_read_is_not_written, the_first_error_ends_the_batch,
    notes_are_kept_in_order_as_far_as_there_is_memory)
