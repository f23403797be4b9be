/* A job that is listed in one store and put into another, as it was: every state, and every pair of kinds of stores. */
/* tier: check */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/jobs/fixture.h"

#define MINUTE (60 * WW_SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

enum { MOST = 32 };

static const char limited[] = "limited";
static const struct ww_limit_ref limit_ref = {.tube = limited};

static struct world world;

/* Put a job that has a past. Returns its result. */
static int put_past(const struct ww_job_spec *spec, const struct ww_job_info *was, struct ww_job_put *put)
{
	*put = (struct ww_job_put){.spec = spec};
	OK(ww_jobs_put_again(world.jobs, put, &was, 1));
	return put->result;
}

/* ---- Jobs in every state, each with a key that says which */

static struct ww_job_spec named(const char *key)
{
	struct ww_job_spec spec = spec_of(key);

	spec.key = key;
	spec.key_length = strlen(key);
	spec.attempts = 5;
	spec.backoff = 3 * WW_SECOND;
	spec.keep = DAY;
	return spec;
}

static uint64_t put_at(const char *key, uint64_t due)
{
	struct ww_job_spec spec = named(key);

	spec.due = due;
	return put_job(&world, &spec);
}

static struct ww_lease take(uint64_t id)
{
	struct ww_lease lease;

	OK(ww_jobs_reserve_job(world.jobs, id, &lease));
	ww_jobs_free(world.jobs, lease.body);
	return lease;
}

static void bury(uint64_t id, const char *error)
{
	OK(ww_jobs_bury(world.jobs, id, take(id).token, 7, error));
}

static void fill_waiting(void)
{
	uint64_t released = put_at("released", 0);
	uint64_t kicked = put_at("kicked", HOUR);
	struct ww_job_spec spec = named("wall");

	put_at("delayed", 2 * HOUR);
	put_at("ready", 0);
	put_at("soon ready", MINUTE);
	ck_assert_int_eq(ww_jobs_release(world.jobs, released, take(released).token, 8, HOUR, "not now"), 0);
	bury(kicked, "kick me");
	OK(ww_jobs_kick_job(world.jobs, kicked));
	spec.flags = WW_JOB_WALL;
	spec.due = DAY;
	put_job(&world, &spec);
	spec = named("grouped");
	spec.group = "g\0h";
	spec.group_length = 3;
	put_job(&world, &spec);
	spec = named("held");
	spec.tube = limited;
	put_job(&world, &spec);
	spec = spec_of("of no key");
	put_job(&world, &spec);
}

static void fill_periodic(void)
{
	struct ww_job_spec spec = named("periodic");
	uint64_t id;

	spec.period = HOUR;
	spec.missed = WW_MISSED_SKIP;
	spec.skip = MINUTE;
	id = put_job(&world, &spec);
	OK(ww_jobs_finish(world.jobs, id, take(id).token));
	spec.key = "periodic buried";
	spec.key_length = strlen(spec.key);
	bury(put_job(&world, &spec), "p");
}

static void fill_keys(void)
{
	struct ww_job_spec spec = named("debounced");
	uint64_t id;

	spec.key_mode = WW_KEY_DEBOUNCE;
	spec.key_span = 2 * HOUR;
	spec.due = 10 * MINUTE;
	put_job(&world, &spec);
	world_pass(&world, 5 * MINUTE);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	spec.key = "debounced ready";
	spec.key_length = strlen(spec.key);
	spec.due = MINUTE;
	put_job(&world, &spec);
	spec = named("unique");
	spec.key_mode = WW_KEY_UNIQUE;
	spec.key_span = DAY;
	put_job(&world, &spec);
	spec.key = "ended";
	spec.key_length = strlen(spec.key);
	id = put_job(&world, &spec);
	OK(ww_jobs_finish(world.jobs, id, take(id).token));
}

static void fill(void)
{
	struct ww_limit limit;
	struct ww_job_spec spec = named("timed out");

	OK(ww_jobs_limit_default(&limit));
	limit.running = 1;
	OK(ww_jobs_limit_set(world.jobs, &limit_ref, &limit));
	spec.run = WW_SECOND;
	take(put_job(&world, &spec));
	fill_waiting();
	fill_periodic();
	fill_keys();
	bury(put_at("buried first", HOUR), "why \xc3\xa4");
	bury(put_at("buried last", 0), NULL);
	world_pass(&world, 2 * MINUTE);
	take(put_at("reserved", 0));
}

/* ---- What a store tells */

struct told {
	uint64_t now[2]; /* on both clocks: WW_JOB_WALL is 1 */
	struct ww_job_info jobs[MOST];
	char bodies[MOST][32];
	size_t count;
	struct ww_limit limit;
	unsigned runs;
};

