/* Text encodings: JSON, UTF-8 and base64 of any bytes, read and written. */
/* tier: quick */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/common/base64.h"
#include "tools/common/json.h"
#include "tools/common/utf8.h"

/* The text is of exactly that size, so that an access checker sees a reader that looks too far. */
static int decode(const char *text, size_t size, char *out, size_t room)
{
	char *copy = malloc(size + !size);
	struct json_value value = {JSON_STRING, copy, size};
	int result;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, size);
	result = json_decode(value, out, room);
	free(copy);
	return result;
}

START_TEST(escapes_are_resolved)
{
	static const struct {
		const char *text, *is;
	} good[] = {{"", ""}, {"a\\\"\\\\\\/\\b\\f\\n\\r\\t", "a\"\\/\b\f\n\r\t"},
	    {"\\u0041\\u00e4\\u20AC", "A\xc3\xa4\xe2\x82\xac"}, {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
	    {"\\uD800\\uDC00\\uDBFF\\uDFFF", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
	    {"\xf0\x9f\x98\x80\x7f", "\xf0\x9f\x98\x80\x7f"},
	    {"\\ud7ff\\ue000\\uffff", "\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"}, {"\\\\u0041", "\\u0041"}};
	char out[32];

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		ck_assert_msg(decode(good[i].text, strlen(good[i].text), out, sizeof out) == 0, "%s", good[i].text);
		ck_assert_str_eq(out, good[i].is);
	}
}
END_TEST

#define NO "\xef\xbf\xbd"

START_TEST(what_is_no_character_is_refused_and_replaced)
{
	static const struct {
		const char *text, *is;
	} bad[] = {/* Surrogates alone, in the wrong order, and before something else. */
	    {"\\ud83d", NO}, {"\\ude00", NO}, {"\\ud83dx", NO "x"}, {"\\ud83d\\n", NO "\n"}, {"\\ud83d\\u0041", NO "A"},
	    {"\\ude00\\ud83d", NO NO}, {"\\ud83d\\ud83d\\ude00", NO "\xf0\x9f\x98\x80"},
	    {"\\ud83d\\ude0", NO NO "ude0"}, {"\\ud83d\\", NO NO},
	    /* No escapes, and a NUL, which would end the text. */
	    {"\\", NO}, {"\\q", NO "q"}, {"\\u12", NO "u12"}, {"\\u12g4", NO "u12g4"}, {"\\u+123", NO "u+123"},
	    {"\\u0000x", NO "x"}, {"a\nb", "a" NO "b"},
	    /* Overlong forms of NUL, "/" and U+FFFF; surrogates; beyond the last; halves; bytes that are never there. */
	    {"\xc0\x80", NO NO}, {"\xc0\xaf", NO NO}, {"\xe0\x80\x80", NO NO NO}, {"\xe0\x80\xaf", NO NO NO},
	    {"\xf0\x8f\xbf\xbf", NO NO NO NO}, {"\xed\xa0\x80", NO NO NO}, {"\xed\xbf\xbf", NO NO NO},
	    {"\xf4\x90\x80\x80", NO NO NO NO}, {"\xf5\x80\x80\x80", NO NO NO NO}, {"\xe2\x82", NO NO},
	    {"\xe2\x82x", NO NO "x"}, {"\x80", NO}, {"\xfe\xff", NO NO}, {"\xc3", NO}};
	char out[32];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert_msg(decode(bad[i].text, strlen(bad[i].text), out, sizeof out) == -1, "%s", bad[i].text);
		ck_assert_str_eq(out, bad[i].is);
	}
	ck_assert_int_eq(decode("a\0b", 3, out, sizeof out), -1);
	ck_assert_str_eq(out, "a" NO "b");
}
END_TEST

START_TEST(what_does_not_fit_is_cut_between_characters)
{
	static const char text[] = "a\\u00e4\\ud83d\\ude00";
	static const size_t lengths[] = {0, 1, 1, 3, 3, 3, 3, 7, 7};
	char out[10];

	for (size_t room = 1; room < 10; room++) {
		memset(out, '!', sizeof out);
		ck_assert_int_eq(decode(text, sizeof text - 1, out, room), room < 8);
		ck_assert_uint_eq(strlen(out), lengths[room - 1]);
		for (size_t i = room; i < sizeof out; i++)
			ck_assert_int_eq(out[i], '!');
	}
}
END_TEST

static int survives(int32_t code)
{
	char written[JSON_QUOTED(4)], bytes[4], read[8];
	const char *at = bytes;
	size_t size = utf8_put(bytes, code);
	struct json_value value = {JSON_STRING, written + 1, json_quote(written, bytes, size) - 2};

	return utf8_take(&at, bytes + size) == code && at == bytes + size && value.size + 2 <= JSON_QUOTED(size) &&
	       json_decode(value, read, sizeof read) == 0 && strlen(read) == size && memcmp(read, bytes, size) == 0;
}

START_TEST(every_character_survives)
{
	for (int32_t code = 1; code <= 0x10ffff; code++)
		if (survives(code) != (code < 0xd800 || code > 0xdfff))
			ck_abort_msg("U+%04X", (unsigned)code);
}
END_TEST

START_TEST(quoted_strings_fit_and_are_valid_whatever_the_bytes)
{
	char bytes[256], quoted[JSON_QUOTED(256)], *written = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&written, &length);

	ck_assert_ptr_nonnull(out);
	for (int i = 0; i < 256; i++)
		bytes[i] = (char)i;
	json_write_string(out, bytes, sizeof bytes);
	fclose(out);
	ck_assert_uint_eq(json_quote(quoted, bytes, sizeof bytes), length);
	ck_assert_mem_eq(quoted, written, length);
	/* 33 control characters as \u00xx, two with a backslash, 128 bytes that are no UTF-8, and the rest as it is. */
	ck_assert_uint_eq(length, 2 + 33 * 6 + 2 * 2 + 128 * 6 + 93);
	memset(bytes, 0, sizeof bytes);
	ck_assert_uint_eq(json_quote(quoted, bytes, sizeof bytes), sizeof quoted);
	free(written);
}
END_TEST

