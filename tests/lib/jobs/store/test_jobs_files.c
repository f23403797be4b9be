/* Stores that cannot be opened, are damaged, or run out of disk. */
/* tier: check */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/read_only.h"
#include "tests/support/seed.h"

static struct world world;

static int opens(void)
{
	struct ww_jobs *jobs = NULL;
	int error = ww_jobs_open(&jobs, &world.config);

	if (!error)
		OK(ww_jobs_close(jobs));
	return error;
}

static const char *data_file(void)
{
	static char name[128];

	(void)snprintf(name, sizeof name, "%s/index.db", world.path);
	return name;
}

START_TEST(a_directory_belongs_to_one_process)
{
	int status;

	world_make(&world, KIND_DISK);
	ck_assert_int_eq(opens(), WW_EINUSE);
	pid_t child = fork();
	if (child == 0)
		_exit(opens() == WW_EINUSE ? 0 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	/* Another process may open it to read. */
	world.config.flags = WW_JOBS_READONLY;
	child = fork();
	if (child == 0)
		_exit(opens() == WW_OK ? 0 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	world.config.flags = 0;
	world_end(&world);
}
END_TEST

START_TEST(files_are_the_owners_alone_and_copies_of_them_are_left_alone)
{
	static const char *const copies[] = {"journal.5.bak", "journal.05", "journal.+6"};
	struct ww_job_spec spec = spec_of("x");
	const struct dirent *entry;
	struct stat status;

	world_make(&world, KIND_DISK);
	(void)put_job(&world, &spec);
	DIR *folder = opendir(world.path);
	for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
		ck_assert_int_eq(close(openat(dirfd(folder), copies[i], O_WRONLY | O_CREAT, 0600)), 0);
	for (int i = 0; i < 8; i++)
		world_reopen(&world);
	for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
		ck_assert_int_eq(fstatat(dirfd(folder), copies[i], &status, 0), 0);
	while ((entry = readdir(folder))) {
		ck_assert_int_eq(fstatat(dirfd(folder), entry->d_name, &status, 0), 0);
		ck_assert_msg(entry->d_name[0] == '.' || (status.st_mode & 077) == 0, "%s", entry->d_name);
	}
	closedir(folder);
	OK(ww_jobs_examine(world.path, NULL, NULL));
	world_end(&world);
}
END_TEST

START_TEST(a_reader_sees_and_changes_nothing)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease;
	const char *const tube[] = {WW_TUBE_DEFAULT};

	world_make(&world, KIND_DISK);
	(void)put_job(&world, &spec);
	OK(ww_jobs_close(world.jobs));
	world.config.flags = WW_JOBS_READONLY;
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_check(&world);
	ck_assert_int_eq(info_of(&world, 1).state, WW_JOB_READY);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EDENIED);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tube, 1, &lease), WW_EDENIED);
	ck_assert_int_eq(ww_jobs_reserve_job(world.jobs, 1, &lease), WW_EDENIED);
	ck_assert_int_eq(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, WW_SECOND), WW_EDENIED);
	ck_assert_int_eq(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, 0), WW_EDENIED);
	world_end(&world);
}
END_TEST

START_TEST(a_directory_that_cannot_be_made_is_denied)
{
	world_make(&world, KIND_DISK);
	world.config.path = "/nowhere/at/all";
	ck_assert_int_eq(opens(), WW_EDENIED);
	world.config.path = "/dev/null";
	ck_assert_int_eq(opens(), WW_EDENIED);
	world.config.flags = WW_JOBS_READONLY;
	world.config.path = "/nowhere";
	ck_assert_int_eq(opens(), WW_EDENIED);
	world.config.path = NULL;
	ck_assert_int_eq(opens(), WW_EINVAL);
	world_end(&world);
}
END_TEST

static void note_problem(const char *problem, void *context)
{
	(void)snprintf(context, 400, "%s", problem);
}

START_TEST(a_read_only_file_system_is_named_with_what_to_do)
{
	char problem[400] = "";
	char path[sizeof world.path + 8];

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	world.config.problem = note_problem;
	world.config.context = problem;
	if (read_only_at(world.path)) {
		ck_assert_int_eq(opens(), WW_EDENIED);
		ck_assert_ptr_nonnull(strstr(problem, "mounted read-only: mount it for writing"));
		problem[0] = 0;
		(void)snprintf(path, sizeof path, "%s/new", world.path);
		world.config.path = path;
		ck_assert_int_eq(opens(), WW_EDENIED);
		ck_assert_ptr_nonnull(strstr(problem, "mounted read-only: mount it for writing"));
		world.config.path = world.path;
		ck_assert_int_eq(umount(world.path), 0);
	}
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}
END_TEST

