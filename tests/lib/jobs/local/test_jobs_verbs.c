/*
 * What a call reads, counted below it: questions about a tube and changes of k jobs do not read the jobs of other tubes.
 *
 * WW_SEED sets the seed of the random test, which is printed.
 */
/* tier: check */
#include <stdio.h>
#include <string.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"

#define HOUR (3600 * WW_SECOND)
#define WEEK (168 * HOUR)

enum { AT_ONCE = 500 };
#define ELSEWHERE ((unsigned)seed_rounds(20000))

static struct world world;
static uint64_t state;

/* ---- The store, with a counter before its reads */

static const struct store_ops *real;
static struct store_ops counted;
static uint64_t reads;

static int count_get(void *store, enum store_table table, struct store_bytes key, struct store_bytes *value)
{
	reads++;
	return real->get(store, table, key, value);
}

static int count_seek(
    void *store, enum store_table table, struct store_bytes from, struct store_bytes *key, struct store_bytes *value)
{
	reads++;
	return real->seek(store, table, from, key, value);
}

static int count_before(
    void *store, enum store_table table, struct store_bytes to, struct store_bytes *key, struct store_bytes *value)
{
	reads++;
	return real->before(store, table, to, key, value);
}

static int count_next(void *store, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	reads++;
	return real->next(store, table, key, value);
}

static void count_reads(void)
{
	struct store *store = &local_of(world.jobs)->store;

	real = store->ops;
	counted = *real;
	counted.get = count_get;
	counted.seek = count_seek;
	counted.before = count_before;
	counted.next = count_next;
	store->ops = &counted;
	reads = 0;
}

#define READS_AT_MOST(most, call)                                                                                      \
	do {                                                                                                           \
		reads = 0;                                                                                             \
		(void)(call);                                                                                          \
		ck_assert_uint_le(reads, most);                                                                        \
	} while (0)

/* ---- Worlds with many jobs of another tube */

static uint64_t put_on(const char *tube, uint64_t due, uint32_t flags)
{
	struct ww_job_spec spec = spec_of("x");

	spec.tube = tube;
	spec.due = due;
	spec.flags = flags;
	return put_job(&world, &spec);
}

static uint64_t put_in(const char *tube, uint64_t due)
{
	return put_on(tube, due, 0);
}

/* Many jobs of another tube, one after the other from then on. */
static void make_crowd(int kind, uint64_t from, uint64_t span)
{
	world_make(&world, kind);
	OK(ww_jobs_begin(world.jobs));
	for (uint64_t i = 0; i < ELSEWHERE; i++)
		(void)put_in("other", from + i * (span / ELSEWHERE));
	OK(ww_jobs_commit(world.jobs));
	count_reads();
}

static int peek(const char *tube, enum ww_job_state which, uint64_t *id)
{
	struct ww_job_info info = {0};
	int error = ww_jobs_peek_next(world.jobs, tube, which, &info, NULL);

	*id = info.id;
	return error;
}

static void expect_next(const char *tube, enum ww_job_state which, uint64_t id)
{
	uint64_t found;

	OK(peek(tube, which, &found));
	ck_assert_uint_eq(found, id);
}

static void bury(uint64_t id)
{
	struct ww_lease lease;

	OK(ww_jobs_reserve_job(world.jobs, id, &lease));
	ww_jobs_free(world.jobs, lease.body);
	OK(ww_jobs_bury(world.jobs, id, lease.token, 0, NULL));
}

static void cancel(uint64_t id)
{
	struct ww_job_ref job = {.id = id};

	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &job), 1);
}

START_TEST(a_peek_reads_no_jobs_of_other_tubes)
{
	uint64_t id;

	make_crowd(_i, HOUR, WEEK);
	READS_AT_MOST(0, peek("empty", WW_JOB_DELAYED, &id));
	uint64_t far = put_in("far", WEEK / 2 + 30 * WW_SECOND);
	READS_AT_MOST(6, expect_next("far", WW_JOB_DELAYED, far));
	/* Then it is known: the rest is reading the job. */
	for (int i = 0; i < 100; i++)
		READS_AT_MOST(2, expect_next("far", WW_JOB_DELAYED, far));
	uint64_t ready = put_in("far", 0);
	READS_AT_MOST(2, expect_next("far", WW_JOB_READY, ready));
	bury(ready);
	READS_AT_MOST(3, expect_next("far", WW_JOB_BURIED, ready));
	READS_AT_MOST(2, expect_next("far", WW_JOB_DELAYED, far));
	uint64_t sooner = put_in("far", HOUR);
	READS_AT_MOST(2, expect_next("far", WW_JOB_DELAYED, sooner));
	cancel(sooner);
	READS_AT_MOST(2, expect_next("far", WW_JOB_DELAYED, far));
	cancel(far);
	READS_AT_MOST(1, peek("far", WW_JOB_DELAYED, &id));
	world_end(&world);
}
END_TEST

