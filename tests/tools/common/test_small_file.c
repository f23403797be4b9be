/* Files that options name: what is read of files, pipes and devices, and what is refused. */
/* tier: quick */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/common/small_file.h"

static struct small_file file;
static char why[SMALL_FILE_WHY];

static char path[] = "/tmp/test_small_file_XXXXXX";

static void write_file(const char *text, size_t size, off_t length)
{
	int fd;

	strcpy(path, "/tmp/test_small_file_XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
	if (length)
		ck_assert_int_eq(ftruncate(fd, length), 0);
	close(fd);
}

static void reads(const char *name, enum small_file_end end, int wait_ms, const char *expected)
{
	ck_assert_msg(small_file_read(&file, name, end, wait_ms, why) == 0, "%s", why);
	ck_assert_str_eq(file.text, expected);
	ck_assert_uint_eq(file.size, strlen(expected));
	free(file.text);
}

static void refuses(const char *name, enum small_file_end end, int wait_ms, const char *reason)
{
	ck_assert_int_eq(small_file_read(&file, name, end, wait_ms, why), -1);
	ck_assert_ptr_nonnull(strstr(why, reason));
	ck_assert_ptr_null(file.text);
}

START_TEST(a_file_is_read_whole_or_to_its_first_line)
{
	static const char text[] = "one\r\ntwo\n";

	write_file(text, sizeof text - 1, 0);
	reads(path, SMALL_FILE_WHOLE, 0, text);
	ck_assert_uint_eq(file.mode, 0600);
	reads(path, SMALL_FILE_LINE, 0, "one");
	ck_assert_int_eq(small_file_check(path, why), 0);
	(void)unlink(path);
	write_file("no end", 6, 0);
	reads(path, SMALL_FILE_WHOLE, 0, "no end");
	reads(path, SMALL_FILE_LINE, 0, "no end");
	(void)unlink(path);
	write_file("", 0, 0);
	reads(path, SMALL_FILE_WHOLE, 0, "");
	reads(path, SMALL_FILE_LINE, 0, "");
	(void)unlink(path);
	refuses(path, SMALL_FILE_WHOLE, 0, "No such file");
	ck_assert_int_eq(small_file_check(path, why), -1);
}
END_TEST

START_TEST(a_file_is_small_and_text)
{
	char most[SMALL_FILE_MAX + 1];

	memset(most, 'x', sizeof most);
	most[SMALL_FILE_MAX] = 0;
	write_file(most, SMALL_FILE_MAX, 0);
	reads(path, SMALL_FILE_WHOLE, 0, most);
	(void)unlink(path);
	write_file("small\n", 6, SMALL_FILE_MAX + 1);
	refuses(path, SMALL_FILE_WHOLE, 0, "it has more than 1 MiB");
	refuses(path, SMALL_FILE_LINE, 0, "it has more than 1 MiB");
	ck_assert_int_eq(small_file_check(path, why), -1);
	(void)unlink(path);
	write_file("a\0b\n", 4, 0);
	refuses(path, SMALL_FILE_WHOLE, 0, "byte 0");
	refuses(path, SMALL_FILE_LINE, 0, "byte 0");
	(void)unlink(path);
}
END_TEST

START_TEST(what_has_no_end_is_refused)
{
	refuses("/dev/zero", SMALL_FILE_WHOLE, 1000, "it has more than 1 MiB");
	refuses("/dev/zero", SMALL_FILE_LINE, 1000, "it has more than 1 MiB");
	refuses("/", SMALL_FILE_WHOLE, 1000, "it is a directory");
	reads("/dev/null", SMALL_FILE_WHOLE, 1000, "");
	refuses("/dev/null", SMALL_FILE_WHOLE, 0, "it is not a file, and could not be read again");
	ck_assert_int_eq(small_file_check("/", why), -1);
	ck_assert_int_eq(small_file_check("/dev/null", why), -1);
}
END_TEST

/* As a shell names the end of <(...). */
static int open_pipe(char name[32])
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	(void)snprintf(name, 32, "/dev/fd/%d", ends[0]);
	return ends[1];
}

START_TEST(a_pipe_is_read_to_its_end)
{
	char name[32];
	int writer = open_pipe(name);

	ck_assert_int_eq(write(writer, "one\ntwo\n", 8), 8);
	refuses(name, SMALL_FILE_WHOLE, 0, "it is not a file");
	close(writer);
	reads(name, SMALL_FILE_WHOLE, 1000, "one\ntwo\n");
	ck_assert_uint_eq(file.mode, 0);
	/* A line is enough while the writer keeps the pipe open. */
	writer = open_pipe(name);
	ck_assert_int_eq(write(writer, "one\n", 4), 4);
	reads(name, SMALL_FILE_LINE, 1000, "one");
	ck_assert_int_eq(write(writer, "part", 4), 4);
	refuses(name, SMALL_FILE_LINE, 1, "did not come to its end in time");
	close(writer);
}
END_TEST

START_TEST(nothing_waits_for_a_writer_for_ever)
{
	strcpy(path, "/tmp/test_small_file_XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(path));
	ck_assert_int_eq(chdir(path), 0);
	ck_assert_int_eq(mkfifo("pipe", 0600), 0);
	refuses("pipe", SMALL_FILE_WHOLE, 1, "did not come to its end in time");
	refuses("pipe", SMALL_FILE_LINE, 1, "did not come to its end in time");
	refuses("pipe", SMALL_FILE_WHOLE, 0, "it is not a file");
	ck_assert_int_eq(small_file_check("pipe", why), -1);
	(void)unlink("pipe");
	ck_assert_int_eq(chdir("/"), 0);
	(void)rmdir(path);
}
END_TEST

TEST_MAIN("common/small_file", a_file_is_read_whole_or_to_its_first_line, a_file_is_small_and_text,
    what_has_no_end_is_refused, a_pipe_is_read_to_its_end, nothing_waits_for_a_writer_for_ever)