static int note(const struct ww_job_info *info, void *context)
{
	struct told *told = context;

	ck_assert_uint_lt(told->count, MOST);
	told->jobs[told->count] = *info;
	memcpy(told->bodies[told->count], info->body, info->body_length);
	told->jobs[told->count].body = told->bodies[told->count];
	told->count++;
	return 0;
}

static int note_limit(const struct ww_limit_info *info, void *context)
{
	((struct told *)context)->limit = info->limit;
	return 0;
}

static int note_run(const struct ww_job_run *run, void *context)
{
	(void)run;
	((struct told *)context)->runs++;
	return 0;
}

static int by_key(const void *one, const void *two)
{
	const struct ww_job_info *a = one, *b = two;

	return memcmp(a->key, b->key, sizeof a->key);
}

static void ask(struct told *told)
{
	const struct ww_job_filter all = {.states = ~0u};

	memset(told, 0, sizeof *told);
	OK(ww_jobs_now(world.jobs, 0, &told->now[0]));
	OK(ww_jobs_now(world.jobs, WW_JOB_WALL, &told->now[1]));
	OK(ww_jobs_list(world.jobs, &all, 2 * MOST, note, told, NULL));
	qsort(told->jobs, told->count, sizeof *told->jobs, by_key);
	OK(ww_jobs_limit_list(world.jobs, NULL, note_limit, told));
	OK(ww_jobs_history(world.jobs, NULL, MOST, note_run, told, NULL));
}

/* ---- Put into another store, and compared */

static uint64_t us_up(uint64_t ns)
{
	return (ns + 999) / 1000;
}

/* The clocks of the stores may begin at different times. */
static void put_again(const struct ww_job_info *was, const uint64_t before[2])
{
	uint64_t now;

	OK(ww_jobs_now(world.jobs, was->flags, &now));
	struct ww_job_spec spec = {.tube = was->tube,
	    .key = was->key,
	    .key_length = was->key_length,
	    .group = was->group,
	    .group_length = was->group_length,
	    .body = was->body,
	    .body_length = was->body_length,
	    .due = was->due - before[was->flags] + now,
	    .run = was->run,
	    .period = was->period,
	    .skip = was->skip,
	    .backoff = was->backoff,
	    .backoff_max = was->backoff_max,
	    .keep = was->keep,
	    .key_span = was->hold,
	    .priority = was->priority,
	    .attempts = was->attempts,
	    .flags = was->flags | WW_JOB_AT,
	    .missed = was->missed,
	    .key_mode = was->hold ? WW_KEY_UNIQUE : WW_KEY_REPLACE};
	struct ww_job_put put;
	int result = put_past(&spec, was, &put);
	ck_assert_msg(result == WW_OK, "'%.*s': %s", (int)was->key_length, (const char *)was->key, ww_strerror(result));
}

#define SAME(member)                                                                                                   \
	ck_assert_msg(a->member == b->member, "%s of '%.*s': %ju is %ju", #member, (int)a->key_length,                 \
	    (const char *)a->key, (uintmax_t)a->member, (uintmax_t)b->member)
#define SAME_TIME(member)                                                                                              \
	ck_assert_msg(us_up(a->member) == us_up(b->member), "%s of '%.*s': %ju is %ju", #member, (int)a->key_length,   \
	    (const char *)a->key, (uintmax_t)a->member, (uintmax_t)b->member)

/* All that is left of a job that has ended. */
static void expect_same_key(const struct ww_job_info *a, const struct ww_job_info *b)
{
	ck_assert_str_eq(a->tube, b->tube);
	ck_assert_mem_eq(a->key, b->key, sizeof a->key);
	SAME(key_length);
	SAME(version);
	SAME(hold);
	SAME_TIME(created);
	if (a->state == WW_JOB_RESERVED)
		ck_assert_uint_eq(b->state, WW_JOB_READY);
	else {
		SAME(state);
		SAME_TIME(left);
	}
}

static void expect_same(const struct ww_job_info *a, const struct ww_job_info *b)
{
	ck_assert_mem_eq(a->group, b->group, sizeof a->group);
	SAME(group_length);
	SAME(body_length);
	ck_assert_mem_eq(a->body, b->body, a->body_length);
	ck_assert_str_eq(a->error, b->error);
	SAME(flags);
	SAME(priority);
	SAME(attempts);
	SAME_TIME(delay);
	SAME(run);
	SAME(period);
	SAME(skip);
	SAME(backoff);
	SAME(backoff_max);
	SAME(keep);
	SAME_TIME(debounce);
	SAME(missed);
	SAME(reserves);
	SAME(timeouts);
	SAME(releases);
	SAME(buries);
	SAME(kicks);
	SAME(tries);
}

