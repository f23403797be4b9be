/* Far jobs of a store in PostgreSQL: they take no memory, and whoever asks for one finds it. */
/* tier: check, threads, no-valgrind (its thousands of jobs take minutes there) */
#include "lib/postgres/far.h"

#include <string.h>
#include <time.h>

#include "lib/postgres/postgres_internal.h"
#include "tests/support/postgres/kind.h"

static struct world world;

static struct postgres *store(void)
{
	return local_of(world.jobs)->store.self;
}

static void make(void)
{
	world_make(&world, KIND_POSTGRES);
	kind_postgres_reopen(&world, WW_MILLISECOND, 2);
}

static uint64_t put_far(uint64_t delay, const char *key)
{
	struct ww_job_spec spec = spec_of("far");

	spec.due = delay;
	spec.key = key;
	spec.key_length = key ? strlen(key) : 0;
	return put_job(&world, &spec);
}

/* How many of these jobs memory has. The store's thread does nothing meanwhile. */
static size_t count_in_memory(const uint64_t *ids, size_t count)
{
	const struct store *memory = &store()->memory;
	struct store_bytes value;
	unsigned char key[8];
	size_t found = 0;

	OK(ww_jobs_begin(world.jobs));
	for (size_t i = 0; i < count; i++) {
		store_write64(key, ids[i]);
		found +=
		    memory->ops->get(memory->self, STORE_JOBS, (struct store_bytes){key, sizeof key}, &value) == WW_OK;
	}
	OK(ww_jobs_commit(world.jobs));
	return found;
}

/* The ring turns, and who visits leaves, in real time. */
static void await_in_memory(const uint64_t *ids, size_t count, size_t expected)
{
	size_t found = 0;

	for (int i = 0; i < 6000 && (found = count_in_memory(ids, count)) != expected; i++) {
		uint64_t id = put_far(0, NULL);
		ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 0);
		(void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	ck_assert_uint_eq(found, expected);
}

static void take(uint64_t id)
{
	struct ww_lease lease = reserve_job(&world);

	ck_assert_uint_eq(lease.id, id);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
}

static void take_in(uint64_t ns, uint64_t id)
{
	world_pass(&world, ns - WW_MILLISECOND);
	expect_none(&world);
	world_pass(&world, WW_MILLISECOND);
	take(id);
}

START_TEST(a_far_job_is_not_in_memory_and_is_found)
{
	const struct ww_job_ref by_key = {.tube = "default", .key = "k", .key_length = 1};
	struct ww_job_info info;
	struct ww_job_spec spec = spec_of("later");
	uint64_t ids[3];

	make();
	ids[0] = put_far(30 * HOUR, "k");
	ids[1] = put_far(30 * HOUR, NULL);
	ids[2] = put_far(300 * HOUR, NULL);
	for (int i = 0; i < 2; i++) {
		await_in_memory(ids, 3, 0);
		ck_assert_uint_eq(info_of(&world, ids[2]).id, ids[2]);
		OK(ww_jobs_peek(world.jobs, &by_key, &info, NULL));
		ck_assert_uint_eq(info.id, ids[0]);
		ck_assert_int_eq(
		    ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = ids[2] + 1000}, &info, NULL), WW_ENOTFOUND);
		world_check(&world);
		world_reopen(&world);
	}
	await_in_memory(ids, 3, 0);
	/* It is found, and replaced. */
	spec.due = 40 * HOUR;
	spec.key = "k";
	spec.key_length = 1;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), 1);
	await_in_memory(ids, 3, 0);
	ck_assert_int_ge(ww_jobs_cancel(world.jobs, &by_key), 0);
	OK(ww_jobs_move(world.jobs, &(struct ww_job_ref){.id = ids[1]}, 0, 0, NULL));
	take(ids[1]);
	world_end(&world);
}
END_TEST

START_TEST(far_jobs_come_when_their_time_comes)
{
	uint64_t ids[4];

	make();
	ids[0] = put_far(3 * HOUR, NULL);
	ids[1] = put_far(30 * HOUR, NULL);
	ids[2] = put_far(170 * HOUR, NULL);
	ids[3] = put_far(1000 * HOUR, NULL);
	await_in_memory(ids, 4, 0);
	/* An hour that comes near is read ahead. */
	world_pass(&world, 2 * HOUR);
	await_in_memory(ids, 4, 1);
	take_in(HOUR, ids[0]);
	take_in(27 * HOUR, ids[1]);
	world_reopen(&world);
	take_in(140 * HOUR, ids[2]);
	take_in(830 * HOUR, ids[3]);
	world_end(&world);
}
END_TEST

struct walk {
	uint64_t last;
	size_t count;
	size_t most;
};

