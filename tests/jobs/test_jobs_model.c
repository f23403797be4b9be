/*
 * Random operations on a store of each kind and on its oracle, an array that is looked through whole: with stores that are
 * closed and opened again, also one of two that are open on the same jobs, and with batches whose write fails, after which
 * nothing may have changed.
 *
 * WW_MODEL_OPS sets the number of steps, of which a kind whose steps cost more does a part, WW_SEED the seed, which is printed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/fixture.h"
#include "support/seed.h"

#define STEPS UINT64_C(1000000)
enum { JOBS = 60, TUBES = 3, KEYS = 8 };

/* Check's own assertions write to a file each, also when all is well. */
#define AGREE(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			ck_abort_msg("step %llu: not true: %s", (unsigned long long)step, #condition);                 \
	} while (0)

static const char *const tubes[TUBES] = {"default", "mail", "a-much-longer-name-of-a-tube"};

struct expected {
	uint64_t id; /* 0: the place is free */
	unsigned tube;
	unsigned key; /* 0: none */
	uint64_t body;
	uint64_t due;
	uint64_t base;
	uint64_t period;
	uint64_t run;
	uint64_t ends;
	uint64_t token;
	uint64_t last_token; /* of any of its leases */
	uint64_t version;
	uint64_t missed;
	uint64_t burial;
	uint32_t priority;
	uint32_t attempts;
	uint32_t tries;
	uint32_t reserves, timeouts, releases, buries, kicks;
	enum ww_job_state state;
};

struct oracle {
	struct expected jobs[JOBS];
	uint64_t last_id;
	uint64_t last_token;
};

static struct oracle oracle;
static struct oracle saved;
static struct world world;
static uint64_t random_state;
static uint64_t step;
static uint64_t now; /* of jobs */

static uint64_t below(uint64_t limit)
{
	return seed_below(&random_state, limit);
}

static struct expected *find(uint64_t id)
{
	for (int i = 0; i < JOBS; i++)
		if (oracle.jobs[i].id == id)
			return &oracle.jobs[i];
	return NULL;
}

static struct expected *find_key(unsigned tube, unsigned key)
{
	for (int i = 0; key && i < JOBS; i++)
		if (oracle.jobs[i].id && oracle.jobs[i].tube == tube && oracle.jobs[i].key == key)
			return &oracle.jobs[i];
	return NULL;
}

static struct expected *some_job(void)
{
	return &oracle.jobs[below(JOBS)];
}

/* ---- What time does */

static void wait_for(struct expected *job, uint64_t due)
{
	job->due = due;
	job->state = due <= now ? WW_JOB_READY : WW_JOB_DELAYED;
	job->token = 0;
	job->missed = 0;
}

static void bury_expected(struct expected *job)
{
	job->state = WW_JOB_BURIED;
	job->token = 0;
	job->missed = 0;
	job->buries++;
	job->burial = job->ends > now ? now : job->ends;
	job->version++;
}

static void expect_time_out(struct expected *job)
{
	job->tries++;
	job->timeouts++;
	if (job->attempts && job->tries >= job->attempts)
		bury_expected(job);
	else if (job->attempts) {
		job->version++;
		wait_for(job, now);
	} else {
		/* It keeps its place in time, as nothing is written. */
		job->state = WW_JOB_READY;
		job->token = 0;
		job->missed = 0;
	}
}

/* All that comes due until then, one moment after the other. */
static void pass(uint64_t ns)
{
	uint64_t end = now + ns;

	for (;;) {
		struct expected *next = NULL;
		uint64_t first = end + 1;
		for (int i = 0; i < JOBS; i++) {
			struct expected *job = &oracle.jobs[i];
			uint64_t at = job->state == WW_JOB_DELAYED ? job->due : job->ends;
			if (job->id && (job->state == WW_JOB_DELAYED || job->state == WW_JOB_RESERVED) && at < first)
				first = at, next = job;
		}
		if (!next)
			break;
		/* The store hears of it when the clock has been set, not at its moment. */
		now = end;
		if (next->state == WW_JOB_DELAYED)
			next->state = WW_JOB_READY;
		else
			expect_time_out(next);
	}
	now = end;
	world_pass(&world, ns);
	AGREE(world_now(&world) == now);
}

