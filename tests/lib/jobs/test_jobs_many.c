/* Many jobs in one call: each ends as it would alone, and all are one write. */
/* tier: check */

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/jobs/fixture.h"

enum { MOST = 20 };

static struct world world;
static const char *const both[] = {WW_TUBE_DEFAULT, "mail"};
static struct ww_job_spec specs[MOST];
static struct ww_job_put given[MOST];
static struct ww_lease leases[MOST];
static struct ww_job_end ends[MOST];

/* Specs of jobs that are due at once, each with a body of its own. */
static void put_some(size_t count)
{
	static const char bodies[MOST + 1] = "abcdefghijklmnopqrst";

	for (size_t i = 0; i < count; i++) {
		specs[i] = spec_of("");
		specs[i].body = &bodies[i];
		specs[i].body_length = 1;
		given[i] = (struct ww_job_put){.spec = &specs[i]};
	}
	OK(ww_jobs_put_many(world.jobs, given, count));
}

static void free_bodies(size_t count)
{
	for (size_t i = 0; i < count; i++)
		ww_jobs_free(world.jobs, leases[i].body);
}

static void expect_ready(uint64_t ready)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.all.ready, ready);
}

static uint64_t commits(void)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(world.jobs, &stats));
	return stats.commits;
}

static void expect_commits(uint64_t before, uint64_t more)
{
	if (world_promises(&world, KIND_BATCHES))
		ck_assert_uint_eq(commits(), before + more);
}

START_TEST(jobs_put_together_are_as_if_put_alone)
{
	static const int expected[] = {0, WW_EINVAL, WW_ETOOBIG, 0, 1, WW_ESTALE, WW_EOVERFLOW, WW_EINVAL, 0};
	enum { COUNT = sizeof expected / sizeof *expected };
	static char much[65536];
	world_make(&world, _i);
	for (size_t i = 0; i < COUNT; i++) {
		specs[i] = spec_of("x");
		given[i] = (struct ww_job_put){.spec = &specs[i]};
	}
	given[1].spec = NULL;
	specs[2].body = much;
	specs[2].body_length = sizeof much;
	for (size_t i = 3; i < 6; i++) {
		specs[i].key = "key";
		specs[i].key_length = 3;
	}
	specs[5].version = 1;
	specs[6].due = UINT64_MAX;
	specs[7].run = 0;
	uint64_t before = commits();
	OK(ww_jobs_put_many(world.jobs, given, COUNT));
	expect_commits(before, 1);
	for (size_t i = 0; i < COUNT; i++)
		ck_assert_int_eq(given[i].result, expected[i]);
	ck_assert_uint_eq(given[3].version, 1);
	ck_assert_uint_eq(given[4].version, 2);
	ck_assert_uint_eq(given[4].id, given[3].id);
	ck_assert_uint_ne(given[8].id, given[0].id);
	expect_ready(3);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(many_are_leased_in_the_order_of_single_reserves)
{
	world_make(&world, _i);
	put_some(10);
	struct ww_job_spec urgent = spec_of("urgent");
	urgent.tube = both[1];
	urgent.priority = 0;
	uint64_t first = put_job(&world, &urgent);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 2, leases, 4), 4);
	ck_assert_uint_eq(leases[0].id, first);
	ck_assert_str_eq(leases[0].tube, "mail");
	for (size_t i = 1; i < 4; i++) {
		size_t which = 0;
		while (which < 10 && given[which].id != leases[i].id)
			which++;
		ck_assert_uint_lt(which, 10);
		if (world_promises(&world, KIND_ONE_ROW)) {
			ck_assert_uint_eq(which, i - 1);
			ck_assert_uint_gt(leases[i].token, leases[i - 1].token);
		}
		ck_assert_uint_eq(leases[i].body_length, 1);
		ck_assert_mem_eq(leases[i].body, specs[which].body, 1);
	}
	free_bodies(4);
	/* Fewer than `most`: no more are ready. */
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, MOST), 7);
	free_bodies(7);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 2, leases, MOST), 0);
	world_end(&world);
}
END_TEST

/* The jobs are put one by one: they get into different rows in a kind that has more than one. */
START_TEST(many_are_leased_in_order_of_their_priorities)
{
	world_make(&world, _i);
	for (uint32_t i = 0; i < MOST; i++) {
		struct ww_job_spec spec = spec_of("any");
		spec.tube = both[i % 2];
		spec.priority = i * 7 % MOST;
		put_job(&world, &spec);
	}
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 2, leases, MOST), MOST);
	for (uint32_t i = 0; i < MOST; i++)
		ck_assert_uint_eq(leases[i].priority, i);
	free_bodies(MOST);
	world_end(&world);
}
END_TEST

