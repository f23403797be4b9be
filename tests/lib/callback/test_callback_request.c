/* Requests as text: reading, refusals with their reasons, writing and signing. */
/* tier: quick, threads */

#include <stdio.h>
#include <string.h>

#include "tests/support/suite.h"
#include "weekwheel/callback.h"

static struct ww_callback_request request;
static struct ww_callback_problem problem;

static int parse(const char *text)
{
	return ww_callback_parse(text, strlen(text), &request, &problem);
}

static void expect(const char *got, size_t length, const char *wanted)
{
	ck_assert_msg(length == strlen(wanted) && memcmp(got, wanted, length) == 0, "'%.*s' instead of '%s'",
	    (int)length, got, wanted);
}

START_TEST(a_request_is_read_with_either_line_end)
{
	static const char *const texts[] = {
	    "POST https://example.org/hook?a=b HTTP/1.1\r\nContent-Type: text/plain\r\nX-Empty:\r\n\r\nline\r\n\r\nrest",
	    "https://example.org/hook?a=b\nContent-Type:  text/plain \t\nX-Empty:   \n\nline\r\n\r\nrest",
	    "  POST  https://example.org/hook?a=b  HTTP/2\nContent-Type:text/plain\r\nX-Empty: \n\r\nline\r\n\r\nrest",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		OK(parse(texts[i]));
		expect(request.method, request.method_length, "POST");
		expect(request.url, request.url_length, "https://example.org/hook?a=b");
		ck_assert_uint_eq(request.header_count, 2);
		expect(request.headers[0].name, request.headers[0].name_length, "Content-Type");
		expect(request.headers[0].value, request.headers[0].value_length, "text/plain");
		expect(request.headers[1].name, request.headers[1].name_length, "X-Empty");
		expect(request.headers[1].value, request.headers[1].value_length, "");
		expect(request.body, request.body_length, "line\r\n\r\nrest");
	}
}
END_TEST

START_TEST(a_known_method_is_in_capitals)
{
	static const char *const texts[][2] = {{"get http://a", "GET"}, {"Post http://a", "POST"},
	    {"hEAD http://a", "HEAD"}, {"patch http://a", "PATCH"}, {"options http://a", "OPTIONS"},
	    {"purge http://a", "purge"}, {"gets http://a", "gets"}};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		OK(parse(texts[i][0]));
		expect(request.method, request.method_length, texts[i][1]);
	}
}
END_TEST

START_TEST(a_request_without_a_body_needs_no_empty_line)
{
	static const char *const texts[] = {"GET http://a", "GET http://a\n", "GET http://a\r\n\r\n",
	    "GET http://a\nX: y", "HEAD http://[2001:db8::1]:8080/x", "PURGE http://a_b-c.d:1?q"};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		OK(parse(texts[i]));
		ck_assert_uint_eq(request.body_length, 0);
	}
}
END_TEST

/* A malformed request, the line of the fault, and a word of the reason. */
static const struct {
	const char *text;
	size_t line;
	const char *reason;
} wrong[] = {
    {"", 1, "nothing"},
    {"\nhttp://a", 1, "no URL"},
    {"POST", 1, "no URL"},
    {"hello world", 1, "http://"},
    {"POST ftp://a/", 1, "http://"},
    {"POST /path", 1, "http://"},
    {"P<ST http://a", 1, "method"},
    {"THISMETHODISLONGERTHANTHIRTYTWOLETTERS http://a", 1, "method"},
    {"CONNECT http://a", 1, "cannot be used"},
    {"trace http://a", 1, "cannot be used"},
    {"http://", 1, "no host"},
    {"http:///path", 1, "no host"},
    {"http://a b", 1, "follows the URL"},
    {"http://a/ HTTP/1.1 x", 1, "follows the URL"},
    {"http://a/ HTTP/11", 1, "follows the URL"},
    {"http://a/\\b", 1, "%XX"},
    {"http://a/\xc3\xa4", 1, "%XX"},
    {"http://a/\tb", 1, "%XX"},
    {"http://a/\rb", 1, "%XX"},
    {"http://\xc3\xa4/", 1, "xn--"},
    {"https://b\xc3\xbc"
     "cher.example:80/\xc3\xa4",
        1, "xn--"},
    {"http://a%2eb/", 1, "host"},
    {"http://user@a/", 1, "user's name"},
    {"http://user:secret@a/", 1, "user's name"},
    {"http://a/#b", 1, "fragment"},
    {"http://a:/", 1, "port"},
    {"http://a:0/", 1, "port"},
    {"http://a:65536/", 1, "port"},
    {"http://a:99999999999999999999/", 1, "port"},
    {"http://a:x/", 1, "port"},
    {"http://a:1:2/", 1, "port"},
    {"http://[::1/", 1, "]"},
    {"http://[::1]x/", 1, "between"},
    {"http://[::1%25eth0]/", 1, "host"},
    {"http://[a.example]/", 1, "host"},
    {"http://a\nnothing here", 2, "no colon"},
    {"http://a\nX: y\n Z: continued", 3, "continued"},
    {"http://a\nX : y", 2, "name"},
    {"http://a\n: y", 2, "name"},
    {"http://a\nX: a\rInjected: b", 2, "control"},
    {"http://a\nX: a\x7f", 2, "control"},
    {"http://a\nX: y\nHost: b", 3, "not the job's"},
    {"http://a\ncontent-length: 3", 2, "not the job's"},
    {"http://a\nTransfer-Encoding: chunked", 2, "not the job's"},
    {"http://a\nConnection: close", 2, "not the job's"},
    {"http://a\nUpgrade: h2c", 2, "not the job's"},
    {"http://a\nExpect: 100-continue", 2, "not the job's"},
    {"http://a\nProxy-Authorization: x", 2, "not the job's"},
    {"http://a\nWEEKWHEEL-Job-Id: 1", 2, "not the job's"},
    {"http://a\nWeekwheel_Token: 1", 2, "not the job's"},
    {"http://a\nContent_Length: 1", 2, "not the job's"},
    {"HEAD http://a\n\nbody", 2, "HEAD"},
};

