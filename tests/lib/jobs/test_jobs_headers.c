/* Headers of a job: checked when it is put, and with it in every store until it ends. */
/* tier: check */
#include <string.h>

#include "tests/lib/jobs/fixture.h"

static struct world world;

static const char text[] =
    "tenant: acme\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\nempty: \n";

static struct ww_job_spec headed(const char *body)
{
	struct ww_job_spec spec = spec_of(body);

	spec.headers = text;
	spec.headers_length = sizeof text - 1;
	return spec;
}

static int add(char *headers, size_t *length, const char *name, const char *value)
{
	const struct ww_job_header header = {name, strlen(name), value, strlen(value)};

	return ww_job_headers_add(headers, length, &header);
}

START_TEST(headers_are_written_and_read)
{
	char headers[WW_JOB_HEADERS_MAX];
	struct ww_job_header header;
	size_t length = 0;
	size_t at = 0;

	OK(add(headers, &length, "Tenant", "acme"));
	OK(add(headers, &length, "x-!#$%&'*+.^_`|~1", "a: b  c~"));
	OK(add(headers, &length, "empty", ""));
	ck_assert_uint_eq(length, strlen("tenant: acme\nx-!#$%&'*+.^_`|~1: a: b  c~\nempty: \n"));
	ck_assert(memcmp(headers, "tenant: acme\nx-!#$%&'*+.^_`|~1: a: b  c~\nempty: \n", length) == 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(ww_job_headers_next(headers, length, &at, &header), 1);
	ck_assert_int_eq(ww_job_headers_next(headers, length, &at, &header), 0);
	ck_assert_uint_eq(header.value_length, 0);
	OK(ww_job_headers_find(headers, length, "TENANT", &header));
	ck_assert_uint_eq(header.value_length, 4);
	ck_assert(memcmp(header.value, "acme", 4) == 0);
	ck_assert_int_eq(ww_job_headers_find(headers, length, "tenan", &header), WW_ENOTFOUND);
}
END_TEST

START_TEST(what_would_end_a_line_is_refused)
{
	static const char *const names[] = {"", "a b", "a:", "a\r", "a\n", "\xc3\xa4", "a(", "a=", "a\x7f"};
	static const char *const values[] = {
	    "a\r\nb: c", "a\n", "a\r", "\t", "a\x01", "\x7f", " a", "a ", " ", "\xc3\xa4"};
	char headers[WW_JOB_HEADERS_MAX];
	const struct ww_job_header nul_name = {"a\0b", 3, "", 0};
	const struct ww_job_header nul_value = {"a", 1, "a\0b", 3};
	size_t length = 0;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		ck_assert_int_eq(add(headers, &length, names[i], "x"), WW_EINVAL);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		ck_assert_int_eq(add(headers, &length, "x", values[i]), WW_EINVAL);
	ck_assert_int_eq(ww_job_headers_add(headers, &length, &nul_name), WW_EINVAL);
	ck_assert_int_eq(ww_job_headers_add(headers, &length, &nul_value), WW_EINVAL);
	ck_assert_uint_eq(length, 0);
	OK(add(headers, &length, "x", "y"));
	ck_assert_int_eq(add(headers, &length, "X", "z"), WW_EINVAL);
}
END_TEST

START_TEST(they_are_sixteen_and_four_kilobytes_at_most)
{
	char headers[WW_JOB_HEADERS_MAX + 1];
	char value[WW_JOB_HEADERS_MAX + 2];
	char name[] = "a";
	size_t length = 0;

	for (; *name < 'a' + WW_JOB_HEADERS; ++*name)
		OK(add(headers, &length, name, "x"));
	ck_assert_int_eq(add(headers, &length, name, "x"), WW_ETOOBIG);
	memset(value, 'v', sizeof value);
	value[WW_JOB_HEADERS_MAX - 4] = 0;
	length = 0;
	headers[WW_JOB_HEADERS_MAX] = '!';
	OK(add(headers, &length, "n", value));
	ck_assert_uint_eq(length, WW_JOB_HEADERS_MAX);
	ck_assert_int_eq(headers[WW_JOB_HEADERS_MAX], '!');
	ck_assert_int_eq(add(headers, &length, "m", ""), WW_ETOOBIG);
	value[WW_JOB_HEADERS_MAX - 4] = 'v';
	value[WW_JOB_HEADERS_MAX + 1] = 0;
	length = 0;
	ck_assert_int_eq(add(headers, &length, "n", value), WW_ETOOBIG);
	ck_assert_uint_eq(length, 0);
}
END_TEST

START_TEST(a_put_takes_only_what_add_writes)
{
	static const char *const bad[] = {"a", "a: b", "a:b\n", ": b\n", "A: b\n", "a:  b\n", "a: b \n", "a: b\n\n",
	    "a: b\r\n", "a: b\na: c\n", "a: b\nc\n", "a: \xc3\xa4\n", "a b: c\n", "\n"};
	struct ww_job_spec spec = spec_of("x");

	world_make(&world, _i);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		spec.headers = bad[i];
		spec.headers_length = strlen(bad[i]);
		ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	}
	spec.headers = NULL;
	spec.headers_length = 1;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	world_end(&world);
}
END_TEST