static void overwrite(const char *file, off_t at, const void *bytes, size_t size)
{
	int fd = open(file, O_RDWR);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, size, at), (ssize_t)size);
	close(fd);
}

START_TEST(a_foreign_or_truncated_file_is_reported_as_damaged)
{
	struct ww_job_spec spec = spec_of("x");
	char garbage[8192];
	struct stat status;

	memset(garbage, 'g', sizeof garbage);
	world_make(&world, KIND_DISK);
	for (int i = 0; i < 1000; i++)
		(void)put_job(&world, &spec);
	OK(ww_jobs_close(world.jobs));
	ck_assert_int_eq(stat(data_file(), &status), 0);
	ck_assert_int_eq(truncate(data_file(), status.st_size / 2), 0);
	ck_assert_int_eq(opens(), WW_ECORRUPT);
	overwrite(data_file(), 0, garbage, sizeof garbage);
	ck_assert_int_eq(opens(), WW_ECORRUPT);
	ck_assert_int_eq(truncate(data_file(), 0), 0);
	ck_assert_int_eq(opens(), WW_ECORRUPT);
	/* The damaged file is still there: an administrator may need it. */
	ck_assert_int_eq(access(data_file(), F_OK), 0);
	ck_assert_int_eq(unlink(data_file()), 0);
	ck_assert_int_eq(opens(), WW_ECORRUPT);
	ck_assert_int_eq(access(data_file(), F_OK), -1);
	world.jobs = NULL;
	world.is_damaged = 1;
	world_end(&world);
}
END_TEST

/* Change a stored pair behind the store's back. */
static void change_stored(
    const struct store *store, enum store_table table, const void *key, size_t key_size, size_t at, unsigned char add)
{
	unsigned char copy[1024];
	struct store_bytes value;

	OK(store->ops->begin(store->self));
	OK(store->ops->get(store->self, table, (struct store_bytes){key, key_size}, &value));
	memcpy(copy, value.data, value.size);
	copy[at] = (unsigned char)(copy[at] + add);
	OK(store->ops->put(
	    store->self, table, (struct store_bytes){key, key_size}, (struct store_bytes){copy, value.size}));
	OK(store->ops->commit(store->self));
}

START_TEST(a_directory_with_other_files_is_no_store)
{
	char name[128];

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	ck_assert_int_eq(unlink(data_file()), 0);
	(void)snprintf(name, sizeof name, "%s/holiday.jpeg", world.path);
	FILE *file = fopen(name, "w");
	ck_assert_ptr_nonnull(file);
	(void)fclose(file);
	ck_assert_int_eq(opens(), WW_ECORRUPT);
	ck_assert_int_eq(access(data_file(), F_OK), -1);
	ck_assert_int_eq(unlink(name), 0);
	/* Nor is a store that has lost its index made anew. */
	ck_assert_int_eq(opens(), WW_ECORRUPT);
	world.jobs = NULL;
	world.is_damaged = 1;
	world_end(&world);
}
END_TEST

START_TEST(a_directory_may_be_reached_by_links)
{
	char link[128], above[128], below[256], moved[128];

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	(void)snprintf(link, sizeof link, "%s.link", world.path);
	ck_assert_int_eq(symlink(world.path, link), 0);
	world.config.path = link;
	OK(opens());
	/* In the middle of the path, too. */
	(void)snprintf(above, sizeof above, "%s.above", world.path);
	ck_assert_int_eq(symlink("/tmp", above), 0);
	(void)snprintf(below, sizeof below, "%s/%s", above, strrchr(link, '/') + 1);
	world.config.path = below;
	OK(opens());
	/* The file itself may not be a link. */
	(void)snprintf(moved, sizeof moved, "%s.moved", world.path);
	ck_assert_int_eq(rename(data_file(), moved), 0);
	ck_assert_int_eq(symlink(moved, data_file()), 0);
	ck_assert_int_eq(opens(), WW_EDENIED);
	ck_assert_int_eq(rename(moved, data_file()), 0);
	ck_assert_int_eq(unlink(above), 0);
	ck_assert_int_eq(unlink(link), 0);
	world.config.path = world.path;
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}
END_TEST

static void remember(const char *problem, void *context)
{
	(void)snprintf(context, 200, "%s", problem);
}

