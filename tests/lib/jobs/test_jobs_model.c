/*
 * Random operations on a store of each kind and on its oracle, a slow model. Stores are closed and opened again, or are
 * open twice. The writes of some batches fail: then nothing may have changed.
 *
 * WW_MODEL_OPS sets the number of steps; a costly kind does a part of them. WW_SEED sets the seed, which is printed.
 */
/* tier: long, no-valgrind */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/jobs/model.h"

#define STEPS UINT64_C(1000000)

/* Jobs of a call that takes many. */
enum { MANY = 5 };

/* A code is lower than this. */
enum { CODES = 6 };

static struct oracle saved;
/* What delays are counted in: with longer ones, stores have jobs of many hours. */
static uint64_t unit;
/* One of so many steps is followed by a new opening. */
static uint64_t reopens;

static struct expected *some_job(void)
{
	return &model_oracle.jobs[model_below(JOBS)];
}

/* ---- Steps */

/* A job to put. */
struct draft {
	struct ww_job_spec spec;
	unsigned tube, key;
	uint64_t body;
	char text[8];
};

static void draw(struct draft *draft)
{
	struct ww_job_spec *spec = &draft->spec;

	OK(ww_job_spec_default(spec));
	draft->tube = (unsigned)model_below(TUBES);
	draft->key = model_below(3) ? 0 : 1 + (unsigned)model_below(KEYS);
	draft->body = seed_next(&model_random);
	spec->tube = model_tubes[draft->tube];
	spec->key = draft->text;
	spec->key_length = draft->key ? (size_t)snprintf(draft->text, sizeof draft->text, "k%u", draft->key) : 0;
	spec->body = &draft->body;
	spec->body_length = sizeof draft->body;
	spec->due = model_below(3) ? model_below(20000) * unit : 0;
	spec->priority = (uint32_t)model_below(4) * 600;
	spec->run = (1 + model_below(10)) * WW_SECOND;
	spec->period = model_below(8) ? 0 : (1 + model_below(3000)) * unit;
	spec->attempts = model_below(3) ? 0 : 1 + (uint32_t)model_below(3);
	if (world_promises(&model_world, KIND_EXPIRES) && model_below(3) == 0) {
		spec->expire = (1 + model_below(10000)) * unit;
		spec->expired = (enum ww_expired)model_below(2);
	}
	if (world_promises(&model_world, KIND_CODES) && model_below(3) == 0)
		spec->code = (uint32_t)model_below(CODES);
	if (draft->key && model_below(4))
		spec->key_mode = (enum ww_key_mode)model_below(WW_KEY_UNIQUE + 1);
	if (spec->key_mode == WW_KEY_DEBOUNCE || spec->key_mode == WW_KEY_UNIQUE) {
		spec->period = 0;
		spec->key_span = (1 + model_below(20000)) * unit;
	}
}

/* The job of the model that it replaces, or a free one; NULL if there is none. */
static struct expected *place_of(const struct draft *draft)
{
	struct expected *job = model_find_key(draft->tube, draft->key);

	return job ? job : model_find(0);
}

static int is_kept(const struct draft *draft, const struct expected *job)
{
	int waits = job->state == WW_JOB_DELAYED || job->state == WW_JOB_READY;
	uint64_t left = job->due > model_now ? job->due - model_now : 0;

	switch (draft->spec.key_mode) {
	case WW_KEY_IF_ABSENT:
	case WW_KEY_UNIQUE:
		return 1;
	case WW_KEY_KEEP_EARLIER:
		return waits && left <= draft->spec.due;
	case WW_KEY_KEEP_LATER:
		return waits && left >= draft->spec.due;
	default:
		return 0;
	}
}

/* When the first of the debounced puts was, of which this is one. */
static uint64_t first_of(const struct draft *draft, const struct expected *job)
{
	if (draft->spec.key_mode != WW_KEY_DEBOUNCE)
		return 0;
	return job->id && job->first && job->state != WW_JOB_BURIED && !job->reserves ? job->first : model_now;
}

