/* A server of a test describes its options: defaults, what was given, needs, a configuration file, help. */
/* tier: quick */
#include <string.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/service/settings/settings.h"

enum { FINE = 0, ENDS = 1, WRONG = 3 };

struct things {
	SERVICE_SETTINGS;
	uint64_t size;
	uint64_t time;
	const char *name;
	int flag;
	int checks;
};

#define AT(member) SETTING_AT(things, member)

static const struct setting table[] = {
    {'s', "size", "BYTES", "a size (%s), as one writes it", "4K", SETTING_BYTES, AT(size), 1, 1 << 20},
    {0, "time", "TIME", "a time", "3s", SETTING_TIME, AT(time), .most = UINT64_MAX, .needs = "name", .or_one = "flag"},
    {'n', "name", "NAME", "a name", NULL, SETTING_TEXT, AT(name)},
    {'f', "flag", NULL, "a flag", NULL, SETTING_FLAG, AT(flag)},
};

static const struct setting here[] = {
    {.name = "listen", .preset = "127.0.0.1:7"},
    {.name = "max-buffers", .preset = "2M"},
    {.name = "sync", .preset = "system", .needs = "name", .why = "is for a name"},
    {.name = NULL},
};

static int check(void *settings)
{
	return ++((struct things *)settings)->checks && settings_has(settings, "size") &&
	               ((struct things *)settings)->size == 1
	           ? settings_refuse("size", "is too small here")
	           : 0;
}

static const struct settings_server server = {.usage = "Usage: test\n",
    .example = "Example\n",
    .option = "--flag",
    .passes = "tests",
    .table = table,
    .count = sizeof table / sizeof *table,
    .here = here,
    .check = check};

static const char *const without[] = {"clock", "listen", NULL};
static const struct setting http[] = {{.name = "http", .help = "numbers"}, {.name = NULL}};
static const struct settings_server other = {.usage = "Usage: other\n",
    .example = "Example\n",
    .option = "--flag",
    .operand = "name",
    .passes = "tests",
    .table = table,
    .count = sizeof table / sizeof *table,
    .here = http,
    .without = without,
    .check = check};

static const struct settings_server *reading = &server;
static struct things things;

static int read_all(const char *const *words)
{
	static char text[400];
	char *arguments[8] = {NULL};
	char *at = text;

	for (int i = 0; words[i]; i++) {
		arguments[i] = strcpy(at, words[i]);
		at += strlen(words[i]) + 1;
	}
	things = (struct things){0};
	return service_settings_read(reading, &things, arguments);
}

#define READ(...) read_all((const char *const[]){__VA_ARGS__, NULL})

static int read_file(const char *lines)
{
	char path[] = "/tmp/test_settings_XXXXXX";
	int fd = mkstemp(path);
	int result;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, lines, strlen(lines)), (ssize_t)strlen(lines));
	ck_assert_int_eq(close(fd), 0);
	result = READ("--config", path);
	ck_assert_int_eq(unlink(path), 0);
	return result;
}

START_TEST(defaults_are_those_of_the_tables)
{
	ck_assert_int_eq(READ(NULL), FINE);
	ck_assert_uint_eq(things.size, 4096);
	ck_assert_uint_eq(things.time, UINT64_C(3000000000));
	ck_assert_ptr_null(things.name);
	ck_assert_uint_eq(things.socket_mode, 0600);
	ck_assert_uint_eq(things.max_buffers, 2 << 20);
	ck_assert_int_eq(things.sync, SETTINGS_SYSTEM);
	/* That of an option that can come several times is for the help alone. */
	ck_assert_uint_eq(things.listen_count, 0);
	ck_assert_uint_eq(things.given_count, 0);
	ck_assert_int_eq(things.checks, 1);
}
END_TEST

START_TEST(what_was_given_is_known)
{
	ck_assert_int_eq(READ("-s", "8K", "--name=a", "-f", "--listen", "127.0.0.1:1", "--listen=127.0.0.1:2"), FINE);
	ck_assert_uint_eq(things.size, 8192);
	ck_assert_int_eq(things.flag, 1);
	ck_assert_str_eq(things.name, "a");
	ck_assert_uint_eq(things.listen_count, 2);
	ck_assert_uint_eq(things.given_count, 4);
	ck_assert_int_eq(settings_has(&things, "size"), 1);
	ck_assert_int_eq(settings_has(&things, "siz"), 0);
	ck_assert_int_eq(settings_has(&things, "time"), 0);
	ck_assert_int_eq(settings_has(&things, "listen"), 1);
	settings_give(&things, "time");
	ck_assert_int_eq(settings_has(&things, "time"), 1);
}
END_TEST

