/* Counting sessions: by what remains to them, and the largest. */
/* tier: quick */

#include <string.h>

#include "tests/support/suite.h"
#include "tools/common/survey.h"

#define DAY (24 * (int64_t)SURVEY_HOUR_MS)

static void add(struct survey *survey, const char *key, int64_t left_ms, int64_t size)
{
	survey_add(survey, key, strlen(key), left_ms, size);
}

START_TEST(each_wheel_has_what_expires_within_its_turn)
{
	struct survey survey = {.largest_most = 0};
	static const int64_t left[] = {0, 59999, 60000, 3599999, 3600000, DAY - 1, DAY, 7 * DAY - 1, 7 * DAY, -1, -2};
	static const uint64_t expected[SURVEY_WHEELS] = {2, 2, 2, 2, 1, 1};

	for (size_t i = 0; i < sizeof left / sizeof *left; i++)
		add(&survey, "k", left[i], 10);
	ck_assert_uint_eq(survey.keys, 10);
	ck_assert_uint_eq(survey.bytes, 100);
	ck_assert_mem_eq(survey.by_wheel, expected, sizeof expected);
	ck_assert_uint_eq(survey.by_day[0], 6);
	ck_assert_uint_eq(survey.by_day[1], 1);
	ck_assert_uint_eq(survey.by_day[6], 1);
	ck_assert_uint_eq(survey.largest_count, 0);
}
END_TEST

START_TEST(the_largest_are_kept_in_order)
{
	struct survey survey = {.largest_most = 3};
	char wide[SURVEY_KEY + 5];

	memset(wide, 'w', sizeof wide - 1);
	wide[sizeof wide - 1] = 0;
	add(&survey, "a", 5, 10);
	add(&survey, "b", 5, 30);
	add(&survey, "list", 5, -1);
	add(&survey, "c", 5, 20);
	add(&survey, "d", 5, 10);
	add(&survey, wide, -1, 30);
	ck_assert_uint_eq(survey.others, 1);
	ck_assert_uint_eq(survey.keys, 6);
	ck_assert_uint_eq(survey.largest_count, 3);
	ck_assert_mem_eq(survey.largest[0].text, "b", 1);
	ck_assert_uint_eq(survey.largest[1].length, SURVEY_KEY);
	ck_assert_int_eq(survey.largest[1].is_cut, 1);
	ck_assert_int_eq(survey.largest[1].left_ms, -1);
	ck_assert_mem_eq(survey.largest[2].text, "c", 1);
}
END_TEST

TEST_MAIN("common/survey", each_wheel_has_what_expires_within_its_turn, the_largest_are_kept_in_order)