/* Whether the put has kept another job, which the model has. */
static int expect_kept(const struct draft *draft, int result, uint64_t id, uint64_t version)
{
	const struct ended *ended = model_find_ended(draft->tube, draft->key);
	const struct expected *job = place_of(draft);

	if (draft->key && ended) {
		AGREE(result == WW_PUT_ENDED && id == ended->id && version == ended->version);
		return 1;
	}
	model_oracle.ended[draft->tube][draft->key].id = 0;
	if (!job->id || !is_kept(draft, job))
		return 0;
	AGREE(result == WW_PUT_KEPT && id == job->id && version == job->version);
	return 1;
}

static void expect_put(const struct draft *draft, int result, uint64_t id, uint64_t version)
{
	struct expected *job = place_of(draft);
	int replaced = job->id != 0;
	uint64_t due = model_now + draft->spec.due;
	uint64_t first = first_of(draft, job);

	if (expect_kept(draft, result, id, version))
		return;
	if (first && due > first + draft->spec.key_span)
		due = first + draft->spec.key_span > model_now ? first + draft->spec.key_span : model_now;
	AGREE(result == replaced);
	AGREE(version == (replaced ? job->version + 1 : 1));
	if (replaced)
		AGREE(id == job->id);
	else if (world_promises(&model_world, KIND_ONE_ROW))
		AGREE(id == model_oracle.last_id + 1);
	else
		AGREE(id && !model_find(id));
	model_oracle.last_id = id > model_oracle.last_id ? id : model_oracle.last_id;
	*job = (struct expected){.id = id,
	    .tube = draft->tube,
	    .key = draft->key,
	    .body = draft->body,
	    .base = due,
	    .first = first,
	    .hold = draft->spec.key_mode == WW_KEY_UNIQUE ? draft->spec.key_span : 0,
	    .period = draft->spec.period,
	    .run = draft->spec.run,
	    .last_token = job->last_token,
	    .version = version,
	    .priority = draft->spec.priority,
	    .code = draft->spec.code,
	    .attempts = draft->spec.attempts,
	    .expire = draft->spec.expire,
	    .expired = draft->spec.expired};
	model_set_expires(job);
	model_wait(job, due);
}

static void put(void)
{
	struct draft draft;
	uint64_t id, version;

	draw(&draft);
	const struct expected *job = place_of(&draft);
	if (!job)
		return;
	if (job->id && draft.spec.key_mode == WW_KEY_REPLACE && model_below(4) == 0) {
		draft.spec.version = job->version + 1;
		AGREE(ww_jobs_put(model_world.jobs, &draft.spec, NULL, NULL) == WW_ESTALE);
		draft.spec.version = job->version;
	}
	int result = ww_jobs_put(model_world.jobs, &draft.spec, &id, &version);
	expect_put(&draft, result, id, version);
}

/* Put some at once. One may replace another, and a refused one does not keep the others from being put. */
static void put_many(void)
{
	struct draft drafts[MANY];
	struct ww_job_put puts[MANY];
	size_t count = 1 + (size_t)model_below(MANY);
	size_t refused = (size_t)model_below(2 * MANY);
	size_t free_places = 0;

	for (int i = 0; i < JOBS; i++)
		free_places += model_oracle.jobs[i].id == 0;
	if (free_places < count)
		return;
	for (size_t i = 0; i < count; i++) {
		draw(&drafts[i]);
		if (i == refused)
			drafts[i].spec.run = 0;
		puts[i] = (struct ww_job_put){.spec = &drafts[i].spec};
	}
	OK(ww_jobs_put_many(model_world.jobs, puts, count));
	for (size_t i = 0; i < count; i++)
		if (i == refused)
			AGREE(puts[i].result == WW_EINVAL);
		else
			expect_put(&drafts[i], puts[i].result, puts[i].id, puts[i].version);
}

