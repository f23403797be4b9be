/* The requests that are sent, and how each answer ends the job. */
/* tier: check, threads */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/callback/pushing.h"

static struct pushing pushing;
static char value[256];

static void start(void)
{
	pushing_make(&pushing);
	pushing_open(&pushing);
}

START_TEST(a_request_carries_the_job_and_success_finishes_it)
{
	struct ww_job_spec spec = pushing_spec();

	pushing_make(&pushing);
	spec.key = "k y\n%\xff";
	spec.key_length = 6;
	uint64_t id = pushing_put(&pushing, &spec,
	    "PUT http://127.0.0.1:%u/a/../b?c=%%20\nContent-Type: text/plain\nX-Empty:\nX-Own: yes\n\nbody\n\nrest",
	    receiver_port(pushing.receiver));
	pushing_open(&pushing);
	expect_finished(&pushing, id);
	const char *got = receiver_got(pushing.receiver, 0);
	ck_assert_msg(strncmp(got, "PUT /a/../b?c=%20 HTTP/1.1\r\n", 28) == 0, "%s", got);
	ck_assert_str_eq(strstr(got, "\r\n\r\n") + 4, "body\n\nrest");
	ck_assert_str_eq(header_of(got, "Content-Type", value), "text/plain");
	ck_assert_str_eq(header_of(got, "X-Own", value), "yes");
	ck_assert_str_eq(header_of(got, "X-Empty", value), "");
	ck_assert_str_eq(header_of(got, "Content-Length", value), "10");
	ck_assert_uint_eq(strtoull(header_of(got, "Weekwheel-Job-Id", value), NULL, 10), id);
	ck_assert_str_eq(header_of(got, "Weekwheel-Job-Key", value), "k%20y%0A%25%FF");
	ck_assert_str_eq(header_of(got, "Weekwheel-Tube", value), "default");
	ck_assert_str_eq(header_of(got, "Weekwheel-Attempt", value), "1");
	ck_assert_uint_gt(strtoull(header_of(got, "Weekwheel-Token", value), NULL, 10), 0);
	ck_assert_uint_gt(strtoull(header_of(got, "Weekwheel-Timestamp", value), NULL, 10), 1700000000);
	ck_assert_str_eq(header_of(got, "User-Agent", value), "weekwheel/" WW_VERSION);
	ck_assert(!has_header(got, "Weekwheel-Signature"));
	ck_assert(!has_header(got, "Expect"));
	/* The store forgets the job a moment before the pusher counts it. */
	pushing_wait(&pushing, "finished", 1);
	pushing_end(&pushing);
}
END_TEST

START_TEST(methods_without_a_body_send_none)
{
	static const char *const methods[] = {"GET", "HEAD", "DELETE", "OPTIONS", "POST"};

	start();
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		expect_finished(&pushing, pushing_put(&pushing, NULL, "%s http://127.0.0.1:%u/", methods[i],
		                              receiver_port(pushing.receiver)));
		const char *got = receiver_got(pushing.receiver, i);
		ck_assert_msg(strncmp(got, methods[i], strlen(methods[i])) == 0, "%s", got);
		ck_assert_int_eq(has_header(got, "Content-Length"), strcmp(methods[i], "POST") == 0);
		ck_assert(!has_header(got, "Content-Type"));
		ck_assert(!has_header(got, "Weekwheel-Job-Key"));
	}
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_signature_covers_what_the_header_says)
{
	struct ww_callback_request request;
	char signature[WW_CALLBACK_SIGNATURE_SIZE];
	char url[64];
	char given[256];

	pushing_make(&pushing);
	pushing.config.secret = "not so secret";
	pushing.config.secret_length = 13;
	pushing_open(&pushing);
	expect_finished(&pushing, pushing_post(&pushing, "/signed", ""));
	const char *got = receiver_got(pushing.receiver, 0);
	(void)snprintf(url, sizeof url, "http://127.0.0.1:%u/signed\n\nhello", receiver_port(pushing.receiver));
	OK(ww_callback_parse(url, strlen(url), &request, NULL));
	uint64_t timestamp = strtoull(header_of(got, "Weekwheel-Timestamp", value), NULL, 10);
	uint64_t id = strtoull(header_of(got, "Weekwheel-Job-Id", value), NULL, 10);
	uint64_t token = strtoull(header_of(got, "Weekwheel-Token", value), NULL, 10);
	OK(ww_callback_sign("not so secret", 13, timestamp, id, token, &request, signature));
	ck_assert_str_eq(header_of(got, "Weekwheel-Signature", given), signature);
	pushing_end(&pushing);
}
END_TEST