START_TEST(what_is_wrong_is_refused)
{
	ck_assert_int_eq(READ("--size=0"), WRONG);
	ck_assert_int_eq(things.checks, 0);
	ck_assert_int_eq(READ("--size=1"), WRONG);
	ck_assert_int_eq(things.checks, 1);
	ck_assert_int_eq(READ("-s", "2", "-s", "3"), WRONG);
	ck_assert_int_eq(READ("operand"), WRONG);
	ck_assert_int_eq(READ("--nam", "a"), WRONG);
	ck_assert_int_eq(READ("--name"), WRONG);
	ck_assert_int_eq(READ("--name="), WRONG);
}
END_TEST

START_TEST(an_option_may_need_another)
{
	ck_assert_int_eq(READ("--time", "1s"), WRONG);
	ck_assert_int_eq(READ("--time", "1s", "--flag"), FINE);
	ck_assert_int_eq(READ("--name", "a", "--time", "1s"), FINE);
	/* What this server says of one that every server has. */
	ck_assert_int_eq(READ("--sync", "always"), WRONG);
	ck_assert_int_eq(READ("--sync", "always", "--name", "a"), FINE);
	ck_assert_int_eq(READ("--socket-group", "a"), WRONG);
}
END_TEST

START_TEST(a_file_has_an_option_a_line)
{
	ck_assert_int_eq(read_file("# a comment\n\n  size = 5K\t\r\nflag\nname=a = b"), FINE);
	ck_assert_uint_eq(things.size, 5120);
	ck_assert_int_eq(things.flag, 1);
	ck_assert_str_eq(things.name, "a = b");
	ck_assert_int_eq(settings_has(&things, "size"), 1);
	ck_assert_int_eq(read_file("size = 0\n"), WRONG);
	ck_assert_int_eq(read_file("flag = 1\n"), WRONG);
	ck_assert_int_eq(read_file("--flag\n"), WRONG);
	ck_assert_int_eq(read_file("config = x\n"), WRONG);
	ck_assert_int_eq(read_file("size = 4K\nname = a\nsize = 5K\n"), WRONG);
	ck_assert_int_eq(read_file("listen = 127.0.0.1:1\nlisten = 127.0.0.1:2\n"), FINE);
	ck_assert_int_eq(read_file("time = 1s\n"), WRONG);
	ck_assert_int_eq(read_file("version\n"), ENDS);
}
END_TEST

START_TEST(a_word_alone_is_wrong_or_the_value_of_an_option)
{
	ck_assert_int_eq(READ("word"), WRONG);
	reading = &other;
	ck_assert_int_eq(READ("--flag", "word"), FINE);
	ck_assert_str_eq(things.name, "word");
	ck_assert_int_eq(READ("word", "--time", "1s"), FINE);
	ck_assert_int_eq(READ("word", "another"), WRONG);
	ck_assert_int_eq(READ("--name", "word", "another"), WRONG);
	reading = &server;
}
END_TEST

START_TEST(a_server_may_lack_what_others_have)
{
	ck_assert_int_eq(READ("--clock", "virtual"), FINE);
	reading = &other;
	ck_assert_int_eq(READ("--clock", "virtual"), WRONG);
	ck_assert_int_eq(READ("--listen", "127.0.0.1:1"), WRONG);
	ck_assert_int_eq(READ("--log-level", "info"), FINE);
	ck_assert_uint_eq(things.listen_count, 0);
	reading = &server;
}
END_TEST

/* Return what --help writes. */
static const char *help(void)
{
	static char text[8000];
	char path[] = "/tmp/test_settings_XXXXXX";
	int fd = mkstemp(path);

	memset(text, 0, sizeof text);
	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_nonnull(freopen(path, "w", stdout));
	ck_assert_int_eq(READ("--help"), ENDS);
	ck_assert_int_eq(fflush(stdout), 0);
	ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
	ck_assert_int_eq(unlink(path), 0);
	close(fd);
	return text;
}

START_TEST(help_shows_each_option_and_its_default)
{
	const char *text = help();

	ck_assert_ptr_eq(strstr(text, "Usage: test\n\nOptions:\n"), text);
	ck_assert_ptr_nonnull(strstr(text, "a size (4K), as one writes it\n"));
	ck_assert_ptr_nonnull(strstr(text, "where to listen (127.0.0.1:7);"));
	ck_assert_ptr_nonnull(strstr(text, "such as 0660 (0600)\n"));
	ck_assert_ptr_null(strstr(text, "%s"));
	ck_assert_str_eq(strstr(text, "show this help"), "show this help\n\nExample\n");
	ck_assert_ptr_null(strstr(text, "numbers"));
	reading = &other;
	text = help();
	ck_assert_ptr_nonnull(strstr(text, "numbers\n"));
	ck_assert_ptr_null(strstr(text, "--listen"));
	reading = &server;
}
END_TEST

TEST_MAIN("service/settings/read", defaults_are_those_of_the_tables, what_was_given_is_known, what_is_wrong_is_refused,
    an_option_may_need_another, a_file_has_an_option_a_line, a_word_alone_is_wrong_or_the_value_of_an_option,
    a_server_may_lack_what_others_have, help_shows_each_option_and_its_default)