/* In the order of their keys, but the buried ones in theirs. */
static void expect_buried(struct world *at, const char *key)
{
	struct ww_job_info info;

	OK(ww_jobs_peek_next(at->jobs, WW_TUBE_DEFAULT, WW_JOB_BURIED, &info, NULL));
	ck_assert_uint_eq(info.key_length, strlen(key));
	ck_assert_mem_eq(info.key, key, strlen(key));
	OK(ww_jobs_kick_job(at->jobs, info.id));
}

static void expect_in(const struct told *before, int kind)
{
	static struct told after;

	world_make(&world, kind);
	world_pass(&world, 30 * DAY);
	OK(ww_jobs_limit_set(world.jobs, &limit_ref, &before->limit));
	for (size_t i = 0; i < before->count; i++)
		put_again(&before->jobs[i], before->now);
	ask(&after);
	ck_assert_uint_eq(after.count, before->count);
	for (size_t i = 0; i < before->count; i++) {
		const struct ww_job_info *a = &before->jobs[i], *b = &after.jobs[i];
		expect_same_key(a, b);
		if (a->state != WW_JOB_ENDED)
			expect_same(a, b);
		ck_assert_uint_eq(
		    us_up(a->due - before->now[a->flags] + DAY), us_up(b->due - after.now[b->flags] + DAY));
	}
	ck_assert_mem_eq(&after.limit, &before->limit, sizeof before->limit);
	ck_assert_msg(after.runs == 0, "%u runs that nobody ran", after.runs);
	world_check(&world);
	/* They lie in the order in which they were put. */
	if (world_promises(&world, KIND_ONE_ROW)) {
		expect_buried(&world, "buried first");
		expect_buried(&world, "buried last");
		expect_buried(&world, "periodic buried");
	}
	world_end(&world);
}

START_TEST(a_job_of_another_store_is_as_it_was)
{
	static struct told before;

	NEEDS(KIND_LIMITS);
	world_make(&world, _i);
	world_pass(&world, 30 * DAY);
	fill();
	ask(&before);
	ck_assert_uint_eq(before.count, 19);
	ck_assert_uint_gt(before.runs, 5);
	world_end(&world);
	for (size_t kind = 0; kind < kinds_count(0); kind++)
		if (kinds[kind]->promises & KIND_LIMITS)
			expect_in(&before, (int)kind);
}
END_TEST

/* ---- What else it means */

START_TEST(a_debounced_job_of_another_store_waits_no_longer_than_it_may)
{
	struct ww_job_info was = {.state = WW_JOB_DELAYED, .debounce = 50 * MINUTE, .left = 5 * MINUTE};
	struct ww_job_spec spec;
	struct ww_job_put put;

	world_make(&world, _i);
	world_pass(&world, DAY);
	spec = named("k");
	spec.due = world_now(&world) + was.left;
	spec.flags = WW_JOB_AT;
	ck_assert_int_eq(put_past(&spec, &was, &put), WW_PUT_NEW);
	world_pass(&world, 2 * MINUTE);
	spec = named("k");
	spec.key_mode = WW_KEY_DEBOUNCE;
	spec.key_span = HOUR;
	spec.due = 30 * MINUTE;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	expect_job_in(&world, 8 * MINUTE, put.id);
	world_end(&world);
}
END_TEST

/* Put one of another store, due in so long, under the key of a job that is due in ten minutes, or is ready. */
static void expect_by_mode(enum ww_key_mode mode, int is_ready, int64_t due, int result)
{
	const struct ww_job_info was = {
	    .state = WW_JOB_DELAYED, .created = DAY, .delay = mode == WW_KEY_KEEP_LATER ? MINUTE : HOUR};
	struct ww_job_spec spec = named("k");
	struct ww_job_info info;
	struct ww_job_put put;

	spec.due = is_ready ? 0 : 10 * MINUTE;
	put_job(&world, &spec);
	spec.due = (uint64_t)((int64_t)world_now(&world) + due);
	spec.flags = WW_JOB_AT;
	spec.key_mode = mode;
	ck_assert_int_eq(put_past(&spec, &was, &put), result);
	if (result == WW_PUT_REPLACED) {
		OK(ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = put.id}, &info, NULL));
		ck_assert_uint_eq(info.delay, was.delay);
		ck_assert_uint_eq(us_up(info.due), us_up(spec.due));
	}
	ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = put.id}), 0);
}