START_TEST(a_store_of_a_later_version_is_left_alone)
{
	struct store store;
	char said[200] = "";

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	world.config.problem = remember;
	world.config.context = said;
	world.config.allocator = ww_allocator_default();
	for (int later = 1; later >= 0; later--) {
		OK(ww_store_disk_open(&store, &world.config));
		/* The low byte of the format number, after the magic text. */
		change_stored(
		    &store, STORE_META, "meta", 4, sizeof "weekwheel jobs" + 3, (unsigned char)(later ? 1 : -1));
		OK(store.ops->close(store.self));
		ck_assert_int_eq(opens(), later ? WW_EVERSION : WW_OK);
	}
	ck_assert_ptr_nonnull(strstr(said, "has format 4, and this weekwheel knows 3"));
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}
END_TEST

START_TEST(a_store_of_a_former_kind_is_left_alone)
{
	char name[128];

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	(void)snprintf(name, sizeof name, "%s/data.mdb", world.path);
	ck_assert_int_eq(rename(data_file(), name), 0);
	ck_assert_int_eq(opens(), WW_EVERSION);
	world.config.flags = WW_JOBS_READONLY;
	ck_assert_int_eq(opens(), WW_EVERSION);
	world.config.flags = 0;
	ck_assert_int_eq(access(data_file(), F_OK), -1);
	ck_assert_int_eq(rename(name, data_file()), 0);
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}
END_TEST

static int problems;

static void count_problem(const char *problem, void *context)
{
	problems += strstr(problem, context) != NULL;
}

static void expect_problem(const char *text)
{
	problems = 0;
	ck_assert_int_gt(ww_jobs_check(world.jobs, count_problem, (void *)(uintptr_t)text), 0);
	ck_assert_int_gt(problems, 0);
}

START_TEST(one_damaged_record_is_reported_and_the_others_are_delivered)
{
	struct ww_job_spec spec = spec_of("body");
	const char *const tube[] = {WW_TUBE_DEFAULT};
	struct ww_lease lease;
	unsigned char key[16];

	world_make(&world, KIND_DISK);
	for (int i = 0; i < 3; i++)
		(void)put_job(&world, &spec);
	world_check(&world);
	store_write64(key, info_of(&world, 1).due);
	store_write64(key + 8, 1);
	change_stored(&local_of(world.jobs)->store, STORE_DUE, key, sizeof key, 12, 1);
	expect_problem("the record of job 1 cannot be read");
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tube, 1, &lease), WW_ECORRUPT);
	ck_assert_uint_eq(reserve_job(&world).id, 2);
	ck_assert_uint_eq(reserve_job(&world).id, 3);
	world.is_damaged = 1;
	world_end(&world);
}
END_TEST

START_TEST(a_missing_index_entry_and_a_wrong_count_are_reported)
{
	struct ww_job_spec spec = spec_of("body");
	struct jobs_local *jobs;
	struct store_bytes found;
	struct store_bytes value;
	unsigned char key[16];

	world_make(&world, KIND_DISK);
	spec.key = "key";
	spec.key_length = 3;
	(void)put_job(&world, &spec);
	jobs = local_of(world.jobs);
	OK(jobs->store.ops->seek(jobs->store.self, STORE_KEYS, (struct store_bytes){"", 0}, &found, &value));
	memcpy(key, found.data, sizeof key);
	OK(jobs->store.ops->begin(jobs->store.self));
	OK(jobs->store.ops->remove(jobs->store.self, STORE_KEYS, (struct store_bytes){key, sizeof key}));
	OK(jobs->store.ops->commit(jobs->store.self));
	expect_problem("job 1 is not found by its key");
	store_write64(key, 1);
	OK(jobs->store.ops->begin(jobs->store.self));
	OK(jobs->store.ops->remove(jobs->store.self, STORE_JOBS, (struct store_bytes){key, 8}));
	OK(jobs->store.ops->commit(jobs->store.self));
	expect_problem("job 1 is not found by its id");
	jobs->meta.accepted++;
	expect_problem("2 jobs were accepted and 0 have ended: 2 should be there, and 1 are");
	jobs->tubes->waiting++;
	expect_problem("the tube default counts 2 jobs");
	jobs->tubes->waiting--;
	jobs->meta.accepted--;
	world.is_damaged = 1;
	world_end(&world);
}
END_TEST