START_TEST(ids_beyond_2_to_the_53_are_exact)
{
	static const char text[] =
	    "{\"a\":9007199254740993,\"b\":18446744073709551615,\"c\":18446744073709551616,"
	    "\"d\":99999999999999999999999999999999,\"e\":\"9223372036854775807\",\"f\":1.9,\"g\":-1,"
	    "\"h\":1e5,\"i\":[18446744073709551615,9007199254740993]}";
	const size_t size = sizeof text - 1;
	uint64_t numbers[3];
	char out[40];

	ck_assert_uint_eq(json_whole(text, size, "a"), UINT64_C(9007199254740993));
	ck_assert_uint_eq(json_whole(text, size, "b"), UINT64_MAX);
	ck_assert_uint_eq(json_whole(text, size, "c"), UINT64_MAX);
	ck_assert_uint_eq(json_whole(text, size, "d"), UINT64_MAX);
	ck_assert_uint_eq(json_whole(text, size, "e"), INT64_MAX);
	ck_assert_uint_eq(json_whole(text, size, "f"), 1);
	ck_assert_uint_eq(json_whole(text, size, "g"), 0);
	ck_assert_str_eq(json_text(text, size, "d", out, sizeof out), "99999999999999999999999999999999");
	ck_assert_str_eq(json_text(text, size, "f", out, sizeof out), "1.9");
	ck_assert_uint_eq(json_array(json_member(text, size, "i"), numbers, 3), 2);
	ck_assert_uint_eq(numbers[0], UINT64_MAX);
	ck_assert_uint_eq(numbers[1], UINT64_C(9007199254740993));
}
END_TEST

START_TEST(what_is_nested_deeply_is_skipped)
{
	enum { DEPTH = 1000000 };
	static char text[2 * DEPTH + 40];
	size_t size = (size_t)sprintf(text, "{\"a\":");

	memset(text + size, '[', DEPTH);
	memset(text + size + DEPTH, ']', DEPTH);
	size += 2 * DEPTH;
	size += (size_t)sprintf(text + size, ",\"b\":7}");
	ck_assert_int_eq(json_member(text, size, "a").kind, JSON_OTHER);
	ck_assert_uint_eq(json_whole(text, size, "b"), 7);
	/* Without its end. */
	ck_assert_int_eq(json_member(text, DEPTH, "a").kind, JSON_NONE);
}
END_TEST

START_TEST(members_come_in_order_and_what_is_no_object_is_refused)
{
	static const char good[] = " {\"a\" : \"x\\\"}\", \"b\":null ,\"c\":[{\"a\":1}] } ";
	static const char *const bad[] = {"", "[]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\":1 \"b\":2}",
	    "{a:1}", "{\"a\":1}}", "{\"a\":1} x", "{,}", "{\"a\":\"x}", "{\"a\":[1}", "null"};
	static const enum json_kind kinds[] = {JSON_STRING, JSON_NULL, JSON_OTHER};
	struct json_value name, value;
	size_t at = 0;

	for (int i = 0; i < 3; i++) {
		char expected[] = {(char)('a' + i), 0};

		ck_assert_int_eq(json_next(good, sizeof good - 1, &at, &name, &value), 1);
		ck_assert(json_is(name, expected));
		ck_assert_int_eq(value.kind, kinds[i]);
	}
	ck_assert_int_eq(json_next(good, sizeof good - 1, &at, &name, &value), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int more;

		at = 0;
		while ((more = json_next(bad[i], strlen(bad[i]), &at, &name, &value)) > 0)
			continue;
		ck_assert_msg(more == -1, "%s", bad[i]);
	}
}
END_TEST

START_TEST(base64_comes_back)
{
	static const struct {
		const char *bytes, *text;
	} rfc4648[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
	    {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
	static const char *const bad[] = {
	    "Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm9-", "Zm_v", "Zm9v===="};
	unsigned char bytes[256], read[260];
	char text[BASE64_SIZE(256)];

	for (size_t i = 0; i < sizeof rfc4648 / sizeof *rfc4648; i++) {
		size_t size = strlen(rfc4648[i].text);

		ck_assert_uint_eq(base64_encode(text, rfc4648[i].bytes, strlen(rfc4648[i].bytes)), size);
		ck_assert_mem_eq(text, rfc4648[i].text, size);
	}
	for (size_t size = 0; size <= sizeof bytes; size++) {
		for (size_t i = 0; i < size; i++)
			bytes[i] = (unsigned char)(i * 167 + size);
		ck_assert_uint_eq(base64_encode(text, bytes, size), BASE64_SIZE(size));
		ck_assert_int_eq(base64_decode(read, text, BASE64_SIZE(size)), (long)size);
		ck_assert_mem_eq(read, bytes, size);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(base64_decode(read, bad[i], strlen(bad[i])) == -1, "%s", bad[i]);
}
END_TEST

TEST_MAIN("common/json", escapes_are_resolved, what_is_no_character_is_refused_and_replaced,
    what_does_not_fit_is_cut_between_characters, every_character_survives,
    quoted_strings_fit_and_are_valid_whatever_the_bytes, ids_beyond_2_to_the_53_are_exact,
    what_is_nested_deeply_is_skipped, members_come_in_order_and_what_is_no_object_is_refused, base64_comes_back)
