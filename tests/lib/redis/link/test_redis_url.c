/* Urls of Redis: each part that is read, and what is wrong with urls that are refused. */
/* tier: check */

#include <stdio.h>
#include <string.h>

#include "lib/redis/link/url.h"
#include "tests/support/suite.h"
#include "weekwheel/jobs_redis.h"

static const struct {
	const char *text;
	const char *host;
	unsigned port;
	const char *user;
	const char *password;
	int has_password;
	unsigned db;
} good[] = {
    {"redis://localhost", "localhost", 6379, "", "", 0, 0},
    {"redis://localhost/", "localhost", 6379, "", "", 0, 0},
    {"redis://localhost/15", "localhost", 6379, "", "", 0, 15},
    {"redis://10.0.0.1:7000/2", "10.0.0.1", 7000, "", "", 0, 2},
    {"redis://[::1]", "::1", 6379, "", "", 0, 0},
    {"redis://[fe80::1:2]:65535/1", "fe80::1:2", 65535, "", "", 0, 1},
    {"redis://:secret@a", "a", 6379, "", "secret", 1, 0},
    {"redis://me:secret@a:1", "a", 1, "me", "secret", 1, 0},
    {"redis://me@a", "a", 6379, "me", "", 1, 0},
    {"redis://m%65:p%40%3A%2f%25@a", "a", 6379, "me", "p@:/%", 1, 0},
    {"redis://me:a:b@c@[::1]:2/3", "::1", 2, "me", "a:b@c", 1, 3},
    {"unix:///run/redis.sock", "/run/redis.sock", 0, "", "", 0, 0},
    {"unix:///run/a%20b?db=7", "/run/a b", 0, "", "", 0, 7},
    {"unix://me:p@/s", "/s", 0, "me", "p", 1, 0},
};

START_TEST(each_part_is_read)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct redis_url url;
		const char *why = "";
		ck_assert_msg(ww_redis_url_parse(&url, good[i].text, &why) == WW_OK, "%s: %s", good[i].text, why);
		ck_assert_uint_eq(url.count, 1);
		ck_assert_str_eq(url.hosts[0].host, good[i].host);
		ck_assert_uint_eq(url.hosts[0].port, good[i].port);
		ck_assert_str_eq(url.user, good[i].user);
		ck_assert_str_eq(url.password, good[i].password);
		ck_assert_int_eq(url.has_password, good[i].has_password);
		ck_assert_uint_eq(url.db, good[i].db);
	}
}
END_TEST

START_TEST(several_hosts_are_seeds)
{
	struct redis_url url;
	const char *why;

	OK(ww_redis_url_parse(&url, "redis://u:p@a:1,[::2]:2,c/0", &why));
	ck_assert_uint_eq(url.count, 3);
	ck_assert_str_eq(url.hosts[0].host, "a");
	ck_assert_uint_eq(url.hosts[0].port, 1);
	ck_assert_str_eq(url.hosts[1].host, "::2");
	ck_assert_uint_eq(url.hosts[1].port, 2);
	ck_assert_str_eq(url.hosts[2].host, "c");
	ck_assert_uint_eq(url.hosts[2].port, 6379);
}
END_TEST

START_TEST(sentinels_name_a_master)
{
	struct redis_url url;
	const char *why;
	char place[REDIS_PLACE_MAX];

	OK(ww_redis_url_parse(&url, "redis+sentinel://u:p@a,[::2]:2/my%20master/3", &why));
	ck_assert_uint_eq(url.count, 2);
	ck_assert_uint_eq(url.hosts[0].port, 26379);
	ck_assert_str_eq(url.master, "my master");
	ck_assert_uint_eq(url.db, 3);
	ww_redis_address_write(&url.hosts[1], place);
	ck_assert_str_eq(place, "[::2]:2");
	OK(ww_redis_url_parse(&url, "rediss+sentinel://a:1/m?ca=x", &why));
	ck_assert_int_eq(url.is_tls, 1);
	ck_assert_str_eq(url.master, "m");
	ck_assert_str_eq(url.ca, "x");
	ck_assert_int_eq(ww_redis_url_parse(&url, "redis+sentinel://a/m/x", &why), WW_EINVAL);
	ck_assert_int_eq(ww_redis_url_parse(&url, "redis+sentinel://a/", &why), WW_EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "the name of the master"));
	/* Jobs are not kept behind them. */
	ck_assert_int_eq(ww_jobs_redis_check_url("redis+sentinel://a/m", &why), WW_EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "the master's address"));
}
END_TEST

