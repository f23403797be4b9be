/*
 * Jobs with a code go to the workers that know it, the others stay; among those that a worker may take, the order is as if
 * there were no others. A random test compares the store with a plain model. WW_SEED sets its seed, which is printed.
 */
/* tier: check */
#include <string.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"

enum { JOBS = 40, GROUPS = 4, CODES = 5 };

static struct world world;
static const char *const here[] = {WW_TUBE_DEFAULT};

static uint64_t put_coded(uint32_t code, uint32_t priority, const char *group)
{
	struct ww_job_spec spec = spec_of("x");

	spec.code = code;
	spec.priority = priority;
	spec.group = group;
	spec.group_length = strlen(group);
	return put_job(&world, &spec);
}

/* Reserve what a worker of this code may take. Returns its id, or 0. */
static uint64_t take(uint32_t code, struct ww_lease *lease)
{
	const struct ww_reserve what = {here, 1, code};
	int got = ww_jobs_reserve_known(world.jobs, &what, lease, 1);

	ck_assert_int_ge(got, 0);
	if (!got)
		return 0;
	ww_jobs_free(world.jobs, lease->body);
	lease->body = NULL;
	return lease->id;
}

static void expect_taken(uint32_t code, uint64_t id)
{
	struct ww_lease lease;

	ck_assert_uint_eq(take(code, &lease), id);
}

static void expect_above(uint32_t code, uint64_t count, uint32_t lowest)
{
	uint64_t found;
	uint32_t least = 0;

	OK(ww_jobs_above(world.jobs, WW_TUBE_DEFAULT, code, &found, &least));
	ck_assert_uint_eq(found, count);
	ck_assert_uint_eq(least, count ? lowest : 0);
}

START_TEST(a_worker_gets_jobs_up_to_its_code)
{
	uint64_t ids[4];
	struct ww_job_info info;
	struct ww_lease lease;

	NEEDS(KIND_CODES);
	world_make(&world, _i);
	ids[0] = put_coded(12, 0, "");
	ids[1] = put_coded(3, 5, "");
	ids[2] = put_coded(0, 7, "");
	ids[3] = put_coded(WW_JOB_CODE_MAX, 9, "");
	expect_above(2, 3, 3);
	expect_above(3, 2, 12);
	expect_above(WW_JOB_CODE_MAX, 0, 0);
	expect_taken(11, ids[1]);
	expect_taken(11, ids[2]);
	expect_taken(11, 0);
	expect_above(11, 2, 12);
	OK(ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = ids[0]}, &info, NULL));
	ck_assert_uint_eq(info.code, 12);
	ck_assert_int_eq(info.state, WW_JOB_READY);
	OK(ww_jobs_peek_next(world.jobs, WW_TUBE_DEFAULT, WW_JOB_READY, &info, NULL));
	ck_assert_uint_eq(info.id, ids[0]);
	expect_taken(12, ids[0]);
	expect_taken(12, 0);
	/* Who says nothing takes all. */
	lease = reserve_job(&world);
	ck_assert_uint_eq(lease.id, ids[3]);
	expect_above(0, 0, 0);
	world_end(&world);
}
END_TEST

START_TEST(a_code_is_stored_and_replaced)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease;
	uint64_t id;

	NEEDS(KIND_CODES);
	NEEDS(KIND_KEEPS);
	world_make(&world, _i);
	spec.key = "k";
	spec.key_length = 1;
	spec.code = 7;
	id = put_job(&world, &spec);
	world_reopen(&world);
	ck_assert_uint_eq(take(6, &lease), 0);
	ck_assert_uint_eq(take(7, &lease), id);
	/* It keeps its code when it fails, and a put of its key gives it another one. */
	OK(ww_jobs_release(world.jobs, id, lease.token, 1024, 0, NULL));
	ck_assert_uint_eq(take(6, &lease), 0);
	spec.code = 0;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	ck_assert_uint_eq(take(0, &lease), id);
	world_end(&world);
}
END_TEST

START_TEST(a_limit_holds_jobs_with_a_code)
{
	const struct ww_limit limit = {.running = 1, .per = WW_SECOND, .burst = 1};
	const struct ww_limit_ref each = {.each = 1};
	struct ww_tube_stats stats;
	struct ww_lease lease, other;
	uint64_t a, b, c;

	NEEDS(KIND_CODES);
	world_make(&world, _i);
	OK(ww_jobs_limit_set(world.jobs, &each, &limit));
	a = put_coded(4, 0, "a");
	b = put_coded(5, 0, "a");
	c = put_coded(6, 0, "b");
	ck_assert_uint_eq(take(5, &lease), a);
	ck_assert_uint_eq(take(5, &other), 0);
	ck_assert_uint_eq(take(6, &other), c);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &stats));
	ck_assert_uint_eq(stats.held, 1);
	OK(ww_jobs_finish(world.jobs, a, lease.token));
	ck_assert_uint_eq(take(4, &lease), 0);
	ck_assert_uint_eq(take(5, &lease), b);
	world_end(&world);
}
END_TEST

