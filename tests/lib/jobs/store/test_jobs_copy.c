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

static ssize_t overtake(int fd, void *data, size_t size, off_t offset)
{
	char path[512];

	system_path(fd, NULL, path, sizeof path);
	if (overtakes && offset == SYSTEM_HERE && strstr(path, "/index.db-wal")) {
		overtakes = 0;
		overtaken++;
		write_head();
	}
	return system_real.read(fd, data, size, offset);
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

TEST_MAIN("jobs/copy", what_a_server_writes_behind_the_last_commit_is_no_damage_of_the_copy)