START_TEST(a_crowded_hour_is_passed_once)
{
	uint64_t id;

	/* All in one hour, or two. */
	make_crowd(_i, 2 * HOUR, HOUR / 2);
	uint64_t first = put_in("late", 2 * HOUR + HOUR / 4);
	uint64_t second = put_in("late", 2 * HOUR + HOUR / 2);
	/* The count names the first one. */
	READS_AT_MOST(6, expect_next("late", WW_JOB_DELAYED, first));
	cancel(first);
	READS_AT_MOST(ELSEWHERE, expect_next("late", WW_JOB_DELAYED, second));
	for (int i = 0; i < 100; i++)
		READS_AT_MOST(2, expect_next("late", WW_JOB_DELAYED, second));
	uint64_t again = put_in("late", 2 * HOUR);
	READS_AT_MOST(2, expect_next("late", WW_JOB_DELAYED, again));
	cancel(again);
	READS_AT_MOST(2, expect_next("late", WW_JOB_DELAYED, second));
	cancel(second);
	READS_AT_MOST(1, peek("late", WW_JOB_DELAYED, &id));
	world_end(&world);
}
END_TEST

static void expect_kick(const char *tube, uint64_t bound, uint64_t kicked)
{
	uint64_t count = 0;

	OK(ww_jobs_kick(world.jobs, tube, bound, &count));
	ck_assert_uint_eq(count, kicked);
}

START_TEST(a_kick_reads_as_much_as_it_kicks)
{
	make_crowd(_i, HOUR, WEEK);
	for (uint64_t i = 0; i < AT_ONCE; i++)
		(void)put_in("few", HOUR + i * (WEEK / AT_ONCE));
	/* Each is in an hour with some hundred others, and is the first of its tube there, or the third at most. */
	READS_AT_MOST(AT_ONCE / 2 * 300, expect_kick("few", AT_ONCE / 2, AT_ONCE / 2));
	OK(ww_jobs_begin(world.jobs));
	for (uint64_t i = 0; i < AT_ONCE; i++)
		bury(put_in("buried", HOUR));
	OK(ww_jobs_commit(world.jobs));
	READS_AT_MOST(AT_ONCE * 8, expect_kick("buried", 2 * AT_ONCE, AT_ONCE));
	world_end(&world);
}
END_TEST

START_TEST(statistics_read_a_few_pairs)
{
	struct ww_jobs_stats stats;
	char name[16];

	make_crowd(_i, HOUR, WEEK);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof name, "tube-%d", i);
		(void)put_in(name, 0);
	}
	READS_AT_MOST(4, ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.tubes, 101);
	ck_assert_uint_eq(stats.all.ready, 100);
	ck_assert_uint_eq(stats.all.delayed, ELSEWHERE);
	world_end(&world);
}
END_TEST

START_TEST(the_oldest_job_comes_back_with_its_batch)
{
	struct ww_jobs_stats stats;

	world_make(&world, _i);
	uint64_t oldest = put_in("mail", 0);
	world_pass(&world, WW_SECOND);
	(void)put_in("mail", 0);
	world_pass(&world, WW_SECOND);
	world_fail(&world, FAIL_COMMIT);
	OK(ww_jobs_begin(world.jobs));
	cancel(oldest);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.oldest, WW_SECOND);
	ck_assert_int_eq(ww_jobs_commit(world.jobs), WW_EFULL);
	world_fail(&world, FAIL_NOTHING);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.oldest, 2 * WW_SECOND);
	world_end(&world);
}
END_TEST

/* ---- Forecasts */

static uint64_t sum(const uint64_t *counts, size_t count)
{
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		all += counts[i];
	return all;
}

START_TEST(a_forecast_reads_the_counts_of_hours)
{
	uint64_t counts[170];

	make_crowd(_i, HOUR, WEEK);
	/* Days end within hours, thus some hours are read. */
	READS_AT_MOST(170 + 500 + 20, ww_jobs_forecast(world.jobs, NULL, 24 * HOUR, counts, 8));
	ck_assert_uint_eq(sum(counts, 8), ELSEWHERE);
	READS_AT_MOST(2, ww_jobs_forecast(world.jobs, "nothing", HOUR, counts, 170));
	(void)put_in("few", WEEK / 2);
	READS_AT_MOST(ELSEWHERE / 168 + 10, ww_jobs_forecast(world.jobs, "few", HOUR, counts, 170));
	ck_assert_uint_eq(sum(counts, 170), 1);
	ck_assert_uint_eq(counts[84], 1);
	world_end(&world);
}
END_TEST

