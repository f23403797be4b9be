/* Every error has its own sentence, and a number that is no error has one too. */
/* tier: quick */

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/suite.h"
#include "weekwheel/error.h"
#include "weekwheel/version.h"

static const int errors[] = {WW_OK, WW_EINVAL, WW_ENOMEM, WW_ERANGE, WW_EOVERFLOW, WW_EBACKWARDS, WW_EBUSY, WW_ECORRUPT,
    WW_ECLOSED, WW_ESTALE, WW_ESYSTEM, WW_ENOTFOUND, WW_EINUSE, WW_EDENIED, WW_EFULL, WW_EIO, WW_EVERSION, WW_ETOOBIG,
    WW_EAGAIN, WW_ETIMEOUT};
#define ERRORS (sizeof errors / sizeof errors[0])

static const int no_errors[] = {1, 2, -20, -21, -100, INT_MAX, INT_MIN};
#define NO_ERRORS (sizeof no_errors / sizeof no_errors[0])

START_TEST(every_error_has_its_own_sentence)
{
	for (size_t i = 0; i < ERRORS; i++) {
		const char *text = ww_strerror(errors[i]);

		ck_assert_ptr_nonnull(text);
		ck_assert_uint_gt(strlen(text), 20);
		ck_assert_int_eq(text[strlen(text) - 1], '.');
		for (size_t j = 0; j < i; j++)
			ck_assert_str_ne(text, ww_strerror(errors[j]));
	}
}
END_TEST

static void assert_says(int error, const char *words)
{
	ck_assert_msg(strstr(ww_strerror(error), words), "no \"%s\" in: %s", words, ww_strerror(error));
}

START_TEST(sentences_name_the_errors_of_each_layer)
{
	assert_says(WW_EINVAL, "_config_default");
	assert_says(WW_EOVERFLOW, "WW_TIME_MAX");
	assert_says(WW_EOVERFLOW, "WW_CLOCK_MAX");
	assert_says(WW_EOVERFLOW, "WW_DRIVER_TIME_MAX");
	assert_says(WW_EBUSY, "made on it");
	assert_says(WW_ESYSTEM, "random numbers");
	assert_says(WW_EIO, "whether the server runs");
	assert_says(WW_EDENIED, "password");
	assert_says(WW_EAGAIN, "call again");
}
END_TEST

START_TEST(errors_are_negative_and_without_gaps)
{
	for (size_t i = 0; i < ERRORS; i++)
		ck_assert_int_eq(errors[i], -(int)i);
}
END_TEST

START_TEST(an_unknown_number_is_called_no_error)
{
	for (size_t i = 0; i < NO_ERRORS; i++) {
		const char *text = ww_strerror(no_errors[i]);

		ck_assert_ptr_nonnull(text);
		ck_assert_ptr_nonnull(strstr(text, "not an error of weekwheel"));
		for (size_t j = 0; j < ERRORS; j++)
			ck_assert_str_ne(text, ww_strerror(errors[j]));
	}
}
END_TEST

START_TEST(a_sentence_is_constant)
{
	for (size_t i = 0; i < ERRORS; i++)
		ck_assert_ptr_eq(ww_strerror(errors[i]), ww_strerror(errors[i]));
	ck_assert_ptr_eq(ww_strerror(INT_MIN), ww_strerror(INT_MAX));
}
END_TEST

START_TEST(the_version_matches_the_header)
{
	char numbers[32];

	ck_assert_str_eq(ww_version(), WW_VERSION);
	(void)snprintf(numbers, sizeof numbers, "%d.%d.%d", WW_VERSION_MAJOR, WW_VERSION_MINOR, WW_VERSION_PATCH);
	ck_assert_str_eq(ww_version(), numbers);
}
END_TEST

TEST_MAIN("error", every_error_has_its_own_sentence, sentences_name_the_errors_of_each_layer,
    errors_are_negative_and_without_gaps, an_unknown_number_is_called_no_error, a_sentence_is_constant,
    the_version_matches_the_header)
