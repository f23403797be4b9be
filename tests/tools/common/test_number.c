/* Numbers in text: exact up to the last one, and nothing beyond it. */
/* tier: quick */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/common/number.h"

/* The text is of exactly that size, so that an access checker sees a reader that looks too far. */
static int whole(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	size_t size = strlen(text);
	char *copy = malloc(size + !size);
	int result;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, size);
	result = number_whole(copy, size, least, most, number);
	free(copy);
	return result;
}

START_TEST(whole_numbers_have_a_range)
{
	static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "18446744073709551616",
	    "184467440737095516150", "99999999999999999999999999", "1\xff"};
	uint64_t number = 77;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(whole(bad[i], 0, UINT64_MAX, &number) == -1, "%s", bad[i]);
	ck_assert_int_eq(whole("4", 5, 7, &number), -1);
	ck_assert_int_eq(whole("8", 5, 7, &number), -1);
	ck_assert_int_eq(whole("10", 0, 9, &number), -1);
	ck_assert_uint_eq(number, 77);
	ck_assert_int_eq(whole("5", 5, 7, &number), 0);
	ck_assert_int_eq(whole("7", 5, 7, &number), 0);
	ck_assert_int_eq(whole("0", 0, 0, &number), 0);
	ck_assert_uint_eq(number, 0);
	ck_assert_int_eq(whole("18446744073709551615", 0, UINT64_MAX, &number), 0);
	ck_assert_uint_eq(number, UINT64_MAX);
	ck_assert_int_eq(whole("9007199254740993", 0, UINT64_MAX, &number), 0);
	ck_assert_uint_eq(number, UINT64_C(9007199254740993));
	ck_assert_int_eq(whole("000000000000000000000000000042", 0, 42, &number), 0);
	ck_assert_uint_eq(number, 42);
}
END_TEST

START_TEST(a_number_of_json_is_written_plainly)
{
	static const char *const cases[][2] = {{"0", "0"}, {"7", "7"}, {"1024.0", "1024"}, {"1e+05", "100000"},
	    {"1E5", "100000"}, {"1.5e3", "1500"}, {"1.5e0", "1.5"}, {"0.25", "0.25"}, {"0.10", "0.1"},
	    {"25e-2", "0.25"}, {"5e-3", "0.005"}, {"10e-1", "1"}, {"1.25e1", "12.5"}, {"0.0", "0"}, {"0e5", "000000"},
	    {"0e-5", "0"}, {"100e-2", "1"}, {"9007199254740993", "9007199254740993"}, {"1.2300e-1", "0.123"}};
	static const char *const bad[] = {"", "-1", "+1", ".5", "1.", "1.e5", "1e", "1e+", "1e+-5", "1e5.0", "1e5x",
	    "e5", "1..2", "1.2.3", "0x1", "1e99", "1e64", "1e-99", " 1", "nan",
	    "1234567890123456789012345678901234567890123456789012345678901234567890"};
	char out[NUMBER_PLAIN];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t length = number_plain(out, cases[i][0], strlen(cases[i][0]));

		ck_assert_msg(length == strlen(cases[i][1]) && memcmp(out, cases[i][1], length) == 0, "%s: %.*s",
		    cases[i][0], (int)length, out);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(number_plain(out, bad[i], strlen(bad[i])) == 0, "%s", bad[i]);
	/* What is longer goes unwritten: nothing is beyond the room. */
	for (int digits = 55; digits < 64; digits++)
		for (int exponent = 0; exponent < 12; exponent++) {
			char text[NUMBER_PLAIN + 8];
			int size = snprintf(text, sizeof text, "%0*d1e%d", digits, 7, exponent);

			ck_assert_uint_lt(number_plain(out, text, (size_t)size), NUMBER_PLAIN);
		}
}
END_TEST

START_TEST(what_begins_with_a_number_has_one)
{
	ck_assert_uint_eq(number_leading("12ab", 4), 12);
	ck_assert_uint_eq(number_leading("123", 2), 12);
	ck_assert_uint_eq(number_leading("1.9", 3), 1);
	ck_assert_uint_eq(number_leading("x", 1), 0);
	ck_assert_uint_eq(number_leading("", 0), 0);
	ck_assert_uint_eq(number_leading("18446744073709551614", 20), UINT64_MAX - 1);
	ck_assert_uint_eq(number_leading("18446744073709551616", 20), UINT64_MAX);
}
END_TEST

START_TEST(seconds_are_exact)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"0", 0}, {"3", 3000000000}, {"0.25", 250000000}, {"1.000000001", 1000000001},
	    {"1.0000000019", 1000000001}, {"4611686018.999999999", UINT64_C(4611686018999999999)}};
	static const char *const bad[] = {"", ".", "1.", ".5", "-1", "1.2.3", "1e3", "1.x", "4611686019", "1 "};
	uint64_t ns = 77;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(number_seconds(bad[i], strlen(bad[i]), 4611686018, &ns) == -1, "%s", bad[i]);
	ck_assert_uint_eq(ns, 77);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		ck_assert_msg(
		    number_seconds(good[i].text, strlen(good[i].text), 4611686018, &ns) == 0, "%s", good[i].text);
		ck_assert_uint_eq(ns, good[i].ns);
	}
}
END_TEST

START_TEST(hexadecimal_digits_are_known)
{
	static const char digits[] = "0123456789abcdef";

	for (int c = 0; c < 256; c++) {
		const char *lower = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 'a' - 'A' : c) : NULL;

		ck_assert_int_eq(number_hex((char)c), lower ? (int)(lower - digits) : -1);
	}
}
END_TEST

TEST_MAIN("common/number", whole_numbers_have_a_range, a_number_of_json_is_written_plainly,
    what_begins_with_a_number_has_one, seconds_are_exact, hexadecimal_digits_are_known)
