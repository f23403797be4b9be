#ifndef TESTS_SUPPORT_SUITE_H
#define TESTS_SUPPORT_SUITE_H

/*
 * The main function of a test program: TEST_MAIN("wheel/cancel", this_test, that_test). Each test is a case of its own,
 * so that CK_RUN_CASE=this_test runs it alone; add CK_FORK=no to run it under a debugger.
 */

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

static inline int suite_run(const char *name, const TTest *const tests[], size_t count)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	for (size_t i = 0; i < count; i++) {
		TCase *one = tcase_create(tests[i]->name);
		tcase_set_timeout(one, 0); /* how long a test takes is not what it tests */
		tcase_add_test(one, tests[i]);
		suite_add_tcase(suite, one);
	}
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
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