START_TEST(success_is_2xx_and_the_listed_statuses)
{
	static const uint16_t success[] = {303, 404};

	pushing_make(&pushing);
	pushing.config.success = success;
	pushing.config.success_count = 2;
	pushing_open(&pushing);
	expect_finished(&pushing, pushing_post(&pushing, "/", "Answer-Status: 200 Fine\nAnswer-Body: well\n"));
	expect_finished(&pushing, pushing_post(&pushing, "/", "Answer-Status: 299 Odd\n"));
	expect_finished(&pushing, pushing_post(&pushing, "/", "Answer-Status: 404 Gone before\n"));
	expect_finished(
	    &pushing, pushing_post(&pushing, "/", "Answer-Status: 303 See\nAnswer-Header: Location: /elsewhere\n"));
	expect_buried(&pushing, pushing_post(&pushing, "/", "Answer-Status: 403 No\n"), "HTTP 403");
	ck_assert_uint_eq(receiver_count(pushing.receiver), 5);
	pushing_end(&pushing);
}
END_TEST

START_TEST(some_statuses_are_retried_and_others_bury_the_job)
{
	static const int again[] = {408, 425, 429, 500, 502, 503, 504, 599};
	static const int buried[] = {304, 400, 401, 404, 409, 410, 418, 422, 499, 600, 999};
	char lines[128];

	start();
	for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
		(void)snprintf(lines, sizeof lines, "Answer-Status: %d Busy\nAnswer-Body: come\ttomorrow\n", again[i]);
		uint64_t id = pushing_post(&pushing, "/", lines);
		(void)snprintf(lines, sizeof lines, "HTTP %d: come tomorrow", again[i]);
		expect_backoff(&pushing, id, lines);
	}
	for (size_t i = 0; i < sizeof buried / sizeof *buried; i++) {
		(void)snprintf(lines, sizeof lines, "Answer-Status: %d Never\nAnswer-Body: n\xc3\xb6\n", buried[i]);
		uint64_t id = pushing_post(&pushing, "/", lines);
		(void)snprintf(lines, sizeof lines, "HTTP %d: %s", buried[i], buried[i] == 304 ? "" : "n??");
		expect_buried(&pushing, id, lines);
	}
	pushing_end(&pushing);
}
END_TEST