/* The names of the tubes whose bits are set. */
static size_t name_tubes(unsigned watched, const char *names[TUBES])
{
	size_t count = 0;

	for (unsigned i = 0; i < TUBES; i++)
		if (watched >> i & 1)
			names[count++] = model_tubes[i];
	return count;
}

/* What a worker knows that watches all of these tubes: often everything. */
static uint32_t some_code(void)
{
	return model_below(2) ? (uint32_t)model_below(CODES) : WW_JOB_CODE_MAX;
}

static struct expected *best_of(unsigned watched, uint32_t code)
{
	struct expected *best = NULL;

	for (int i = 0; i < JOBS; i++) {
		struct expected *job = &model_oracle.jobs[i];
		if (job->id && job->state == WW_JOB_READY && watched >> job->tube & 1 && job->code <= code &&
		    model_is_before(job, best))
			best = job;
	}
	return best;
}

static void expect_best(unsigned watched, uint32_t code, const struct ww_lease *lease)
{
	struct expected *best = best_of(watched, code);

	AGREE(best != NULL);
	/* With more than one row it may be any job of that priority. */
	if (!world_promises(&model_world, KIND_ONE_ROW)) {
		struct expected *other = model_find(lease->id);
		AGREE(other && other->state == WW_JOB_READY && watched >> other->tube & 1 && other->code <= code);
		AGREE(other->priority == best->priority);
		best = other;
	}
	model_lease(best, lease);
}

static void reserve(void)
{
	unsigned watched = 1 + (unsigned)model_below((1 << TUBES) - 1);
	const char *names[TUBES];
	size_t count = name_tubes(watched, names);
	struct ww_lease lease;
	int result = ww_jobs_reserve(model_world.jobs, names, count, &lease);

	AGREE(result == (best_of(watched, WW_JOB_CODE_MAX) != NULL));
	if (result)
		expect_best(watched, WW_JOB_CODE_MAX, &lease);
}

static void reserve_many(void)
{
	unsigned watched = 1 + (unsigned)model_below((1 << TUBES) - 1);
	const char *names[TUBES];
	size_t count = name_tubes(watched, names);
	struct ww_lease leases[MANY];
	size_t most = 1 + (size_t)model_below(MANY);
	const struct ww_reserve what = {names, count, some_code()};
	int result = ww_jobs_reserve_known(model_world.jobs, &what, leases, most);

	AGREE(result >= 0 && (size_t)result <= most);
	for (int i = 0; i < result; i++)
		expect_best(watched, what.code, &leases[i]);
	AGREE((size_t)result == most || !best_of(watched, what.code));
}

static void reserve_one(void)
{
	struct expected *job = some_job();
	struct ww_lease lease;

	if (!job->id) {
		AGREE(ww_jobs_reserve_job(model_world.jobs, model_oracle.last_id + 1, &lease) == WW_ENOTFOUND);
		return;
	}
	if (job->state == WW_JOB_RESERVED) {
		AGREE(ww_jobs_reserve_job(model_world.jobs, job->id, &lease) == WW_EINUSE);
		return;
	}
	if (job->state != WW_JOB_READY)
		job->due = model_now;
	if (job->state == WW_JOB_BURIED)
		model_unexpire(job);
	OK(ww_jobs_reserve_job(model_world.jobs, job->id, &lease));
	model_lease(job, &lease);
}

static void expect_finish(struct expected *job)
{
	if (!job->period) {
		if (job->hold)
			model_oracle.ended[job->tube][job->key] =
			    (struct ended){job->id, job->version, model_now + job->hold};
		memset(job, 0, sizeof *job);
		return;
	}
	if (job->base <= model_now)
		job->base += (job->missed + 1) * job->period;
	job->tries = 0;
	job->version++;
	model_set_expires(job);
	model_wait(job, job->base);
	model_expire();
}

static void finish(struct expected *job)
{
	OK(ww_jobs_finish(model_world.jobs, job->id, job->token));
	AGREE(ww_jobs_finish(model_world.jobs, job->id, job->token) == WW_ESTALE);
	expect_finish(job);
}

