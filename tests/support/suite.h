#ifndef TESTS_SUPPORT_SUITE_H
#define TESTS_SUPPORT_SUITE_H

/*
 * The frame of every test program: TEST_MAIN("wheel/cancel", this_test, that_test) is its main function. Each test is a
 * case of its own: CK_RUN_CASE=this_test runs it alone, and CK_FORK=no runs it in the same process, for a debugger.
 *
 * suite_run_kinds runs each test once for each of several kinds of a thing. The test finds the kind's index in _i, and a
 * failure shows the kind's name after the test's. setup makes what tests share: it runs before each test, in the process
 * that all tests are forked from. suite_run_with has a setup and no kinds. NULL stands for no setup.
 */

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Check writes the place of each assertion that holds to a file, which takes most of the time of a test that asserts
 * millions of times, and is not meant for several threads. These assertions only speak when they fail.
 */
#undef ck_assert_msg
#define ck_assert_msg(condition, ...)                                                                                  \
	((condition) ? (void)0                                                                                         \
	             : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #condition "' failed", __VA_ARGS__))

static inline TCase *suite_add(Suite *suite, const TTest *test)
{
	TCase *one = tcase_create(test->name);

	tcase_set_timeout(one, 0); /* no timeout: a slow machine must not fail a test */
	suite_add_tcase(suite, one);
	return one;
}

static inline int suite_run_all(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int suite_run_with(const char *name, const TTest *const tests[], size_t count, void (*setup)(void))
{
	Suite *suite = suite_create(name);

	for (size_t i = 0; i < count; i++) {
		TCase *one = suite_add(suite, tests[i]);
		tcase_add_unchecked_fixture(one, setup, NULL);
		tcase_add_test(one, tests[i]);
	}
	return suite_run_all(suite);
}

static inline int suite_run(const char *name, const TTest *const tests[], size_t count)
{
	return suite_run_with(name, tests, count, NULL);
}

struct suite_test {
	TTest test;
	char name[160];
};

static inline int suite_run_kinds(const char *name, const TTest *const tests[], size_t count,
    const char *(*kind)(size_t i), size_t kinds, void (*setup)(void))
{
	struct suite_test *named = calloc(count * kinds, sizeof *named);
	Suite *suite = suite_create(name);
	int result;

	if (!named)
		return EXIT_FAILURE;
	for (size_t i = 0; i < count; i++) {
		TCase *one = suite_add(suite, tests[i]);
		tcase_add_unchecked_fixture(one, setup, NULL);
		for (size_t k = 0; k < kinds; k++) {
			struct suite_test *test = &named[i * kinds + k];
			test->test = *tests[i];
			test->test.name = test->name;
			(void)snprintf(test->name, sizeof test->name, "%s/%s", tests[i]->name, kind(k));
			tcase_add_loop_test(one, &test->test, (int)k, (int)k + 1);
		}
	}
	result = suite_run_all(suite);
	free(named);
	return result;
}

#define TEST_MAIN(name, ...)                                                                                           \
	int main(void)                                                                                                 \
	{                                                                                                              \
		const TTest *const tests[] = {__VA_ARGS__};                                                            \
		return suite_run(name, tests, sizeof tests / sizeof tests[0]);                                         \
	}

/* A call that must answer WW_OK. */
#define OK(call) ck_assert_int_eq((call), WW_OK)

#endif
