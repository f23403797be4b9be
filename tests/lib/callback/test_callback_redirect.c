/* Redirections: followed to the same scheme, checked again, and without credentials to another host. */
/* tier: check, threads */

#include <stdio.h>
#include <string.h>

#include "tests/support/callback/pushing.h"

static struct pushing pushing;
static char value[256];

/* Lines of a request that make the receiver answer with this redirection. */
static const char *to(int status, const char *url)
{
	static char lines[512];

	(void)snprintf(lines, sizeof lines, "Answer-Status: %d Elsewhere\nAnswer-Header: Location: %s\n", status, url);
	return lines;
}

START_TEST(method_and_body_are_kept)
{
	static const int statuses[] = {301, 302, 307, 308};

	pushing_make(&pushing);
	pushing.config.secret = "s";
	pushing.config.secret_length = 1;
	pushing_open(&pushing);
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		char lines[1024];
		(void)snprintf(lines, sizeof lines, "%sAuthorization: mine\n", to(statuses[i], "/end#part"));
		expect_finished(&pushing, pushing_post(&pushing, "/begin", lines));
		const char *got = receiver_got(pushing.receiver, 2 * i + 1);
		ck_assert_msg(strncmp(got, "POST /end HTTP/1.1", 18) == 0, "%s", got);
		ck_assert_str_eq(strstr(got, "\r\n\r\n") + 4, "hello");
		/* The same host gets the credentials again, and the signature covers what is sent. */
		ck_assert_str_eq(header_of(got, "Authorization", value), "mine");
		char first[256];
		(void)header_of(receiver_got(pushing.receiver, 2 * i), "Weekwheel-Signature", first);
		ck_assert_str_ne(header_of(got, "Weekwheel-Signature", value), first);
		ck_assert_str_eq(header_of(got, "Weekwheel-Attempt", value), "1");
	}
	ck_assert_uint_eq(pushing_stats(&pushing).redirects, 4);
	ck_assert_uint_eq(pushing_stats(&pushing).reserved, 4);
	pushing_end(&pushing);
}
END_TEST

START_TEST(see_other_is_followed_without_a_body)
{
	pushing_make(&pushing);
	pushing_open(&pushing);
	expect_buried(&pushing, pushing_post(&pushing, "/", to(303, "/end")), "HTTP 303: no success");
	ck_assert_uint_eq(receiver_count(pushing.receiver), 1);
	expect_finished(&pushing, pushing_put(&pushing, NULL, "GET http://127.0.0.1:%u/\n%s",
	                              receiver_port(pushing.receiver), to(303, "/end")));
	ck_assert_msg(
	    strncmp(receiver_got(pushing.receiver, 2), "GET /end ", 9) == 0, "%s", receiver_got(pushing.receiver, 2));
	pushing_end(&pushing);
}
END_TEST

START_TEST(another_host_gets_no_credentials_and_no_signature)
{
	struct receiver *other = receiver_start(NULL);
	char url[64];
	char lines[1024];

	pushing_make(&pushing);
	pushing.config.secret = "s";
	pushing.config.secret_length = 1;
	pushing_open(&pushing);
	(void)snprintf(url, sizeof url, "http://127.0.0.1:%u/end", receiver_port(other));
	(void)snprintf(lines, sizeof lines,
	    "%sAuthorization: secret\nCookie: secret\nX-Api-Key: secret\nContent-Type: text/plain\n", to(307, url));
	expect_finished(&pushing, pushing_post(&pushing, "/", lines));
	const char *got = receiver_got(other, 0);
	ck_assert_msg(!strstr(got, "secret"), "%s", got);
	ck_assert(!has_header(got, "Weekwheel-Signature"));
	ck_assert(has_header(receiver_got(pushing.receiver, 0), "Weekwheel-Signature"));
	ck_assert_str_eq(header_of(got, "Content-Type", value), "text/plain");
	ck_assert(has_header(got, "Weekwheel-Token"));
	ck_assert_str_eq(strstr(got, "\r\n\r\n") + 4, "hello");
	pushing_end(&pushing);
	receiver_stop(other);
}
END_TEST

START_TEST(another_scheme_is_not_followed)
{
	static const char *const urls[] = {
	    "https://127.0.0.1/", "ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1/x"};

	pushing_make(&pushing);
	pushing_open(&pushing);
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
		expect_buried(&pushing, pushing_post(&pushing, "/", to(302, urls[i])), "HTTP 302: ");
	ck_assert_uint_eq(receiver_count(pushing.receiver), sizeof urls / sizeof *urls);
	ck_assert_uint_eq(pushing_stats(&pushing).redirects, 0);
	pushing_end(&pushing);
}
END_TEST

START_TEST(malformed_locations_are_not_followed)
{
	pushing_make(&pushing);
	pushing_open(&pushing);
	expect_buried(&pushing, pushing_post(&pushing, "/", "Answer-Status: 302 Where\n"), "a redirection to nowhere");
	expect_buried(&pushing, pushing_post(&pushing, "/", to(302, "http://user:word@127.0.0.1/")), "HTTP 302: ");
	expect_buried(&pushing, pushing_post(&pushing, "/", "Answer-Status: 300 Choose\n"), "HTTP 300: ");
	pushing_end(&pushing);
}
END_TEST

START_TEST(each_location_is_checked_again)
{
	static const char *const deny[] = {"127.0.0.2/32"};
	char url[64];

	pushing_make(&pushing);
	pushing.config.deny = deny;
	pushing.config.deny_count = 1;
	pushing_open(&pushing);
	(void)snprintf(url, sizeof url, "http://127.0.0.2:%u/end", receiver_port(pushing.receiver));
	expect_buried(&pushing, pushing_post(&pushing, "/", to(307, url)), "127.0.0.2 may not be called");
	ck_assert_uint_eq(receiver_count(pushing.receiver), 1);
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_circle_of_redirections_ends)
{
	pushing_make(&pushing);
	pushing.config.redirects = 3;
	pushing_open(&pushing);
	expect_buried(&pushing, pushing_post(&pushing, "/", to(308, "/")), "one redirection more than are followed");
	ck_assert_uint_eq(receiver_count(pushing.receiver), 4);
	pushing_end(&pushing);
}
END_TEST

TEST_MAIN("callback/redirect", method_and_body_are_kept, see_other_is_followed_without_a_body,
    another_host_gets_no_credentials_and_no_signature, another_scheme_is_not_followed,
    malformed_locations_are_not_followed, each_location_is_checked_again, a_circle_of_redirections_ends)
