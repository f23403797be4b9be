#ifndef TESTS_SUPPORT_SUITE_H
#define TESTS_SUPPORT_SUITE_H

/*
 * The main function of a test program: TEST_MAIN("wheel/cancel", this_test, that_test). Each test is a case of its own,
 * so that CK_RUN_CASE=this_test runs it alone; add CK_FORK=no to run it under a debugger.
 *
 * What is to hold of several kinds of a thing is tested with each: suite_run_kinds runs a test once a kind, with the
 * kind's index as _i, and a failure bears the kind's name behind the test's. What tests share is made by setup, which
 * runs before each test in the process that all are forked from; NULL: nothing. suite_run_with has one without kinds.
 */

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static inline TCase *suite_add(Suite *suite, const TTest *test)
{
	TCase *one = tcase_create(test->name);

	tcase_set_timeout(one, 0); /* how long a test takes is not what it tests */
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
