/*
 * Groups of a tube: they take turns, and have limits of their own. A random test compares the store with a plain model.
 *
 * WW_SEED sets the seed of the random test, which is printed.
 */
/* tier: check */
#include <stdio.h>
#include <string.h>

#include "lib/jobs/local/group.h"
#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"

enum { MOST = 64, GROUPS = 6 };

static struct world world;
static const char *const here[] = {WW_TUBE_DEFAULT};
static uint64_t state;

static uint64_t put_in(const char *group, uint32_t priority, uint64_t delay)
{
	struct ww_job_spec spec = spec_of(group);

	spec.group = group;
	spec.group_length = strlen(group);
	spec.priority = priority;
	spec.due = delay;
	return put_job(&world, &spec);
}

static void set_limit(const char *group, int each, uint64_t running, uint64_t starts, uint64_t per, uint64_t burst)
{
	struct ww_limit limit = {running, starts, per, burst, 1};
	struct ww_limit_ref ref = {.group = group, .group_length = group ? strlen(group) : 0, .each = each};

	OK(ww_jobs_limit_set(world.jobs, &ref, &limit));
}

/* Start a job, and return its group: what was put has it as its body. */
static const char *start(struct ww_lease *lease)
{
	static char group[WW_JOB_GROUP_MAX + 1];

	ck_assert_int_eq(ww_jobs_reserve(world.jobs, here, 1, lease), 1);
	memcpy(group, lease->body_length ? lease->body : "", lease->body_length);
	group[lease->body_length] = 0;
	ww_jobs_free(world.jobs, lease->body);
	lease->body = NULL;
	return group;
}

static void finish(const struct ww_lease *lease)
{
	OK(ww_jobs_finish(world.jobs, lease->id, lease->token));
}

/* Start and finish jobs; the groups come in this order, a letter each. */
static void expect_order(const char *groups)
{
	struct ww_lease lease;

	for (; *groups; groups++) {
		const char expected[] = {*groups == '-' ? 0 : *groups, 0};
		ck_assert_str_eq(start(&lease), expected);
		finish(&lease);
	}
}

/* The same in any order: what comes due together has none. */
static void expect_all(const char *groups)
{
	int counts[256] = {0};
	struct ww_lease lease;

	for (size_t i = 0; groups[i]; i++) {
		counts[(unsigned char)(groups[i] == '-' ? 0 : groups[i])]++;
		counts[(unsigned char)*start(&lease)]--;
		finish(&lease);
	}
	for (size_t i = 0; i < 256; i++)
		ck_assert_int_eq(counts[i], 0);
}

START_TEST(groups_take_turns)
{
	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	for (int i = 0; i < 5; i++)
		(void)put_in("a", 5, 0);
	for (int i = 0; i < 2; i++)
		(void)put_in("b", 10, 0);
	(void)put_in("", 1, 0);
	/* In one row the order is exact; shards take turns, and in each of them the groups. */
	if (!world_promises(&world, KIND_ONE_ROW)) {
		expect_all("aaaaabb-");
	} else {
		expect_order("ab-aba");
		/* One that comes later waits for its turn, however urgent it is. */
		(void)put_in("c", 0, 0);
		expect_order("aca");
	}
	expect_none(&world);
	world_end(&world);
}
END_TEST