START_TEST(retry_after_goes_before_the_backoff)
{
	char lines[256];
	char date[64];
	const time_t at = time(NULL) + 1000;
	struct tm tm;

	start();
	expect_again(&pushing,
	    pushing_post(&pushing, "/", "Answer-Status: 503 Busy\nAnswer-Header: Retry-After: 120\n"), 120 * WW_SECOND,
	    120 * WW_SECOND, "HTTP 503");
	ck_assert(strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&at, &tm)) > 0);
	(void)snprintf(lines, sizeof lines, "Answer-Status: 429 Busy\nAnswer-Header: Retry-After: %s\n", date);
	/* Less the time that has passed since. */
	expect_again(&pushing, pushing_post(&pushing, "/", lines), 100 * WW_SECOND, 1000 * WW_SECOND, "HTTP 429");
	expect_again(&pushing,
	    pushing_post(&pushing, "/", "Answer-Status: 503 Busy\nAnswer-Header: Retry-After: 999999999999999\n"),
	    3600 * WW_SECOND, 3600 * WW_SECOND, "HTTP 503");
	expect_again(&pushing,
	    pushing_post(
	        &pushing, "/", "Answer-Status: 503 Busy\nAnswer-Header: Retry-After: 99999999999999999999999\n"),
	    3600 * WW_SECOND, 3600 * WW_SECOND, "HTTP 503");
	static const char *const none[] = {"soon", "-5", "0", "", "Thu, 01 Jan 1998 00:00:00 GMT"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		(void)snprintf(
		    lines, sizeof lines, "Answer-Status: 503 Busy\nAnswer-Header: Retry-After: %s\n", none[i]);
		expect_backoff(&pushing, pushing_post(&pushing, "/", lines), "HTTP 503");
	}
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_job_without_backoff_and_limit_waits_longer_each_time_and_ends)
{
	static const unsigned pauses[] = {1, 2, 4, 5, 5};
	struct ww_job_spec spec = pushing_spec();

	pushing_make(&pushing);
	pushing.config.attempts = 6;
	pushing.config.retry_max = 5 * WW_SECOND;
	pushing_open(&pushing);
	spec.backoff = 0;
	uint64_t id = pushing_put(
	    &pushing, &spec, "http://127.0.0.1:%u/\nAnswer-Status: 500 No\n", receiver_port(pushing.receiver));
	for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
		pushing_wait(&pushing, "retried", i + 1);
		expect_again(&pushing, id, pauses[i] * WW_SECOND * 3 / 4, pauses[i] * WW_SECOND, "HTTP 500");
		world_pass(&pushing.world, pauses[i] * WW_SECOND);
	}
	expect_buried(&pushing, id, "after 6 attempts: HTTP 500");
	pushing_wait(&pushing, "buried", 1);
	ck_assert_uint_eq(pushing_stats(&pushing).retried, 5);
	/* A limit of its own goes before. */
	spec.attempts = 7;
	id = pushing_put(
	    &pushing, &spec, "http://127.0.0.1:%u/\nAnswer-Status: 500 No\n", receiver_port(pushing.receiver));
	for (uint64_t i = 0; i < 6; i++) {
		pushing_wait(&pushing, "retried", 6 + i);
		world_pass(&pushing.world, 5 * WW_SECOND);
	}
	expect_buried(&pushing, id, "HTTP 500");
	ck_assert_uint_eq(receiver_count(pushing.receiver), 13);
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_run_of_a_job_keeps_its_idempotency_key)
{
	struct ww_job_spec spec = pushing_spec();
	char first[256];
	char other[256];

	start();
	spec.period = 60 * WW_SECOND;
	spec.backoff = WW_SECOND;
	(void)pushing_put(&pushing, &spec, "http://127.0.0.1:%u/\nAnswer-Status: 503 No\nAnswer-Once: x\n",
	    receiver_port(pushing.receiver));
	pushing_wait(&pushing, "retried", 1);
	world_pass(&pushing.world, WW_SECOND);
	pushing_wait(&pushing, "finished", 1);
	world_pass(&pushing.world, 60 * WW_SECOND);
	receiver_wait(pushing.receiver, 3);
	(void)header_of(receiver_got(pushing.receiver, 0), "Idempotency-Key", first);
	ck_assert_uint_ge(strlen(first), 8);
	ck_assert_int_eq(first[0], '"');
	ck_assert_str_eq(header_of(receiver_got(pushing.receiver, 1), "Idempotency-Key", other), first);
	ck_assert_str_ne(header_of(receiver_got(pushing.receiver, 2), "Idempotency-Key", other), first);
	/* Another job, and one that brings its own. */
	(void)pushing_post(&pushing, "/", "");
	receiver_wait(pushing.receiver, 4);
	ck_assert_str_ne(header_of(receiver_got(pushing.receiver, 3), "Idempotency-Key", other), first);
	(void)pushing_post(&pushing, "/", "Idempotency-Key: mine\n");
	receiver_wait(pushing.receiver, 5);
	ck_assert_str_eq(header_of(receiver_got(pushing.receiver, 4), "Idempotency-Key", other), "mine");
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_callback_that_keeps_failing_is_buried_with_its_reason)
{
	struct ww_job_spec spec = pushing_spec();

	start();
	spec.attempts = 3;
	uint64_t id = pushing_put(&pushing, &spec, "http://127.0.0.1:%u/\nAnswer-Status: 503 Busy\nAnswer-Body: no\n",
	    receiver_port(pushing.receiver));
	expect_again(&pushing, id, 6 * WW_SECOND, 8 * WW_SECOND, "HTTP 503: no");
	world_pass(&pushing.world, 8 * WW_SECOND);
	pushing_wait(&pushing, "retried", 2);
	expect_again(&pushing, id, 12 * WW_SECOND, 16 * WW_SECOND, "HTTP 503: no");
	world_pass(&pushing.world, 16 * WW_SECOND);
	expect_buried(&pushing, id, "HTTP 503: no");
	ck_assert_str_eq(header_of(receiver_got(pushing.receiver, 2), "Weekwheel-Attempt", value), "3");
	ck_assert_uint_eq(receiver_count(pushing.receiver), 3);
	pushing_end(&pushing);
}
END_TEST

