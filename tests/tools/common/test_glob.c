/* Tests patterns beside a matcher that tries everything, and that none takes long. */
/* tier: quick */
#include <string.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/common/glob.h"

enum { ROUNDS = 200000, LENGTH = 10 };

static uint64_t state;

/* Each star stands for nothing or for one character more. Knows no classes. */
static int tries(const char *pattern, const char *text)
{
	if (*pattern == '*')
		return tries(pattern + 1, text) || (*text && tries(pattern, text + 1));
	if (!*pattern || !*text)
		return *pattern == *text;
	if (*pattern == '\\' && pattern[1])
		pattern++;
	else if (*pattern == '?')
		return tries(pattern + 1, text + 1);
	return *pattern == *text && tries(pattern + 1, text + 1);
}

static void draw(char text[LENGTH + 1], const char *of)
{
	size_t size = seed_below(&state, LENGTH + 1);

	for (size_t i = 0; i < size; i++)
		text[i] = of[seed_below(&state, strlen(of))];
	text[size] = 0;
}

START_TEST(as_one_that_tries_everything)
{
	int matched = 0;

	state = seed_of_run("test_glob");
	for (int i = 0; i < seed_rounds(ROUNDS); i++) {
		char pattern[LENGTH + 1];
		char text[LENGTH + 1];
		int is_match;

		draw(pattern, "aab**?\\");
		draw(text, "aab");
		is_match = glob_matches(pattern, strlen(pattern), text, strlen(text));
		ck_assert_msg(is_match == tries(pattern, text), "'%s' and '%s': %d", pattern, text, is_match);
		matched += is_match;
	}
	ck_assert_int_gt(matched, 0);
}
END_TEST

static int matches(const char *pattern, const char *text)
{
	return glob_matches(pattern, strlen(pattern), text, strlen(text));
}

START_TEST(classes)
{
	ck_assert(matches("[a-c]x", "bx"));
	ck_assert(!matches("[^a-c]x", "bx"));
	ck_assert(matches("*[c-a]", "xxb"));
	ck_assert(matches("*[\\]]*y", "x]zy"));
	ck_assert(!matches("*[ab]y", "xcy"));
	ck_assert(matches("[ab", "a"));
	ck_assert(matches("", ""));
	ck_assert(!matches("", "a"));
	ck_assert(!matches("a", ""));
	ck_assert(matches("**", ""));
}
END_TEST

enum { LONG = 60000 };

/* Each of these would take minutes if every star tried again. */
START_TEST(nothing_takes_long)
{
	static char text[LONG + 1];
	static char pattern[4001];

	memset(text, 'a', LONG);
	for (int i = 0; i < 2000; i++) {
		ck_assert(!matches("*a*a*a*a*b*", text));
		ck_assert(!matches("*a*a*a*a*b", text));
		ck_assert(matches("*a*a*a*a*", text));
	}
	memset(pattern, 'a', 4000);
	pattern[0] = '*';
	pattern[3999] = 'b';
	ck_assert(!matches(pattern, text));
	pattern[3998] = '?';
	for (int i = 0; i < 100; i++)
		ck_assert(!matches(pattern, text));
	pattern[3998] = '*';
	for (int i = 0; i < 100; i++)
		ck_assert(!matches(pattern, text));
	/* A class is read to its end each time, whether it matches or not. */
	memset(pattern, 'b', 4000);
	pattern[0] = '*';
	pattern[1] = '[';
	pattern[3999] = ']';
	for (int i = 0; i < 100; i++)
		ck_assert(!matches(pattern, text));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {as_one_that_tries_everything, classes, nothing_takes_long};

	return suite_run("sessiond/commands/glob", tests, sizeof tests / sizeof *tests);
}
