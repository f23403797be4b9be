/* What is known of the first delayed jobs stays right while jobs come and go, and a search goes on where it ends. */
/* tier: check */
#include "lib/jobs/local/soonest.h"

#include <string.h>

#include "tests/lib/jobs/fixture.h"

static struct jobs_local jobs;
static struct soonest known[2];
static struct tube tube;

static void make(void)
{
	jobs.taken_back = 3;
	memset(known, 0, sizeof known);
	tube = (struct tube){.jobs = &jobs, .soonest = known};
	ww_jobs_soonest_ask(&known[0], jobs.taken_back, 100);
	/* Everything up to 1000 was searched, and nothing was there. */
	ww_jobs_soonest_skip(&known[0], 1000, 0);
}

static void expect(const uint64_t *due, unsigned count)
{
	ck_assert_uint_eq(known[0].count, count);
	for (unsigned i = 0; i < count; i++)
		ck_assert_uint_eq(known[0].jobs[i].due, due[i]);
}

START_TEST(jobs_are_in_order_of_due_time_and_id)
{
	const uint64_t due[] = {200, 300, 300, 400};

	make();
	ww_jobs_soonest_add(&tube, 0, 300, 7);
	ww_jobs_soonest_add(&tube, 0, 400, 1);
	ww_jobs_soonest_add(&tube, 0, 300, 5);
	ww_jobs_soonest_add(&tube, 0, 200, 9);
	/* One that is there already is there once. */
	ww_jobs_soonest_add(&tube, 0, 300, 7);
	expect(due, 4);
	ck_assert_uint_eq(known[0].jobs[1].id, 5);
	ck_assert_uint_eq(known[0].jobs[2].id, 7);
	ww_jobs_soonest_remove(&tube, 0, 300, 5);
	/* Neither this time nor this id alone is the job. */
	ww_jobs_soonest_remove(&tube, 0, 300, 9);
	ww_jobs_soonest_remove(&tube, 0, 401, 1);
	ck_assert_uint_eq(known[0].count, 3);
	ck_assert_uint_eq(known[0].jobs[1].id, 7);
	ww_jobs_soonest_drop(&known[0]);
	ck_assert_uint_eq(known[0].jobs[0].id, 7);
}
END_TEST

START_TEST(what_was_not_searched_is_not_known)
{
	make();
	ww_jobs_soonest_add(&tube, 0, 1000, 0);
	ww_jobs_soonest_add(&tube, 0, 2000, 1);
	ck_assert_uint_eq(known[0].count, 0);
	ww_jobs_soonest_add(&tube, 0, 999, UINT64_MAX);
	ck_assert_uint_eq(known[0].count, 1);
	/* A search that found this one begins behind it the next time. */
	ww_jobs_soonest_drop(&known[0]);
	ww_jobs_soonest_find(&known[0], 1500, 4);
	ck_assert_uint_eq(known[0].count, 1);
	ck_assert_uint_eq(known[0].until_due, 1500);
	ck_assert_uint_eq(known[0].until_id, 5);
	ww_jobs_soonest_add(&tube, 0, 1500, 5);
	ck_assert_uint_eq(known[0].count, 1);
	ww_jobs_soonest_add(&tube, 0, 1500, 3);
	ck_assert_uint_eq(known[0].count, 2);
	ck_assert_uint_eq(known[0].jobs[0].id, 3);
}
END_TEST

START_TEST(without_room_the_last_ones_are_searched_again)
{
	const uint64_t first[] = {150, 210, 220, 230, 240, 250, 260, 270};

	make();
	for (unsigned i = 1; i <= SOONEST_MOST; i++)
		ww_jobs_soonest_add(&tube, 0, 200 + 10 * i, i);
	ck_assert_uint_eq(known[0].until_due, 1000);
	/* It is behind all others: a search finds it. */
	ww_jobs_soonest_add(&tube, 0, 290, 20);
	ck_assert_uint_eq(known[0].until_due, 290);
	ck_assert_uint_eq(known[0].until_id, 20);
	/* It takes the place of the last one. */
	ww_jobs_soonest_add(&tube, 0, 150, 21);
	expect(first, SOONEST_MOST);
	ck_assert_uint_eq(known[0].until_due, 280);
	ck_assert_uint_eq(known[0].until_id, SOONEST_MOST);
}
END_TEST

START_TEST(a_batch_that_was_taken_back_or_a_clock_makes_it_wrong)
{
	make();
	ww_jobs_soonest_add(&tube, 0, 300, 1);
	ww_jobs_soonest_ask(&known[0], jobs.taken_back, 200);
	ck_assert_uint_eq(known[0].count, 1);
	ck_assert_uint_eq(known[0].now, 200);
	jobs.taken_back++;
	/* Nobody adds to what is wrong, or takes from it. */
	ww_jobs_soonest_remove(&tube, 0, 300, 1);
	ck_assert_uint_eq(known[0].count, 1);
	ww_jobs_soonest_add(&tube, 0, 400, 2);
	ck_assert_uint_eq(known[0].count, 1);
	ww_jobs_soonest_ask(&known[0], jobs.taken_back, 200);
	ck_assert_uint_eq(known[0].count, 0);
	ck_assert_uint_eq(known[0].until_due, 0);
	/* The wall clock was set back: what is due is to come once more. */
	ww_jobs_soonest_skip(&known[0], 1000, 0);
	ww_jobs_soonest_ask(&known[0], jobs.taken_back, 199);
	ck_assert_uint_eq(known[0].until_due, 0);
}
END_TEST

START_TEST(each_clock_has_its_own)
{
	make();
	ww_jobs_soonest_add(&tube, 1, 300, 1);
	ck_assert_uint_eq(known[0].count + known[1].count, 0);
	ww_jobs_soonest_ask(&known[1], jobs.taken_back, 100);
	ww_jobs_soonest_skip(&known[1], 1000, 0);
	ww_jobs_soonest_add(&tube, 1, 300, 1);
	ck_assert_uint_eq(known[0].count, 0);
	ck_assert_uint_eq(known[1].count, 1);
	/* Of a tube that nobody has asked about nothing is known. */
	tube.soonest = NULL;
	ww_jobs_soonest_add(&tube, 0, 300, 1);
	ww_jobs_soonest_remove(&tube, 0, 300, 1);
}
END_TEST

TEST_MAIN("jobs/soonest", jobs_are_in_order_of_due_time_and_id, what_was_not_searched_is_not_known,
    without_room_the_last_ones_are_searched_again, a_batch_that_was_taken_back_or_a_clock_makes_it_wrong,
    each_clock_has_its_own)