/* A customer with many jobs does not hold up one who comes later with few, in however many shards they lie. */
START_TEST(a_large_group_does_not_hold_up_a_small_one)
{
	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	for (int i = 0; i < 100; i++)
		(void)put_in("a", 1, 0);
	for (int i = 0; i < 10; i++)
		(void)put_in("b", 5, 0);
	expect_all("aaaaabbbbb");
	expect_all("aaaaabbbbb");
	for (int i = 0; i < 9; i++)
		expect_all("aaaaaaaaaa");
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_group_is_in_order)
{
	struct ww_lease lease;
	uint64_t ids[4];

	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	ids[0] = put_in("a", 5, 0);
	ids[1] = put_in("a", 5, 0);
	ids[2] = put_in("a", 4, 0);
	ids[3] = put_in("a", 4, WW_SECOND);
	(void)put_in("b", 5, 0);
	world_pass(&world, WW_SECOND);
	static const int order[] = {2, -1, 3, 0, 1};
	for (int i = 0; i < 5; i++) {
		const char *group = start(&lease);
		if (!world_promises(&world, KIND_ONE_ROW))
			;
		else if (order[i] < 0)
			ck_assert_str_eq(group, "b");
		else
			ck_assert_uint_eq(lease.id, ids[order[i]]);
		finish(&lease);
	}
	world_end(&world);
}
END_TEST

START_TEST(a_limit_of_each_group_holds_only_that_group)
{
	struct ww_lease a;
	struct ww_lease b;
	struct ww_lease c;
	struct ww_limit_info info;
	struct ww_tube_stats stats;

	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	set_limit(NULL, 1, 1, 0, WW_SECOND, 1);
	set_limit("big", 0, 2, 0, WW_SECOND, 1);
	for (int i = 0; i < 3; i++)
		(void)put_in("a", 5, 0);
	ck_assert_str_eq(start(&a), "a");
	expect_none(&world);
	for (int i = 0; i < 3; i++)
		(void)put_in("big", 5, 0);
	ck_assert_str_eq(start(&b), "big");
	ck_assert_str_eq(start(&c), "big");
	expect_none(&world);
	OK(ww_jobs_limit_get(world.jobs, &(struct ww_limit_ref){.group = "big", .group_length = 3}, &info));
	ck_assert_uint_eq(info.running, 2);
	ck_assert_uint_eq(info.held, 1);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &stats));
	ck_assert_uint_eq(stats.held, 3);
	/* Those that name none are in no group. */
	(void)put_in("", 5, 0);
	(void)put_in("", 5, 0);
	expect_order("--");
	finish(&a);
	ck_assert_str_eq(start(&a), "a");
	expect_none(&world);
	/* A lease that expires gives its place back. */
	world_pass(&world, 61 * WW_SECOND);
	(void)start(&a);
	(void)start(&b);
	(void)start(&c);
	expect_none(&world);
	/* The tube's limit counts, too. */
	set_limit(NULL, 0, 3, 0, WW_SECOND, 1);
	set_limit(NULL, 1, 0, 0, WW_SECOND, 1);
	set_limit("big", 0, 0, 0, WW_SECOND, 1);
	expect_none(&world);
	finish(&a);
	(void)start(&a);
	expect_none(&world);
	set_limit(NULL, 0, 0, 0, WW_SECOND, 1);
	finish(&a);
	finish(&b);
	finish(&c);
	while (ww_jobs_reserve(world.jobs, here, 1, &a) == 1) {
		ww_jobs_free(world.jobs, a.body);
		finish(&a);
	}
	world_end(&world);
}
END_TEST

/* Wherever its jobs lie, the end of one lets the next one start: also where it was refused before. */
START_TEST(a_group_goes_on_at_once)
{
	struct ww_lease lease;

	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	set_limit(NULL, 1, 1, 0, WW_SECOND, 1);
	for (int i = 0; i < 20; i++)
		(void)put_in("a", 5, 0);
	for (int i = 0; i < 20; i++) {
		ck_assert_str_eq(start(&lease), "a");
		expect_none(&world);
		world_pass(&world, MS);
		finish(&lease);
	}
	expect_none(&world);
	world_end(&world);
}
END_TEST

