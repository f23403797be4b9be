/* The first delayed or buried job of a tube is found among the jobs of other tubes, and reads no more of them than it must. */
/* tier: check */
#include "lib/jobs/local/search.h"
#include "lib/jobs/local/soonest.h"
#include "tests/lib/jobs/fixture.h"

#define HOUR (3600 * WW_SECOND)

static struct world world;
static struct jobs_local *jobs;
static const struct store_ops *ops;
static unsigned steps;
static struct store_ops counted;

/* The steps of a walk through the index. */
static int next(void *self, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	steps += table == STORE_DUE;
	return ops->next(self, table, key, value);
}

static void make(void)
{
	world_make(&world, KIND_DISK);
	jobs = local_of(world.jobs);
	ops = jobs->store.ops;
	counted = *ops;
	counted.next = next;
	jobs->store.ops = &counted;
	steps = 0;
}

static void end(void)
{
	jobs->store.ops = ops;
	world_end(&world);
}

static uint64_t put(const char *tube, uint64_t delay)
{
	struct ww_job_spec spec = spec_of("x");

	spec.tube = tube;
	spec.due = delay;
	return put_job(&world, &spec);
}

static void cancel(uint64_t id)
{
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 1);
}

/* Returns the id, or 0 if there is none. */
static uint64_t find(int (*search)(struct jobs_local *, struct tube *, uint64_t *), const char *name)
{
	struct tube *tube = ww_jobs_tube_find(jobs, name);
	uint64_t id = 0;
	int error = search(jobs, tube, &id);

	ck_assert_int_eq(error, id ? WW_OK : WW_ENOTFOUND);
	return id;
}

START_TEST(the_first_of_a_tube_is_found_by_its_count)
{
	uint64_t ours;

	make();
	for (unsigned i = 0; i < 50; i++)
		(void)put("other", 5 * HOUR + i);
	(void)put("ours", 5 * HOUR + 60);
	ours = put("ours", 5 * HOUR + 40);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), ours);
	ck_assert_uint_eq(steps, 0);
	/* It is known now. */
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), ours);
	end();
}
END_TEST

START_TEST(when_it_has_left_the_hour_is_searched_once)
{
	const struct soonest *known;
	uint64_t first;
	uint64_t second;

	make();
	first = put("ours", 5 * HOUR);
	for (unsigned i = 0; i < 50; i++)
		(void)put("other", 5 * HOUR + 1 + i);
	second = put("ours", 5 * HOUR + 60);
	(void)put("ours", 9 * HOUR);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), first);
	cancel(first);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), second);
	ck_assert_uint_ge(steps, 50);
	steps = 0;
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), second);
	ck_assert_uint_eq(steps, 0);
	/* A job that is put where nothing was is known at once. */
	first = put("ours", 4 * HOUR);
	known = &ww_jobs_tube_find(jobs, "ours")->soonest[0];
	ck_assert_uint_eq(known->count, 2);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), first);
	ck_assert_uint_eq(steps, 0);
	end();
}
END_TEST

START_TEST(a_job_is_delayed_no_more_when_it_is_due_or_reserved)
{
	struct ww_lease lease;
	uint64_t first;
	uint64_t second;

	make();
	first = put("ours", WW_SECOND);
	second = put("ours", 10 * WW_SECOND);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), first);
	/* Its timer has not fired yet. */
	OK(ww_clock_virtual_advance(world.clock, 2 * WW_SECOND));
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), second);
	world_settle(&world);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), second);
	ck_assert_int_ge(ww_jobs_reserve_job(world.jobs, second, &lease), 0);
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, "ours"), 0);
	end();
}
END_TEST

START_TEST(either_clock_may_have_the_first)
{
	struct ww_job_spec spec = spec_of("x");
	uint64_t elapsed;
	uint64_t wall;

	make();
	spec.due = 3 * HOUR;
	elapsed = put_job(&world, &spec);
	spec.flags = WW_JOB_WALL;
	spec.due = 2 * HOUR;
	wall = put_job(&world, &spec);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, spec.tube), wall);
	cancel(wall);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, spec.tube), elapsed);
	cancel(elapsed);
	ck_assert_uint_eq(find(ww_jobs_search_delayed, spec.tube), 0);
	end();
}
END_TEST

START_TEST(the_first_that_was_buried_comes_first)
{
	uint64_t ids[3];

	make();
	(void)put("other", 0);
	for (unsigned i = 0; i < 3; i++)
		ids[i] = put("default", 0);
	ck_assert_uint_eq(find(ww_jobs_search_buried, "default"), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct ww_lease lease = reserve_job(&world);
		OK(ww_jobs_bury(world.jobs, lease.id, lease.token, 0, NULL));
		ww_jobs_free(world.jobs, lease.body);
	}
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(find(ww_jobs_search_buried, "default"), ids[i]);
		ck_assert_uint_eq(find(ww_jobs_search_buried, "default"), ids[i]);
		OK(ww_jobs_kick_job(world.jobs, ids[i]));
	}
	ck_assert_uint_eq(find(ww_jobs_search_buried, "default"), 0);
	ck_assert_uint_eq(find(ww_jobs_search_buried, "other"), 0);
	end();
}
END_TEST

TEST_MAIN("jobs/search", the_first_of_a_tube_is_found_by_its_count, when_it_has_left_the_hour_is_searched_once,
    a_job_is_delayed_no_more_when_it_is_due_or_reserved, either_clock_may_have_the_first,
    the_first_that_was_buried_comes_first)