/* The leases of some neighbours in the model, and one that has ended or never was. */
static void finish_many(void)
{
	struct ww_job_end ends[MANY + 1];
	struct expected *jobs[MANY];
	size_t count = 0;

	for (struct expected *job = some_job(); count < MANY && job < &model_oracle.jobs[JOBS]; job++)
		if (job->id && job->state == WW_JOB_RESERVED) {
			jobs[count] = job;
			ends[count++] = (struct ww_job_end){.id = job->id, .token = job->token};
		}
	if (!count)
		return;
	ends[count] = (struct ww_job_end){.id = ends[0].id, .token = ends[0].token + model_below(2)};
	OK(ww_jobs_finish_many(model_world.jobs, ends, count + 1));
	AGREE(ends[count].result == WW_ESTALE);
	for (size_t i = 0; i < count; i++) {
		OK(ends[i].result);
		expect_finish(jobs[i]);
	}
}

static void release(struct expected *job)
{
	uint64_t delay = model_below(2) ? model_below(5000) * unit : 0;

	if (model_below(3) == 0)
		delay = WW_JOB_BACKOFF;
	job->priority = (uint32_t)model_below(4) * 600;
	int buried = ww_jobs_release(model_world.jobs, job->id, job->token, job->priority, delay, "why");
	job->releases++;
	job->tries++;
	AGREE(buried == (job->attempts && job->tries >= job->attempts));
	if (buried) {
		job->ends = model_now;
		model_bury(job);
		return;
	}
	job->version++;
	uint64_t due = model_now + (delay == WW_JOB_BACKOFF ? 0 : delay);
	if (job->expires && due > job->expires)
		due = job->expires > model_now ? job->expires : model_now;
	model_wait(job, due);
	model_expire();
}

static void end_lease(void)
{
	struct expected *job = some_job();
	uint64_t ends;

	if (!job->id || job->state != WW_JOB_RESERVED)
		return;
	AGREE(ww_jobs_finish(model_world.jobs, job->id, job->token + 1) == WW_ESTALE);
	switch (model_below(5)) {
	case 0:
		release(job);
		break;
	case 3:
		OK(ww_jobs_return(model_world.jobs, job->id, job->token));
		job->state = WW_JOB_READY;
		job->token = 0;
		job->missed = 0;
		model_expire();
		break;
	case 1:
		job->ends = model_now;
		job->priority = (uint32_t)model_below(4) * 600;
		OK(ww_jobs_bury(model_world.jobs, job->id, job->token, job->priority, NULL));
		model_bury(job);
		break;
	case 2:
		OK(ww_jobs_touch(model_world.jobs, job->id, job->token, &ends));
		job->ends = model_now + job->run;
		AGREE(ends == job->ends);
		break;
	default:
		finish(job);
		break;
	}
}

static void move(void)
{
	struct expected *job = some_job();
	uint64_t delay = model_below(20000) * unit;
	struct ww_job_ref ref = {.id = job->id};
	uint64_t version;
	char text[8];

	if (!job->id)
		return;
	if (job->key && model_below(2)) {
		ref = (struct ww_job_ref){.tube = model_tubes[job->tube], .key = text};
		ref.key_length = (size_t)snprintf(text, sizeof text, "k%u", job->key);
	}
	ref.version = model_below(2) ? job->version : 0;
	int result = ww_jobs_move(model_world.jobs, &ref, delay, 0, &version);
	if (job->state == WW_JOB_RESERVED) {
		AGREE(result == WW_EINUSE);
	} else if (job->state == WW_JOB_BURIED) {
		AGREE(result == WW_EINVAL);
	} else {
		AGREE(result == WW_OK && version == job->version + 1);
		job->version = version;
		job->base = model_now + delay;
		model_set_expires(job);
		model_wait(job, model_now + delay);
	}
}

