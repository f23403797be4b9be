/* Buffers: what is dropped and appended in any order, beside an array of what should be there. */
/* tier: quick */
#include <string.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/common/buffer.h"

enum { MOST = 100000 };

START_TEST(it_has_what_was_appended_and_not_dropped)
{
	static char expected[MOST];
	struct buffer buffer = {0};
	uint64_t random = seed_of_run("test_buffer");
	size_t size = 0;
	char next = 0;

	for (int i = 0; i < 20000; i++) {
		char bytes[600];
		size_t more = seed_below(&random, sizeof bytes);
		size_t drop = seed_below(&random, 700);
		for (size_t n = 0; n < more; n++)
			bytes[n] = next++;
		if (size + more <= MOST) {
			ck_assert_int_eq(buffer_append(&buffer, bytes, more), 0);
			memcpy(expected + size, bytes, more);
			size += more;
		}
		drop = drop > size ? size : drop;
		buffer_drop(&buffer, drop);
		size -= drop;
		memmove(expected, expected + drop, size);
		ck_assert_uint_eq(buffer.size, size);
		ck_assert(size == 0 || memcmp(buffer.data, expected, size) == 0);
		ck_assert_uint_ge(buffer.capacity, size);
		ck_assert_uint_eq(buffer_all(), buffer_takes(&buffer));
	}
	buffer_free(&buffer);
	ck_assert_uint_eq(buffer_all(), 0);
}
END_TEST

START_TEST(an_empty_one_gives_much_memory_back)
{
	static const char much[MOST];
	struct buffer buffer = {0};

	ck_assert_int_eq(buffer_append(&buffer, much, MOST), 0);
	buffer_drop(&buffer, MOST - 1);
	ck_assert_uint_ge(buffer_takes(&buffer), MOST);
	buffer_drop(&buffer, 1);
	ck_assert_uint_eq(buffer_all(), 0);
}
END_TEST

START_TEST(no_bytes_change_nothing)
{
	struct buffer buffer = {0};

	buffer_drop(&buffer, 0);
	ck_assert_int_eq(buffer_append(&buffer, NULL, 0), 0);
	ck_assert_ptr_null(buffer.data);
	ck_assert_int_eq(buffer_append(&buffer, "abc", 3), 0);
	buffer_drop(&buffer, 0);
	ck_assert_mem_eq(buffer.data, "abc", 3);
	buffer_free(&buffer);
}
END_TEST

TEST_MAIN("service/buffer", it_has_what_was_appended_and_not_dropped, an_empty_one_gives_much_memory_back,
    no_bytes_change_nothing)
