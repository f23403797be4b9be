/* The least, the greatest and the oddest values that may be put, with each kind of store. */
/* tier: check, no-valgrind */

#include <string.h>

#include "tests/lib/jobs/fixture.h"

static struct world world;

/* ---- Names */

static const struct {
	const char *bytes;
	size_t length;
} odd_keys[] = {
    {"{}", 2}, {"{0}:m", 5}, {"\0", 1}, {"\0\0", 2}, {"\"'`\\", 4}, {"\r\n", 2}, {"%s%n", 4}, {" ", 1}, {"0", 1}};
enum { ODD_KEYS = sizeof odd_keys / sizeof *odd_keys };

static uint64_t put_keyed(const void *key, size_t length, int result)
{
	struct ww_job_spec spec = spec_of("x");
	uint64_t id;

	spec.key = key;
	spec.key_length = length;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, NULL), result);
	return id;
}

static void expect_keyed(const void *key, size_t length, uint64_t id)
{
	struct ww_job_ref ref = {.key = key, .key_length = length};
	struct ww_job_info info;

	OK(ww_jobs_peek(world.jobs, &ref, &info, NULL));
	ck_assert_uint_eq(info.id, id);
	ck_assert_uint_eq(info.key_length, length);
	ck_assert_mem_eq(info.key, key, length);
	ck_assert_uint_eq(put_keyed(key, length, 1), id);
}

START_TEST(a_key_may_have_any_bytes)
{
	unsigned char longest[WW_JOB_KEY_MAX];
	uint64_t ids[ODD_KEYS];

	world_make(&world, _i);
	memset(longest, 0xff, sizeof longest);
	for (size_t i = 0; i < ODD_KEYS; i++)
		ids[i] = put_keyed(odd_keys[i].bytes, odd_keys[i].length, 0);
	uint64_t last = put_keyed(longest, sizeof longest, 0);
	uint64_t shorter = put_keyed(longest, sizeof longest - 1, 0);
	for (size_t i = 0; i < ODD_KEYS; i++)
		expect_keyed(odd_keys[i].bytes, odd_keys[i].length, ids[i]);
	expect_keyed(longest, sizeof longest, last);
	expect_keyed(longest, sizeof longest - 1, shorter);
	for (size_t i = 0; i < ODD_KEYS; i++) {
		struct ww_job_ref ref = {.key = odd_keys[i].bytes, .key_length = odd_keys[i].length};
		ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 1);
		ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), WW_ENOTFOUND);
	}
	world_end(&world);
}
END_TEST

/* A tube with this name has jobs in each state, and counts them. */
static void use_tube(const char *tube)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_tube_stats stats;
	struct ww_job_info info;
	struct ww_lease lease;
	uint64_t count;

	spec.tube = tube;
	for (int i = 0; i < 3; i++)
		(void)put_job(&world, &spec);
	spec.due = WW_SECOND;
	spec.key = tube;
	spec.key_length = strlen(tube);
	(void)put_job(&world, &spec);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, &tube, 1, &lease), 1);
	ck_assert_str_eq(lease.tube, tube);
	ww_jobs_free(world.jobs, lease.body);
	OK(ww_jobs_bury(world.jobs, lease.id, lease.token, 0, NULL));
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, &tube, 1, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	OK(ww_jobs_pause(world.jobs, tube, WW_SECOND));
	OK(ww_jobs_tube(world.jobs, tube, &stats));
	ck_assert_str_eq(stats.name, tube);
	ck_assert(stats.delayed == 1 && stats.ready == 1 && stats.reserved == 1 && stats.buried == 1);
	ck_assert_uint_eq(stats.pause, WW_SECOND);
	OK(ww_jobs_peek_next(world.jobs, tube, WW_JOB_DELAYED, &info, NULL));
	ck_assert_str_eq(info.tube, tube);
	OK(ww_jobs_kick(world.jobs, tube, 9, &count));
	ck_assert_uint_eq(count, 1);
}

START_TEST(a_tube_name_may_have_any_bytes)
{
	static const char *const tubes[] = {"{", "}", "{}", "a{b}:c", "}:m", "{0}:r:default", ":", "m", "j", "0", "-1",
	    " a b ", "\n", "%s", "\"", "\xff\xfe", "*", "[a-z]"};
	char longest[WW_TUBE_MAX + 1];

	world_make(&world, _i);
	memset(longest, '{', WW_TUBE_MAX);
	longest[WW_TUBE_MAX] = '\0';
	for (size_t i = 0; i < sizeof tubes / sizeof *tubes; i++)
		use_tube(tubes[i]);
	use_tube(longest);
	world_check(&world);
	world_pass(&world, 60 * WW_SECOND);
	world_end(&world);
}
END_TEST

/* ---- Numbers */

START_TEST(a_body_may_be_empty_and_of_the_greatest_size)
{
	static unsigned char body[65535];
	static const size_t lengths[] = {0, 1, sizeof body - 1, sizeof body};
	static const char *const tube = WW_TUBE_DEFAULT;
	struct ww_lease lease;
	struct ww_job_info info;
	void *copy;

	world_make(&world, _i);
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = (unsigned char)(i * 7 + (i >> 8));
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct ww_job_spec spec = spec_of("");
		spec.body = body;
		spec.body_length = lengths[i];
		struct ww_job_ref ref = {.id = put_job(&world, &spec)};
		OK(ww_jobs_peek(world.jobs, &ref, &info, &copy));
		ck_assert_uint_eq(info.body_length, lengths[i]);
		ck_assert_mem_eq(copy ? copy : "", body, lengths[i]);
		ww_jobs_free(world.jobs, copy);
		ck_assert_int_eq(ww_jobs_reserve(world.jobs, &tube, 1, &lease), 1);
		ck_assert_uint_eq(lease.body_length, lengths[i]);
		ck_assert_int_eq(lease.body == NULL, lengths[i] == 0);
		ck_assert_mem_eq(lease.body ? lease.body : "", body, lengths[i]);
		ww_jobs_free(world.jobs, lease.body);
		OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	}
	world_end(&world);
}
END_TEST

