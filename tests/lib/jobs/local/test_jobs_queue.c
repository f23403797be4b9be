/* Calls run one at a time, those that wait are one batch, and an error of the batch is that of each of its calls. */
/* tier: check, threads */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "lib/jobs/local/batch.h"
#include "lib/jobs/local/queue.h"
#include "tests/lib/jobs/fixture.h"

enum { OTHERS = 5 };

static struct world world;
static struct jobs_local *jobs;
static int commits;
static int commit_error;
static int calls;
static int in_call;
static _Atomic int first_is_in;
static _Atomic int errors;

static int count_commit(struct jobs_local *local)
{
	int error = ww_jobs_commit_batch(local);

	commits++;
	return error ? error : commit_error;
}

static void make(void)
{
	world_make(&world, KIND_MEMORY);
	jobs = local_of(world.jobs);
	jobs->commit = count_commit;
	commits = calls = commit_error = 0;
}

static void end(void)
{
	jobs->commit = ww_jobs_commit_batch;
	world_end(&world);
}

static int note_call(struct jobs_local *local, void *arguments)
{
	ck_assert_ptr_eq(local, jobs);
	ck_assert_int_eq(in_call++, 0);
	ck_assert(ww_jobs_is_mine(local));
	in_call--;
	calls++;
	return arguments ? *(const int *)arguments : 0;
}

START_TEST(calls_between_begin_and_commit_are_one_batch)
{
	int seven = 7;

	make();
	ck_assert(!ww_jobs_is_mine(jobs));
	ck_assert_int_eq(ww_jobs_local_commit(world.jobs), WW_EBUSY);
	OK(ww_jobs_local_begin(world.jobs));
	ck_assert(ww_jobs_is_mine(jobs));
	ck_assert_int_eq(ww_jobs_local_begin(world.jobs), WW_EBUSY);
	ck_assert_int_eq(ww_jobs_submit(jobs, note_call, &seven), 7);
	OK(ww_jobs_submit(jobs, note_call, NULL));
	ck_assert_int_eq(calls, 2);
	ck_assert_int_eq(commits, 0);
	OK(ww_jobs_local_commit(world.jobs));
	ck_assert_int_eq(commits, 1);
	ck_assert(!ww_jobs_is_mine(jobs));
	/* Alone, a call is a batch. */
	OK(ww_jobs_submit(jobs, note_call, NULL));
	ck_assert_int_eq(commits, 2);
	end();
}
END_TEST

START_TEST(an_error_of_the_batch_is_that_of_its_calls)
{
	int seven = 7;

	make();
	commit_error = WW_EFULL;
	ck_assert_int_eq(ww_jobs_submit(jobs, note_call, &seven), WW_EFULL);
	OK(ww_jobs_local_begin(world.jobs));
	ck_assert_int_eq(ww_jobs_submit(jobs, note_call, &seven), 7);
	ck_assert_int_eq(ww_jobs_local_commit(world.jobs), WW_EFULL);
	commit_error = WW_OK;
	ck_assert_int_eq(ww_jobs_submit(jobs, note_call, &seven), 7);
	end();
}
END_TEST

static size_t inside(void)
{
	pthread_mutex_lock(&jobs->lock);
	size_t number = jobs->inside;
	pthread_mutex_unlock(&jobs->lock);
	return number;
}

/* The first call lasts until all others wait for it. */
static int wait_for_others(struct jobs_local *local, void *arguments)
{
	(void)arguments;
	first_is_in = 1;
	while (inside() < 1 + OTHERS)
		(void)sched_yield();
	return note_call(local, NULL);
}

static void *call_first(void *unused)
{
	(void)unused;
	errors += ww_jobs_submit(jobs, wait_for_others, NULL) != WW_OK;
	return NULL;
}

static void *call_too(void *unused)
{
	(void)unused;
	errors += ww_jobs_submit(jobs, note_call, NULL) != WW_OK;
	return NULL;
}

START_TEST(calls_that_wait_are_the_next_batch)
{
	pthread_t threads[1 + OTHERS];

	make();
	ck_assert_int_eq(pthread_create(&threads[0], NULL, call_first, NULL), 0);
	while (!first_is_in)
		(void)sched_yield();
	for (int i = 1; i <= OTHERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_too, NULL), 0);
	for (int i = 0; i <= OTHERS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_int_eq(errors, 0);
	ck_assert_int_eq(calls, 1 + OTHERS);
	ck_assert_int_eq(commits, 2);
	ck_assert_uint_eq(inside(), 0);
	end();
}
END_TEST

TEST_MAIN("jobs/queue", calls_between_begin_and_commit_are_one_batch, an_error_of_the_batch_is_that_of_its_calls,
    calls_that_wait_are_the_next_batch)
