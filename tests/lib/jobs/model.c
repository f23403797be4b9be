/* The oracle of a store: a slow model that each call and the time change as they must change the store. */
#include "tests/lib/jobs/model.h"

#include <string.h>

const char *const model_tubes[TUBES] = {"default", "mail", "a-much-longer-name-of-a-tube"};

struct oracle model_oracle;
struct world model_world;
uint64_t model_random;
uint64_t model_step;
uint64_t model_now;

uint64_t model_below(uint64_t limit)
{
	return seed_below(&model_random, limit);
}

struct expected *model_find(uint64_t id)
{
	for (int i = 0; i < JOBS; i++)
		if (model_oracle.jobs[i].id == id)
			return &model_oracle.jobs[i];
	return NULL;
}

struct expected *model_find_key(unsigned tube, unsigned key)
{
	for (int i = 0; key && i < JOBS; i++)
		if (model_oracle.jobs[i].id && model_oracle.jobs[i].tube == tube && model_oracle.jobs[i].key == key)
			return &model_oracle.jobs[i];
	return NULL;
}

const struct ended *model_find_ended(unsigned tube, unsigned key)
{
	const struct ended *ended = &model_oracle.ended[tube][key];

	return ended->id && ended->until > model_now ? ended : NULL;
}

/* ---- Time passes */

void model_wait(struct expected *job, uint64_t due)
{
	job->due = due;
	job->state = due <= model_now ? WW_JOB_READY : WW_JOB_DELAYED;
	job->token = 0;
	job->missed = 0;
}

void model_bury(struct expected *job)
{
	job->state = WW_JOB_BURIED;
	job->token = 0;
	job->missed = 0;
	job->buries++;
	job->burial = model_now;
	job->version++;
}

void model_set_expires(struct expected *job)
{
	job->expires = job->expire ? job->base + job->expire : 0;
}

void model_unexpire(struct expected *job)
{
	job->expires = 0;
	if (!job->period)
		job->expire = 0;
}

static int has_expired(const struct expected *job)
{
	return job->id && job->state == WW_JOB_READY && job->expires && job->expires <= model_now;
}

static void expect_expired(struct expected *job)
{
	if (job->expired == WW_EXPIRED_BURY) {
		model_bury(job);
	} else if (job->period) {
		while (job->base + job->expire <= model_now)
			job->base += job->period;
		model_set_expires(job);
		job->tries = 0;
		job->version++;
		model_wait(job, job->base);
	} else {
		if (job->hold)
			model_oracle.ended[job->tube][job->key] =
			    (struct ended){job->id, job->version, model_now + job->hold};
		memset(job, 0, sizeof *job);
	}
}

void model_expire(void)
{
	for (int i = 0; i < JOBS; i++)
		if (has_expired(&model_oracle.jobs[i]))
			expect_expired(&model_oracle.jobs[i]);
}

static void expect_time_out(struct expected *job)
{
	job->tries++;
	job->timeouts++;
	if (job->attempts && job->tries >= job->attempts)
		model_bury(job);
	else if (job->attempts) {
		job->version++;
		model_wait(job, model_now);
	} else {
		/* Its due time stays, because nothing is written. */
		job->state = WW_JOB_READY;
		job->token = 0;
		job->missed = 0;
	}
}

/* Let come due what is due by then, one moment after the other. */
void model_pass(uint64_t ns)
{
	uint64_t end = model_now + ns;

	for (;;) {
		struct expected *next = NULL;
		uint64_t first = end + 1;
		for (int i = 0; i < JOBS; i++) {
			struct expected *job = &model_oracle.jobs[i];
			uint64_t at = job->state == WW_JOB_DELAYED ? job->due : job->ends;
			if (job->id && (job->state == WW_JOB_DELAYED || job->state == WW_JOB_RESERVED) && at < first)
				first = at, next = job;
		}
		if (!next)
			break;
		/* The store notices it only when the clock is set. */
		model_now = end;
		if (next->state == WW_JOB_DELAYED)
			next->state = WW_JOB_READY;
		else
			expect_time_out(next);
	}
	model_now = end;
	model_expire();
	world_pass(&model_world, ns);
	AGREE(world_now(&model_world) == model_now);
}

/* ---- Calls */

int model_is_before(const struct expected *one, const struct expected *other)
{
	return !other || one->priority < other->priority || (one->priority == other->priority && one->id < other->id);
}

void model_lease(struct expected *job, const struct ww_lease *lease)
{
	uint64_t body;

	AGREE(lease->id == job->id);
	AGREE(lease->token > (world_promises(&model_world, KIND_ONE_ROW) ? model_oracle.last_token : job->last_token));
	AGREE(lease->ends == model_now + job->run);
	AGREE(lease->attempt == job->tries + 1);
	AGREE(lease->body_length == sizeof body);
	memcpy(&body, lease->body, sizeof body);
	AGREE(body == job->body);
	AGREE(strcmp(lease->tube, model_tubes[job->tube]) == 0);
	job->missed = job->period && model_now > job->base ? (model_now - job->base) / job->period : 0;
	AGREE(lease->missed == job->missed);
	model_oracle.last_token = job->last_token = job->token = lease->token;
	job->ends = lease->ends;
	job->state = WW_JOB_RESERVED;
	job->reserves++;
	ww_jobs_free(model_world.jobs, lease->body);
}

