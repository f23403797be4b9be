/* Follow-ups: a job that is put when another is finished, in one write with its end. */
/* tier: check */
#include <string.h>

#include "tests/lib/jobs/fixture.h"

static struct world world;

/* The follow-ups of a test, written one after the other. */
static char room[8192];
static size_t used;

static void give(struct ww_job_spec *job, const struct ww_job_spec *next)
{
	size_t length = sizeof room - used;

	OK(ww_job_then_write(room + used, &length, next));
	job->then = room + used;
	job->then_length = length;
	used += length;
}

/* A job with a follow-up that has this body. */
static struct ww_job_spec chain(const char *body, const char *next)
{
	struct ww_job_spec job = spec_of(body);
	struct ww_job_spec then = spec_of(next);

	give(&job, &then);
	return job;
}

static struct ww_lease reserve_body(const char *body)
{
	static const char *const tubes[] = {WW_TUBE_DEFAULT, "next"};
	struct ww_lease lease;

	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tubes, 2, &lease), 1);
	ck_assert_uint_eq(lease.body_length, strlen(body));
	ck_assert_mem_eq(lease.body, body, lease.body_length);
	ww_jobs_free(world.jobs, lease.body);
	return lease;
}

static void finish_body(const char *body)
{
	struct ww_lease lease = reserve_body(body);

	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
}

static uint64_t count_jobs(void)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(world.jobs, &stats));
	return stats.all.delayed + stats.all.ready + stats.all.reserved + stats.all.buried;
}

/* ---- Bytes */

/* All that a follow-up may have. */
static struct ww_job_spec full(void)
{
	struct ww_job_spec job = spec_of("a body\0with NUL");

	job.body_length = 15;
	job.tube = "next";
	job.key = "k\0y";
	job.key_length = 3;
	job.group = "\xff";
	job.group_length = 1;
	job.headers = "tenant: acme\n";
	job.headers_length = 13;
	job.due = 5 * WW_SECOND + 1;
	job.run = 7 * WW_SECOND;
	job.backoff = 300;
	job.backoff_max = 0;
	job.keep = 3600 * WW_SECOND;
	job.expire = WW_DRIVER_TIME_MAX;
	job.expired = WW_EXPIRED_BURY;
	job.key_mode = WW_KEY_UNIQUE;
	job.key_span = WW_SECOND;
	job.priority = 0;
	job.attempts = UINT32_MAX;
	job.missed = WW_MISSED_SKIP;
	job.skip = UINT64_MAX;
	job.code = 7;
	return job;
}

static void expect_bytes(const void *bytes, size_t length, const void *others, size_t other_length)
{
	ck_assert_uint_eq(length, other_length);
	if (length)
		ck_assert_mem_eq(bytes, others, length);
}

static void expect_same(const struct ww_job_spec *job, const struct ww_job_spec *other)
{
	ck_assert_str_eq(job->tube, other->tube);
	expect_bytes(job->key, job->key_length, other->key, other->key_length);
	expect_bytes(job->group, job->group_length, other->group, other->group_length);
	expect_bytes(job->body, job->body_length, other->body, other->body_length);
	expect_bytes(job->headers, job->headers_length, other->headers, other->headers_length);
	expect_bytes(job->then, job->then_length, other->then, other->then_length);
	ck_assert_mem_eq(&job->due, &other->due, sizeof *job - offsetof(struct ww_job_spec, due));
}

START_TEST(a_follow_up_is_read_as_it_was_written)
{
	struct ww_job_spec job = full();
	struct ww_job_spec next = spec_of("last");
	struct ww_job_spec read;
	size_t length = 0;
	char bytes[300];

	(void)_i;
	give(&job, &next);
	ck_assert_int_eq(ww_job_then_write(NULL, &length, &job), WW_ETOOBIG);
	size_t needed = length;
	ck_assert_uint_gt(needed, 0);
	length = needed - 1;
	bytes[length] = '!';
	ck_assert_int_eq(ww_job_then_write(bytes, &length, &job), WW_ETOOBIG);
	ck_assert_int_eq(bytes[needed - 1], '!');
	ck_assert_uint_eq(length, needed);
	OK(ww_job_then_write(bytes, &length, &job));
	OK(ww_job_then_read(&read, bytes, length));
	expect_same(&read, &job);
	OK(ww_job_then_read(&read, read.then, read.then_length));
	expect_same(&read, &next);
	OK(ww_job_spec_default(&next));
	length = sizeof bytes;
	OK(ww_job_then_write(bytes, &length, &next));
	ck_assert_uint_gt(length, 0);
	OK(ww_job_then_read(&read, bytes, length));
	expect_same(&read, &next);
}
END_TEST

