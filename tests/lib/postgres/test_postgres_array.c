/* Arrays in PostgreSQL's binary form, as it takes and gives them. */
/* tier: check */
#include "lib/postgres/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/postgres/postgres_server.h"
#include "weekwheel/allocator.h"
#include "weekwheel/error.h"

static struct postgres_server server;
static struct link link_;

static void begin(void)
{
	postgres_server_start(&server);
}

static void connect_link(void)
{
	OK(ww_postgres_link_open(&link_, server.url, "on"));
}

static int add(void *context, uint64_t number)
{
	*(uint64_t *)context = *(uint64_t *)context * 1000 + number;
	return WW_OK;
}

START_TEST(numbers_go_there_and_come_back)
{
	struct array array = {.allocator = ww_allocator_default(), .element = LINK_INT8};
	struct link_argument argument;
	PGresult *result;
	const void *bytes;
	size_t size;
	uint64_t sum = 0;

	connect_link();
	for (uint64_t i = 1; i <= 3; i++)
		OK(ww_postgres_array_number(&array, i));
	OK(ww_postgres_array_argument(&array, &argument));
	OK(ww_postgres_link_ask(&link_, "SELECT array_append($1, 4::bigint), cardinality($1)", &argument, 1, &result));
	bytes = ww_postgres_link_bytes(result, 0, 0, &size);
	OK(ww_postgres_array_each(bytes, size, add, &sum));
	ck_assert_uint_eq(sum, 1002003004);
	ck_assert_int_eq(ww_postgres_link_number(result, 0, 1), 3);
	ck_assert_int_eq(ww_postgres_array_each(bytes, size - 1, add, &sum), WW_ECORRUPT);
	PQclear(result);
	ww_postgres_array_free(&array);
	ww_postgres_link_close(&link_);
}
END_TEST

START_TEST(an_array_may_be_empty_or_have_bytes)
{
	struct array slots = {.allocator = ww_allocator_default(), .element = LINK_INT2};
	struct array pairs = {.allocator = ww_allocator_default(), .element = LINK_BYTEA};
	struct link_argument arguments[2];
	PGresult *result;
	uint64_t sum = 0;

	connect_link();
	OK(ww_postgres_array_bytes(&pairs, "a\0c", 3));
	OK(ww_postgres_array_bytes(&pairs, "", 0));
	OK(ww_postgres_array_argument(&slots, &arguments[0]));
	OK(ww_postgres_array_argument(&pairs, &arguments[1]));
	OK(ww_postgres_link_ask(&link_,
	    "SELECT cardinality($1), octet_length($2[1]), octet_length($2[2]), ARRAY[]::bigint[]", arguments, 2,
	    &result));
	ck_assert_int_eq(ww_postgres_link_number(result, 0, 0), 0);
	ck_assert_int_eq(ww_postgres_link_number(result, 0, 1), 3);
	ck_assert_int_eq(ww_postgres_link_number(result, 0, 2), 0);
	OK(ww_postgres_array_each(PQgetvalue(result, 0, 3), (size_t)PQgetlength(result, 0, 3), add, &sum));
	ck_assert_uint_eq(sum, 0);
	PQclear(result);
	/* It is filled again after it was cleared. */
	ww_postgres_array_clear(&slots);
	OK(ww_postgres_array_number(&slots, 168));
	OK(ww_postgres_array_argument(&slots, &arguments[0]));
	OK(ww_postgres_link_ask(&link_, "SELECT $1[1]", arguments, 1, &result));
	ck_assert_int_eq(ww_postgres_link_number(result, 0, 0), 168);
	PQclear(result);
	ww_postgres_array_free(&slots);
	ww_postgres_array_free(&pairs);
	ww_postgres_link_close(&link_);
}
END_TEST

static int join(void *context, const void *bytes, size_t size)
{
	char *text = context;
	size_t length = strlen(text);

	(void)snprintf(text + length, 40 - length, "%.*s,", (int)size, (const char *)bytes);
	return size == 3 ? WW_EFULL : WW_OK;
}

static int each(const char *sql, char text[40])
{
	PGresult *result;
	char *copy;

	*text = 0;
	OK(ww_postgres_link_ask(&link_, sql, NULL, 0, &result));
	size_t size = (size_t)PQgetlength(result, 0, 0);
	/* Of its own, for those who watch the memory. */
	copy = malloc(size);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, PQgetvalue(result, 0, 0), size);
	PQclear(result);
	int error = ww_postgres_array_each_bytes(copy, size, join, text);
	/* Nor is a part of it read beyond its end. */
	for (size_t i = 0; i < size; i++) {
		char other[40] = "";
		char *part = malloc(i + !i);
		ck_assert_ptr_nonnull(part);
		memcpy(part, copy, i);
		(void)ww_postgres_array_each_bytes(part, i, join, other);
		free(part);
	}
	free(copy);
	return error;
}

START_TEST(bytes_come_one_by_one)
{
	char text[40];

	connect_link();
	OK(each("SELECT ARRAY['a', '', 'bc']::bytea[]", text));
	ck_assert_str_eq(text, "a,,bc,");
	OK(each("SELECT array_send(ARRAY['x']::bytea[])", text));
	ck_assert_str_eq(text, "x,");
	OK(each("SELECT '{}'::bytea[]", text));
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(each("SELECT ARRAY['a', 'end', 'b']::bytea[]", text), WW_EFULL);
	ck_assert_str_eq(text, "a,end,");
	ck_assert_int_eq(each("SELECT ARRAY['a', NULL]::bytea[]", text), WW_ECORRUPT);
	ck_assert_int_eq(each("SELECT ARRAY[1, 2]", text), WW_ECORRUPT);
	ck_assert_int_eq(each("SELECT 'some text of no meaning'", text), WW_ECORRUPT);
	ww_postgres_link_close(&link_);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
	    numbers_go_there_and_come_back, an_array_may_be_empty_or_have_bytes, bytes_come_one_by_one};

	if (!postgres_server_is_there())
		return EXIT_SUCCESS;
	return suite_run_with("postgres/array", tests, sizeof tests / sizeof *tests, begin);
}