START_TEST(malformed_answers_are_retried)
{
	start();
	expect_backoff(&pushing, pushing_post(&pushing, "/", "Answer-Do: hang up\n"), "no answer: ");
	expect_backoff(
	    &pushing, pushing_post(&pushing, "/", "Answer-Status: 200 Fine\nAnswer-Do: cut\n"), "HTTP 200, and then: ");
	expect_backoff(
	    &pushing, pushing_post(&pushing, "/", "Answer-Do: endless head\n"), "head of the answer is too long");
	/* Nobody listens on that port. */
	expect_backoff(&pushing, pushing_put(&pushing, NULL, "http://127.0.0.1:1/"), "no answer: ");
	expect_backoff(&pushing, pushing_put(&pushing, NULL, "http://there.is.no.such.host.invalid/"), "no answer: ");
	pushing_end(&pushing);
}
END_TEST

START_TEST(no_answer_is_read_beyond_the_bound)
{
	start();
	expect_finished(&pushing, pushing_post(&pushing, "/", "Answer-Status: 200 Fine\nAnswer-Do: endless body\n"));
	expect_buried(&pushing, pushing_post(&pushing, "/", "Answer-Status: 400 No\nAnswer-Do: endless body\n"),
	    "HTTP 400: and more of it, and more");
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_body_that_is_no_request_is_buried_and_not_sent)
{
	pushing_make(&pushing);
	pushing.config.body_max = 4;
	pushing_open(&pushing);
	expect_buried(&pushing, pushing_put(&pushing, NULL, "%s", ""), "line 1: there is nothing");
	expect_buried(&pushing, pushing_post(&pushing, "/", "X: a\rWeekwheel-Token: 9\n"), "line 2: ");
	expect_buried(&pushing, pushing_post(&pushing, "/", "Host: example.org\n"), "line 2: this header is not");
	expect_buried(&pushing, pushing_put(&pushing, NULL, "file:///etc/passwd"), "http://");
	expect_buried(&pushing, pushing_post(&pushing, "/", ""), "the body has 5 bytes, and 4 are allowed");
	ck_assert_uint_eq(pushing_stats(&pushing).requests, 0);
	ck_assert_uint_eq(receiver_connections(pushing.receiver), 0);
	pushing_end(&pushing);
}
END_TEST

START_TEST(addresses_that_are_not_public_are_refused_by_default)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433",
	    "0x7f.1", "127.1", "0.0.0.0", "0", "0177.0.0.1", "0x7f000001", "017700000001", "127.0.1", "LocalHost",
	    "any.localhost", "[::]", "[::127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "[64:ff9b::7f00:1]", "[fe80::1]"};
	unsigned port;

	pushing_make(&pushing);
	pushing.config.networks = 0;
	pushing_open(&pushing);
	port = receiver_port(pushing.receiver);
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
		expect_buried(
		    &pushing, pushing_put(&pushing, NULL, "http://%s:%u/", hosts[i], port), "may not be called");
	ck_assert_uint_eq(receiver_connections(pushing.receiver), 0);
	ck_assert_uint_ge(pushing_stats(&pushing).refused, sizeof hosts / sizeof *hosts);
	pushing_end(&pushing);
}
END_TEST

