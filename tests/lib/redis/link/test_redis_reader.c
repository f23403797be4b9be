/* A bounded reader takes what Redis may answer, and nothing that is larger, by whatever it announces or sends. */
/* tier: quick */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "lib/redis/link/reader.h"
#include "tests/support/suite.h"
#include "weekwheel/error.h"

enum { MAX = 4096 };

static struct redis_reader_bound bound;
static redisReader *reader;

static void begin(size_t max)
{
	reader = redisReaderCreate();
	ck_assert_ptr_nonnull(reader);
	ww_redis_reader_bound(&bound, reader, max);
}

static int feed(const char *bytes, redisReply **reply)
{
	void *taken;
	int result;

	ck_assert_int_eq(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
	result = ww_redis_reader_reply(&bound, reader, &taken);
	*reply = taken;
	return result;
}

START_TEST(replies_of_each_type_are_taken)
{
	redisReply *reply;

	begin(MAX);
	ck_assert_int_eq(feed("*4\r\n:7\r\n$3\r\nabc\r\n*1\r\n$-1", &reply), 0);
	ck_assert_ptr_null(reply);
	ck_assert_int_eq(feed("\r\n+OK\r\n", &reply), 1);
	ck_assert_uint_eq(reply->elements, 4);
	ck_assert_int_eq(reply->element[0]->integer, 7);
	ck_assert_str_eq(reply->element[1]->str, "abc");
	ck_assert_int_eq(reply->element[2]->element[0]->type, REDIS_REPLY_NIL);
	ck_assert_str_eq(reply->element[3]->str, "OK");
	freeReplyObject(reply);
	redisReaderFree(reader);
}
END_TEST

START_TEST(each_reply_has_the_whole_bound)
{
	char text[MAX];
	redisReply *reply;

	begin(MAX);
	(void)snprintf(text, sizeof text, "$3000\r\n%03000d\r\n", 1);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(feed(text, &reply), 1);
		ck_assert_uint_eq(reply->len, 3000);
		freeReplyObject(reply);
	}
	redisReaderFree(reader);
}
END_TEST

static void refuses(size_t max, const char *bytes)
{
	redisReply *reply;

	begin(max);
	ck_assert_msg(feed(bytes, &reply) == WW_ECORRUPT, "%.30s", bytes);
	ck_assert_ptr_null(reply);
	redisReaderFree(reader);
}

START_TEST(what_is_larger_is_refused)
{
	char text[2 * MAX];

	refuses(REDIS_READER_MAX, "*2147483647\r\n");
	refuses(REDIS_READER_MAX, "*1048577\r\n");
	refuses(REDIS_READER_MAX, "*-2\r\n");
	refuses(REDIS_READER_MAX, "HTTP/1.1 400 Bad Request\r\n");
	refuses(MAX, "*1000\r\n");
	refuses(MAX, "*400\r\n*400\r\n");
	(void)snprintf(text, sizeof text, "$5000\r\n%05000d\r\n", 1);
	refuses(MAX, text);
	/* Many small values of an array count together. */
	(void)snprintf(text, sizeof text, "*100\r\n");
	for (int i = 0; i < 100; i++)
		(void)strcat(text, ":1\r\n");
	refuses(MAX, text);
	/* A value without an end. */
	memset(text, 'a', sizeof text - 1);
	text[0] = '+';
	text[sizeof text - 1] = 0;
	refuses(MAX, text);
}
END_TEST

TEST_MAIN("redis/reader", replies_of_each_type_are_taken, each_reply_has_the_whole_bound, what_is_larger_is_refused)