START_TEST(a_priority_keeps_all_its_bits)
{
	static const uint32_t in_order[] = {0, 1, UINT32_MAX / 2, UINT32_MAX / 2 + 1, UINT32_MAX - 1, UINT32_MAX};
	enum { COUNT = sizeof in_order / sizeof *in_order };
	uint64_t ids[COUNT];

	world_make(&world, _i);
	for (size_t i = COUNT; i-- > 0;) {
		struct ww_job_spec spec = spec_of("x");
		spec.priority = in_order[i];
		ids[i] = put_job(&world, &spec);
	}
	for (size_t i = 0; i < COUNT; i++) {
		struct ww_lease lease = reserve_job(&world);
		ck_assert_uint_eq(lease.id, ids[i]);
		ck_assert_uint_eq(lease.priority, in_order[i]);
		ck_assert_uint_eq(info_of(&world, lease.id).priority, in_order[i]);
	}
	world_end(&world);
}
END_TEST

/* Redis keeps times in us, rounded up. */
static uint64_t rounded(uint64_t ns)
{
	return world_promises(&world, KIND_IN_REDIS) ? (ns + 999) / 1000 * 1000 : ns;
}

START_TEST(a_job_may_be_due_in_a_century)
{
	uint64_t count;

	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.run = spec.backoff = spec.backoff_max = spec.due = WW_DRIVER_TIME_MAX;
	/* This is the last time that a driver has. */
	if (!world_promises(&world, KIND_IN_REDIS))
		spec.due -= 1000 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	struct ww_job_info info = info_of(&world, id);
	ck_assert_uint_eq(info.due, world_now(&world) + rounded(spec.due));
	ck_assert_uint_eq(info.left, rounded(spec.due));
	ck_assert_uint_eq(info.run, rounded(spec.run));
	ck_assert_uint_eq(info.backoff, rounded(spec.backoff));
	ck_assert_uint_eq(info.backoff_max, rounded(spec.backoff_max));
	spec.flags = WW_JOB_AT;
	spec.due += world_now(&world);
	uint64_t other = put_job(&world, &spec);
	ck_assert_uint_eq(info_of(&world, other).due, rounded(spec.due));
	OK(ww_jobs_forecast(world.jobs, NULL, 86400 * WW_SECOND, &count, 1));
	ck_assert_uint_eq(count, 0);
	world_pass(&world, 400 * 86400 * WW_SECOND);
	expect_none(&world);
	OK(ww_jobs_kick_job(world.jobs, other));
	struct ww_lease lease = reserve_job(&world);
	ck_assert_int_eq(ww_jobs_release(world.jobs, other, lease.token, 0, WW_JOB_BACKOFF, NULL), 0);
	ck_assert_uint_ge(info_of(&world, other).left, WW_DRIVER_TIME_MAX / 4 * 3);
	world_end(&world);
}
END_TEST

START_TEST(a_period_may_be_a_century_and_a_millisecond)
{
	for (int missed = WW_MISSED_ONCE; missed <= WW_MISSED_SKIP; missed++) {
		world_make(&world, _i);
		struct ww_job_spec spec = spec_of("x");
		spec.missed = (enum ww_missed)missed;
		spec.period = WW_DRIVER_TIME_MAX;
		uint64_t rare = put_job(&world, &spec);
		uint64_t start = world_now(&world);
		struct ww_lease lease = reserve_job(&world);
		OK(ww_jobs_finish(world.jobs, rare, lease.token));
		ck_assert_uint_eq(info_of(&world, rare).due, start + rounded(spec.period));
		spec.period = MS;
		uint64_t often = put_job(&world, &spec);
		/* Hours late: the missed periods must not be counted one by one. */
		world_pass(&world, 7200 * WW_SECOND);
		lease = reserve_job(&world);
		ck_assert_uint_eq(lease.id, often);
		ck_assert_uint_eq(lease.missed, missed == WW_MISSED_ONCE ? UINT64_C(7200000) : 0);
		OK(ww_jobs_finish(world.jobs, often, lease.token));
		world_end(&world);
	}
}
END_TEST

START_TEST(a_past_time_is_refused_for_a_job_of_the_future)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	uint64_t id = 7;
	spec.flags = WW_JOB_AT | WW_JOB_FUTURE;
	spec.due = world_now(&world) - MS;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, NULL), WW_EBACKWARDS);
	ck_assert_uint_eq(id, 7);
	struct ww_job_put many[] = {{.spec = &spec}};
	OK(ww_jobs_put_many(world.jobs, many, 1));
	ck_assert_int_eq(many[0].result, WW_EBACKWARDS);
	/* The present moment is not in the past. */
	spec.due = world_now(&world);
	id = put_job(&world, &spec);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	spec.due = world_now(&world) + MS;
	id = put_job(&world, &spec);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_DELAYED);
	/* Neither is a delay. Without WW_JOB_FUTURE a past time is allowed. */
	spec.due = 0;
	spec.flags = WW_JOB_FUTURE;
	(void)put_job(&world, &spec);
	spec.flags = WW_JOB_AT;
	(void)put_job(&world, &spec);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/extremes", a_key_may_have_any_bytes, a_tube_name_may_have_any_bytes,
    a_body_may_be_empty_and_of_the_greatest_size, a_priority_keeps_all_its_bits, a_job_may_be_due_in_a_century,
    a_period_may_be_a_century_and_a_millisecond, a_past_time_is_refused_for_a_job_of_the_future)