START_TEST(the_mode_of_a_key_compares_due_times_and_not_delays)
{
	const int64_t minute = MINUTE;

	world_make(&world, _i);
	world_pass(&world, DAY);
	expect_by_mode(WW_KEY_KEEP_EARLIER, 0, 5 * minute, WW_PUT_REPLACED);
	expect_by_mode(WW_KEY_KEEP_EARLIER, 0, 15 * minute, WW_PUT_KEPT);
	expect_by_mode(WW_KEY_KEEP_EARLIER, 0, -minute, WW_PUT_REPLACED);
	expect_by_mode(WW_KEY_KEEP_EARLIER, 1, -minute, WW_PUT_KEPT);
	expect_by_mode(WW_KEY_KEEP_LATER, 0, 5 * minute, WW_PUT_KEPT);
	expect_by_mode(WW_KEY_KEEP_LATER, 0, 15 * minute, WW_PUT_REPLACED);
	expect_by_mode(WW_KEY_KEEP_LATER, 1, -minute, WW_PUT_KEPT);
	world_end(&world);
}
END_TEST

START_TEST(a_debounced_put_of_the_past_begins_now)
{
	const struct ww_job_info was = {.state = WW_JOB_DELAYED, .created = DAY, .delay = HOUR, .left = 30 * MINUTE};
	struct ww_job_spec spec;
	struct ww_job_put put;

	world_make(&world, _i);
	world_pass(&world, DAY);
	spec = named("k");
	spec.due = world_now(&world) + was.left;
	spec.flags = WW_JOB_AT;
	spec.key_mode = WW_KEY_DEBOUNCE;
	spec.key_span = 2 * HOUR;
	ck_assert_int_eq(put_past(&spec, &was, &put), WW_PUT_NEW);
	spec.flags = 0;
	spec.due = 3 * HOUR;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	expect_job_in(&world, 2 * HOUR, put.id);
	world_end(&world);
}
END_TEST

START_TEST(a_due_time_that_has_passed_is_taken)
{
	const struct ww_job_info was = {.state = WW_JOB_READY};
	struct ww_job_spec spec;
	struct ww_job_info info;
	struct ww_job_put put;

	world_make(&world, _i);
	world_pass(&world, DAY);
	spec = named("k");
	spec.due = world_now(&world) - MINUTE;
	spec.flags = WW_JOB_AT | WW_JOB_FUTURE;
	ck_assert_int_eq(put_past(&spec, &was, &put), WW_PUT_NEW);
	OK(ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = put.id}, &info, NULL));
	ck_assert_uint_eq(us_up(info.due), us_up(spec.due));
	ck_assert_uint_eq(info.delay, 0);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EBACKWARDS);
	world_end(&world);
}
END_TEST

START_TEST(what_it_replaces_gives_the_version)
{
	struct ww_job_info was = {.state = WW_JOB_BURIED, .version = 9, .buries = 1, .error = "why"};
	struct ww_job_spec spec = named("k");
	struct ww_tube_stats tube;
	struct ww_job_put put;

	world_make(&world, _i);
	put_job(&world, &spec);
	ck_assert_int_eq(put_past(&spec, &was, &put), WW_PUT_REPLACED);
	ck_assert_uint_eq(put.version, 2);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &tube));
	ck_assert_uint_eq(tube.buried, 1);
	ck_assert_uint_eq(tube.ready, 0);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &tube));
	ck_assert_uint_eq(tube.buried, 0);
	ck_assert_uint_eq(tube.ready, 1);
	world_end(&world);
}
END_TEST

START_TEST(a_past_that_cannot_be_is_refused)
{
	struct ww_job_info was = {.state = WW_JOB_ENDED};
	struct ww_job_spec spec = named("k");
	struct ww_job_put put;

	world_make(&world, _i);
	ck_assert_int_eq(put_past(&spec, &was, &put), WW_EINVAL);
	was = (struct ww_job_info){.state = (enum ww_job_state)(WW_JOB_ENDED + 1)};
	ck_assert_int_eq(put_past(&spec, &was, &put), WW_EINVAL);
	was = (struct ww_job_info){.version = UINT64_C(1) << 53};
	ck_assert_int_eq(put_past(&spec, &was, &put), WW_EINVAL);
	was = (struct ww_job_info){.version = (UINT64_C(1) << 53) - 1};
	ck_assert_int_eq(put_past(&spec, &was, &put), WW_PUT_NEW);
	ck_assert_uint_eq(put.version, was.version);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/was", a_job_of_another_store_is_as_it_was,
    a_debounced_job_of_another_store_waits_no_longer_than_it_may, the_mode_of_a_key_compares_due_times_and_not_delays,
    a_debounced_put_of_the_past_begins_now, a_due_time_that_has_passed_is_taken, what_it_replaces_gives_the_version,
    a_past_that_cannot_be_is_refused)
