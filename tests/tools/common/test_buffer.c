/* Buffers: what is dropped and appended in any order, beside an array of what should be there. */
/* tier: quick */
#include <string.h>
#include <sys/mman.h>

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

/* Whether a page is still the process's. */
static int is_mapped(void *address)
{
	unsigned char is_in_memory;

	return mincore((void *)((uintptr_t)address & ~(uintptr_t)4095), 1, &is_in_memory) == 0;
}

START_TEST(freed_pages_serve_the_next_buffers_up_to_a_bound)
{
	enum { BUFFERS = 30, BIG = 5 * MOST };
	struct buffer buffer[BUFFERS] = {0};
	char *was[BUFFERS];
	size_t kept = 0;

	for (size_t i = 0; i < BUFFERS; i++) {
		ck_assert_int_eq(buffer_reserve(&buffer[i], BIG), 0);
		memset(buffer[i].data, 1, BIG);
		was[i] = buffer[i].data;
	}
	for (size_t i = 0; i < BUFFERS; i++)
		buffer_free(&buffer[i]);
	ck_assert_uint_eq(buffer_all(), 0);
	for (size_t i = 0; i < BUFFERS; i++)
		kept += is_mapped(was[i]) ? BIG : 0;
	ck_assert_uint_gt(kept, 0);
	ck_assert_uint_le(kept, 2 << 20);

	ck_assert_int_eq(buffer_reserve(&buffer[0], BIG), 0);
	kept = 0;
	for (size_t i = 0; i < BUFFERS; i++)
		kept += was[i] == buffer[0].data;
	ck_assert_uint_eq(kept, 1);
	buffer_free(&buffer[0]);
}
END_TEST

START_TEST(who_asks_for_much_gets_little_more)
{
	struct buffer buffer = {0};

	ck_assert_int_eq(buffer_reserve(&buffer, 10 * MOST), 0);
	ck_assert_uint_lt(buffer_takes(&buffer), 11 * MOST);
	buffer.size = 10 * MOST;
	ck_assert_int_eq(buffer_reserve(&buffer, 10 * MOST), 0);
	ck_assert_uint_lt(buffer_takes(&buffer), 21 * MOST);
	buffer_free(&buffer);
}
END_TEST

TEST_MAIN("service/buffer", it_has_what_was_appended_and_not_dropped, an_empty_one_gives_much_memory_back,
    no_bytes_change_nothing, freed_pages_serve_the_next_buffers_up_to_a_bound, who_asks_for_much_gets_little_more)
