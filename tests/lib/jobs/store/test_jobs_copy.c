/* A copy of a store whose server writes in the middle of it. */
/* tier: check */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/system/system.h"

static struct world world;

/* ---- A server that overtakes the copy: as soon as the log is read, it writes the head of one more commit */

enum { SALT_AT = 16, FRAME_HEAD = 24 };

static unsigned overtaken;
static int overtakes;

static void write_head(void)
{
	/* The page, and how many pages the index has: only a commit's frame says it. SQLite writes the page afterwards. */
	unsigned char head[FRAME_HEAD] = {[3] = 1, [7] = 9};
	char path[sizeof world.path + 16];
	struct stat status;

	(void)snprintf(path, sizeof path, "%s/index.db-wal", world.path);
	int fd = open(path, O_RDWR);
	ck_assert_int_eq(pread(fd, head + 8, 8, SALT_AT), 8);
	ck_assert_int_eq(fstat(fd, &status), 0);
	ck_assert_int_eq(pwrite(fd, head, sizeof head, status.st_size), sizeof head);
	close(fd);
}

/* A server that zeroes a part of its journal before a copy has come to it, and writes there again: in so many reads. */
static int zeroed;

static int is_journal(const char *path)
{
	const char *at = strstr(path, world.path);

	return at && strncmp(at + strlen(world.path), "/journal.", 9) == 0;
}

static ssize_t overtake(int fd, void *data, size_t size, off_t offset)
{
	char path[512];
	ssize_t got;

	system_path(fd, NULL, path, sizeof path);
	if (overtakes && offset == SYSTEM_HERE && strstr(path, "/index.db-wal")) {
		overtakes = 0;
		overtaken++;
		write_head();
	}
	got = system_real.read(fd, data, size, offset);
	if (zeroed && offset == 0 && got > 2048 && is_journal(path)) {
		zeroed--;
		memset((char *)data + 1024, 0, 512);
	}
	return got;
}

const struct system_policy system_policy = {.plays = {.read = overtake}};

/* ---- */

START_TEST(what_a_server_writes_behind_the_last_commit_is_no_damage_of_the_copy)
{
	char target[sizeof world.path];
	struct ww_job_spec spec = spec_of("x");
	struct world copy = {.jobs = NULL};

	world_make(&world, KIND_DISK);
	for (int i = 0; i < 100; i++)
		(void)put_job(&world, &spec);
	(void)snprintf(target, sizeof target, "%.50s.new", world.path);
	overtakes = 1;
	OK(ww_jobs_backup(world.path, target));
	ck_assert_uint_eq(overtaken, 1);
	ck_assert_int_eq(ww_jobs_examine(target, NULL, NULL), 0);
	(void)snprintf(copy.path, sizeof copy.path, "%s", target);
	world.kind->end(&copy);
	world_end(&world);
}
END_TEST

/* A page is read twice. A gap before what is stable is no record that a power failure took. */
START_TEST(damage_is_what_two_copies_have)
{
	char target[sizeof world.path];
	struct ww_job_spec spec = spec_of("x");
	struct world copy = {.jobs = NULL};

	world_make(&world, KIND_DISK);
	world.config.sync = WW_SYNC_ALWAYS;
	world_reopen(&world);
	for (int i = 0; i < 100; i++)
		(void)put_job(&world, &spec);
	(void)snprintf(target, sizeof target, "%.50s.new", world.path);
	zeroed = 4;
	ck_assert_int_eq(ww_jobs_backup(world.path, target), WW_ECORRUPT);
	ck_assert_int_eq(zeroed, 0);
	ck_assert_int_ne(access(target, F_OK), 0);
	zeroed = 2;
	OK(ww_jobs_backup(world.path, target));
	ck_assert_int_eq(zeroed, 0);
	ck_assert_int_eq(ww_jobs_examine(target, NULL, NULL), 0);
	(void)snprintf(copy.path, sizeof copy.path, "%s", target);
	world.kind->end(&copy);
	world_end(&world);
}
END_TEST

TEST_MAIN(
    "jobs/copy", what_a_server_writes_behind_the_last_commit_is_no_damage_of_the_copy, damage_is_what_two_copies_have)