/* ---- Steps */

static void put(void)
{
	unsigned tube = (unsigned)below(TUBES);
	unsigned key = below(3) ? 0 : 1 + (unsigned)below(KEYS);
	struct expected *job = find_key(tube, key);
	uint64_t body = seed_next(&random_state);
	struct ww_job_spec spec;
	uint64_t id;
	uint64_t version;
	char text[8];
	int replaced = job != NULL;

	for (int i = 0; !job && i < JOBS; i++)
		if (!oracle.jobs[i].id)
			job = &oracle.jobs[i];
	if (!job)
		return;
	OK(ww_job_spec_default(&spec));
	spec.tube = tubes[tube];
	spec.key = text;
	spec.key_length = key ? (size_t)snprintf(text, sizeof text, "k%u", key) : 0;
	spec.body = &body;
	spec.body_length = sizeof body;
	spec.due = below(3) ? below(20000) * MS : 0;
	spec.priority = (uint32_t)below(4) * 600;
	spec.run = (1 + below(10)) * WW_SECOND;
	spec.period = below(8) ? 0 : (1 + below(3000)) * MS;
	spec.attempts = below(3) ? 0 : 1 + (uint32_t)below(3);
	if (key && replaced && below(4) == 0) {
		spec.version = job->version + 1;
		AGREE(ww_jobs_put(world.jobs, &spec, NULL, NULL) == WW_ESTALE);
		spec.version = job->version;
	}
	AGREE(ww_jobs_put(world.jobs, &spec, &id, &version) == replaced);
	AGREE(version == (replaced ? job->version + 1 : 1));
	if (replaced)
		AGREE(id == job->id);
	else if (world_promises(&world, KIND_ONE_ROW))
		AGREE(id == oracle.last_id + 1);
	else
		AGREE(id && !find(id));
	oracle.last_id = id > oracle.last_id ? id : oracle.last_id;
	*job = (struct expected){.id = id,
	    .tube = tube,
	    .key = key,
	    .body = body,
	    .base = now + spec.due,
	    .period = spec.period,
	    .run = spec.run,
	    .last_token = job->last_token,
	    .version = version,
	    .priority = spec.priority,
	    .attempts = spec.attempts};
	wait_for(job, now + spec.due);
}

static int is_before(const struct expected *one, const struct expected *other)
{
	return !other || one->priority < other->priority || (one->priority == other->priority && one->id < other->id);
}

static void expect_lease(struct expected *job, const struct ww_lease *lease)
{
	uint64_t body;

	AGREE(lease->id == job->id);
	AGREE(lease->token > (world_promises(&world, KIND_ONE_ROW) ? oracle.last_token : job->last_token));
	AGREE(lease->ends == now + job->run);
	AGREE(lease->attempt == job->tries + 1);
	AGREE(lease->body_length == sizeof body);
	memcpy(&body, lease->body, sizeof body);
	AGREE(body == job->body);
	AGREE(strcmp(lease->tube, tubes[job->tube]) == 0);
	job->missed = job->period && now > job->base ? (now - job->base) / job->period : 0;
	AGREE(lease->missed == job->missed);
	oracle.last_token = job->last_token = job->token = lease->token;
	job->ends = lease->ends;
	job->state = WW_JOB_RESERVED;
	job->reserves++;
	ww_jobs_free(world.jobs, lease->body);
}

static void reserve(void)
{
	unsigned watched = 1 + (unsigned)below((1 << TUBES) - 1);
	const char *names[TUBES];
	size_t count = 0;
	struct expected *best = NULL;
	struct ww_lease lease;

	for (unsigned i = 0; i < TUBES; i++)
		if (watched >> i & 1)
			names[count++] = tubes[i];
	for (int i = 0; i < JOBS; i++) {
		struct expected *job = &oracle.jobs[i];
		if (job->id && job->state == WW_JOB_READY && watched >> job->tube & 1 && is_before(job, best))
			best = job;
	}
	AGREE(ww_jobs_reserve(world.jobs, names, count, &lease) == (best != NULL));
	if (!best)
		return;
	/* Of one priority it may be any, where jobs are in more than one row. */
	if (!world_promises(&world, KIND_ONE_ROW)) {
		struct expected *other = find(lease.id);
		AGREE(other && other->state == WW_JOB_READY && watched >> other->tube & 1);
		AGREE(other->priority == best->priority);
		best = other;
	}
	expect_lease(best, &lease);
}