START_TEST(codes_out_of_range_are_refused)
{
	struct ww_job_spec spec = spec_of("x");
	const struct ww_reserve what = {here, 1, WW_JOB_CODE_MAX + UINT32_C(1)};
	struct ww_lease lease;
	uint64_t count;
	uint32_t lowest;

	world_make(&world, _i);
	spec.code = WW_JOB_CODE_MAX + UINT32_C(1);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	spec.code = 1;
	ck_assert_int_eq(
	    ww_jobs_put(world.jobs, &spec, NULL, NULL), world_promises(&world, KIND_CODES) ? WW_PUT_NEW : WW_EINVAL);
	ck_assert_int_eq(ww_jobs_reserve_known(world.jobs, &what, &lease, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_wait_known(world.jobs, &what, 0, &lease), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_reserve_known(world.jobs, NULL, &lease, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_above(world.jobs, "", 0, &count, &lowest), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_above(world.jobs, here[0], 0, NULL, &lowest), WW_EINVAL);
	if (world_promises(&world, KIND_CODES))
		ck_assert_int_eq(ww_jobs_above(world.jobs, "nobody", 0, &count, &lowest), WW_ENOTFOUND);
	world_end(&world);
}
END_TEST

/* ---- A model: all jobs, and when each group began to wait with and without codes */

static struct model_job {
	uint64_t id; /* 0: free */
	uint32_t code, priority;
	unsigned group;
	uint64_t due;
	uint64_t token; /* 0: not leased */
} jobs[JOBS];

/* The rule of weights in jobs.h, written down once more. */
static struct model_turn {
	uint64_t at;
	uint64_t number; /* 0: no such job is ready */
} since[GROUPS][2];

static const char *const names[GROUPS] = {"", "a", "b", "c"};
static uint64_t weights[GROUPS];
static uint64_t turns_now;
static uint64_t turns;
static uint64_t state;

static struct model_turn turn_after(unsigned group)
{
	return (struct model_turn){turns_now + 720720 / weights[group], ++turns};
}

static int is_sooner(struct model_turn a, struct model_turn b)
{
	return a.number && (!b.number || a.at < b.at || (a.at == b.at && a.number < b.number));
}

static int is_ready(const struct model_job *job)
{
	return job->id && !job->token && job->due <= world_now(&world);
}

/* A group joins behind the others when it has something, and leaves when it has nothing. */
static void look_who_waits(void)
{
	for (unsigned group = 0; group < GROUPS; group++)
		for (int coded = 0; coded < 2; coded++) {
			int any = 0;
			for (int i = 0; i < JOBS; i++)
				any |= is_ready(&jobs[i]) && jobs[i].group == group && (jobs[i].code != 0) == coded;
			if (!any)
				since[group][coded].number = 0;
			else if (!since[group][coded].number)
				since[group][coded] = turn_after(group);
		}
}

static struct model_turn turn_of(unsigned group, uint32_t code)
{
	struct model_turn turn = {0, 0};

	for (int i = 0; i < JOBS; i++) {
		struct model_turn its = since[group][jobs[i].code != 0];
		if (is_ready(&jobs[i]) && jobs[i].group == group && jobs[i].code <= code && is_sooner(its, turn))
			turn = its;
	}
	return turn;
}

static struct model_job *best_for(uint32_t code)
{
	struct model_job *best = NULL;
	struct model_turn turn = {0, 0};
	unsigned first = GROUPS;

	for (unsigned group = 0; group < GROUPS; group++)
		if (is_sooner(turn_of(group, code), turn)) {
			turn = turn_of(group, code);
			first = group;
		}
	for (int i = 0; i < JOBS; i++) {
		struct model_job *job = &jobs[i];
		if (is_ready(job) && job->group == first && job->code <= code &&
		    (!best || job->priority < best->priority ||
		        (job->priority == best->priority && job->id < best->id)))
			best = job;
	}
	return best;
}

static void model_reserve(void)
{
	uint32_t code = seed_below(&state, 3) ? (uint32_t)seed_below(&state, CODES) : WW_JOB_CODE_MAX;
	struct model_job *best = best_for(code);
	struct model_turn *its = best ? since[best->group] : NULL;
	struct ww_lease lease;

	ck_assert_uint_eq(take(code, &lease), best ? best->id : 0);
	if (!best)
		return;
	struct model_turn turn = is_sooner(its[0], its[1]) ? its[0] : its[1];
	turns_now = turn.at > turns_now ? turn.at : turns_now;
	best->token = lease.token;
	look_who_waits();
	for (int coded = 0; coded < 2; coded++)
		if (its[coded].number)
			its[coded] = turn_after(best->group);
}

static void model_weigh(void)
{
	unsigned group = 1 + (unsigned)seed_below(&state, GROUPS - 1);
	const struct ww_limit_ref ref = {.group = names[group], .group_length = 1};
	struct ww_limit limit = {
	    .weight = seed_below(&state, 2) ? 1 : 1 + seed_below(&state, seed_below(&state, 2) ? 4 : 1000)};

	/* A limit that never holds: with it and without it the weight is the same. */
	limit.running = seed_below(&state, 2) ? JOBS : 0;
	limit.per = WW_SECOND;
	limit.burst = 1;
	weights[group] = limit.weight;
	OK(ww_jobs_limit_set(world.jobs, &ref, &limit));
}

/* Of two jobs that come due at once, either may be the first: so no two do. */
static uint64_t some_delay(void)
{
	uint64_t delay = (1 + seed_below(&state, 200)) * MS;

	for (int i = 0; i < JOBS; i++)
		if (jobs[i].id && jobs[i].due == world_now(&world) + delay)
			return 0;
	return delay;
}

static void model_put(struct model_job *job)
{
	struct ww_job_spec spec = spec_of("x");

	*job = (struct model_job){.code = seed_below(&state, 3) ? (uint32_t)seed_below(&state, CODES) : 0,
	    .priority = (uint32_t)seed_below(&state, 2),
	    .group = (unsigned)seed_below(&state, seed_below(&state, 2) ? 1 : GROUPS)};
	spec.code = job->code;
	spec.priority = job->priority;
	spec.group = names[job->group];
	spec.group_length = strlen(spec.group);
	spec.due = seed_below(&state, 3) ? 0 : some_delay();
	job->due = world_now(&world) + spec.due;
	job->id = put_job(&world, &spec);
}

static void model_change(struct model_job *job)
{
	const struct ww_job_ref ref = {.id = job->id};

	if (!job->token || seed_below(&state, 4) == 0) {
		ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), !job->token);
		job->id = 0;
	} else if (seed_below(&state, 2)) {
		OK(ww_jobs_finish(world.jobs, job->id, job->token));
		job->id = 0;
	} else {
		job->priority = (uint32_t)seed_below(&state, 2);
		OK(ww_jobs_release(world.jobs, job->id, job->token, job->priority, 0, NULL));
		job->due = world_now(&world);
		job->token = 0;
	}
}