/* A group was refused in several shards, but has jobs in only one of them by the time it may go on. */
START_TEST(a_group_goes_on_although_some_jobs_are_cancelled)
{
	enum { JOBS = 10 };
	struct ww_lease lease;
	uint64_t ids[JOBS];

	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	set_limit(NULL, 1, 1, 0, WW_SECOND, 1);
	for (int kept = 0; kept < JOBS; kept++) {
		for (int i = 0; i < JOBS; i++)
			ids[i] = put_in("a", 5, 0);
		(void)start(&lease);
		expect_none(&world);
		if (lease.id == ids[kept])
			ids[kept] = put_in("a", 5, 0);
		for (int i = 0; i < JOBS; i++) {
			struct ww_job_ref ref = {.id = ids[i]};
			if (i != kept && ids[i] != lease.id)
				ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 1);
		}
		finish(&lease);
		ck_assert_str_eq(start(&lease), "a");
		ck_assert_uint_eq(lease.id, ids[kept]);
		finish(&lease);
	}
	world_end(&world);
}
END_TEST

START_TEST(each_group_has_a_rate_of_its_own)
{
	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	set_limit(NULL, 1, 0, 10, WW_SECOND, 2);
	for (int i = 0; i < 4; i++) {
		(void)put_in("a", 5, 0);
		(void)put_in("b", 5, 0);
	}
	if (world_promises(&world, KIND_ONE_ROW))
		expect_order("abab");
	else
		expect_all("abab");
	expect_none(&world);
	world_pass(&world, 99 * MS);
	expect_none(&world);
	world_pass(&world, MS);
	expect_all("ab");
	expect_none(&world);
	world_pass(&world, 200 * MS);
	expect_all("ab");
	world_end(&world);
}
END_TEST

static unsigned told;

static void note_ready(const char *tube, void *context)
{
	(void)tube;
	(void)context;
	told++;
}

START_TEST(a_limit_of_each_group_takes_the_burst_as_used_up_after_a_restart)
{
	struct ww_lease lease;

	NEEDS(KIND_KEEPS);
	NEEDS(KIND_GROUPS);
	NEEDS(KIND_ENDS_LEASES);
	world_make(&world, _i);
	set_limit(NULL, 1, 0, 1, 10 * WW_SECOND, 3);
	for (int i = 0; i < 3; i++)
		(void)put_in("a", 5, 0);
	world_reopen(&world);
	expect_none(&world);
	world_pass(&world, 10 * WW_SECOND);
	ck_assert_str_eq(start(&lease), "a");
	expect_none(&world);
	world_end(&world);
}
END_TEST

static int stop_at_first(const struct ww_limit_info *info, void *context)
{
	(void)info;
	++*(int *)context;
	return 7;
}

START_TEST(a_limit_tells_whose_it_is_and_what_it_holds)
{
	static const struct ww_limit_ref each = {.tube = WW_TUBE_DEFAULT, .each = 1};
	static const struct ww_limit_ref big = {.tube = WW_TUBE_DEFAULT, .group = "big", .group_length = 3};
	struct ww_limit_info info;
	struct ww_lease lease;
	int calls = 0;

	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	set_limit(NULL, 1, 1, 1, 60 * WW_SECOND, 1);
	set_limit("big", 0, 1, 0, WW_SECOND, 1);
	set_limit("other", 0, 1, 0, WW_SECOND, 1);
	for (int i = 0; i < 3; i++)
		(void)put_in("big", 5, 0);
	(void)start(&lease);
	expect_none(&world);
	OK(ww_jobs_limit_get(world.jobs, &big, &info));
	ck_assert_str_eq(info.ref.tube, WW_TUBE_DEFAULT);
	ck_assert_uint_eq(info.ref.group_length, 3);
	/* As in *ref: what the store has may go. */
	ck_assert_ptr_eq(info.ref.group, big.group);
	ck_assert_int_eq(info.ref.each, 0);
	ck_assert_uint_eq(info.running, 1);
	ck_assert_uint_eq(info.held, 2);
	/* That of each group is no single one that runs or holds anything. */
	OK(ww_jobs_limit_get(world.jobs, &each, &info));
	ck_assert_int_eq(info.ref.each, 1);
	ck_assert_uint_eq(info.ref.group_length, 0);
	ck_assert_uint_eq(info.running + info.held + info.left, 0);
	ck_assert_int_eq(ww_jobs_limit_list(world.jobs, WW_TUBE_DEFAULT, stop_at_first, &calls), 7);
	ck_assert_int_eq(calls, 1);
	set_limit(NULL, 1, 0, 0, WW_SECOND, 1);
	ck_assert_int_eq(ww_jobs_limit_list(world.jobs, NULL, stop_at_first, &calls), 7);
	ck_assert_int_eq(calls, 2);
	world_end(&world);
}
END_TEST