static const struct {
	const char *text;
	const char *says;
} bad[] = {
    {NULL, "No url"},
    {"", "begins with redis://"},
    {"localhost", "begins with redis://"},
    {"http://a", "begins with redis://"},
    {"REDIS://a", "begins with redis://"},
    {"rediss://", "host of the url is empty"},
    {"rediss://a/?ca=x&what=y", "After the ? of rediss://"},
    {"rediss://a/?key=x", "key= without its cert="},
    {"rediss://a/x?ca=y", "database"},
    {"redis://", "host of the url is empty"},
    {"redis:///1", "host of the url is empty"},
    {"redis://a,", "host of the url is empty"},
    {"redis://a,,b", "host of the url is empty"},
    {"redis://:6379", "host of the url is empty"},
    {"redis://a:", "port"},
    {"redis://a:0", "port"},
    {"redis://a:65536", "port"},
    {"redis://a:-1", "port"},
    {"redis://a:1x", "port"},
    {"redis://a:99999999999999999999", "port"},
    {"redis://::1", "host of the url is empty"},
    {"redis://a::1", "IPv6 address stands in brackets"},
    {"redis://[::1", "not closed"},
    {"redis://[]", "no IPv6"},
    {"redis://[localhost]", "no IPv6"},
    {"redis://[::1]x", "colon and the port"},
    {"redis://[::1]:", "port"},
    {"redis://a/x", "database"},
    {"redis://a/1/2", "database"},
    {"redis://a/-1", "database"},
    {"redis://a/99999999999", "database"},
    {"redis://@a", "neither a user nor a password"},
    {"redis://:@a", "neither a user nor a password"},
    {"redis://u:%@a", "two hexadecimal digits"},
    {"redis://u:%4@a", "two hexadecimal digits"},
    {"redis://u:%4g@a", "two hexadecimal digits"},
    {"redis://u:%00@a", "NUL"},
    {"redis://a b", "space"},
    {"redis://a\n", "space"},
    {"redis://a?db=1", "no ? and no #"},
    {"redis://a#b", "no ? and no #"},
    {"redis://a*", "no host's name"},
    {"redis+sentinel://a", "the name of the master"},
    {"unix://", "whole path"},
    {"unix:///", "whole path"},
    {"unix://a/b", "whole path"},
    {"unix:///a?x=1", "?db="},
    {"unix:///a?db=", "database"},
};

START_TEST(refused_urls_say_what_is_wrong)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct redis_url url;
		const char *why = "";
		ck_assert_msg(ww_redis_url_parse(&url, bad[i].text, &why) == WW_EINVAL, "%s is taken",
		    bad[i].text ? bad[i].text : "");
		ck_assert_msg(strstr(why, bad[i].says) != NULL, "%s: no \"%s\" in: %s",
		    bad[i].text ? bad[i].text : "NULL", bad[i].says, why);
	}
}
END_TEST

/* By the public function, which asks no server. */
START_TEST(a_url_can_be_checked_beforehand)
{
	const char *why = NULL;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		OK(ww_jobs_redis_check_url(good[i].text, &why));
	ck_assert_ptr_null(why);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert_int_eq(ww_jobs_redis_check_url(bad[i].text, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_redis_check_url(bad[i].text, &why), WW_EINVAL);
		ck_assert_ptr_nonnull(strstr(why, bad[i].says));
	}
}
END_TEST

/* Parts that are too long are refused, and nothing is written beyond the end. */
START_TEST(lengths_are_bounded)
{
	static const char *const frames[] = {
	    "redis://%s", "redis://%s:p@a", "redis://u:%s@a", "unix:///%s", "redis://[%s]", "redis://a/%s"};
	static const size_t longest[] = {REDIS_HOST_MAX, 255, 1023, 106, 0, 0};
	char part[2001];
	char text[2100];

	for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
		for (size_t length = 1; length < sizeof part; length++) {
			struct redis_url url;
			const char *why;
			memset(part, 'a', length);
			part[length] = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			(void)snprintf(text, sizeof text, frames[i], part);
#pragma GCC diagnostic pop
			ck_assert_int_eq(
			    ww_redis_url_parse(&url, text, &why), length <= longest[i] ? WW_OK : WW_EINVAL);
		}
	}
}
END_TEST

START_TEST(the_number_of_hosts_is_bounded)
{
	char text[1024] = "redis://a";
	struct redis_url url;
	const char *why;

	for (int i = 1; i < REDIS_HOSTS_MAX; i++)
		(void)strcat(text, ",a");
	OK(ww_redis_url_parse(&url, text, &why));
	ck_assert_uint_eq(url.count, REDIS_HOSTS_MAX);
	(void)strcat(text, ",a");
	ck_assert_int_eq(ww_redis_url_parse(&url, text, &why), WW_EINVAL);
}
END_TEST

TEST_MAIN("redis/url", each_part_is_read, several_hosts_are_seeds, sentinels_name_a_master,
    refused_urls_say_what_is_wrong, a_url_can_be_checked_beforehand, lengths_are_bounded,
    the_number_of_hosts_is_bounded)