static int walk(const struct ww_job_info *info, void *context)
{
	struct walk *walk = context;

	ck_assert_uint_gt(info->id, walk->last);
	walk->last = info->id;
	walk->count++;
	if (store()->visits.count > walk->most)
		walk->most = store()->visits.count;
	return 0;
}

START_TEST(a_walk_sees_all_far_jobs_and_some_at_a_time)
{
	enum { JOBS = 3000 };
	static uint64_t ids[JOBS];
	static uint64_t counts[100];
	struct walk seen = {.count = 0};
	uint64_t sum = 0;

	make();
	for (int i = 0; i < JOBS; i++) {
		if (i % 500 == 0)
			OK(ww_jobs_begin(world.jobs));
		ids[i] = put_far((uint64_t)(10 + i * 7 % 200) * HOUR, NULL);
		if (i % 500 == 499)
			OK(ww_jobs_commit(world.jobs));
	}
	await_in_memory(ids, JOBS, 0);
	OK(ww_jobs_list(world.jobs, &(struct ww_job_filter){.tube = NULL}, SIZE_MAX, walk, &seen, NULL));
	ck_assert_uint_eq(seen.count, JOBS);
	ck_assert_uint_lt(seen.most, JOBS / 2);
	OK(ww_jobs_forecast(world.jobs, NULL, 3 * HOUR, counts, 100));
	for (int i = 0; i < 100; i++)
		sum += counts[i];
	ck_assert_uint_eq(sum, JOBS);
	await_in_memory(ids, JOBS, 0);
	world_end(&world);
}
END_TEST

START_TEST(a_walk_passes_by_jobs_that_have_left)
{
	enum { JOBS = 20 };
	uint64_t ids[JOBS];
	struct walk seen = {.count = 0};

	make();
	for (int i = 0; i < JOBS; i++)
		ids[i] = put_far(30 * HOUR, NULL);
	await_in_memory(ids, JOBS, 0);
	ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = ids[2]}), 0);
	await_in_memory(ids, JOBS, 0);
	OK(ww_jobs_list(world.jobs, &(struct ww_job_filter){.tube = NULL}, SIZE_MAX, walk, &seen, NULL));
	ck_assert_uint_eq(seen.count, JOBS - 1);
	world_end(&world);
}
END_TEST

/* Whoever collects metrics asks for a forecast all the time. */
START_TEST(a_forecast_lets_no_far_job_come)
{
	enum { JOBS = 100 };
	uint64_t ids[JOBS];
	uint64_t counts[168];
	uint64_t sum = 0;

	make();
	for (int i = 0; i < JOBS; i++)
		ids[i] = put_far(i ? 300 * HOUR : 30 * HOUR, NULL);
	await_in_memory(ids, JOBS, 0);
	OK(ww_jobs_begin(world.jobs));
	OK(ww_jobs_forecast(world.jobs, NULL, HOUR, counts, 168));
	ck_assert_uint_eq(store()->visits.count, 0);
	OK(ww_jobs_commit(world.jobs));
	for (int i = 0; i < 168; i++)
		sum += counts[i];
	ck_assert_uint_eq(sum, 1);
	world_end(&world);
}
END_TEST

START_TEST(many_visits_end_some_at_a_time)
{
	enum { JOBS = 6000 };
	static uint64_t ids[JOBS];
	struct store_bytes key, value;
	unsigned char from[8];

	make();
	OK(ww_jobs_begin(world.jobs));
	for (int i = 0; i < JOBS; i++)
		ids[i] = put_far(30 * HOUR, NULL);
	OK(ww_jobs_commit(world.jobs));
	await_in_memory(ids, JOBS, 0);
	OK(ww_jobs_begin(world.jobs));
	OK(ww_postgres_far_visit_part(store(), ww_postgres_far_find(store(), ids[0])));
	ck_assert_uint_eq(store()->visits.count, JOBS);
	/* They stay for whoever goes through them, though that takes long. */
	store()->visited_since = 0;
	store_write64(from, store()->now + 20 * HOUR);
	OK(local_of(world.jobs)
	        ->store.ops->seek(store(), STORE_DUE, (struct store_bytes){from, sizeof from}, &key, &value));
	ww_postgres_far_rest(store());
	ck_assert_uint_eq(store()->visits.count, JOBS);
	store()->visited_since = 0;
	ww_postgres_far_rest(store());
	ck_assert_uint_gt(store()->visits.count, 0);
	OK(ww_jobs_commit(world.jobs));
	await_in_memory(ids, JOBS, 0);
	world_end(&world);
}
END_TEST

