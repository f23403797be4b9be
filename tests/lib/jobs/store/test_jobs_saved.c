/* Copies of a store and what is saved of one: stores of their own; and errors, which leave everything as it was. */
/* tier: check */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/jobs/fixture.h"

static struct world world;
static char target[sizeof world.path + 16];

static void begin(void)
{
	world_make(&world, KIND_DISK);
	(void)snprintf(target, sizeof target, "%s.new", world.path);
}

static void finish(void)
{
	char command[sizeof target + 16];

	(void)snprintf(command, sizeof command, "rm -rf '%s'", target);
	ck_assert_int_eq(system(command), 0);
	world_end(&world);
}

static int is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* The tests see what changed by the times and sizes of all files. */
static void list_files(const char *folder, char *text, size_t size)
{
	char command[200];

	(void)snprintf(command, sizeof command, "cd '%s' && stat -c '%%n %%s %%y' * .", folder);
	FILE *pipe = popen(command, "r");
	ck_assert_ptr_nonnull(pipe);
	text[fread(text, 1, size - 1, pipe)] = 0;
	ck_assert_int_eq(pclose(pipe), 0);
}

static void put(void)
{
	struct ww_job_spec spec = spec_of("x");

	(void)put_job(&world, &spec);
}

/* Open the store at `path` in place of the other: what was leased is ready, and ids and tokens go on. */
static void expect_goes_on(const char *path, uint64_t token, uint64_t least_id)
{
	struct ww_jobs *first = world.jobs;
	struct ww_jobs_config config = world.config;
	struct ww_job_spec spec = spec_of("new");

	config.path = path;
	OK(ww_jobs_open(&world.jobs, &config));
	world_check(&world);
	struct ww_lease lease = reserve_job(&world);
	ck_assert_uint_eq(lease.id, 1);
	ck_assert_uint_gt(lease.token, token);
	ck_assert_uint_ge(put_job(&world, &spec), least_id);
	OK(ww_jobs_close(world.jobs));
	world.jobs = first;
}

START_TEST(a_copy_is_a_store_of_its_own)
{
	for (int is_made = 0; is_made < 2; is_made++) {
		begin();
		if (is_made)
			ck_assert_int_eq(mkdir(target, 0755), 0);
		put();
		put();
		struct ww_lease lease = reserve_job(&world);
		OK(ww_jobs_backup(world.path, target));
		expect_goes_on(target, lease.token, 3);
		/* The first one has its lease, and gives the same id. */
		OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
		struct ww_job_spec spec = spec_of("x");
		ck_assert_uint_eq(put_job(&world, &spec), 3);
		finish();
	}
}
END_TEST

START_TEST(a_copy_that_cannot_be_made_leaves_its_target)
{
	char inner[sizeof target + 16];
	char nothing[sizeof target + 16];

	begin();
	put();
	/* It is not empty. */
	ck_assert_int_eq(mkdir(target, 0755), 0);
	(void)snprintf(inner, sizeof inner, "%s/mine", target);
	ck_assert_int_eq(close(open(inner, O_WRONLY | O_CREAT, 0600)), 0);
	ck_assert_int_eq(ww_jobs_backup(world.path, target), WW_EINUSE);
	ck_assert(is_there(inner));
	/* There is no store. */
	(void)snprintf(nothing, sizeof nothing, "%s/nothing", target);
	ck_assert_int_eq(mkdir(nothing, 0755), 0);
	(void)snprintf(inner, sizeof inner, "%s/to", target);
	ck_assert_int_eq(ww_jobs_backup(nothing, inner), WW_EDENIED);
	ck_assert_int_eq(ww_jobs_backup("/nowhere/at/all", inner), WW_EDENIED);
	ck_assert(!is_there(inner));
	/* A folder that was there stays. */
	ck_assert_int_eq(mkdir(inner, 0755), 0);
	ck_assert_int_eq(ww_jobs_backup(nothing, inner), WW_EDENIED);
	ck_assert_int_eq(rmdir(inner), 0);
	/* It would be copied, too. */
	(void)snprintf(inner, sizeof inner, "%s/copy", world.path);
	ck_assert_int_eq(ww_jobs_backup(world.path, inner), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_backup(world.path, world.path), WW_EINVAL);
	ck_assert(!is_there(inner));
	put();
	finish();
}
END_TEST

START_TEST(what_is_saved_has_its_ids_and_goes_on)
{
	char before[2000], after[2000];
	uint64_t saved = 0;

	begin();
	put();
	put();
	/* Tokens grow with each opening. */
	for (int i = 0; i < 5; i++)
		world_reopen(&world);
	struct ww_lease lease = reserve_job(&world);
	struct ww_job_ref second = {.id = 2};
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &second), 1);
	OK(ww_jobs_close(world.jobs));
	list_files(world.path, before, sizeof before);
	struct ww_jobs_config config = world.config;
	config.path = target;
	OK(ww_jobs_recover(world.path, &config, &saved, NULL, NULL));
	ck_assert_uint_eq(saved, 1);
	list_files(world.path, after, sizeof after);
	ck_assert_str_eq(after, before);
	/* An id that was given is not given again, although its job is gone. */
	expect_goes_on(target, lease.token, 3);
	OK(ww_jobs_open(&world.jobs, &world.config));
	finish();
}
END_TEST