START_TEST(other_bytes_are_refused)
{
	static const struct {
		const char *bytes;
		size_t length;
	} bad[] = {{"\x01\x03xy", 4}, {"\x01\x02xy", 4}, {"\x01\x01\0", 3}, {"\x01\x00", 2}, {"\x01\x04x\0y\0", 6},
	    {"\x00\x00", 2}, {"\x17\x00", 2}, {"\xff\x00", 2}, {"\x04", 1}, {"\x04\x80", 2}, {"\x04\x01x\x04\x01x", 6},
	    {"\x07\x09\1\1\1\1\1\1\1\1\1", 11}, {"\x10\x05\1\1\1\1\1", 7}, {"\x04\xff\xff\xff\xff\xff\xff\x01x", 9}};
	struct ww_job_spec job = chain("x", "next");
	const size_t whole = job.then_length;

	world_make(&world, _i);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		job.then = bad[i].bytes;
		job.then_length = bad[i].length;
		ck_assert_int_eq(ww_jobs_put(world.jobs, &job, NULL, NULL), WW_EINVAL);
	}
	job.then = room;
	for (job.then_length = 1; job.then_length < whole; job.then_length++)
		ck_assert_int_eq(ww_jobs_put(world.jobs, &job, NULL, NULL), WW_EINVAL);
	job.then = NULL;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &job, NULL, NULL), WW_EINVAL);
	ck_assert_uint_eq(count_jobs(), 0);
	world_end(&world);
}
END_TEST

static void refuse_after(const struct ww_job_spec *job, const struct ww_job_spec *next, int error)
{
	struct ww_job_spec last = spec_of("0");
	struct ww_job_spec middle = *next;
	struct ww_job_spec first = *job;

	used = 0;
	give(&first, next);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &first, NULL, NULL), error);
	/* The same later in a chain. */
	give(&last, next);
	give(&middle, &last);
	middle.tube = "middle";
	middle.flags = 0;
	middle.key_length = 0;
	middle.key_mode = WW_KEY_REPLACE;
	middle.key_span = 0;
	middle.period = 0;
	if (!job->period && job->key_mode == WW_KEY_REPLACE) {
		first = *job;
		give(&first, &middle);
		ck_assert_int_lt(ww_jobs_put(world.jobs, &first, NULL, NULL), 0);
	}
}

START_TEST(a_put_refuses_what_could_not_be_put_later)
{
	struct ww_job_spec job = spec_of("x");
	struct ww_job_spec next = spec_of("y");

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	next.flags = WW_JOB_AT;
	refuse_after(&job, &next, WW_EINVAL);
	next.flags = WW_JOB_WALL;
	refuse_after(&job, &next, WW_EINVAL);
	next.flags = WW_JOB_WALL | WW_JOB_AT | WW_JOB_FUTURE;
	refuse_after(&job, &next, WW_EINVAL);
	next.flags = 0;
	next.run = 1;
	refuse_after(&job, &next, WW_EINVAL);
	next.run = WW_SECOND;
	next.key_mode = WW_KEY_UNIQUE;
	refuse_after(&job, &next, WW_EINVAL);
	next.key_mode = WW_KEY_REPLACE;
	next.headers = "no header";
	next.headers_length = 9;
	refuse_after(&job, &next, WW_EINVAL);
	next.headers_length = 0;
	next.due = WW_DRIVER_TIME_MAX + 1;
	refuse_after(&job, &next, WW_EOVERFLOW);
	next.due = 0;
	job.period = WW_SECOND;
	refuse_after(&job, &next, WW_EINVAL);
	job.period = 0;
	job.key = next.key = "same";
	job.key_length = next.key_length = 4;
	job.key_mode = WW_KEY_UNIQUE;
	job.key_span = WW_SECOND;
	refuse_after(&job, &next, WW_EINVAL);
	next.tube = "next";
	used = 0;
	give(&job, &next);
	OK(ww_jobs_put(world.jobs, &job, NULL, NULL));
	ck_assert_uint_eq(count_jobs(), 1);
	world_end(&world);
}
END_TEST