START_TEST(no_job_of_a_paused_tube_is_leased)
{
	world_make(&world, _i);
	put_some(3);
	OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, WW_SECOND));
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 2, leases, MOST), 0);
	world_pass(&world, WW_SECOND);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 2, leases, MOST), 3);
	free_bodies(3);
	world_end(&world);
}
END_TEST

START_TEST(leases_finished_together_are_as_if_finished_alone)
{
	world_make(&world, _i);
	put_some(4);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, MOST), 4);
	free_bodies(4);
	for (size_t i = 0; i < 4; i++)
		ends[i] = (struct ww_job_end){leases[i].id, leases[i].token, 7};
	ends[1].token++;
	ends[3] = ends[2];
	uint64_t before = commits();
	OK(ww_jobs_finish_many(world.jobs, ends, 4));
	expect_commits(before, 1);
	ck_assert_int_eq(ends[0].result, WW_OK);
	ck_assert_int_eq(ends[1].result, WW_ESTALE);
	ck_assert_int_eq(ends[2].result, WW_OK);
	ck_assert_int_eq(ends[3].result, WW_ESTALE);
	ck_assert_int_eq(info_of(&world, leases[1].id).state, WW_JOB_RESERVED);
	ck_assert_int_eq(info_of(&world, leases[3].id).state, WW_JOB_RESERVED);
	OK(ww_jobs_finish(world.jobs, leases[1].id, leases[1].token));
	world_check(&world);
	world_end(&world);
}
END_TEST

/* More than one message to Redis takes. */
enum { HUNDREDS = 600 };

/* Put them; each seventh is refused. Returns how many were put. */
static size_t put_hundreds(void)
{
	static struct ww_job_spec many[HUNDREDS];
	static struct ww_job_put puts[HUNDREDS];
	static char bodies[HUNDREDS][8];
	size_t count = 0;

	for (size_t i = 0; i < HUNDREDS; i++) {
		(void)snprintf(bodies[i], sizeof bodies[i], "%zu", i);
		many[i] = spec_of(bodies[i]);
		many[i].key = bodies[i];
		many[i].key_length = i % 3 ? strlen(bodies[i]) : 0;
		many[i].run = i % 7 ? many[i].run : 0;
		puts[i] = (struct ww_job_put){.spec = &many[i]};
	}
	OK(ww_jobs_put_many(world.jobs, puts, HUNDREDS));
	for (size_t i = 0; i < HUNDREDS; i++) {
		struct ww_job_info info;
		void *body;
		ck_assert_int_eq(puts[i].result, i % 7 ? WW_OK : WW_EINVAL);
		if (puts[i].result)
			continue;
		OK(ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = puts[i].id}, &info, &body));
		ck_assert_uint_eq(info.body_length, strlen(bodies[i]));
		ck_assert_mem_eq(body, bodies[i], strlen(bodies[i]));
		ww_jobs_free(world.jobs, body);
		count++;
	}
	return count;
}

static void reserve_hundreds(struct ww_lease *held, size_t count)
{
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, held, HUNDREDS), (int)count);
	for (size_t i = 0; i < count; i++)
		ww_jobs_free(world.jobs, held[i].body);
}

/* Finish them, each fifth by a wrong token. Then finish these: none was finished in place of another. */
static void finish_hundreds(const struct ww_lease *held, size_t count)
{
	static struct ww_job_end endings[HUNDREDS];
	size_t last = 0;

	for (size_t i = 0; i < count; i++)
		endings[i] = (struct ww_job_end){held[i].id, held[i].token + (i % 5 == 0), 7};
	OK(ww_jobs_finish_many(world.jobs, endings, count));
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(endings[i].result, i % 5 ? WW_OK : WW_ESTALE);
	for (size_t i = 0; i < count; i += 5)
		endings[last++] = (struct ww_job_end){held[i].id, held[i].token, 7};
	OK(ww_jobs_finish_many(world.jobs, endings, last));
	for (size_t i = 0; i < last; i++)
		OK(endings[i].result);
}