START_TEST(a_full_disk_is_reported_and_nothing_has_changed)
{
	struct rlimit limit;
	struct rlimit small;
	struct stat status;
	struct ww_jobs_stats before;
	struct ww_jobs_stats after;
	int error = WW_OK;

	world_make(&world, KIND_DISK);
	char body[4000];
	memset(body, 'b', sizeof body);
	struct ww_job_spec spec = spec_of("");
	spec.body = body;
	spec.body_length = sizeof body;
	(void)put_job(&world, &spec);
	ck_assert_int_eq(stat(data_file(), &status), 0);
	/* Limit the size of files in this process: that acts like a full disk. */
	(void)signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = (struct rlimit){(rlim_t)status.st_size + 65536, limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (int i = 0; i < 1000 && !error; i++) {
		OK(ww_jobs_stats(world.jobs, &before));
		error = ww_jobs_put(world.jobs, &spec, NULL, NULL);
	}
	/* The kernel reports this in two ways. Either must be an error. */
	ck_assert(error == WW_EFULL || error == WW_EIO);
	OK(ww_jobs_stats(world.jobs, &after));
	ck_assert_uint_eq(after.accepted, before.accepted);
	ck_assert_uint_eq(after.all.ready, before.all.ready);
	world_check(&world);
	/* Stored jobs are still delivered. */
	struct ww_lease lease = reserve_job(&world);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	OK(ww_jobs_put(world.jobs, &spec, NULL, NULL));
	world_check(&world);
	world_reopen(&world);
	world_check(&world);
	world_end(&world);
}
END_TEST

/* Put a job in a process that ends without closing the store. */
static void put_and_crash(void)
{
	struct ww_job_spec spec = spec_of("x");
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(ww_jobs_open(&world.jobs, &world.config) || ww_jobs_put(world.jobs, &spec, NULL, NULL) ? 1 : 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

START_TEST(an_opening_that_failed_for_want_of_room_can_be_tried_again)
{
	const struct rlimit small = {65536, RLIM_INFINITY};
	int status;

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	put_and_crash();
	/* The next file of the journal has no room. */
	pid_t child = fork();
	if (child == 0) {
		(void)signal(SIGXFSZ, SIG_IGN);
		_exit(setrlimit(RLIMIT_FSIZE, &small) || opens() != WW_EFULL ? 1 : 0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	OK(ww_jobs_open(&world.jobs, &world.config));
	struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	world_end(&world);
}
END_TEST

START_TEST(the_space_of_finished_jobs_is_used_again)
{
	enum { MEBIBYTE = 1 << 20 };
	struct ww_jobs_stats stats;

	world_make(&world, KIND_DISK);
	static char body[10000];
	memset(body, 'b', sizeof body);
	struct ww_job_spec spec = spec_of("");
	spec.body = body;
	spec.body_length = sizeof body;
	/* One job stays that is older than all others. */
	spec.due = 86400 * WW_SECOND;
	(void)put_job(&world, &spec);
	spec.due = 0;
	/* 200 MB */
	for (int round = 0; round < seed_rounds(100); round++) {
		OK(ww_jobs_begin(world.jobs));
		for (int i = 0; i < 200; i++)
			(void)put_job(&world, &spec);
		OK(ww_jobs_commit(world.jobs));
		OK(ww_jobs_begin(world.jobs));
		for (int i = 0; i < 200; i++) {
			struct ww_lease lease = reserve_job(&world);
			OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
		}
		OK(ww_jobs_commit(world.jobs));
		OK(ww_jobs_stats(world.jobs, &stats));
		ck_assert_uint_le(stats.disk, 100 * MEBIBYTE);
	}
	world_end(&world);
}
END_TEST

TEST_MAIN("jobs/files", a_directory_belongs_to_one_process,
    files_are_the_owners_alone_and_copies_of_them_are_left_alone, a_reader_sees_and_changes_nothing,
    a_directory_that_cannot_be_made_is_denied, a_read_only_file_system_is_named_with_what_to_do,
    a_foreign_or_truncated_file_is_reported_as_damaged, a_directory_with_other_files_is_no_store,
    a_directory_may_be_reached_by_links, a_store_of_a_later_version_is_left_alone,
    a_store_of_a_former_kind_is_left_alone, one_damaged_record_is_reported_and_the_others_are_delivered,
    a_missing_index_entry_and_a_wrong_count_are_reported, a_full_disk_is_reported_and_nothing_has_changed,
    an_opening_that_failed_for_want_of_room_can_be_tried_again, the_space_of_finished_jobs_is_used_again)