START_TEST(a_follow_up_counts_for_the_size_of_a_body)
{
	static char body[65536];
	struct ww_job_spec job = chain("", "y");

	/* Other kinds have configurations of their own. */
	if (_i >= KINDS_EMBEDDED)
		return;
	world_make(&world, _i);
	job.body = body;
	job.body_length = world.config.body_max - job.then_length;
	OK(ww_jobs_put(world.jobs, &job, NULL, NULL));
	job.body_length++;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &job, NULL, NULL), WW_ETOOBIG);
	world_end(&world);
}
END_TEST

START_TEST(a_store_without_follow_ups_refuses_them)
{
	struct ww_job_spec job = chain("x", "y");

	if (kinds[_i]->promises & KIND_EXPIRES)
		return;
	world_make(&world, _i);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &job, NULL, NULL), WW_EINVAL);
	ck_assert_uint_eq(count_jobs(), 0);
	world_end(&world);
}
END_TEST

/* ---- Finishing */

static void expect_shown(const struct ww_job_info *info, const char *next)
{
	struct ww_job_spec read;

	ck_assert_uint_gt(info->then_length, 0);
	OK(ww_job_then_read(&read, info->then, info->then_length));
	ck_assert_uint_eq(read.body_length, strlen(next));
	ck_assert_mem_eq(read.body, next, read.body_length);
}

static int see(const struct ww_job_info *info, void *context)
{
	expect_shown(info, context);
	return 0;
}

static void expect_kept(uint64_t id, char *next)
{
	struct ww_job_filter all = {.after = 0};
	struct ww_job_ref ref = {.id = id};
	struct ww_job_info info;
	void *body;

	OK(ww_jobs_peek(world.jobs, &ref, &info, &body));
	expect_shown(&info, next);
	ww_jobs_free(world.jobs, body);
	OK(ww_jobs_peek(world.jobs, &ref, &info, NULL));
	ck_assert_uint_eq(info.then_length, 0);
	OK(ww_jobs_list(world.jobs, &all, 10, see, next, NULL));
}

START_TEST(it_is_put_when_its_job_is_finished)
{
	struct ww_job_spec job = spec_of("resize");
	struct ww_job_spec next = full();
	struct ww_job_ref ref = {.tube = "next", .key = "k\0y", .key_length = 3};
	struct ww_job_info info;
	void *body;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	next.group_length = 0;
	next.due = 10 * WW_SECOND;
	next.expire = 60 * WW_SECOND;
	next.skip = 0;
	next.missed = WW_MISSED_ONCE;
	give(&job, &next);
	struct ww_lease lease;
	uint64_t id = put_job(&world, &job);
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &ref, &info, NULL), WW_ENOTFOUND);
	world_pass(&world, 100 * WW_SECOND);
	lease = reserve_body("resize");
	ck_assert_uint_eq(lease.id, id);
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &ref, &info, NULL), WW_ENOTFOUND);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	OK(ww_jobs_peek(world.jobs, &ref, &info, &body));
	ck_assert_uint_ne(info.id, id);
	ck_assert_int_eq(info.state, WW_JOB_DELAYED);
	/* From the finish on. */
	ck_assert_uint_eq(info.left, 10 * WW_SECOND);
	ck_assert_uint_eq(info.expire, 60 * WW_SECOND);
	ck_assert_uint_eq(info.hold, WW_SECOND);
	ck_assert_uint_eq(info.attempts, UINT32_MAX);
	ck_assert_uint_eq(info.priority, 0);
	ck_assert_uint_eq(info.headers_length, 13);
	ck_assert_mem_eq(body, "a body\0with NUL", 15);
	ww_jobs_free(world.jobs, body);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, lease.id, lease.token), WW_ESTALE);
	ck_assert_uint_eq(count_jobs(), 1);
	world_end(&world);
}
END_TEST