START_TEST(ranges_and_schemes_are_configurable)
{
	static const char *const deny[] = {"127.0.0.2"};
	static const char *const allow[] = {"127.0.0.0/8"};

	pushing_make(&pushing);
	pushing.config.networks = 0;
	pushing.config.schemes = WW_CALLBACK_HTTP;
	pushing.config.deny = deny;
	pushing.config.deny_count = 1;
	pushing.config.allow = allow;
	pushing.config.allow_count = 1;
	pushing_open(&pushing);
	expect_finished(&pushing, pushing_post(&pushing, "/", ""));
	expect_buried(&pushing, pushing_put(&pushing, NULL, "http://127.0.0.2/"),
	    "127.0.0.2 may not be called: it is denied (weekwheeld --push-deny)");
	expect_buried(&pushing, pushing_put(&pushing, NULL, "https://127.0.0.1/"),
	    "https:// may not be called: the pusher has the other scheme alone (weekwheeld --push-schemes)");
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_connection_serves_one_request_after_the_other)
{
	uint64_t ids[20];

	pushing_make(&pushing);
	pushing.config.per_host = 1;
	for (size_t i = 0; i < 20; i++)
		ids[i] = pushing_post(&pushing, "/", "Answer-Status: 200 Fine\nAnswer-Body: well\n");
	pushing_open(&pushing);
	for (size_t i = 0; i < 20; i++)
		expect_finished(&pushing, ids[i]);
	ck_assert_uint_eq(receiver_connections(pushing.receiver), 1);
	ck_assert_uint_eq(pushing_stats(&pushing).connections, 1);
	pushing_end(&pushing);
}
END_TEST

START_TEST(configurations_out_of_range_are_refused)
{
	static const char *const bad_range[] = {"10.0.0.1/8"};
	static const uint16_t bad_status[] = {100};
	struct ww_callback *callback = NULL;

	pushing_make(&pushing);
	struct ww_callback_config good = pushing.config;
	struct ww_callback_config bad[12];
	for (size_t i = 0; i < 12; i++)
		bad[i] = good;
	bad[0].jobs = NULL;
	bad[1].tube_count = 0;
	bad[2].in_flight = 0;
	bad[3].per_host = 0;
	bad[4].deny = bad_range;
	bad[4].deny_count = 1;
	bad[5].allow = bad_range;
	bad[5].allow_count = 1;
	bad[6].success = bad_status;
	bad[6].success_count = 1;
	bad[7].secret = "";
	bad[8].schemes = 0;
	bad[9].networks = 1u << 20;
	bad[10].user_agent = "a\r\nX: y";
	bad[11].poll = 0;
	for (size_t i = 0; i < 12; i++)
		ck_assert_int_eq(ww_callback_open(&callback, &bad[i]), WW_EINVAL);
	ck_assert_ptr_null(callback);
	ck_assert_int_eq(ww_callback_open(NULL, &good), WW_EINVAL);
	ck_assert_int_eq(ww_callback_config_default(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_callback_wake(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_callback_stats(NULL, NULL), WW_EINVAL);
	pushing_end(&pushing);
}
END_TEST

TEST_MAIN("callback/push", a_request_carries_the_job_and_success_finishes_it, methods_without_a_body_send_none,
    a_signature_covers_what_the_header_says, success_is_2xx_and_the_listed_statuses,
    some_statuses_are_retried_and_others_bury_the_job, retry_after_goes_before_the_backoff,
    a_job_without_backoff_and_limit_waits_longer_each_time_and_ends, a_run_of_a_job_keeps_its_idempotency_key,
    a_callback_that_keeps_failing_is_buried_with_its_reason, malformed_answers_are_retried,
    no_answer_is_read_beyond_the_bound, a_body_that_is_no_request_is_buried_and_not_sent,
    addresses_that_are_not_public_are_refused_by_default, ranges_and_schemes_are_configurable,
    a_connection_serves_one_request_after_the_other, configurations_out_of_range_are_refused)
