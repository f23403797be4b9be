/* Flipped bits and cut files: each is found, none ends the process, and what is sound is saved. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/jobs/store/pages.h"
#include "tests/lib/jobs/fixture.h"

static struct world world;

static const char *path_of(const char *file)
{
	static char name[128];

	(void)snprintf(name, sizeof name, "%s/%s", world.path, file);
	return name;
}

static void flip(const char *file, off_t at, int bit)
{
	int fd = open(path_of(file), O_RDWR);
	unsigned char byte;

	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= (unsigned char)(1 << bit);
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static int opens(void)
{
	struct ww_jobs *jobs = NULL;
	int error = ww_jobs_open(&jobs, &world.config);

	if (!error)
		OK(ww_jobs_close(jobs));
	return error;
}

START_TEST(each_page_of_the_index_has_a_sum)
{
	struct ww_job_spec spec = spec_of("x");
	unsigned char page[PAGES_SIZE];
	uint32_t number = 0;

	world_make(&world, KIND_DISK);
	for (int i = 0; i < 1000; i++)
		(void)put_job(&world, &spec);
	OK(ww_jobs_close(world.jobs));
	int fd = open(path_of("index.db"), O_RDONLY);
	while (read(fd, page, sizeof page) == sizeof page) {
		ck_assert(ww_pages_is_sound(page, ++number));
		ck_assert(number == 2 || !ww_pages_is_sound(page, 2));
		page[number * 40 % PAGES_SIZE] ^= 1;
		ck_assert(!ww_pages_is_sound(page, number));
	}
	close(fd);
	ck_assert_uint_ge(number, 10);
	/* A flip that SQLite would not notice: the file's user version, which is 0. */
	flip("index.db", 63, 0);
	ck_assert_int_eq(opens(), WW_ECORRUPT);
	flip("index.db", 63, 0);
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}
END_TEST

TEST_MAIN("jobs/damage", each_page_of_the_index_has_a_sum)