START_TEST(callers_hear_of_a_group_that_may_go_on)
{
	struct ww_lease lease;

	NEEDS(KIND_IN_PROCESS);
	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	world.config.ready = note_ready;
	world_reopen(&world);
	set_limit("a", 0, 0, 1, WW_SECOND, 1);
	(void)put_in("a", 5, 0);
	(void)put_in("a", 5, 0);
	expect_order("a");
	expect_none(&world);
	told = 0;
	world_pass(&world, 999 * MS);
	ck_assert_uint_eq(told, 0);
	world_pass(&world, MS);
	ck_assert_uint_eq(told, 1);
	set_limit("a", 0, 1, 0, WW_SECOND, 1);
	(void)put_in("a", 5, 0);
	(void)start(&lease);
	expect_none(&world);
	told = 0;
	finish(&lease);
	ck_assert_uint_eq(told, 1);
	expect_order("a");
	world.config.ready = NULL;
	world_end(&world);
}
END_TEST

static int note_limit(const struct ww_limit_info *info, void *context)
{
	char *text = context;
	size_t used = strlen(text);

	(void)snprintf(text + used, 100 - used, "%.*s%s%llu ", (int)info->ref.group_length,
	    info->ref.group_length ? (const char *)info->ref.group : "", info->ref.each ? "each" : "",
	    (unsigned long long)info->limit.running);
	return 0;
}

START_TEST(groups_and_their_limits_are_stored)
{
	char text[100] = "";
	struct ww_job_info info;
	struct ww_lease lease;

	NEEDS(KIND_KEEPS);
	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	set_limit(NULL, 1, 1, 0, WW_SECOND, 1);
	set_limit("big", 0, 2, 0, WW_SECOND, 1);
	set_limit("rate", 0, 0, 1, 10 * WW_SECOND, 1);
	set_limit(NULL, 0, 9, 0, WW_SECOND, 1);
	(void)put_in("rate", 5, 0);
	(void)start(&lease);
	finish(&lease);
	uint64_t id = put_in("a", 5, 3600 * WW_SECOND);
	for (int i = 0; i < 2; i++)
		(void)put_in("a", 5, 0);
	(void)put_in("rate", 5, 0);
	world_pass(&world, WW_SECOND);
	world_reopen(&world);
	OK(ww_jobs_limit_list(world.jobs, NULL, note_limit, text));
	ck_assert_str_eq(text, "9 each1 big2 rate0 ");
	info = info_of(&world, id);
	ck_assert_uint_eq(info.group_length, 1);
	ck_assert_int_eq(info.group[0], 'a');
	ck_assert_str_eq(start(&lease), "a");
	expect_none(&world);
	world_pass(&world, 9 * WW_SECOND);
	struct ww_lease other;
	ck_assert_str_eq(start(&other), "rate");
	expect_none(&world);
	finish(&lease);
	finish(&other);
	expect_order("a");
	world_pass(&world, 3600 * WW_SECOND);
	expect_order("a");
	world_end(&world);
}
END_TEST

