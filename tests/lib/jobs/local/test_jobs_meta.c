/* META's records: what is written is read again, and what is damaged, or another version's, is refused. */
/* tier: check */
#include "lib/jobs/local/meta.h"

#include <string.h>

#include "tests/lib/jobs/fixture.h"

static struct world world;
static struct jobs_local *jobs;

static void make(enum ww_jobs_sync sync)
{
	world_make(&world, KIND_DISK);
	world.config.sync = sync;
	world_reopen(&world);
	jobs = local_of(world.jobs);
}

/* A record of META, copied. */
static struct store_bytes read_record(const char *name, unsigned char bytes[256])
{
	struct store_bytes value;

	OK(jobs->store.ops->get(jobs->store.self, STORE_META, (struct store_bytes){name, strlen(name)}, &value));
	ck_assert_uint_le(value.size, 256);
	memcpy(bytes, value.data, value.size);
	return (struct store_bytes){bytes, value.size};
}

static int take(struct meta *meta, const char *name, struct store_bytes value)
{
	return ww_jobs_meta_take(meta, (struct store_bytes){name, strlen(name)}, value);
}

static void put_some(int count)
{
	struct ww_job_spec spec = spec_of("x");

	for (int i = 0; i < count; i++)
		(void)put_job(&world, &spec);
}

START_TEST(both_records_have_what_memory_has)
{
	unsigned char bytes[256];
	struct meta read = {0};
	struct ww_lease lease;

	make(WW_SYNC_ALWAYS);
	put_some(3);
	lease = reserve_job(&world);
	OK(ww_jobs_bury(world.jobs, lease.id, lease.token, 0, NULL));
	ww_jobs_free(world.jobs, lease.body);
	OK(take(&read, "meta", read_record("meta", bytes)));
	OK(take(&read, "now", read_record("now", bytes)));
	ck_assert_uint_eq(read.epoch, jobs->meta.epoch);
	ck_assert_uint_eq(read.burials, 1);
	ck_assert_uint_eq(read.offset, jobs->meta.offset);
	ck_assert_uint_eq(read.secret, jobs->meta.secret);
	ck_assert_mem_eq(read.boot_id, jobs->meta.boot_id, sizeof read.boot_id);
	ck_assert_uint_eq(read.accepted, 3);
	ck_assert_uint_eq(read.ended, 0);
	ck_assert_uint_eq(read.elapsed, jobs->meta.elapsed);
	ck_assert_uint_eq(read.wall, jobs->meta.wall);
	/* Each answer is stable: no ids are set aside. */
	ck_assert_uint_eq(read.id_bound, 4);
	ck_assert_uint_eq(read.next_id, 4);
	world_end(&world);
}
END_TEST

START_TEST(ids_are_set_aside_where_answers_are_not_stable)
{
	unsigned char bytes[256];
	struct meta read = {0};
	uint64_t bound;

	make(WW_SYNC_SYSTEM);
	put_some(1);
	bound = jobs->meta.id_bound;
	ck_assert_uint_gt(bound, jobs->meta.next_id + 1000);
	put_some(10);
	ck_assert_uint_eq(jobs->meta.id_bound, bound);
	OK(take(&read, "now", read_record("now", bytes)));
	ck_assert_uint_eq(read.next_id, bound);
	/* A store that is closed in order gives back the others. */
	world_reopen(&world);
	ck_assert_uint_eq(local_of(world.jobs)->meta.next_id, 12);
	world_end(&world);
}
END_TEST

START_TEST(each_opening_is_counted)
{
	uint64_t epoch;
	uint64_t secret;

	make(WW_SYNC_ALWAYS);
	epoch = jobs->meta.epoch;
	secret = jobs->meta.secret;
	ck_assert_uint_ne(secret, 0);
	world_reopen(&world);
	ck_assert_uint_eq(local_of(world.jobs)->meta.epoch, epoch + 1);
	ck_assert_uint_eq(local_of(world.jobs)->meta.secret, secret);
	world_end(&world);
}
END_TEST

START_TEST(damage_and_other_versions_are_refused)
{
	unsigned char bytes[256];
	struct store_bytes value;
	struct meta read = {0};

	make(WW_SYNC_ALWAYS);
	put_some(1);
	value = read_record("meta", bytes);
	for (size_t size = 0; size < value.size; size++)
		ck_assert_int_eq(take(&read, "meta", (struct store_bytes){bytes, size}), WW_ECORRUPT);
	/* The format comes behind the magic and its NUL. */
	bytes[sizeof "weekwheel jobs" + 3]++;
	ck_assert_int_eq(take(&read, "meta", value), WW_EVERSION);
	bytes[0]++;
	ck_assert_int_eq(take(&read, "meta", value), WW_ECORRUPT);
	value = read_record("now", bytes);
	for (size_t size = 0; size < value.size; size++)
		ck_assert_int_eq(take(&read, "now", (struct store_bytes){bytes, size}), WW_ECORRUPT);
	ck_assert_int_eq(take(&read, "now", (struct store_bytes){bytes, value.size + 1}), WW_ECORRUPT);
	world_end(&world);
}
END_TEST

TEST_MAIN("jobs/meta", both_records_have_what_memory_has, ids_are_set_aside_where_answers_are_not_stable,
    each_opening_is_counted, damage_and_other_versions_are_refused)