START_TEST(a_forecast_of_too_many_jobs_spreads_the_rest)
{
	static uint64_t counts[240];

	/* The jobs are due evenly within half an hour. */
	make_crowd(_i, 2 * HOUR, HOUR / 2);
	READS_AT_MOST(10, ww_jobs_forecast(world.jobs, NULL, HOUR / 60, counts, 240));
	ck_assert_uint_eq(sum(counts, 240), ELSEWHERE);
	/* An hour begins in which they are not. Of its jobs the first are counted one by one. */
	world_pass(&world, 4 * HOUR - world_now(&world) % HOUR);
	OK(ww_jobs_begin(world.jobs));
	for (uint64_t i = 0; i < ELSEWHERE; i++)
		(void)put_in("now", i * (HOUR / 2 / ELSEWHERE));
	OK(ww_jobs_commit(world.jobs));
	READS_AT_MOST(510, ww_jobs_forecast(world.jobs, "now", HOUR, counts, 1));
	ck_assert_uint_eq(counts[0], ELSEWHERE);
	/* What is ready is no part of what is spread. */
	world_pass(&world, HOUR / 4);
	while (local_of(world.jobs)->all.ready < ELSEWHERE + ELSEWHERE / 2)
		world_pass(&world, 1);
	READS_AT_MOST(510, ww_jobs_forecast(world.jobs, "now", WW_SECOND, counts, 240));
	ck_assert_uint_ge(counts[0], ELSEWHERE / 2);
	ck_assert_uint_le(counts[0], ELSEWHERE / 2 + ELSEWHERE / 1800 + 2);
	for (int second = 0; second < 40; second++)
		ck_assert_uint_ge(counts[second], ELSEWHERE / 1800);
	world_end(&world);
}
END_TEST

/* ---- Tubes */

START_TEST(a_tube_gets_the_lowest_free_number)
{
	enum { TUBES = 1100, FREED = 40 }; /* a thousand empty ones are remembered */
	uint64_t ids[TUBES];
	char name[16];

	world_make(&world, _i);
	for (int i = 0; i < TUBES; i++) {
		(void)snprintf(name, sizeof name, "tube-%d", i);
		ids[i] = put_in(name, HOUR);
	}
	cancel(ids[FREED + 1]);
	cancel(ids[FREED]);
	(void)put_in("new", HOUR);
	(void)put_in("newer", HOUR);
	(void)put_in("newest", HOUR);
	ck_assert_uint_eq(ww_jobs_tube_find(local_of(world.jobs), "new")->number, FREED);
	ck_assert_uint_eq(ww_jobs_tube_find(local_of(world.jobs), "newer")->number, FREED + 1);
	ck_assert_uint_eq(ww_jobs_tube_find(local_of(world.jobs), "newest")->number, TUBES);
	world_end(&world);
}
END_TEST

static void expect_pause(const char *tube, uint64_t left)
{
	struct ww_tube_stats stats;

	OK(ww_jobs_tube(world.jobs, tube, &stats));
	ck_assert_uint_eq(stats.pause_left, left);
}

START_TEST(each_pause_ends_by_itself)
{
	world_make(&world, _i);
	OK(ww_jobs_pause(world.jobs, "long", 10 * WW_SECOND));
	OK(ww_jobs_pause(world.jobs, "short", 5 * WW_SECOND));
	OK(ww_jobs_pause(world.jobs, "ended", 5 * WW_SECOND));
	OK(ww_jobs_pause(world.jobs, "again", WW_SECOND));
	OK(ww_jobs_pause(world.jobs, "again", 20 * WW_SECOND));
	OK(ww_jobs_pause(world.jobs, "ended", 0));
	expect_pause("ended", 0);
	world_pass(&world, 6 * WW_SECOND);
	expect_pause("short", 0);
	expect_pause("long", 4 * WW_SECOND);
	expect_pause("again", 14 * WW_SECOND);
	ck_assert_uint_eq(ww_jobs_tube_find(local_of(world.jobs), "short")->pause_ends, 0);
	ck_assert_uint_ne(ww_jobs_tube_find(local_of(world.jobs), "again")->pause_ends, 0);
	world_end(&world);
}
END_TEST

/* ---- The check */