static void reserve_one(void)
{
	struct expected *job = some_job();
	struct ww_lease lease;

	if (!job->id) {
		AGREE(ww_jobs_reserve_job(world.jobs, oracle.last_id + 1, &lease) == WW_ENOTFOUND);
		return;
	}
	if (job->state == WW_JOB_RESERVED) {
		AGREE(ww_jobs_reserve_job(world.jobs, job->id, &lease) == WW_EINUSE);
		return;
	}
	if (job->state != WW_JOB_READY)
		job->due = now;
	OK(ww_jobs_reserve_job(world.jobs, job->id, &lease));
	expect_lease(job, &lease);
}

static void finish(struct expected *job)
{
	OK(ww_jobs_finish(world.jobs, job->id, job->token));
	AGREE(ww_jobs_finish(world.jobs, job->id, job->token) == WW_ESTALE);
	if (!job->period) {
		memset(job, 0, sizeof *job);
		return;
	}
	if (job->base <= now)
		job->base += (job->missed + 1) * job->period;
	job->tries = 0;
	job->version++;
	wait_for(job, job->base);
}

static void release(struct expected *job)
{
	uint64_t delay = below(2) ? below(5000) * MS : 0;

	if (below(3) == 0)
		delay = WW_JOB_BACKOFF;
	job->priority = (uint32_t)below(4) * 600;
	int buried = ww_jobs_release(world.jobs, job->id, job->token, job->priority, delay, "why");
	job->releases++;
	job->tries++;
	AGREE(buried == (job->attempts && job->tries >= job->attempts));
	if (buried) {
		job->ends = now;
		bury_expected(job);
		return;
	}
	job->version++;
	wait_for(job, now + (delay == WW_JOB_BACKOFF ? 0 : delay));
}