START_TEST(a_job_tells_its_group)
{
	struct ww_job_spec specs[3];
	struct ww_job_put puts[3];
	struct ww_job_info info;

	world_make(&world, _i);
	for (int i = 0; i < 3; i++) {
		specs[i] = spec_of("x");
		puts[i] = (struct ww_job_put){.spec = &specs[i]};
	}
	specs[1].group = "\0g";
	specs[1].group_length = 2;
	specs[1].flags = WW_JOB_AT;
	specs[2].key = "k";
	specs[2].key_length = 1;
	specs[2].key_mode = WW_KEY_UNIQUE;
	specs[2].key_span = WW_SECOND;
	specs[2].group = "unique";
	specs[2].group_length = 6;
	OK(ww_jobs_put_many(world.jobs, puts, 3));
	for (int i = 0; i < 3; i++) {
		OK(puts[i].result);
		info = info_of(&world, puts[i].id);
		ck_assert_uint_eq(info.group_length, specs[i].group_length);
		if (info.group_length)
			ck_assert_mem_eq(info.group, specs[i].group, info.group_length);
		ck_assert_uint_eq(info.body_length, 1);
		struct ww_job_ref ref = {.id = puts[i].id};
		ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 1);
	}
	OK(ww_jobs_put(world.jobs, &specs[1], &puts[1].id, NULL));
	info = info_of(&world, puts[1].id);
	ck_assert_uint_eq(info.group_length, 2);
	struct ww_job_ref ref = {.id = puts[1].id};
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 1);
	world_end(&world);
}
END_TEST

START_TEST(groups_come_and_go)
{
	char name[16];
	struct ww_lease lease;

	NEEDS(KIND_IN_PROCESS);
	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	set_limit(NULL, 1, 0, 1, WW_SECOND, 1);
	for (unsigned i = 0; i < 2000; i++) {
		(void)snprintf(name, sizeof name, "group %u", i);
		(void)put_in(name, 5, 0);
		(void)start(&lease);
		finish(&lease);
		world_pass(&world, MS);
	}
	/* Of those that have ended, a group is remembered for as long as its rate may hold it. */
	const struct tube *tube = ww_jobs_tube_find(local_of(world.jobs), WW_TUBE_DEFAULT);
	ck_assert_uint_le(HASH_COUNT(tube->limits->named), 1100);
	world_pass(&world, WW_SECOND);
	for (unsigned i = 0; i < 200; i++)
		world_pass(&world, MS), (void)info_of(&world, put_in("x", 5, WW_SECOND));
	ck_assert_uint_le(HASH_COUNT(tube->limits->named), 2);
	world_end(&world);
}
END_TEST