START_TEST(the_check_finds_wrong_counts)
{
	static const unsigned char bad[2][4] = {{0, 0, 0, 7}, {0xff, 0xff, 0xff, 0xff}};
	struct store *store;
	struct store_bytes key;
	struct store_bytes value;
	unsigned char copy[8];

	world_make(&world, _i);
	store = &local_of(world.jobs)->store;
	(void)put_in("mail", HOUR);
	ck_assert_int_eq(ww_jobs_check(world.jobs, NULL, NULL), 0);
	/* One too many, and one that belongs to no job. */
	for (int i = 0; i < 2; i++) {
		OK(store->ops->seek(store->self, STORE_COUNTS, (struct store_bytes){bad[i], i ? 4 : 0}, &key, &value));
		memcpy(copy, key.data, sizeof copy);
		unsigned char wrong[17];
		size_t size = value.size;
		memcpy(wrong, value.data, size);
		wrong[size - 1]++;
		OK(store->ops->begin(store->self));
		OK(store->ops->put(
		    store->self, STORE_COUNTS, (struct store_bytes){copy, 8}, (struct store_bytes){wrong, size}));
		OK(store->ops->commit(store->self));
		ck_assert_int_eq(ww_jobs_check(world.jobs, NULL, NULL), i + 1);
	}
	OK(store->ops->begin(store->self));
	copy[7]++;
	OK(store->ops->put(store->self, STORE_COUNTS, (struct store_bytes){copy, 8}, (struct store_bytes){"\1", 1}));
	OK(store->ops->commit(store->self));
	ck_assert_int_eq(ww_jobs_check(world.jobs, NULL, NULL), 3);
	world.is_damaged = 1;
	world_end(&world);
}
END_TEST

/* ---- At random, beside a list of all jobs */

static const char *const names[] = {"one", "two", "three"};

enum { IDS = 10000 };
static uint64_t burials[IDS], burials_before[IDS], burial;

struct seen {
	uint64_t oldest;
	uint64_t buried[3];
	uint64_t now;
	uint64_t wall_now;
	struct {
		uint64_t left;
		uint64_t id;
		int wall;
	} next[3];
	uint64_t counts[4][48];
	uint64_t span;
};

static size_t number_of(const char *tube)
{
	size_t i = 0;

	while (strcmp(names[i], tube) != 0)
		i++;
	return i;
}

static int see(const struct ww_job_info *info, void *context)
{
	struct seen *seen = context;
	size_t tube = number_of(info->tube);
	int wall = (info->flags & WW_JOB_WALL) != 0;
	uint64_t now = wall ? seen->wall_now : seen->now;
	uint64_t span = info->due > now ? (info->due - now) / seen->span : 0;

	if (info->state != WW_JOB_BURIED && span < 48) {
		seen->counts[tube][span]++;
		seen->counts[3][span]++;
	}
	if (info->state != WW_JOB_BURIED && info->due < now && now - info->due > seen->oldest)
		seen->oldest = now - info->due;
	if (info->state == WW_JOB_BURIED && (!seen->buried[tube] || burials[info->id] < burials[seen->buried[tube]]))
		seen->buried[tube] = info->id;
	if (info->state != WW_JOB_DELAYED || info->due <= now)
		return 0;
	if (!seen->next[tube].id || info->left < seen->next[tube].left ||
	    (info->left == seen->next[tube].left && wall < seen->next[tube].wall)) {
		seen->next[tube].left = info->left;
		seen->next[tube].id = info->id;
		seen->next[tube].wall = wall;
	}
	return 0;
}

static void compare_with_a_list(void)
{
	struct ww_job_filter all = {0};
	struct seen seen = {.span = 1 + seed_below(&state, 2 * HOUR)};
	struct ww_jobs_stats stats;
	uint64_t counts[48];
	uint64_t id;

	OK(ww_jobs_now(world.jobs, 0, &seen.now));
	OK(ww_jobs_now(world.jobs, WW_JOB_WALL, &seen.wall_now));
	OK(ww_jobs_list(world.jobs, &all, SIZE_MAX, see, &seen, NULL));
	for (size_t i = 0; i < 3; i++) {
		int error = peek(names[i], WW_JOB_DELAYED, &id);
		ck_assert_int_eq(error, seen.next[i].id ? WW_OK : WW_ENOTFOUND);
		ck_assert_uint_eq(id, seen.next[i].id);
		error = peek(names[i], WW_JOB_BURIED, &id);
		ck_assert_int_eq(error, seen.buried[i] ? WW_OK : WW_ENOTFOUND);
		ck_assert_uint_eq(id, seen.buried[i]);
	}
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.oldest, seen.oldest);
	for (size_t i = 0; i < 4; i++) {
		OK(ww_jobs_forecast(world.jobs, i < 3 ? names[i] : NULL, seen.span, counts, 48));
		ck_assert_mem_eq(counts, seen.counts[i], sizeof counts);
	}
}

