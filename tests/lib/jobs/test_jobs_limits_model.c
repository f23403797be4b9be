/*
 * Random limits of a tube, and starts and ends beside them, compared with a plain model. WW_SEED sets the seed, which is
 * printed.
 */
/* tier: check */
#include "tests/lib/jobs/limits.h"
#include "tests/support/seed.h"

static struct world world;
static const struct ww_limit_ref whole = {.tube = WW_TUBE_DEFAULT};
static const char *const here[] = {WW_TUBE_DEFAULT};
static uint64_t state;

/*
 * Two buckets of time: a start takes the time between two starts out of each, and time fills them. The least has room
 * for the burst, and who has enough in it may start. The most has room for the lateness that is made up, too, and who has
 * not enough in it may not.
 */
static struct model {
	struct ww_limit limit;
	uint64_t interval;
	int64_t least;
	int64_t most;
	unsigned running;
	unsigned ready;
	struct ww_lease leases[LIMITS_MOST];
	uint64_t times[20000]; /* of starts since the limit was set */
	unsigned count;
} model;

/* So much lateness may be made up. */
static uint64_t made_up_of(const struct ww_limit *limit)
{
	if (limit->per > limit->starts * 50 * MS)
		return 10 * MS;
	return limit->per < 100 * MS ? limit->per : 100 * MS;
}

/* However much is made up, no span has more than was promised. */
static void check_span(void)
{
	unsigned found = limits_starts_since(model.times, model.count, world_now(&world) - model.limit.per);

	ck_assert_uint_le(found, model.limit.starts + model.limit.starts / 100 + model.limit.burst + 1);
}

static void model_pass(uint64_t ns)
{
	int64_t room = (int64_t)(model.limit.burst * model.interval);

	world_pass(&world, ns);
	model.least = model.least + (int64_t)ns < room ? model.least + (int64_t)ns : room;
	room += (int64_t)made_up_of(&model.limit);
	model.most = model.most + (int64_t)ns < room ? model.most + (int64_t)ns : room;
}

static void model_limit(void)
{
	struct ww_limit *limit = &model.limit;
	uint64_t had = limit->starts;

	model.count = 0;
	*limit = (struct ww_limit){seed_below(&state, 8), seed_below(&state, 50), (1 + seed_below(&state, 1000)) * MS,
	    1 + seed_below(&state, 5), 1};
	model.interval = limit->starts ? (limit->per + limit->starts - 1) / limit->starts : 0;
	OK(ww_jobs_limit_set(world.jobs, &whole, limit));
	model.least = had ? 0 : (int64_t)(limit->burst * model.interval);
	model.most = model.least;
}

static void model_start(void)
{
	struct ww_lease lease;
	int interval = (int)model.interval;
	int may = model.ready && (!model.limit.running || model.running < model.limit.running);
	int got;

	if (model.running == LIMITS_MOST)
		return;
	got = ww_jobs_reserve(world.jobs, here, 1, &lease);
	ck_assert_int_ge(got, 0);
	if (!may || (model.limit.starts && model.most < interval))
		ck_assert_int_eq(got, 0);
	else if (!model.limit.starts || model.least >= interval)
		ck_assert_int_eq(got, 1);
	if (!got)
		return;
	ww_jobs_free(world.jobs, lease.body);
	model.leases[model.running++] = lease;
	model.ready--;
	model.least -= interval;
	model.most -= interval;
	model.times[model.count++] = world_now(&world);
	if (model.limit.starts)
		check_span();
}

static void model_end(void)
{
	struct ww_lease *lease = &model.leases[model.running ? seed_below(&state, model.running) : 0];

	if (!model.running)
		return;
	if (seed_below(&state, 2)) {
		OK(ww_jobs_finish(world.jobs, lease->id, lease->token));
	} else {
		OK(ww_jobs_release(world.jobs, lease->id, lease->token, 1024, 0, NULL));
		model.ready++;
	}
	*lease = model.leases[--model.running];
}

static void check_model(void)
{
	struct ww_limit_info info;
	int found = ww_jobs_limit_get(world.jobs, &whole, &info);

	ck_assert_int_eq(found, model.limit.running || model.limit.starts ? WW_OK : WW_ENOTFOUND);
	if (!found)
		ck_assert_uint_eq(info.running, model.running);
}

START_TEST(limits_are_as_in_the_model)
{
	unsigned steps = 20000 / (kinds[_i]->cost ? kinds[_i]->cost : 1);

	NEEDS(KIND_LIMITS);
	world_make(&world, _i);
	model = (struct model){0};
	state = seed_of_run("test_jobs_limits_model");
	for (unsigned step = 0; step < steps; step++) {
		switch (seed_below(&state, 8)) {
		case 0:
			model_pass(seed_below(&state, 2) ? seed_below(&state, 20 * MS) / 1000 * 1000
			                                 : seed_below(&state, 400) * MS);
			break;
		case 1:
			if (seed_below(&state, 20) == 0)
				model_limit();
			break;
		case 2:
		case 3:
			limits_put(&world, 1);
			model.ready++;
			break;
		case 4:
			model_end();
			break;
		default:
			model_start();
		}
		check_model();
	}
	while (model.running)
		model_end();
	limits_clear(&world);
	while (limits_run_all(&world))
		;
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/limits_model", limits_are_as_in_the_model)