static void compare_above(void)
{
	uint32_t code = (uint32_t)seed_below(&state, CODES);
	uint32_t lowest = UINT32_MAX;
	uint32_t found = UINT32_MAX;
	uint64_t count = 0;
	uint64_t above = 0;

	for (int i = 0; i < JOBS; i++)
		if (is_ready(&jobs[i]) && jobs[i].code > code) {
			above++;
			lowest = jobs[i].code < lowest ? jobs[i].code : lowest;
		}
	if (ww_jobs_above(world.jobs, WW_TUBE_DEFAULT, code, &count, &found) == WW_ENOTFOUND)
		found = UINT32_MAX;
	ck_assert_uint_eq(count, above);
	ck_assert_uint_eq(found, lowest);
}

static void model_pass(void)
{
	for (uint64_t left = seed_below(&state, 20); left; left--) {
		world_pass(&world, MS);
		look_who_waits();
	}
}

START_TEST(workers_of_many_codes_are_served_as_in_the_model)
{
	NEEDS(KIND_CODES);
	world_make(&world, _i);
	memset(jobs, 0, sizeof jobs);
	memset(since, 0, sizeof since);
	turns_now = 0;
	for (int i = 0; i < GROUPS; i++)
		weights[i] = 1;
	state = seed_of_run("test_jobs_coded");
	for (int step = seed_rounds(20000 / (kinds[_i]->cost ? (int)kinds[_i]->cost : 1)); step; step--) {
		struct model_job *job = &jobs[seed_below(&state, JOBS)];
		if (seed_below(&state, 20) == 0)
			model_pass();
		else if (seed_below(&state, 50) == 0 && world_promises(&world, KIND_WEIGHTS))
			model_weigh();
		else if (seed_below(&state, 2))
			model_reserve();
		else if (job->id)
			model_change(job);
		else
			model_put(job);
		look_who_waits();
		compare_above();
	}
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/coded", a_worker_gets_jobs_up_to_its_code, a_code_is_stored_and_replaced,
    a_limit_holds_jobs_with_a_code, codes_out_of_range_are_refused, workers_of_many_codes_are_served_as_in_the_model)
