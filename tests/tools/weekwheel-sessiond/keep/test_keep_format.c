/* The entries of image and journal as bytes: what they are on disk stays as it is, and what is cut off is none. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/keep/format.h"

#define BIG UINT64_C(0x8877665544332211)

/* Kinds, and how many of the four times each has on disk. */
static const struct {
	enum keep_kind kind;
	unsigned times;
} kinds[] = {{KEEP_SET, 3}, {KEEP_TOUCH, 2}, {KEEP_ERASE, 0}, {KEEP_CLEAR, 0}, {KEEP_LAST, 4}, {KEEP_WAIT, 4},
    {KEEP_DELIVERED, 1}};

static struct keep_entry entry_of(enum keep_kind kind)
{
	return (struct keep_entry){.kind = kind,
	    .database = 63,
	    .key = "key",
	    .length = 3,
	    .value = "a\0b",
	    .size = 3,
	    .ttl = BIG,
	    .deadline = UINT64_MAX,
	    .end = 1,
	    .expiry = BIG + 1,
	    .is_new = 1};
}

START_TEST(an_entry_comes_back_with_the_times_of_its_kind)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct keep_entry entry = entry_of(kinds[i].kind);
		struct buffer bytes = {0};
		struct keep_entry back;
		size_t size = KEEP_ENTRY_HEAD + 8 * (size_t)kinds[i].times + 6;
		ck_assert_int_eq(keep_format_add(&bytes, &entry), 0);
		ck_assert_uint_eq(bytes.size, size);
		ck_assert_uint_eq(keep_format_read((unsigned char *)bytes.data, size, &back), size);
		ck_assert_int_eq(back.kind, entry.kind);
		ck_assert_uint_eq(back.database, 63);
		ck_assert_int_eq(back.is_new, 1);
		ck_assert_uint_eq(back.length, 3);
		ck_assert_uint_eq(back.size, 3);
		ck_assert_mem_eq(back.key, "key", 3);
		ck_assert_mem_eq(back.value, "a\0b", 3);
		ck_assert_uint_eq(back.ttl, kinds[i].times > 0 ? entry.ttl : 0);
		ck_assert_uint_eq(back.deadline, kinds[i].times > 1 ? entry.deadline : 0);
		ck_assert_uint_eq(back.end, kinds[i].times > 2 ? entry.end : 0);
		ck_assert_uint_eq(back.expiry, kinds[i].times > 3 ? entry.expiry : 0);
		/* Any part of it is none. */
		for (size_t part = 0; part < size; part++)
			ck_assert_uint_eq(keep_format_read((unsigned char *)bytes.data, part, &back), 0);
		buffer_free(&bytes);
	}
}
END_TEST

START_TEST(the_bytes_of_a_set_stay_what_they_are)
{
	static const unsigned char expected[] = {1, 0x80 | 5, 1, 0, 2, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
	    0x77, 0x88, 2, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'k', 'v', 'w'};
	struct keep_entry entry = {KEEP_SET, 5, "k", 1, "vw", 2, BIG, 2, UINT64_MAX, 9, 1};
	struct buffer bytes = {0};

	ck_assert_int_eq(keep_format_add(&bytes, &entry), 0);
	ck_assert_uint_eq(bytes.size, sizeof expected);
	ck_assert_mem_eq(bytes.data, expected, sizeof expected);
	buffer_free(&bytes);
}
END_TEST

START_TEST(entries_follow_each_other)
{
	struct keep_entry entry = entry_of(KEEP_TOUCH);
	struct buffer bytes = {0};
	size_t at = 0;

	entry.size = 0;
	for (int i = 0; i < 100; i++) {
		entry.deadline = (uint64_t)i;
		ck_assert_int_eq(keep_format_add(&bytes, &entry), 0);
	}
	for (int i = 0; i < 100; i++) {
		size_t used = keep_format_read((unsigned char *)bytes.data + at, bytes.size - at, &entry);
		ck_assert_uint_gt(used, 0);
		ck_assert_uint_eq(entry.deadline, (uint64_t)i);
		ck_assert_uint_eq(entry.size, 0);
		at += used;
	}
	ck_assert_uint_eq(at, bytes.size);
	buffer_free(&bytes);
}
END_TEST

START_TEST(what_has_no_kind_is_no_entry)
{
	unsigned char bytes[64] = {0};
	struct keep_entry entry;

	for (int kind = 0; kind < 256; kind++) {
		bytes[0] = (unsigned char)kind;
		ck_assert_int_eq(
		    keep_format_read(bytes, sizeof bytes, &entry) > 0, kind >= KEEP_SET && kind <= KEEP_ENDED);
	}
	/* Sizes beyond the bytes, also the largest there are. */
	bytes[0] = KEEP_ERASE;
	bytes[2] = sizeof bytes - KEEP_ENTRY_HEAD;
	ck_assert_uint_eq(keep_format_read(bytes, sizeof bytes, &entry), sizeof bytes);
	bytes[2]++;
	ck_assert_uint_eq(keep_format_read(bytes, sizeof bytes, &entry), 0);
	memset(bytes + 2, 0xff, 6);
	ck_assert_uint_eq(keep_format_read(bytes, sizeof bytes, &entry), 0);
}
END_TEST

START_TEST(sums_go_on_from_the_one_before)
{
	uint64_t one = keep_format_sum(0, "abc", 3);

	ck_assert_uint_ne(keep_format_sum(one, "def", 3), keep_format_sum(0, "def", 3));
	ck_assert_uint_ne(one, keep_format_sum(0, "abd", 3));
	ck_assert_uint_eq(one, keep_format_sum(0, "abc", 3));
}
END_TEST

TEST_MAIN("weekwheel-sessiond/keep_format", an_entry_comes_back_with_the_times_of_its_kind,
    the_bytes_of_a_set_stay_what_they_are, entries_follow_each_other, what_has_no_kind_is_no_entry,
    sums_go_on_from_the_one_before)