static void end_lease(void)
{
	struct expected *job = some_job();
	uint64_t ends;

	if (!job->id || job->state != WW_JOB_RESERVED)
		return;
	AGREE(ww_jobs_finish(world.jobs, job->id, job->token + 1) == WW_ESTALE);
	switch (below(5)) {
	case 0:
		release(job);
		break;
	case 3:
		OK(ww_jobs_return(world.jobs, job->id, job->token));
		job->state = WW_JOB_READY;
		job->token = 0;
		job->missed = 0;
		break;
	case 1:
		job->ends = now;
		job->priority = (uint32_t)below(4) * 600;
		OK(ww_jobs_bury(world.jobs, job->id, job->token, job->priority, NULL));
		bury_expected(job);
		break;
	case 2:
		OK(ww_jobs_touch(world.jobs, job->id, job->token, &ends));
		job->ends = now + job->run;
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
	uint64_t delay = below(20000) * MS;
	struct ww_job_ref ref = {.id = job->id};
	uint64_t version;
	char text[8];

	if (!job->id)
		return;
	if (job->key && below(2)) {
		ref = (struct ww_job_ref){.tube = tubes[job->tube], .key = text};
		ref.key_length = (size_t)snprintf(text, sizeof text, "k%u", job->key);
	}
	ref.version = below(2) ? job->version : 0;
	int result = ww_jobs_move(world.jobs, &ref, delay, 0, &version);
	if (job->state == WW_JOB_RESERVED) {
		AGREE(result == WW_EINUSE);
	} else if (job->state == WW_JOB_BURIED) {
		AGREE(result == WW_EINVAL);
	} else {
		AGREE(result == WW_OK && version == job->version + 1);
		job->version = version;
		job->base = now + delay;
		wait_for(job, now + delay);
	}
}

static void cancel(void)
{
	struct expected *job = some_job();
	struct ww_job_ref ref = {.id = job->id, .version = job->version};

	if (!job->id || below(2))
		return;
	AGREE(ww_jobs_cancel(world.jobs, &ref) == (job->state != WW_JOB_RESERVED));
	AGREE(ww_jobs_cancel(world.jobs, &ref) == WW_ENOTFOUND);
	memset(job, 0, sizeof *job);
}

static void kick_expected(struct expected *job)
{
	job->kicks++;
	job->tries = 0;
	job->version++;
	job->burial = 0;
	wait_for(job, now);
}

static uint64_t moment_of(const struct expected *job)
{
	return job->state == WW_JOB_BURIED ? job->burial : job->due;
}

/*
 * Leases that end in the same tick are buried in any order: of those in that state, what the store chose must be among
 * the first ones; but where jobs are in more than one row, it may be any of the delayed ones.
 */
static uint64_t expect_kicks_of(unsigned tube, enum ww_job_state state)
{
	enum ww_job_state is[JOBS] = {0};
	int is_ordered = state == WW_JOB_BURIED || world_promises(&world, KIND_ONE_ROW);
	uint64_t last = 0;
	uint64_t kicked = 0;

	for (int i = 0; i < JOBS; i++) {
		struct expected *job = &oracle.jobs[i];
		if (!job->id || job->tube != tube || job->state != state)
			continue;
		OK(ww_jobs_state(world.jobs, job->id, &is[i]));
		if (is[i] == WW_JOB_READY && moment_of(job) > last)
			last = moment_of(job);
	}
	for (int i = 0; i < JOBS; i++) {
		AGREE(!is_ordered || is[i] != state || moment_of(&oracle.jobs[i]) >= last);
		if (is[i] == WW_JOB_READY) {
			kick_expected(&oracle.jobs[i]);
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
			struct expected *job = &oracle.jobs[i];
			if (job->id && job->tube == tube && job->state == WW_JOB_DELAYED &&
			    (!best || job->due < best->due || (job->due == best->due && job->id < best->id)))
				best = job;
		}
		if (!best)
			return kicked;
		kick_expected(best);
	}
	return bound;
}

static void kick(void)
{
	unsigned tube = (unsigned)below(TUBES);
	uint64_t bound = 1 + below(3);
	uint64_t buried = 0;
	uint64_t delayed = 0;
	uint64_t count;

	for (int i = 0; i < JOBS; i++)
		if (oracle.jobs[i].id && oracle.jobs[i].tube == tube) {
			buried += oracle.jobs[i].state == WW_JOB_BURIED;
			delayed += oracle.jobs[i].state == WW_JOB_DELAYED;
		}
	OK(ww_jobs_kick(world.jobs, tubes[tube], bound, &count));
	if (buried) {
		AGREE(count == (buried < bound ? buried : bound));
		AGREE(expect_kicks_of(tube, WW_JOB_BURIED) == count);
	} else if (world_promises(&world, KIND_LISTS_IN_ORDER)) {
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
	int result = ww_jobs_kick_job(world.jobs, job->id);
	if (job->state == WW_JOB_READY || job->state == WW_JOB_RESERVED) {
		AGREE(result == WW_ENOTFOUND);
	} else {
		AGREE(result == WW_OK);
		kick_expected(job);
	}
}

/* ---- Comparing */

static void compare(const struct ww_job_info *info, const struct expected *job)
{
	uint64_t ends = job->state == WW_JOB_RESERVED ? job->ends : job->due;

	AGREE(info->state == job->state);
	AGREE(info->version == job->version);
	AGREE(info->priority == job->priority && info->attempts == job->attempts);
	AGREE(strcmp(info->tube, tubes[job->tube]) == 0);
	AGREE((info->key_length != 0) == (job->key != 0));
	AGREE(memcmp(info->body, &job->body, sizeof job->body) == 0);
	AGREE(job->state == WW_JOB_BURIED || info->due == job->due);
	AGREE(info->left == (job->state == WW_JOB_BURIED || ends < now ? 0 : ends - now));
	AGREE(info->token == job->token);
	AGREE(info->reserves == job->reserves && info->timeouts == job->timeouts && info->releases == job->releases);
	AGREE(info->buries == job->buries && info->kicks == job->kicks);
}

static int compare_listed(const struct ww_job_info *info, void *context)
{
	const struct expected *job = find(info->id);

	AGREE(job != NULL);
	compare(info, job);
	++*(size_t *)context;
	return 0;
}

static void compare_all(void)
{
	struct ww_job_filter filter = {0};
	size_t count = 0;
	size_t there = 0;

	do
		OK(ww_jobs_list(world.jobs, &filter, 7, compare_listed, &count, &filter.after));
	while (filter.after);
	for (int i = 0; i < JOBS; i++)
		there += oracle.jobs[i].id != 0;
	AGREE(count == there);
	for (unsigned tube = 0; tube < TUBES; tube++) {
		struct ww_tube_stats stats = {0};
		uint64_t states[5] = {0};
		for (int i = 0; i < JOBS; i++)
			if (oracle.jobs[i].id && oracle.jobs[i].tube == tube)
				states[oracle.jobs[i].state]++;
		(void)ww_jobs_tube(world.jobs, tubes[tube], &stats);
		AGREE(stats.delayed == states[WW_JOB_DELAYED] && stats.ready == states[WW_JOB_READY]);
		AGREE(stats.reserved == states[WW_JOB_RESERVED] && stats.buried == states[WW_JOB_BURIED]);
	}
	world_check(&world);
}

static void reopen(void)
{
	if (!world_promises(&world, KIND_KEEPS))
		return;
	world_reopen(&world);
	AGREE(world_now(&world) == now);
	for (int i = 0; i < JOBS && world_promises(&world, KIND_ENDS_LEASES); i++) {
		struct expected *job = &oracle.jobs[i];
		if (job->id && job->state == WW_JOB_RESERVED)
			wait_for(job, job->due);
	}
}

static void one_step(void)
{
	switch (below(16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		put();
		break;
	case 4:
	case 5:
	case 6:
		reserve();
		break;
	case 7:
	case 8:
	case 9:
		end_lease();
		break;
	case 10:
		move();
		break;
	case 11:
		cancel();
		break;
	case 12:
		kick();
		break;
	case 13:
		kick_one();
		break;
	case 14:
		reserve_one();
		break;
	default:
		break;
	}
}

/* ---- Writes that fail */

static void batch(void)
{
	int fails = below(2) == 0;
	uint64_t steps = 1 + below(10);
	uint64_t tokens = oracle.last_token;

	saved = oracle;
	OK(ww_jobs_begin(world.jobs));
	AGREE(ww_jobs_begin(world.jobs) == WW_EBUSY);
	for (uint64_t i = 0; i < steps; i++)
		one_step();
	/* Without a change in the store there is nothing that could fail. */
	fails &= local_of(world.jobs)->writing;
	world_fail(&world, fails ? FAIL_COMMIT : FAIL_NOTHING);
	AGREE(ww_jobs_commit(world.jobs) == (fails ? WW_EFULL : WW_OK));
	AGREE(ww_jobs_commit(world.jobs) == WW_EBUSY);
	world_fail(&world, FAIL_NOTHING);
	if (fails) {
		tokens = oracle.last_token;
		oracle = saved;
		oracle.last_token = tokens;
		world_settle(&world);
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
	random_state = seed_of_run("test_jobs_model") + (uint64_t)kind;
	memset(&oracle, 0, sizeof oracle);
	world_make(&world, kind);
	/* So few that reading ahead and forgetting happen all the time. */
	world.config.window = 4 * WW_SECOND;
	world.config.window_jobs = 5;
	world_reopen(&world);
	now = world_now(&world);
}

static void run(uint64_t steps)
{
	for (step = 0; step < steps; step++) {
		if (world.other && below(2))
			world_turn(&world);
		if (below(20) == 0 && world_promises(&world, KIND_BATCHES))
			batch();
		else
			one_step();
		/* What is beyond the window comes in when the driver is looked after. */
		world_settle(&world);
		if (below(8) == 0)
			pass(below(3000) * MS);
		if (below(50) == 0)
			compare_all();
		if (below(500) == 0)
			reopen();
	}
	compare_all();
	world_end(&world);
}

START_TEST(a_store_does_as_its_oracle)
{
	begin(_i);
	run(steps_of(_i));
}
END_TEST

START_TEST(a_store_that_is_open_twice_does_as_its_oracle)
{
	NEEDS(KIND_IN_REDIS);
	begin(_i);
	world_share(&world);
	run(steps_of(_i));
}
END_TEST

KINDS_MAIN_ALL("jobs/model", a_store_does_as_its_oracle, a_store_that_is_open_twice_does_as_its_oracle)