void model_kick(struct expected *job)
{
	job->kicks++;
	job->tries = 0;
	job->version++;
	if (job->state == WW_JOB_BURIED)
		model_unexpire(job);
	job->burial = 0;
	model_wait(job, model_now);
}

/* ---- Comparing */

static void compare(const struct ww_job_info *info, const struct expected *job)
{
	uint64_t ends = job->state == WW_JOB_RESERVED ? job->ends : job->due;

	AGREE(info->state == job->state);
	AGREE(info->version == job->version);
	AGREE(info->priority == job->priority && info->attempts == job->attempts && info->code == job->code);
	AGREE(strcmp(info->tube, model_tubes[job->tube]) == 0);
	AGREE((info->key_length != 0) == (job->key != 0));
	AGREE(memcmp(info->body, &job->body, sizeof job->body) == 0);
	AGREE(job->state == WW_JOB_BURIED || info->due == job->due);
	AGREE(info->left == (job->state == WW_JOB_BURIED || ends < model_now ? 0 : ends - model_now));
	AGREE(info->token == job->token);
	AGREE(info->expire == job->expire && info->expires == job->expires);
	AGREE(info->hold == job->hold && info->debounce == (job->first ? model_now - job->first : 0));
	AGREE(info->reserves == job->reserves && info->timeouts == job->timeouts && info->releases == job->releases);
	AGREE(info->buries == job->buries && info->kicks == job->kicks && info->tries == job->tries);
}

/* Which jobs a list has had. */
struct listed {
	size_t count;
	unsigned char had[JOBS];
};

static int compare_listed(const struct ww_job_info *info, void *context)
{
	const struct expected *job = model_find(info->id);
	struct listed *listed = context;

	AGREE(job != NULL);
	compare(info, job);
	/* Redis may make a table smaller between two pages, and then tell some of it again (jobs_redis.h). */
	AGREE(!listed->had[job - model_oracle.jobs] || world_promises(&model_world, KIND_IN_REDIS));
	listed->count += !listed->had[job - model_oracle.jobs];
	listed->had[job - model_oracle.jobs] = 1;
	return 0;
}

static int compare_ended(const struct ww_job_info *info, void *context)
{
	const struct ended *ended = NULL;

	for (unsigned at = 0; at < TUBES * (KEYS + 1); at++)
		if (model_oracle.ended[at / (KEYS + 1)][at % (KEYS + 1)].id == info->id)
			ended = model_find_ended(at / (KEYS + 1), at % (KEYS + 1));
	AGREE(info->state == WW_JOB_ENDED);
	AGREE(ended && info->version == ended->version && info->left == ended->until - model_now);
	AGREE(info->due + info->hold == ended->until);
	++*(size_t *)context;
	return 0;
}

static void compare_all_ended(void)
{
	struct ww_job_filter filter = {.states = 1u << WW_JOB_ENDED};
	struct ww_jobs_stats stats;
	size_t count = 0;
	size_t there = 0;

	OK(ww_jobs_list(model_world.jobs, &filter, SIZE_MAX, compare_ended, &count, NULL));
	for (unsigned at = 0; at < TUBES * (KEYS + 1); at++)
		there += model_find_ended(at / (KEYS + 1), at % (KEYS + 1)) != NULL;
	AGREE(count == there);
	OK(ww_jobs_stats(model_world.jobs, &stats));
	AGREE(stats.kept == there);
}

void model_compare(void)
{
	struct ww_job_filter filter = {0};
	struct listed listed = {0};
	size_t there = 0;

	do
		OK(ww_jobs_list(model_world.jobs, &filter, 7, compare_listed, &listed, &filter.after));
	while (filter.after);
	for (int i = 0; i < JOBS; i++)
		there += model_oracle.jobs[i].id != 0;
	AGREE(listed.count == there);
	compare_all_ended();
	for (unsigned tube = 0; tube < TUBES; tube++) {
		struct ww_tube_stats stats = {0};
		uint64_t states[5] = {0};
		for (int i = 0; i < JOBS; i++)
			if (model_oracle.jobs[i].id && model_oracle.jobs[i].tube == tube)
				states[model_oracle.jobs[i].state]++;
		(void)ww_jobs_tube(model_world.jobs, model_tubes[tube], &stats);
		AGREE(stats.delayed == states[WW_JOB_DELAYED] && stats.ready == states[WW_JOB_READY]);
		AGREE(stats.reserved == states[WW_JOB_RESERVED] && stats.buried == states[WW_JOB_BURIED]);
	}
	world_check(&model_world);
}