static void cancel(void)
{
	struct expected *job = some_job();
	struct ww_job_ref ref = {.id = job->id, .version = job->version};

	if (!job->id || model_below(2))
		return;
	AGREE(ww_jobs_cancel(model_world.jobs, &ref) == (job->state != WW_JOB_RESERVED));
	AGREE(ww_jobs_cancel(model_world.jobs, &ref) == WW_ENOTFOUND);
	memset(job, 0, sizeof *job);
}

static uint64_t moment_of(const struct expected *job)
{
	return job->state == WW_JOB_BURIED ? job->burial : job->due;
}

/*
 * Leases that end in the same tick are buried in any order: the jobs that the store chose must be among the first ones
 * of that state. With more than one row, a kick may choose any delayed job.
 */
static uint64_t expect_kicks_of(unsigned tube, enum ww_job_state state)
{
	enum ww_job_state is[JOBS] = {0};
	int is_ordered = state == WW_JOB_BURIED || world_promises(&model_world, KIND_ONE_ROW);
	uint64_t last = 0;
	uint64_t kicked = 0;

	for (int i = 0; i < JOBS; i++) {
		struct expected *job = &model_oracle.jobs[i];
		if (!job->id || job->tube != tube || job->state != state)
			continue;
		OK(ww_jobs_state(model_world.jobs, job->id, &is[i]));
		if (is[i] == WW_JOB_READY && moment_of(job) > last)
			last = moment_of(job);
	}
	for (int i = 0; i < JOBS; i++) {
		AGREE(!is_ordered || is[i] != state || moment_of(&model_oracle.jobs[i]) >= last);
		if (is[i] == WW_JOB_READY) {
			model_kick(&model_oracle.jobs[i]);
			kicked++;
		}
	}
	return kicked;
}

static uint64_t expect_kicks_of_delayed(unsigned tube, uint64_t bound)
{
	for (uint64_t kicked = 0; kicked < bound; kicked++) {
		struct expected *best = NULL;
		for (int i = 0; i < JOBS; i++) {
			struct expected *job = &model_oracle.jobs[i];
			if (job->id && job->tube == tube && job->state == WW_JOB_DELAYED &&
			    (!best || job->due < best->due || (job->due == best->due && job->id < best->id)))
				best = job;
		}
		if (!best)
			return kicked;
		model_kick(best);
	}
	return bound;
}

static void kick(void)
{
	unsigned tube = (unsigned)model_below(TUBES);
	uint64_t bound = 1 + model_below(3);
	uint64_t buried = 0;
	uint64_t delayed = 0;
	uint64_t count;

	for (int i = 0; i < JOBS; i++)
		if (model_oracle.jobs[i].id && model_oracle.jobs[i].tube == tube) {
			buried += model_oracle.jobs[i].state == WW_JOB_BURIED;
			delayed += model_oracle.jobs[i].state == WW_JOB_DELAYED;
		}
	OK(ww_jobs_kick(model_world.jobs, model_tubes[tube], bound, &count));
	if (buried) {
		AGREE(count == (buried < bound ? buried : bound));
		AGREE(expect_kicks_of(tube, WW_JOB_BURIED) == count);
	} else if (world_promises(&model_world, KIND_LISTS_IN_ORDER)) {
		AGREE(expect_kicks_of_delayed(tube, bound) == count);
	} else {
		AGREE(count == (delayed < bound ? delayed : bound));
		AGREE(expect_kicks_of(tube, WW_JOB_DELAYED) == count);
	}
}

static void kick_one(void)
{
	struct expected *job = some_job();

	if (!job->id)
		return;
	int result = ww_jobs_kick_job(model_world.jobs, job->id);
	if (job->state == WW_JOB_READY || job->state == WW_JOB_RESERVED) {
		AGREE(result == WW_ENOTFOUND);
	} else {
		AGREE(result == WW_OK);
		model_kick(job);
	}
}

