/* What a call has handed out is taken back if its batch fails: the caller's memory is as it was. */
/* tier: check */
#include <string.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/memory.h"

static struct world world;
static struct test_memory memory;

static void make(void)
{
	world_make(&world, KIND_MEMORY);
	OK(ww_jobs_close(world.jobs));
	test_memory_init(&memory, 0);
	world.config.allocator = &memory.table;
	OK(ww_jobs_open(&world.jobs, &world.config));
}

static void end(void)
{
	world_fail(&world, FAIL_NOTHING);
	world_end(&world);
	ck_assert_uint_eq(memory.blocks, 0);
}

START_TEST(a_put_that_fails_gives_no_id)
{
	struct ww_job_spec spec = spec_of("x");
	uint64_t id = 77;
	uint64_t version = 78;

	make();
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, &version), WW_EFULL);
	ck_assert_uint_eq(id, 77);
	ck_assert_uint_eq(version, 78);
	world_fail(&world, FAIL_NOTHING);
	OK(ww_jobs_put(world.jobs, &spec, &id, &version));
	ck_assert_uint_eq(id, 1);
	ck_assert_uint_eq(version, 1);
	end();
}
END_TEST

START_TEST(a_lease_that_fails_is_not_given)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease = {.id = 77};
	uint64_t id;

	make();
	spec.due = 3600 * WW_SECOND;
	id = put_job(&world, &spec);
	/* A delayed job is written as due, and so this fails after the body was copied. */
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_eq(ww_jobs_reserve_job(world.jobs, id, &lease), WW_EFULL);
	ck_assert_uint_eq(lease.id, 77);
	world_fail(&world, FAIL_NOTHING);
	OK(ww_jobs_reserve_job(world.jobs, id, &lease));
	ck_assert_uint_eq(lease.id, id);
	ww_jobs_free(world.jobs, lease.body);
	end();
}
END_TEST

START_TEST(each_of_many_fails_with_the_batch_unless_it_was_refused)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_job_spec large = spec_of("x");
	struct ww_job_put puts[] = {{.spec = &spec}, {.spec = &large}, {.spec = &spec}};
	struct ww_job_end ends[2] = {{.id = 77}};
	struct ww_lease lease;

	make();
	large.body_length = WW_JOB_BODY_MAX + 1;
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	ends[1] = (struct ww_job_end){.id = lease.id, .token = lease.token};
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_eq(ww_jobs_put_many(world.jobs, puts, 3), WW_EFULL);
	ck_assert_int_eq(puts[0].result, WW_EFULL);
	ck_assert_int_eq(puts[1].result, WW_ETOOBIG);
	ck_assert_int_eq(puts[2].result, WW_EFULL);
	ck_assert_int_eq(ww_jobs_finish_many(world.jobs, ends, 2), WW_EFULL);
	ck_assert_int_eq(ends[0].result, WW_ESTALE);
	ck_assert_int_eq(ends[1].result, WW_EFULL);
	world_fail(&world, FAIL_NOTHING);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	end();
}
END_TEST

static int stop(const struct ww_job_info *info, void *context)
{
	(void)context;
	return info->id == 2 ? -77 : 0;
}

START_TEST(a_list_tells_where_its_callback_ended_it)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_job_filter filter = {0};
	uint64_t next = 0;

	make();
	for (int i = 0; i < 3; i++)
		(void)put_job(&world, &spec);
	ck_assert_int_eq(ww_jobs_list(world.jobs, &filter, 10, stop, NULL, &next), -77);
	ck_assert_uint_eq(next, 2);
	end();
}
END_TEST

TEST_MAIN("jobs/answers", a_put_that_fails_gives_no_id, a_lease_that_fails_is_not_given,
    each_of_many_fails_with_the_batch_unless_it_was_refused, a_list_tells_where_its_callback_ended_it)