START_TEST(what_fails_changes_no_group)
{
	struct ww_lease lease;

	NEEDS(KIND_BATCHES);
	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	set_limit(NULL, 1, 1, 0, WW_SECOND, 1);
	(void)put_in("a", 5, 0);
	(void)put_in("a", 5, 0);
	OK(ww_jobs_begin(world.jobs));
	struct ww_job_spec spec = spec_of("b");
	spec.group = "b";
	spec.group_length = 1;
	(void)put_job(&world, &spec);
	ck_assert_str_eq(start(&lease), "a");
	ck_assert_str_eq(start(&lease), "b");
	set_limit("a", 0, 5, 0, WW_SECOND, 1);
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_lt(ww_jobs_commit(world.jobs), 0);
	world_fail(&world, FAIL_NOTHING);
	ck_assert_str_eq(start(&lease), "a");
	expect_none(&world);
	finish(&lease);
	expect_order("a");
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(groups_out_of_range_are_refused)
{
	static char much[WW_JOB_GROUP_MAX + 1];
	struct ww_job_spec spec = spec_of("x");
	struct ww_limit limit;

	world_make(&world, _i);
	spec.group = much;
	spec.group_length = sizeof much;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	spec.group = NULL;
	spec.group_length = 1;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	OK(ww_jobs_limit_default(&limit));
	struct ww_limit_ref ref = {.group = much, .group_length = sizeof much};
	ck_assert_int_eq(ww_jobs_limit_set(world.jobs, &ref, &limit), WW_EINVAL);
	ref.group_length = 1;
	ref.each = 1;
	ck_assert_int_eq(ww_jobs_limit_set(world.jobs, &ref, &limit), WW_EINVAL);
	world_end(&world);
}
END_TEST

/* ---- A model: see test_jobs_limits_model.c for its buckets of time */

struct model_group {
	struct ww_limit limit;
	int is_own; /* otherwise it has that of each */
	uint64_t interval;
	int64_t least;
	int64_t most;
	unsigned running;
	unsigned ready;
	unsigned passed_over; /* deliveries of others while it surely might have started */
};

static struct {
	struct model_group groups[GROUPS];
	struct ww_limit each;
	unsigned tube_running; /* the limit of the tube; 0: none */
	unsigned running;
	struct ww_lease leases[MOST];
	unsigned group_of[MOST];
} model;

static const char *name_of(unsigned i)
{
	static const char *const names[GROUPS] = {"", "a", "b", "c", "d", "e"};

	return names[i];
}

static int is_full(const struct model_group *group)
{
	return group->limit.running && group->running >= group->limit.running;
}

static int surely_may(const struct model_group *group)
{
	return group->ready && !is_full(group) && (!group->limit.starts || group->least >= (int64_t)group->interval);
}

static void limit_group(struct model_group *group, const struct ww_limit *limit)
{
	uint64_t had = group->limit.starts;

	group->limit = *limit;
	group->interval = limit->starts ? (limit->per + limit->starts - 1) / limit->starts : 0;
	group->least = group->most = had ? 0 : (int64_t)(limit->burst * group->interval);
}

static struct ww_limit some_limit(void)
{
	if (seed_below(&state, 4) == 0)
		return (struct ww_limit){0, 0, WW_SECOND, 1, 1};
	return (struct ww_limit){seed_below(&state, 4), seed_below(&state, 50), (1 + seed_below(&state, 1000)) * MS,
	    1 + seed_below(&state, 4), 1};
}

static void model_limit(void)
{
	unsigned i = (unsigned)seed_below(&state, GROUPS);
	struct ww_limit limit = some_limit();

	if (i) {
		struct model_group *group = &model.groups[i];
		int was_own = group->is_own;
		set_limit(name_of(i), 0, limit.running, limit.starts, limit.per, limit.burst);
		group->is_own = limit.running || limit.starts;
		if (!was_own && group->is_own)
			group->limit.starts = 0; /* it begins anew */
		if (was_own || group->is_own)
			limit_group(group, group->is_own ? &limit : &model.each);
	} else if (seed_below(&state, 2)) {
		set_limit(NULL, 1, limit.running, limit.starts, limit.per, limit.burst);
		model.each = limit;
		for (i = 1; i < GROUPS; i++)
			if (!model.groups[i].is_own)
				limit_group(&model.groups[i], &limit);
	} else {
		model.tube_running = (unsigned)seed_below(&state, 10);
		set_limit(NULL, 0, model.tube_running, 0, WW_SECOND, 1);
	}
}

static void fill(int64_t *bucket, uint64_t ns, int64_t room)
{
	*bucket = *bucket + (int64_t)ns < room ? *bucket + (int64_t)ns : room;
}

/* So much lateness may be made up. */
static uint64_t made_up_of(const struct ww_limit *limit)
{
	if (limit->per > limit->starts * 50 * MS)
		return 10 * MS;
	return limit->per < 100 * MS ? limit->per : 100 * MS;
}

static void model_pass(uint64_t ns)
{
	world_pass(&world, ns);
	for (unsigned i = 0; i < GROUPS; i++) {
		struct model_group *group = &model.groups[i];
		int64_t room = (int64_t)(group->limit.burst * group->interval);
		fill(&group->least, ns, room);
		fill(&group->most, ns, room + (int64_t)made_up_of(&group->limit));
	}
}

static int anybody_surely_may(void)
{
	for (unsigned i = 0; i < GROUPS; i++)
		if (surely_may(&model.groups[i]))
			return 1;
	return 0;
}

static unsigned index_of(const struct ww_lease *lease)
{
	for (unsigned i = 0; i < GROUPS; i++)
		if (lease->body_length == strlen(name_of(i)) &&
		    memcmp(lease->body_length ? lease->body : "", name_of(i), lease->body_length) == 0)
			return i;
	ck_abort_msg("a group that was never put");
	return 0;
}

static void model_start(void)
{
	struct ww_lease lease;
	int may = !model.tube_running || model.running < model.tube_running;

	if (model.running == MOST)
		return;
	int got = ww_jobs_reserve(world.jobs, here, 1, &lease);
	ck_assert_int_ge(got, 0);
	if (!may)
		ck_assert_int_eq(got, 0);
	else if (anybody_surely_may())
		ck_assert_int_eq(got, 1);
	if (!got)
		return;
	unsigned i = index_of(&lease);
	struct model_group *group = &model.groups[i];
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_uint_gt(group->ready, 0);
	ck_assert(!is_full(group));
	ck_assert(!group->limit.starts || group->most >= (int64_t)group->interval);
	for (unsigned k = 0; k < GROUPS; k++) {
		struct model_group *other = &model.groups[k];
		other->passed_over = k != i && surely_may(other) ? other->passed_over + 1 : 0;
		/* Each of the others comes once before it, in each of at most five shards. */
		ck_assert_uint_lt(other->passed_over, world_promises(&world, KIND_ONE_ROW) ? GROUPS : 5 * GROUPS);
	}
	model.leases[model.running] = lease;
	model.group_of[model.running++] = i;
	group->running++;
	group->ready--;
	group->least -= (int64_t)group->interval;
	group->most -= (int64_t)group->interval;
}

static void model_end(void)
{
	unsigned k = model.running ? (unsigned)seed_below(&state, model.running) : 0;

	if (!model.running)
		return;
	struct model_group *group = &model.groups[model.group_of[k]];
	if (seed_below(&state, 2)) {
		OK(ww_jobs_finish(world.jobs, model.leases[k].id, model.leases[k].token));
	} else {
		OK(ww_jobs_release(world.jobs, model.leases[k].id, model.leases[k].token, 1024, 0, NULL));
		group->ready++;
	}
	group->running--;
	model.running--;
	model.leases[k] = model.leases[model.running];
	model.group_of[k] = model.group_of[model.running];
}

START_TEST(groups_are_as_in_the_model)
{
	unsigned steps = _i >= KIND_REDIS ? 1000 : 20000;

	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	memset(&model, 0, sizeof model);
	state = seed_of_run("test_jobs_groups");
	for (unsigned step = 0; step < steps; step++) {
		unsigned i = (unsigned)seed_below(&state, GROUPS);
		switch (seed_below(&state, 8)) {
		case 0:
			/* Whole ticks of the driver: what is held hears of its time at once. */
			model_pass(seed_below(&state, seed_below(&state, 2) ? 20 : 100) * MS);
			break;
		case 1:
			if (seed_below(&state, 20) == 0)
				model_limit();
			break;
		case 2:
		case 3:
			(void)put_in(name_of(i), (uint32_t)seed_below(&state, 3), 0);
			model.groups[i].ready++;
			break;
		case 4:
			model_end();
			break;
		default:
			model_start();
		}
	}
	while (model.running)
		model_end();
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/groups", groups_take_turns, a_large_group_does_not_hold_up_a_small_one, a_group_is_in_order,
    a_limit_of_each_group_holds_only_that_group, a_group_goes_on_at_once,
    a_group_goes_on_although_some_jobs_are_cancelled, each_group_has_a_rate_of_its_own,
    a_limit_of_each_group_takes_the_burst_as_used_up_after_a_restart, a_limit_tells_whose_it_is_and_what_it_holds,
    callers_hear_of_a_group_that_may_go_on, groups_and_their_limits_are_stored, a_job_tells_its_group,
    groups_come_and_go, what_fails_changes_no_group, groups_out_of_range_are_refused, groups_are_as_in_the_model)