START_TEST(malformed_requests_are_refused_with_line_and_reason)
{
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		ck_assert_msg(parse(wrong[i].text) == WW_EINVAL, "%s", wrong[i].text);
		ck_assert_msg(problem.line == wrong[i].line && strstr(problem.reason, wrong[i].reason),
		    "%s: line %zu: %s", wrong[i].text, problem.line, problem.reason);
	}
}
END_TEST

START_TEST(a_null_byte_does_not_end_a_request)
{
	static const char text[] = "http://a/\0b\n\n";
	static const char header[] = "http://a/\nX: \0\n\n";

	ck_assert_int_eq(ww_callback_parse(text, sizeof text - 1, &request, &problem), WW_EINVAL);
	ck_assert_int_eq(ww_callback_parse(header, sizeof header - 1, &request, &problem), WW_EINVAL);
	ck_assert_int_eq(ww_callback_parse(NULL, 1, &request, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_callback_parse("http://a", 8, NULL, NULL), WW_EINVAL);
}
END_TEST

/* Make the url http://a/xxx... with this many bytes. */
static size_t long_url(char *text, size_t size)
{
	memset(text, 'x', size);
	memcpy(text, "http://a/", 9);
	text[size] = '\0';
	return size;
}

START_TEST(too_long_requests_are_refused)
{
	static char text[2 * WW_CALLBACK_HEAD_MAX];
	size_t length;

	(void)long_url(text, WW_CALLBACK_URL_MAX);
	OK(parse(text));
	(void)long_url(text, WW_CALLBACK_URL_MAX + 1);
	ck_assert_int_eq(parse(text), WW_ETOOBIG);
	length = long_url(text, 20);
	for (int i = 0; i < WW_CALLBACK_HEADERS_MAX; i++)
		length += (size_t)sprintf(text + length, "\nX: y");
	OK(parse(text));
	(void)sprintf(text + length, "\nX: y");
	ck_assert_int_eq(parse(text), WW_ETOOBIG);
	ck_assert_uint_eq(problem.line, WW_CALLBACK_HEADERS_MAX + 2);
	/* A head of exactly the greatest size, followed by a body. Then one byte more. */
	for (size_t more = 0; more < 2; more++) {
		memset(text, 'y', sizeof text - 1);
		memcpy(text, "http://a\nX: ", 12);
		memcpy(text + WW_CALLBACK_HEAD_MAX - 2 + more, "\n\n", 2);
		ck_assert_int_eq(parse(text), more ? WW_ETOOBIG : WW_OK);
	}
}
END_TEST

START_TEST(a_written_request_is_read_back_unchanged)
{
	struct ww_callback_request out = {.method = "PUT",
	    .method_length = 3,
	    .url = "http://a/b",
	    .url_length = 10,
	    .body = "\n\0x",
	    .body_length = 3,
	    .header_count = 2,
	    .headers = {{"X-A", 3, "b c", 3}, {"E", 1, NULL, 0}}};
	char text[128];
	size_t length;

	OK(ww_callback_write(&out, text, sizeof text, &length));
	OK(ww_callback_parse(text, length, &request, &problem));
	expect(request.method, request.method_length, "PUT");
	expect(request.url, request.url_length, "http://a/b");
	ck_assert_uint_eq(request.header_count, 2);
	expect(request.headers[0].value, request.headers[0].value_length, "b c");
	expect(request.headers[1].value, request.headers[1].value_length, "");
	ck_assert_uint_eq(request.body_length, 3);
	ck_assert_int_eq(memcmp(request.body, "\n\0x", 3), 0);
	size_t needed = 0;
	text[0] = '?';
	ck_assert_int_eq(ww_callback_write(&out, text, length - 1, &needed), WW_ETOOBIG);
	ck_assert_uint_eq(needed, length);
	ck_assert_int_eq(text[0], '?');
	ck_assert_int_eq(ww_callback_write(&out, NULL, 0, &needed), WW_ETOOBIG);
}
END_TEST

/* Each field that could inject a line. */
START_TEST(no_field_can_inject_a_header)
{
	static const char *const evil[] = {"a\r\nX: y", "a\nX: y", "a\rX: y", "a\tb\nc", "\n"};
	char text[256];
	size_t length;

	for (size_t i = 0; i < sizeof evil / sizeof *evil; i++) {
		const size_t size = strlen(evil[i]);
		struct ww_callback_request good = {.method = "PUT",
		    .method_length = 3,
		    .url = "http://a/",
		    .url_length = 9,
		    .header_count = 1,
		    .headers = {{"X", 1, "y", 1}}};
		struct ww_callback_request bad[] = {good, good, good, good};
		char url[64];
		OK(ww_callback_write(&good, text, sizeof text, &length));
		bad[0].method = evil[i];
		bad[0].method_length = size;
		(void)sprintf(url, "http://a/%s", evil[i]);
		bad[1].url = url;
		bad[1].url_length = strlen(url);
		bad[2].headers[0] = (struct ww_callback_header){evil[i], size, "y", 1};
		bad[3].headers[0] = (struct ww_callback_header){"X", 1, evil[i], size};
		for (size_t j = 0; j < 4; j++)
			ck_assert_int_eq(ww_callback_write(&bad[j], text, sizeof text, &length), WW_EINVAL);
	}
	struct ww_callback_request ours = {.method = "GET",
	    .method_length = 3,
	    .url = "http://a/",
	    .url_length = 9,
	    .header_count = 1,
	    .headers = {{"Host", 4, "b", 1}}};
	ck_assert_int_eq(ww_callback_write(&ours, text, sizeof text, &length), WW_EINVAL);
	ours.headers[0] = (struct ww_callback_header){"X", 1, "a\0b", 3};
	ck_assert_int_eq(ww_callback_write(&ours, text, sizeof text, &length), WW_EINVAL);
	ours.header_count = WW_CALLBACK_HEADERS_MAX + 1;
	ck_assert_int_eq(ww_callback_write(&ours, text, sizeof text, &length), WW_ETOOBIG);
}
END_TEST

/* The example of the public header, computed by another program. */
START_TEST(the_signature_agrees_with_the_public_header)
{
	char signature[WW_CALLBACK_SIGNATURE_SIZE];

	OK(parse("https://example.org/hook\n\nhello"));
	OK(ww_callback_sign("secret", 6, 1700000000, 7, 9, &request, signature));
	ck_assert_str_eq(signature, "v1=067948dc12a98df0c47cdaf541c89e0a90c4b89618b00c7470dcb3fcfd646329");
	OK(ww_callback_sign("secret", 6, 1700000000, 7, 10, &request, signature));
	ck_assert_str_ne(signature, "v1=067948dc12a98df0c47cdaf541c89e0a90c4b89618b00c7470dcb3fcfd646329");
	ck_assert_int_eq(ww_callback_sign(NULL, 6, 1, 7, 9, &request, signature), WW_EINVAL);
	ck_assert_int_eq(ww_callback_sign("secret", 6, 1, 7, 9, NULL, signature), WW_EINVAL);
}
END_TEST

TEST_MAIN("callback/request", a_request_is_read_with_either_line_end, a_known_method_is_in_capitals,
    a_request_without_a_body_needs_no_empty_line, malformed_requests_are_refused_with_line_and_reason,
    a_null_byte_does_not_end_a_request, too_long_requests_are_refused, a_written_request_is_read_back_unchanged,
    no_field_can_inject_a_header, the_signature_agrees_with_the_public_header)
