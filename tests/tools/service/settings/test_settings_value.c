/* Values of options by their kinds: what is stored, and what is refused and stores nothing. */
/* tier: quick */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/service/settings/settings.h"

struct things {
	SERVICE_SETTINGS;
	int flag;
	int word;
	const char *text;
	const char *secret;
	uint64_t wide;
	uint32_t narrow;
	uint32_t beside;
};

static struct things things;
static const char *list[3];
static size_t count;
static unsigned firsts;

#define AT(member) SETTING_AT(things, member)

static const char *const words[] = {"one", "two", "three", NULL};

static int take(void *settings, const struct given *word)
{
	(void)settings;
	firsts += (unsigned)word->is_first;
	return settings_add(word, list, &count, sizeof list / sizeof *list);
}

static int given(const struct setting *setting, const char *value)
{
	struct given given = {.setting = setting, .value = value};

	return settings_take(&things, &given);
}

static int number(enum setting_kind kind, const char *value)
{
	struct setting setting = {'x', "x", "N", "", NULL, kind, AT(wide), 1000, 2048000};

	things.wide = 7;
	return given(&setting, value);
}

START_TEST(each_number_has_its_range)
{
	ck_assert_int_eq(number(SETTING_WHOLE, "1000"), 0);
	ck_assert_uint_eq(things.wide, 1000);
	ck_assert_int_eq(number(SETTING_WHOLE, "2048000"), 0);
	ck_assert_int_eq(number(SETTING_WHOLE, "999"), -1);
	ck_assert_uint_eq(things.wide, 7);
	ck_assert_int_eq(number(SETTING_WHOLE, "2048001"), -1);
	ck_assert_int_eq(number(SETTING_WHOLE, "1K"), -1);
	ck_assert_int_eq(number(SETTING_BYTES, "2K"), 0);
	ck_assert_uint_eq(things.wide, 2048);
	ck_assert_int_eq(number(SETTING_BYTES, "2M"), -1);
	ck_assert_int_eq(number(SETTING_BYTES, "0"), -1);
	ck_assert_int_eq(number(SETTING_BYTES_OR_0, "0"), 0);
	ck_assert_uint_eq(things.wide, 0);
	ck_assert_int_eq(number(SETTING_BYTES_OR_0, "1"), -1);
	ck_assert_int_eq(number(SETTING_TIME, "2ms"), 0);
	ck_assert_uint_eq(things.wide, 2000000);
	ck_assert_int_eq(number(SETTING_TIME, "3ms"), -1);
	ck_assert_int_eq(number(SETTING_TIME, ""), -1);
	ck_assert_uint_eq(things.wide, 7);
}
END_TEST

START_TEST(a_number_of_32_bits_leaves_the_next_one)
{
	struct setting setting = {0, "x", "N", "", NULL, SETTING_WHOLE, AT(narrow), 0, UINT32_MAX};

	things.beside = 9;
	ck_assert_int_eq(given(&setting, "4294967295"), 0);
	ck_assert_uint_eq(things.narrow, UINT32_MAX);
	ck_assert_uint_eq(things.beside, 9);
}
END_TEST

START_TEST(a_word_is_one_of_a_list)
{
	struct setting setting = {0, "x", "WORD", "", NULL, SETTING_WORD, AT(word), .words = words};

	for (int i = 0; words[i]; i++) {
		ck_assert_int_eq(given(&setting, words[i]), 0);
		ck_assert_int_eq(things.word, i);
		ck_assert_int_eq(settings_word(words[i], words), i);
	}
	ck_assert_int_eq(given(&setting, "on"), -1);
	ck_assert_int_eq(given(&setting, "ONE"), -1);
	ck_assert_int_eq(things.word, 2);
}
END_TEST

START_TEST(texts_and_flags)
{
	struct setting text = {0, "text", "TEXT", "", NULL, SETTING_TEXT, AT(text)};
	struct setting flag = {0, "flag", NULL, "", NULL, SETTING_FLAG, AT(flag)};

	ck_assert_int_eq(given(&text, "some text"), 0);
	ck_assert_str_eq(things.text, "some text");
	ck_assert_int_eq(given(&text, ""), -1);
	ck_assert_str_eq(things.text, "some text");
	ck_assert_int_eq(given(&flag, NULL), 0);
	ck_assert_int_eq(things.flag, 1);
}
END_TEST

START_TEST(a_list_is_taken_word_by_word)
{
	struct setting setting = {0, "list", "WORD,...", "", NULL, SETTING_LIST, .read = take};

	ck_assert_int_eq(given(&setting, "a,b"), 0);
	ck_assert_int_eq(given(&setting, "c"), 0);
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(firsts, 2);
	ck_assert_str_eq(list[0], "a");
	ck_assert_str_eq(list[1], "b");
	ck_assert_str_eq(list[2], "c");
	/* There is no more room. */
	ck_assert_int_eq(given(&setting, "d"), -1);
	count = 0;
	ck_assert_int_eq(given(&setting, "a,,b"), -1);
	ck_assert_int_eq(given(&setting, ",a"), -1);
	ck_assert_int_eq(given(&setting, "a,"), -1);
}
END_TEST

START_TEST(a_secret_is_the_first_line_of_a_file)
{
	struct setting setting = {0, "secret", "FILE", "", NULL, SETTING_SECRET, AT(secret)};
	struct given whole = {.setting = &setting};
	char path[] = "/tmp/test_settings_XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(given(&setting, path), -1);
	ck_assert_int_eq(write(fd, "the secret\r\nmore\n", 17), 17);
	ck_assert_int_eq(given(&setting, path), 0);
	ck_assert_str_eq(things.secret, "the secret");
	whole.value = path;
	ck_assert_str_eq(settings_file(&whole, "text", 0), "the secret\r\nmore\n");
	/* It stays when the file goes. */
	ck_assert_int_eq(close(fd), 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_str_eq(things.secret, "the secret");
	ck_assert_int_eq(given(&setting, path), -1);
	ck_assert_ptr_null(settings_file(&whole, "text", 0));
}
END_TEST

TEST_MAIN("service/settings/value", each_number_has_its_range, a_number_of_32_bits_leaves_the_next_one,
    a_word_is_one_of_a_list, texts_and_flags, a_list_is_taken_word_by_word, a_secret_is_the_first_line_of_a_file)