/* An hour is over, and nobody has taken its jobs. */
START_TEST(a_slot_is_emptied_in_whatever_order_its_jobs_came)
{
	enum { JOBS = 600 };
	static uint64_t ids[JOBS];
	struct walk seen = {.count = 0};
	char rows[80];
	size_t end;

	make();
	OK(ww_jobs_begin(world.jobs));
	for (int i = 0; i < JOBS; i++)
		ids[i] = put_far(30 * HOUR, NULL);
	OK(ww_jobs_commit(world.jobs));
	await_in_memory(ids, JOBS, 0);
	/* Whoever empties a slot lets some come at a time. */
	OK(ww_jobs_begin(world.jobs));
	OK(ww_postgres_far_visit_next(store(), ww_postgres_far_find(store(), ids[0]), 0, 100, &end));
	ck_assert_uint_eq(end, 100);
	ck_assert_uint_eq(store()->visits.count, 100);
	(void)snprintf(rows, sizeof rows, "SELECT count(*) FROM weekwheel.job_%u",
	    (unsigned)((store()->now / HOUR + 1) % SLOT_REST));
	OK(ww_jobs_commit(world.jobs));
	OK(ww_jobs_begin(world.jobs));
	for (int i = JOBS; i-- > 0;)
		OK(ww_jobs_move(world.jobs, &(struct ww_job_ref){.id = ids[i]}, HOUR, 0, NULL));
	OK(ww_jobs_commit(world.jobs));
	kind_postgres_await(rows, JOBS);
	world_pass(&world, 2 * HOUR);
	kind_postgres_await(rows, 0);
	world_reopen(&world);
	OK(ww_jobs_list(world.jobs, &(struct ww_job_filter){.tube = NULL}, SIZE_MAX, walk, &seen, NULL));
	ck_assert_uint_eq(seen.count, JOBS);
	world_end(&world);
}
END_TEST

START_TEST(a_write_that_fails_leaves_far_jobs_where_they_are)
{
	struct store_bytes key, value;
	unsigned char from[8];
	uint64_t ids[3];

	make();
	ids[0] = put_far(30 * HOUR, NULL);
	ids[1] = put_far(30 * HOUR, NULL);
	ids[2] = put_far(30 * HOUR, NULL);
	await_in_memory(ids, 3, 0);
	OK(ww_jobs_begin(world.jobs));
	OK(ww_jobs_move(world.jobs, &(struct ww_job_ref){.id = ids[0]}, 50 * HOUR, 0, NULL));
	ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = ids[1]}), 0);
	/* Whoever goes through the hours lets the whole slot come. */
	store_write64(from, store()->now + 20 * HOUR);
	OK(local_of(world.jobs)
	        ->store.ops->seek(store(), STORE_DUE, (struct store_bytes){from, sizeof from}, &key, &value));
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_lt(ww_jobs_commit(world.jobs), 0);
	world_fail(&world, FAIL_NOTHING);
	world_check(&world);
	take_in(30 * HOUR, ids[0]);
	take(ids[1]);
	take(ids[2]);
	world_end(&world);
}
END_TEST

/* An administrator may cancel a statement that takes long. What SQL has put is not refused for that. */
START_TEST(a_put_whose_visit_is_cancelled_is_taken_later)
{
	PGconn *locker;
	uint64_t id;

	make();
	id = put_far(30 * HOUR, "k");
	await_in_memory(&id, 1, 0);
	locker = PQconnectdb(kind_postgres_server()->url);
	PQclear(PQexec(locker, "BEGIN; LOCK TABLE weekwheel.job"));
	(void)kind_postgres_ask("SELECT weekwheel.put('default', 'new', '30 hours', key => 'k')");
	kind_postgres_await("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE "
	                    "'SELECT id, pair FROM weekwheel.job%'",
	    1);
	ck_assert_int_eq(
	    kind_postgres_ask("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event_type = "
	                      "'Lock' AND query LIKE 'SELECT id, pair FROM weekwheel.job%'"),
	    1);
	PQfinish(locker);
	for (int i = 0; i < 6000 && info_of(&world, id).version == 1; i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	ck_assert_uint_eq(info_of(&world, id).version, 2);
	ck_assert_int_eq(kind_postgres_ask("SELECT count(*) FROM weekwheel.refused"), 0);
	world_end(&world);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_far_job_is_not_in_memory_and_is_found, far_jobs_come_when_their_time_comes,
	    a_walk_sees_all_far_jobs_and_some_at_a_time, a_walk_passes_by_jobs_that_have_left,
	    a_forecast_lets_no_far_job_come, many_visits_end_some_at_a_time,
	    a_slot_is_emptied_in_whatever_order_its_jobs_came, a_write_that_fails_leaves_far_jobs_where_they_are,
	    a_put_whose_visit_is_cancelled_is_taken_later};

	if (!postgres_server_is_there())
		return EXIT_SUCCESS;
	return suite_run_with("postgres/far", tests, sizeof tests / sizeof *tests, kind_postgres.begin);
}