START_TEST(hundreds_of_jobs_are_as_if_alone)
{
	static struct ww_lease held[HUNDREDS];
	size_t count;

	world_make(&world, _i);
	count = put_hundreds();
	reserve_hundreds(held, count);
	finish_hundreds(held, count);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(calls_for_many_take_part_in_a_batch)
{
	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	uint64_t before = commits();
	OK(ww_jobs_begin(world.jobs));
	put_some(5);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, 3), 3);
	free_bodies(3);
	for (size_t i = 0; i < 3; i++)
		ends[i] = (struct ww_job_end){.id = leases[i].id, .token = leases[i].token};
	OK(ww_jobs_finish_many(world.jobs, ends, 3));
	OK(ww_jobs_commit(world.jobs));
	expect_commits(before, 1);
	expect_ready(2);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_failed_write_undoes_a_whole_call)
{
	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	put_some(4);
	world_fail(&world, FAIL_COMMIT);
	specs[1].run = 0;
	ck_assert_int_eq(ww_jobs_put_many(world.jobs, given, 3), WW_EFULL);
	ck_assert_int_eq(given[0].result, WW_EFULL);
	ck_assert_int_eq(given[1].result, WW_EINVAL);
	ck_assert_int_eq(given[2].result, WW_EFULL);
	expect_ready(4);
	/* A lease writes nothing. It can fail only together with another change. */
	OK(ww_jobs_begin(world.jobs));
	(void)put_job(&world, &specs[0]);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, MOST), 5);
	free_bodies(5);
	ck_assert_int_eq(ww_jobs_commit(world.jobs), WW_EFULL);
	expect_ready(4);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, MOST), 4);
	free_bodies(4);
	for (size_t i = 0; i < 4; i++)
		ends[i] = (struct ww_job_end){.id = leases[i].id, .token = leases[i].token};
	ends[2].token++;
	ck_assert_int_eq(ww_jobs_finish_many(world.jobs, ends, 4), WW_EFULL);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(ends[i].result, i == 2 ? WW_ESTALE : WW_EFULL);
	world_fail(&world, FAIL_NOTHING);
	ck_assert_int_eq(info_of(&world, leases[0].id).state, WW_JOB_RESERVED);
	OK(ww_jobs_finish_many(world.jobs, ends, 4));
	ck_assert_int_eq(ends[3].result, WW_OK);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(leases_are_not_given_if_the_write_fails)
{
	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	put_some(2);
	/* This job has been due for too long: reserving it writes its next due time. */
	struct ww_job_spec spec = spec_of("old");
	spec.priority = UINT32_MAX;
	spec.period = 10 * WW_SECOND;
	spec.missed = WW_MISSED_SKIP;
	spec.skip = WW_SECOND;
	(void)put_job(&world, &spec);
	world_pass(&world, 15 * WW_SECOND);
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, MOST), WW_EFULL);
	world_fail(&world, FAIL_NOTHING);
	expect_ready(3);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, MOST), 2);
	free_bodies(2);
	expect_ready(0);
	world_check(&world);
	world_end(&world);
}
END_TEST

/* The jobs before a damaged one are leased, and the next call reports the damage. */
START_TEST(a_damaged_record_among_many_is_reported_by_the_next_call)
{
	unsigned char key[16];
	struct store_bytes value;
	unsigned char copy[1024];

	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	world.is_damaged = 1;
	put_some(4);
	const struct store *store = &local_of(world.jobs)->store;
	store_write64(key, info_of(&world, given[2].id).due);
	store_write64(key + 8, given[2].id);
	OK(store->ops->begin(store->self));
	OK(store->ops->get(store->self, STORE_DUE, (struct store_bytes){key, sizeof key}, &value));
	memcpy(copy, value.data, value.size);
	copy[value.size - 1] ^= 1;
	OK(store->ops->put(
	    store->self, STORE_DUE, (struct store_bytes){key, sizeof key}, (struct store_bytes){copy, value.size}));
	OK(store->ops->commit(store->self));
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, MOST), 2);
	free_bodies(2);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, MOST), WW_ECORRUPT);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 1, leases, MOST), 1);
	ck_assert_uint_eq(leases[0].id, given[3].id);
	free_bodies(1);
	world_end(&world);
}
END_TEST

START_TEST(a_count_of_zero_is_allowed_and_null_for_many_is_not)
{
	const char *const bad[] = {WW_TUBE_DEFAULT, ""};
	world_make(&world, _i);
	OK(ww_jobs_put_many(world.jobs, NULL, 0));
	OK(ww_jobs_finish_many(world.jobs, NULL, 0));
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 2, NULL, 0), 0);
	ck_assert_int_eq(ww_jobs_put_many(world.jobs, NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_finish_many(world.jobs, NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 2, NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, NULL, 2, leases, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, bad, 2, leases, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, both, 2, leases, (size_t)INT_MAX + 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_put_many(NULL, given, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_finish_many(NULL, ends, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_reserve_many(NULL, both, 2, leases, 1), WW_EINVAL);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/many", jobs_put_together_are_as_if_put_alone, many_are_leased_in_the_order_of_single_reserves,
    many_are_leased_in_order_of_their_priorities, no_job_of_a_paused_tube_is_leased,
    leases_finished_together_are_as_if_finished_alone, hundreds_of_jobs_are_as_if_alone,
    calls_for_many_take_part_in_a_batch, a_failed_write_undoes_a_whole_call, leases_are_not_given_if_the_write_fails,
    a_damaged_record_among_many_is_reported_by_the_next_call, a_count_of_zero_is_allowed_and_null_for_many_is_not)
