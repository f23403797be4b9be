/* The folder of --data: made if it is new, taken by one program at a time, and refused with a message. */
/* tier: quick */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/read_only.h"
#include "tests/support/suite.h"
#include "tools/common/folder.h"

static char path[] = "/tmp/test_folder_XXXXXX";
static char data[64];
static char text[4096];

static void begin(void)
{
	strcpy(path, "/tmp/test_folder_XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(path));
	(void)snprintf(data, sizeof data, "%s/data", path);
}

static void finish(void)
{
	(void)rmdir(data);
	ck_assert_int_eq(rmdir(path), 0);
}

static void refuses(const char *folder, const char *reason)
{
	FILE *saved = stderr;

	memset(text, 0, sizeof text);
	stderr = fmemopen(text, sizeof text, "w");
	ck_assert_ptr_nonnull(stderr);
	setvbuf(stderr, NULL, _IONBF, 0);
	ck_assert_int_eq(folder_take(folder), -1);
	fclose(stderr);
	stderr = saved;
	ck_assert_ptr_nonnull(strstr(text, reason));
}

START_TEST(a_folder_is_made_and_belongs_to_one_program)
{
	struct stat status;
	int folder;

	begin();
	folder = folder_take(data);
	ck_assert_int_ge(folder, 0);
	ck_assert_int_eq(stat(data, &status), 0);
	ck_assert_uint_eq(status.st_mode & 0777, 0700);
	refuses(data, "another server has this folder");
	close(folder);
	folder = folder_take(data);
	ck_assert_int_ge(folder, 0);
	close(folder);
	finish();
}
END_TEST

START_TEST(what_cannot_be_a_folder_is_refused)
{
	begin();
	(void)strcat(data, "/deeper");
	refuses(data, "No such file or directory");
	refuses("/dev/null", "Not a directory");
	*strrchr(data, '/') = 0;
	finish();
}
END_TEST

START_TEST(a_read_only_file_system_is_named_with_what_to_do)
{
	begin();
	ck_assert_int_eq(mkdir(data, 0700), 0);
	if (read_only_at(data)) {
		refuses(data, "mounted read-only: mount it for writing");
		(void)strcat(data, "/new");
		refuses(data, "mounted read-only: mount it for writing");
		*strrchr(data, '/') = 0;
		ck_assert_int_eq(umount(data), 0);
	}
	finish();
}
END_TEST

TEST_MAIN("common/folder", a_folder_is_made_and_belongs_to_one_program, what_cannot_be_a_folder_is_refused,
    a_read_only_file_system_is_named_with_what_to_do)