static void reopen(void)
{
	if (!world_promises(&model_world, KIND_KEEPS))
		return;
	world_reopen(&model_world);
	AGREE(world_now(&model_world) == model_now);
	for (int i = 0; i < JOBS && world_promises(&model_world, KIND_ENDS_LEASES); i++) {
		struct expected *job = &model_oracle.jobs[i];
		if (job->id && job->state == WW_JOB_RESERVED)
			model_wait(job, job->due);
	}
	model_expire();
}

static void one_step(void)
{
	static void (*const steps[])(void) = {put, put, put, put_many, reserve, reserve, reserve_many, end_lease,
	    end_lease, end_lease, finish_many, move, cancel, kick, kick_one, reserve_one};
	uint64_t i = model_below(sizeof steps / sizeof *steps + 2);

	if (i < sizeof steps / sizeof *steps)
		steps[i]();
}

/* ---- Writes that fail */

static void batch(void)
{
	int fails = model_below(2) == 0;
	uint64_t steps = 1 + model_below(10);

	saved = model_oracle;
	OK(ww_jobs_begin(model_world.jobs));
	AGREE(ww_jobs_begin(model_world.jobs) == WW_EBUSY);
	for (uint64_t i = 0; i < steps; i++)
		one_step();
	/* Without a change there is no write that could fail. */
	fails &= local_of(model_world.jobs)->writing;
	world_fail(&model_world, fails ? FAIL_COMMIT : FAIL_NOTHING);
	AGREE(ww_jobs_commit(model_world.jobs) == (fails ? WW_EFULL : WW_OK));
	AGREE(ww_jobs_commit(model_world.jobs) == WW_EBUSY);
	world_fail(&model_world, FAIL_NOTHING);
	if (fails) {
		uint64_t tokens = model_oracle.last_token;
		model_oracle = saved;
		model_oracle.last_token = tokens;
		world_settle(&model_world);
	}
}

static uint64_t steps_of(int kind)
{
	const char *text = getenv("WW_MODEL_OPS");
	uint64_t steps = text ? strtoull(text, NULL, 10) : STEPS;

	return steps / 4 / (kinds[kind]->cost ? kinds[kind]->cost : 1);
}

static void begin(int kind)
{
	static const uint64_t units[] = {MS, WW_SECOND, 60 * WW_SECOND};

	model_random = seed_of_run("test_jobs_model") + (uint64_t)kind;
	memset(&model_oracle, 0, sizeof model_oracle);
	world_make(&model_world, kind);
	unit = world_promises(&model_world, KIND_IN_REDIS) ? MS : units[model_below(sizeof units / sizeof *units)];
	reopens = kinds[kind]->cost >= 100 ? 50 : 500;
	/* A window so small that the store loads and forgets all the time. */
	model_world.config.window = 4 * WW_SECOND;
	model_world.config.window_jobs = 5;
	world_reopen(&model_world);
	model_now = world_now(&model_world);
}

static void run(uint64_t steps)
{
	for (model_step = 0; model_step < steps; model_step++) {
		if (model_world.other && model_below(2))
			world_turn(&model_world);
		if (model_below(20) == 0 && world_promises(&model_world, KIND_BATCHES))
			batch();
		else
			one_step();
		/* A dispatch loads the jobs beyond the window. */
		world_settle(&model_world);
		if (model_below(8) == 0)
			model_pass(model_below(3000) * unit);
		if (model_below(50) == 0)
			model_compare();
		if (model_below(reopens) == 0)
			reopen();
	}
	model_compare();
	world_end(&model_world);
}

START_TEST(a_store_agrees_with_its_oracle)
{
	begin(_i);
	run(steps_of(_i));
}
END_TEST

START_TEST(a_store_that_is_open_twice_agrees_with_its_oracle)
{
	NEEDS(KIND_IN_REDIS);
	begin(_i);
	world_share(&model_world);
	run(steps_of(_i));
}
END_TEST

KINDS_MAIN_ALL("jobs/model", a_store_agrees_with_its_oracle, a_store_that_is_open_twice_agrees_with_its_oracle)