static void count_problem(const char *problem, void *context)
{
	(void)problem;
	++*(int *)context;
}

/* Nobody knows what else has gone. */
START_TEST(what_is_saved_of_a_damaged_store_leaves_room_for_ids_that_were_given)
{
	char command[sizeof target * 2];
	uint64_t saved = 0;
	int problems = 0;

	begin();
	put();
	for (int i = 0; i < 5; i++)
		world_reopen(&world);
	struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_close(world.jobs));
	(void)snprintf(command, sizeof command, "rm '%s'/journal.*", world.path);
	ck_assert_int_eq(system(command), 0);
	struct ww_jobs_config config = world.config;
	config.path = target;
	OK(ww_jobs_recover(world.path, &config, &saved, count_problem, &problems));
	ck_assert_uint_eq(saved, 1);
	ck_assert_int_gt(problems, 0);
	expect_goes_on(target, lease.token, 1000002);
	(void)snprintf(command, sizeof command, "rm '%s'/*", world.path);
	ck_assert_int_eq(system(command), 0);
	OK(ww_jobs_open(&world.jobs, &world.config));
	finish();
}
END_TEST

/* Of all damage, this would let tokens begin anew. */
START_TEST(tokens_grow_although_nobody_knows_how_often_the_store_was_opened)
{
	uint64_t saved = 0;

	begin();
	put();
	for (int i = 0; i < 5; i++)
		world_reopen(&world);
	struct ww_lease lease = reserve_job(&world);
	const struct store *store = &local_of(world.jobs)->store;
	OK(store->ops->begin(store->self));
	OK(store->ops->remove(store->self, STORE_META, (struct store_bytes){"meta", 4}));
	OK(store->ops->commit(store->self));
	OK(ww_jobs_close(world.jobs));
	ck_assert_int_eq(ww_jobs_open(&world.jobs, &world.config), WW_ECORRUPT);
	struct ww_jobs_config config = world.config;
	config.path = target;
	OK(ww_jobs_recover(world.path, &config, &saved, NULL, NULL));
	ck_assert_uint_eq(saved, 1);
	expect_goes_on(target, lease.token, 2);
	char command[sizeof target * 2];
	(void)snprintf(command, sizeof command, "rm '%s'/*", world.path);
	ck_assert_int_eq(system(command), 0);
	OK(ww_jobs_open(&world.jobs, &world.config));
	finish();
}
END_TEST

START_TEST(what_cannot_be_saved_makes_nothing)
{
	struct ww_jobs_config config, odd;
	struct ww_jobs *other;
	uint64_t saved = 0;

	begin();
	put();
	config = world.config;
	config.path = target;
	/* The one is open, or the other. */
	ck_assert_int_eq(ww_jobs_recover(world.path, &config, &saved, NULL, NULL), WW_EINUSE);
	ck_assert(!is_there(target));
	OK(ww_jobs_close(world.jobs));
	OK(ww_jobs_open(&other, &config));
	ck_assert_int_eq(ww_jobs_recover(world.path, &config, &saved, NULL, NULL), WW_EINUSE);
	/* It has jobs. */
	struct ww_job_spec spec = spec_of("x");
	ck_assert_int_eq(ww_jobs_put(other, &spec, NULL, NULL), WW_PUT_NEW);
	OK(ww_jobs_close(other));
	ck_assert_int_eq(ww_jobs_recover(world.path, &config, &saved, NULL, NULL), WW_EINVAL);
	for (unsigned flag = WW_JOBS_MEMORY; flag <= WW_JOBS_READONLY; flag++) {
		odd = config;
		odd.flags = flag;
		ck_assert_int_eq(ww_jobs_recover(world.path, &odd, &saved, NULL, NULL), WW_EINVAL);
	}
	/* There is nothing to save. */
	(void)strcat(target, "er");
	ck_assert_int_eq(ww_jobs_recover("/nowhere/at/all", &config, &saved, NULL, NULL), WW_EDENIED);
	ck_assert(!is_there(target));
	target[strlen(target) - 2] = 0;
	OK(ww_jobs_open(&world.jobs, &world.config));
	finish();
}
END_TEST

TEST_MAIN("jobs/saved", a_copy_is_a_store_of_its_own, a_copy_that_cannot_be_made_leaves_its_target,
    what_is_saved_has_its_ids_and_goes_on, what_is_saved_of_a_damaged_store_leaves_room_for_ids_that_were_given,
    tokens_grow_although_nobody_knows_how_often_the_store_was_opened, what_cannot_be_saved_makes_nothing)