START_TEST(a_chain_goes_on)
{
	struct ww_job_spec last = spec_of("three");
	struct ww_job_spec second = spec_of("two");
	struct ww_job_spec first = spec_of("one");

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	give(&second, &last);
	give(&first, &second);
	uint64_t id = put_job(&world, &first);
	expect_kept(id, "two");
	if (world_promises(&world, KIND_KEEPS))
		world_reopen(&world);
	expect_kept(id, "two");
	finish_body("one");
	if (world_promises(&world, KIND_KEEPS))
		world_reopen(&world);
	finish_body("two");
	world_check(&world);
	finish_body("three");
	expect_none(&world);
	ck_assert_uint_eq(count_jobs(), 0);
	world_end(&world);
}
END_TEST

START_TEST(a_chain_has_an_end)
{
	struct ww_job_spec job = spec_of("x");
	struct ww_job_spec next;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	for (int i = 0; i < WW_JOB_CHAIN; i++) {
		next = job;
		give(&job, &next);
	}
	(void)put_job(&world, &job);
	next = job;
	give(&job, &next);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &job, NULL, NULL), WW_EINVAL);
	for (int i = 0; i <= WW_JOB_CHAIN; i++)
		finish_body("x");
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(many_are_finished_together)
{
	struct ww_job_spec one = chain("1", "one");
	struct ww_job_spec two = spec_of("2");
	struct ww_job_spec three = chain("3", "three");
	const struct ww_job_spec *jobs[] = {&one, &two, &three};
	struct ww_job_end ends[4];

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	for (int i = 0; i < 3; i++)
		(void)put_job(&world, jobs[i]);
	for (int i = 0; i < 3; i++) {
		struct ww_lease lease = reserve_job(&world);
		ends[i] = (struct ww_job_end){lease.id, lease.token, 0};
	}
	ends[3] = ends[0];
	OK(ww_jobs_finish_many(world.jobs, ends, 4));
	for (int i = 0; i < 3; i++)
		OK(ends[i].result);
	ck_assert_int_eq(ends[3].result, WW_ESTALE);
	finish_body("one");
	finish_body("three");
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_time_that_has_passed_is_now)
{
	struct ww_job_spec job = spec_of("x");
	struct ww_job_spec next = spec_of("y");

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	next.flags = WW_JOB_WALL | WW_JOB_AT;
	OK(ww_jobs_now(world.jobs, WW_JOB_WALL, &next.due));
	next.due += 100 * WW_SECOND;
	give(&job, &next);
	job.run = 1000 * WW_SECOND;
	(void)put_job(&world, &job);
	(void)put_job(&world, &job);
	finish_body("x");
	struct ww_lease lease = reserve_body("x");
	expect_none(&world);
	world_pass(&world, 100 * WW_SECOND);
	finish_body("y");
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	finish_body("y");
	world_end(&world);
}
END_TEST