static void expect_text(const char *headers, size_t length)
{
	ck_assert_uint_eq(length, sizeof text - 1);
	ck_assert(headers && memcmp(headers, text, length) == 0);
}

static int see(const struct ww_job_info *info, void *context)
{
	expect_text(info->headers, info->headers_length);
	++*(int *)context;
	return 0;
}

static void expect_everywhere(uint64_t id, size_t body_length)
{
	struct ww_job_ref ref = {.id = id};
	struct ww_job_filter all = {.tube = NULL};
	struct ww_job_info info;
	int seen = 0;
	void *body;

	OK(ww_jobs_peek(world.jobs, &ref, &info, &body));
	expect_text(info.headers, info.headers_length);
	ck_assert_uint_eq(info.body_length, body_length);
	ck_assert(info.body == body);
	ww_jobs_free(world.jobs, body);
	OK(ww_jobs_peek(world.jobs, &ref, &info, NULL));
	ck_assert_uint_eq(info.headers_length, 0);
	OK(ww_jobs_list(world.jobs, &all, 10, see, &seen, NULL));
	ck_assert_int_eq(seen, 1);
}

/* Not that of the fixture, which gives the body back at once, and the headers with it. */
static void expect_lease(uint64_t id, size_t body_length)
{
	static const char *const tubes[] = {WW_TUBE_DEFAULT};
	struct ww_lease lease;

	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tubes, 1, &lease), 1);
	ck_assert_uint_eq(lease.id, id);
	ck_assert_uint_eq(lease.body_length, body_length);
	expect_text(lease.headers, lease.headers_length);
	ww_jobs_free(world.jobs, lease.body);
	OK(ww_jobs_release(world.jobs, lease.id, lease.token, 1024, 0, "why"));
}

START_TEST(they_stay_with_the_job)
{
	struct ww_job_spec spec = headed("some body");
	uint64_t id;

	world_make(&world, _i);
	spec.group = "g";
	spec.group_length = 1;
	spec.key = "k";
	spec.key_length = 1;
	id = put_job(&world, &spec);
	expect_everywhere(id, 9);
	expect_lease(id, 9);
	expect_lease(id, 9);
	expect_everywhere(id, 9);
	if (world_promises(&world, KIND_KEEPS)) {
		world_reopen(&world);
		expect_everywhere(id, 9);
	}
	spec.headers_length = 0;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	struct ww_lease lease = reserve_job(&world);
	ck_assert_uint_eq(lease.headers_length, 0);
	ck_assert_ptr_null(lease.headers);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_job_without_a_body_has_them)
{
	struct ww_job_spec spec = headed("");
	uint64_t id;

	world_make(&world, _i);
	spec.body_length = 0;
	id = put_job(&world, &spec);
	expect_everywhere(id, 0);
	expect_lease(id, 0);
	world_end(&world);
}
END_TEST

START_TEST(they_are_put_again_with_a_past)
{
	struct ww_job_info was = {.state = WW_JOB_BURIED, .version = 7, .error = "broken"};
	const struct ww_job_info *pasts[] = {&was, NULL};
	struct ww_job_spec spec = headed("x");
	struct ww_job_spec plain = spec_of("y");
	struct ww_job_put puts[] = {{.spec = &spec}, {.spec = &plain}};
	struct ww_job_ref ref = {.id = 0};
	struct ww_job_info info;
	void *body;

	world_make(&world, _i);
	spec.keep = WW_SECOND;
	OK(ww_jobs_put_again(world.jobs, puts, pasts, 2));
	ref.id = puts[0].id;
	OK(ww_jobs_peek(world.jobs, &ref, &info, &body));
	expect_text(info.headers, info.headers_length);
	ck_assert_str_eq(info.error, "broken");
	ck_assert_uint_eq(info.version, 7);
	ww_jobs_free(world.jobs, body);
	ref.id = puts[1].id;
	OK(ww_jobs_peek(world.jobs, &ref, &info, &body));
	ck_assert_uint_eq(info.headers_length, 0);
	ww_jobs_free(world.jobs, body);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/headers", headers_are_written_and_read, what_would_end_a_line_is_refused,
    they_are_sixteen_and_four_kilobytes_at_most, a_put_takes_only_what_add_writes, they_stay_with_the_job,
    a_job_without_a_body_has_them, they_are_put_again_with_a_past)