static uint64_t random_delay(void)
{
	const uint64_t spans[] = {1, WW_SECOND, 100 * WW_SECOND, HOUR, 30 * HOUR};

	return seed_below(&state, spans[seed_below(&state, 5)] + 1);
}

/* Lease any job, then give it back in some way. */
static void lease(uint64_t id)
{
	struct ww_lease lease;

	if (ww_jobs_reserve_job(world.jobs, id, &lease) != WW_OK)
		return;
	ww_jobs_free(world.jobs, lease.body);
	switch (seed_below(&state, 4)) {
	case 0:
		OK(ww_jobs_return_after(world.jobs, id, lease.token, seed_below(&state, 2) ? random_delay() : 0));
		break;
	case 1:
		OK(ww_jobs_release(world.jobs, id, lease.token, 0, random_delay(), NULL));
		break;
	case 2:
		OK(ww_jobs_bury(world.jobs, id, lease.token, 0, NULL));
		burials[id] = ++burial;
		break;
	}
}

static void change(uint64_t last)
{
	const char *tube = names[seed_below(&state, 3)];
	struct ww_job_ref job = {.id = 1 + seed_below(&state, last)};
	uint64_t kicked;

	switch (seed_below(&state, 12)) {
	case 0:
		(void)ww_jobs_cancel(world.jobs, &job);
		break;
	case 1:
		(void)ww_jobs_move(world.jobs, &job, random_delay(), 0, NULL);
		break;
	case 2:
		OK(ww_jobs_kick(world.jobs, tube, seed_below(&state, 3), &kicked));
		break;
	case 3:
		if (peek(tube, WW_JOB_DELAYED, &job.id) == WW_OK)
			cancel(job.id);
		break;
	case 4:
		(void)ww_jobs_kick_job(world.jobs, job.id);
		break;
	case 5:
		(void)peek(tube, WW_JOB_DELAYED, &job.id);
		/* fall through */
	case 6:
		lease(job.id);
		break;
	default:
		(void)put_on(tube, random_delay(), seed_below(&state, 4) ? 0 : WW_JOB_WALL);
	}
}

/* Everything that this batch does is taken back. */
static void fail_a_batch(uint64_t last)
{
	memcpy(burials_before, burials, sizeof burials);
	world_fail(&world, FAIL_COMMIT);
	OK(ww_jobs_begin(world.jobs));
	for (int i = 0; i < 5; i++) {
		struct ww_jobs_stats stats;
		uint64_t id;
		change(last);
		(void)peek(names[i % 3], WW_JOB_DELAYED, &id);
		(void)peek(names[i % 3], WW_JOB_BURIED, &id);
		OK(ww_jobs_stats(world.jobs, &stats));
	}
	(void)ww_jobs_commit(world.jobs);
	memcpy(burials, burials_before, sizeof burials);
	world_fail(&world, FAIL_NOTHING);
}

START_TEST(what_comes_next_is_what_a_list_says)
{
	uint64_t last = 1;

	state = seed_of_run("test_jobs_verbs");
	world_make(&world, _i);
	for (int round = 0; round < seed_rounds(1200); round++) {
		struct ww_jobs_stats stats;
		for (uint64_t i = seed_below(&state, 5); i > 0; i--)
			change(last);
		if (seed_below(&state, 8) == 0)
			world_pass(&world, random_delay());
		if (seed_below(&state, 20) == 0)
			fail_a_batch(last);
		if (seed_below(&state, 200) == 0 && world_promises(&world, KIND_KEEPS))
			world_reopen(&world);
		compare_with_a_list();
		OK(ww_jobs_stats(world.jobs, &stats));
		last = stats.accepted + 1;
		ck_assert_uint_lt(last, IDS);
		if (round % 50 == 0)
			world_check(&world);
	}
	world_end(&world);
}
END_TEST

KINDS_MAIN_OF("jobs/verbs", KINDS_EMBEDDED, a_peek_reads_no_jobs_of_other_tubes, a_crowded_hour_is_passed_once,
    a_kick_reads_as_much_as_it_kicks, statistics_read_a_few_pairs, the_oldest_job_comes_back_with_its_batch,
    a_forecast_reads_the_counts_of_hours, a_forecast_of_too_many_jobs_spreads_the_rest,
    a_tube_gets_the_lowest_free_number, each_pause_ends_by_itself, the_check_finds_wrong_counts,
    what_comes_next_is_what_a_list_says)