START_TEST(the_farthest_delay_ends_with_the_clock)
{
	struct ww_job_spec job = spec_of("x");
	struct ww_job_spec next = spec_of("y");

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	next.due = WW_DRIVER_TIME_MAX;
	give(&job, &next);
	(void)put_job(&world, &job);
	finish_body("x");
	ck_assert_uint_eq(count_jobs(), 1);
	world_pass(&world, 100 * WW_SECOND);
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(the_key_decides_when_it_is_put)
{
	struct ww_job_spec job = spec_of("x");
	struct ww_job_spec next = spec_of("y");

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	/* That of its job is free by then. */
	job.key = next.key = "key";
	job.key_length = next.key_length = 3;
	next.key_mode = WW_KEY_IF_ABSENT;
	give(&job, &next);
	(void)put_job(&world, &job);
	finish_body("x");
	/* Another job has it, and stays. */
	job.key_length = 0;
	(void)put_job(&world, &job);
	(void)put_job(&world, &job);
	struct ww_lease lease = reserve_body("y");
	finish_body("x");
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	finish_body("x");
	finish_body("y");
	/* Or it is replaced. */
	next.key_mode = WW_KEY_REPLACE;
	give(&job, &next);
	(void)put_job(&world, &job);
	next.body = "z";
	next.due = WW_SECOND;
	(void)put_job(&world, &next);
	finish_body("x");
	finish_body("y");
	ck_assert_uint_eq(count_jobs(), 0);
	world_end(&world);
}
END_TEST

/* ---- Both or neither */

START_TEST(a_finish_that_fails_puts_nothing)
{
	struct ww_job_spec job = chain("x", "y");

	NEEDS(KIND_BATCHES | KIND_EXPIRES);
	if (!(kinds[_i]->promises & KIND_BATCHES))
		return;
	world_make(&world, _i);
	(void)put_job(&world, &job);
	struct ww_lease lease = reserve_body("x");
	for (int what = FAIL_PUT; what <= FAIL_COMMIT; what++) {
		world_fail(&world, (enum failure)what);
		ck_assert_int_lt(ww_jobs_finish(world.jobs, lease.id, lease.token), 0);
		world_fail(&world, FAIL_NOTHING);
		ck_assert_uint_eq(count_jobs(), 1);
		ck_assert_int_eq(info_of(&world, lease.id).state, WW_JOB_RESERVED);
		world_check(&world);
	}
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	finish_body("y");
	ck_assert_uint_eq(count_jobs(), 0);
	world_end(&world);
}
END_TEST

START_TEST(it_stays_with_its_job)
{
	struct ww_job_spec job = chain("x", "y");
	uint64_t count;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	job.attempts = 10;
	job.due = WW_SECOND;
	uint64_t id = put_job(&world, &job);
	OK(ww_jobs_move(world.jobs, &(struct ww_job_ref){.id = id}, 0, 0, NULL));
	world_settle(&world);
	struct ww_lease lease = reserve_body("x");
	OK(ww_jobs_release(world.jobs, id, lease.token, 1, 0, "why"));
	(void)reserve_body("x");
	world_pass(&world, 60 * WW_SECOND);
	lease = reserve_body("x");
	OK(ww_jobs_return(world.jobs, id, lease.token));
	lease = reserve_body("x");
	OK(ww_jobs_bury(world.jobs, id, lease.token, 1, "why"));
	expect_none(&world);
	if (world_promises(&world, KIND_KEEPS))
		world_reopen(&world);
	expect_kept(id, "y");
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, 1, &count));
	finish_body("x");
	finish_body("y");
	ck_assert_uint_eq(count_jobs(), 0);
	world_end(&world);
}
END_TEST

START_TEST(it_goes_with_a_job_that_nobody_finishes)
{
	struct ww_job_spec job = chain("x", "y");

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	uint64_t id = put_job(&world, &job);
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 1);
	ck_assert_uint_eq(count_jobs(), 0);
	/* One that is being delivered, too. */
	(void)put_job(&world, &job);
	struct ww_lease lease = reserve_body("x");
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = lease.id}), 0);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, lease.id, lease.token), WW_ESTALE);
	ck_assert_uint_eq(count_jobs(), 0);
	job.expire = WW_SECOND;
	(void)put_job(&world, &job);
	world_pass(&world, 2 * WW_SECOND);
	ck_assert_uint_eq(count_jobs(), 0);
	job.expire = 0;
	job.key = "key";
	job.key_length = 3;
	(void)put_job(&world, &job);
	job.then_length = 0;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &job, NULL, NULL), WW_PUT_REPLACED);
	finish_body("x");
	ck_assert_uint_eq(count_jobs(), 0);
	world_end(&world);
}
END_TEST

START_TEST(it_is_put_again_with_its_job)
{
	struct ww_job_info was = {.state = WW_JOB_BURIED, .version = 7, .error = "broken"};
	const struct ww_job_info *pasts[] = {&was};
	struct ww_job_spec job = chain("x", "y");
	struct ww_job_put put = {.spec = &job};
	uint64_t count;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	OK(ww_jobs_put_again(world.jobs, &put, pasts, 1));
	expect_kept(put.id, "y");
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, 1, &count));
	finish_body("x");
	finish_body("y");
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/then", a_follow_up_is_read_as_it_was_written, other_bytes_are_refused,
    a_put_refuses_what_could_not_be_put_later, a_follow_up_counts_for_the_size_of_a_body,
    a_store_without_follow_ups_refuses_them, it_is_put_when_its_job_is_finished, a_chain_goes_on, a_chain_has_an_end,
    many_are_finished_together, a_time_that_has_passed_is_now, the_farthest_delay_ends_with_the_clock,
    the_key_decides_when_it_is_put, a_finish_that_fails_puts_nothing, it_stays_with_its_job,
    it_goes_with_a_job_that_nobody_finishes, it_is_put_again_with_its_job)
