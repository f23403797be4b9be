/* Flipped bits and cut files: each is found, none ends the process, and what is sound is saved. */
/* tier: long, no-valgrind */

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/crc32c.h"
#include "lib/jobs/store/disk_internal.h"
#include "lib/jobs/store/pages.h"
#include "lib/journal/format.h"
#include "lib/journal/journal.h"
#include "lib/journal/replay.h"
#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"

static struct world world;

static const char *path_of(const char *file)
{
	static char name[512];

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

/* ---- Files that are missing, or are not files */

static void remember(const char *problem, void *context)
{
	(void)snprintf(context, 4400, "%s", problem);
}

/* A process that ends without closing leaves an index with a log, and a journal. */
static void leave_open(void)
{
	struct ww_job_spec spec = spec_of("x");
	pid_t child;
	int status;

	spec.due = 86400 * WW_SECOND;
	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	world.jobs = NULL;
	world.is_damaged = 1;
	child = fork();
	if (child == 0) {
		OK(ww_jobs_open(&world.jobs, &world.config));
		for (int i = 0; i < 300; i++)
			(void)put_job(&world, &spec);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

/* Otherwise a power failure that takes them would look like damage, until the index has them. */
START_TEST(a_new_file_knows_that_the_records_of_a_killed_process_may_be_unsynced)
{
	struct journal_head head;
	const struct dirent *entry;
	uint64_t last = 0;
	uint64_t number;
	char name[64];

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	world.config.sync = WW_SYNC_SYSTEM;
	pid_t child = fork();
	if (child == 0) {
		struct ww_job_spec spec = spec_of("x");
		OK(ww_jobs_open(&world.jobs, &world.config));
		for (int i = 0; i < 300; i++)
			(void)put_job(&world, &spec);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	OK(ww_jobs_open(&world.jobs, &world.config));
	DIR *folder = opendir(world.path);
	while ((entry = readdir(folder)))
		if (sscanf(entry->d_name, "journal.%" SCNu64, &number) == 1 && number > last)
			last = number;
	closedir(folder);
	(void)snprintf(name, sizeof name, "journal.%" PRIu64, last);
	int fd = open(path_of(name), O_RDONLY);
	ck_assert_int_eq(read(fd, &head, sizeof head), sizeof head);
	close(fd);
	ck_assert_uint_eq(head.number, last);
	ck_assert_uint_ge(head.unsynced, 300);
	world_end(&world);
}
END_TEST

START_TEST(a_store_without_one_of_its_files_is_refused)
{
	static char said[4400];
	char names[8][256];
	char away[128];
	int count = 0;

	leave_open();
	DIR *folder = opendir(world.path);
	for (const struct dirent *entry; (entry = readdir(folder));)
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "index.db-shm") != 0 &&
		    strcmp(entry->d_name, "reserve") != 0 && count < 8)
			(void)snprintf(names[count++], sizeof names[0], "%s", entry->d_name);
	closedir(folder);
	ck_assert_int_ge(count, 3);
	(void)snprintf(away, sizeof away, "%s.away", world.path);
	world.config.problem = remember;
	world.config.context = said;
	for (int i = 0; i < 2 * count; i++) {
		const char *name = names[i / 2];
		world.config.flags = i % 2 ? WW_JOBS_READONLY : 0;
		ck_assert_int_eq(rename(path_of(name), away), 0);
		ck_assert_msg(opens() == WW_ECORRUPT, "without %s: %s", name, said);
		ck_assert_msg(strstr(said, "weekwheel recover"), "without %s: %s", name, said);
		ck_assert_msg(
		    i % 2 || access(path_of(name), F_OK) || strcmp(name, "index.db-wal") == 0, "%s was made", name);
		ck_assert_int_eq(rename(away, path_of(name)), 0);
	}
	world.config.flags = 0;
	OK(ww_jobs_open(&world.jobs, &world.config));
	ck_assert_int_eq(ww_jobs_check(world.jobs, NULL, NULL), 0);
	struct ww_jobs_stats stats;
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.accepted, 300);
	world_end(&world);
}
END_TEST

START_TEST(no_link_is_followed)
{
	static const char *const names[] = {"index.db", "index.db-wal", "index.db-shm", "journal.7"};
	char other[128];

	leave_open();
	(void)snprintf(other, sizeof other, "%s.other", world.path);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int is_there = rename(path_of(names[i]), other) == 0;
		ck_assert_int_eq(symlink(other, path_of(names[i])), 0);
		ck_assert_msg(opens() == WW_EDENIED, "%s", names[i]);
		ck_assert_int_eq(unlink(path_of(names[i])), 0);
		ck_assert(!is_there || rename(other, path_of(names[i])) == 0);
		ck_assert_int_ne(access(other, F_OK), 0);
	}
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}
END_TEST

START_TEST(a_store_belongs_to_one_process_whatever_is_deleted_in_it)
{
	world_make(&world, KIND_DISK);
	(void)unlink(path_of("owner"));
	(void)unlink(path_of("index.db-shm"));
	ck_assert_int_eq(opens(), WW_EINUSE);
	(void)unlink(path_of("index.db"));
	ck_assert_int_eq(opens(), WW_EINUSE);
	world.is_damaged = 1;
	world_end(&world);
}
END_TEST

#define FAR (30 * 86400 * WW_SECOND)

/* Put jobs into one slot, and damage half of their pages. */
static void damage_far_jobs(void)
{
	struct ww_job_spec spec = spec_of("");
	struct stat status;
	char body[900];

	memset(body, 'b', sizeof body);
	spec.body = body;
	spec.body_length = sizeof body;
	spec.due = FAR;
	for (int i = 0; i < 3000; i++)
		(void)put_job(&world, &spec);
	world_reopen(&world);
	ck_assert_int_eq(stat(path_of("index.db"), &status), 0);
	for (off_t page = status.st_size / 2 / PAGES_SIZE; page < status.st_size / PAGES_SIZE; page++)
		flip("index.db", page * PAGES_SIZE + 1000, 3);
}

static uint32_t sum_of_files(void)
{
	static const char *const files[] = {"index.db", "index.db-wal"};
	unsigned char page[PAGES_SIZE];
	uint32_t sum = 0;
	ssize_t got;

	for (size_t i = 0; i < 2; i++) {
		int fd = open(path_of(files[i]), O_RDONLY);
		while ((got = read(fd, page, sizeof page)) > 0)
			sum = ww_crc32c(sum, page, (size_t)got);
		close(fd);
	}
	return sum;
}

/* Until it has nothing to do, or cannot do it. */
static void await_indexer(struct disk *disk)
{
	for (int rests = 0; !rests; (void)usleep(1000)) {
		pthread_mutex_lock(&disk->mutex);
		rests = disk->rests;
		pthread_mutex_unlock(&disk->mutex);
	}
}

START_TEST(a_page_that_is_found_damaged_ends_changes_and_deliveries)
{
	struct ww_job_spec spec = spec_of("ready");
	const char *const tube[] = {WW_TUBE_DEFAULT};
	struct ww_jobs_stats stats;
	struct ww_lease lease;
	struct ww_job_info info;
	void *copy = NULL;
	int error = WW_OK;
	int told = 0;

	world_make(&world, KIND_DISK);
	ww_store_sizes.view = 100;
	(void)put_job(&world, &spec);
	damage_far_jobs();
	for (uint64_t id = 2; id <= 3001 && !error; id++) {
		const struct ww_job_ref ref = {.id = id};
		error = ww_jobs_peek(world.jobs, &ref, &info, &copy);
		ww_jobs_free(world.jobs, error ? NULL : copy);
	}
	ck_assert_int_eq(error, WW_ECORRUPT);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_int_eq(stats.fault, WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(stats.fault_text, "index.db has a damaged page"));
	spec.due = 0;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_ECORRUPT);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tube, 1, &lease), WW_ECORRUPT);
	/* Time passes, and nothing is written, not of the sound pages either. */
	struct jobs_local *jobs = local_of(world.jobs);
	uint32_t sum = sum_of_files();
	jobs->store.ops->set_time(jobs->store.self, ww_jobs_time(&jobs->elapsed) + FAR, 0);
	await_indexer(jobs->store.self);
	ck_assert_uint_eq(sum_of_files(), sum);
	/* What is sound is still told. */
	for (uint64_t id = 1; id <= 3001; id++) {
		const struct ww_job_ref ref = {.id = id};
		if (ww_jobs_peek(world.jobs, &ref, &info, &copy) == WW_OK) {
			ww_jobs_free(world.jobs, copy);
			told++;
		}
	}
	ck_assert_int_ge(told, 300);
	(void)ww_jobs_close(world.jobs);
	ck_assert_uint_eq(sum_of_files(), sum);
	world.jobs = NULL;
	world.is_damaged = 1;
	world_end(&world);
}
END_TEST

/* Their slot is to be demoted; nobody else reads it before its time. */
START_TEST(a_page_that_the_indexer_finds_damaged_is_told)
{
	int fault = WW_OK;

	world_make(&world, KIND_DISK);
	ww_store_sizes.view = 100;
	damage_far_jobs();
	struct jobs_local *jobs = local_of(world.jobs);
	jobs->store.ops->set_time(jobs->store.self, ww_jobs_time(&jobs->elapsed) + FAR, 0);
	for (int i = 0; i < 5000 && !fault; i++) {
		fault = jobs->store.ops->fault(jobs->store.self, NULL);
		(void)usleep(1000);
	}
	ck_assert_int_eq(fault, WW_ECORRUPT);
	(void)ww_jobs_close(world.jobs);
	world.jobs = NULL;
	world.is_damaged = 1;
	world_end(&world);
}
END_TEST

/* ---- The journal alone */

static int count_record(void *context, const unsigned char *bytes, size_t size)
{
	(void)bytes;
	*(uint64_t *)context += size;
	return 0;
}

static int replays(uint64_t *bytes, int salvage)
{
	struct replay replay = {
	    .folder = world.path, .record = 1, .read = count_record, .context = bytes, .salvage = salvage};

	*bytes = 0;
	return ww_replay(&replay);
}

enum { FILES = 3, EACH = 40 };

static void empty_folder(void)
{
	DIR *folder = opendir(world.path);

	for (const struct dirent *entry; (entry = readdir(folder));)
		if (entry->d_name[0] != '.')
			ck_assert_int_eq(unlink(path_of(entry->d_name)), 0);
	closedir(folder);
}

/* Files with records of random bytes. The last one may lack its last record, and then is not synced. */
static void write_journal(uint64_t *random, size_t used[FILES + 1], uint64_t *bytes)
{
	struct journal_fault fault;
	struct journal journal;
	unsigned char record[3000];

	ww_fault_init(&fault);
	ww_journal_open(&journal, world.path, &fault, 0, 1);
	for (int file = 1; file <= FILES; file++) {
		OK(ww_journal_turn(&journal, 0));
		for (int i = 0; i < EACH; i++) {
			size_t size = 1 + seed_next(random) % sizeof record;
			for (size_t at = 0; at < size; at++)
				record[at] = (unsigned char)(1 + seed_next(random) % 255);
			OK(ww_journal_append(&journal, record, size));
			if (i % 3 == 0)
				OK(ww_journal_sync(&journal));
			*bytes += size;
		}
		used[file] = journal.offset;
	}
	ww_journal_close(&journal);
	ww_fault_destroy(&fault);
}

struct turning {
	struct journal *journal;
	int is_done;
	uint64_t records;
};

static int turn_once(void *context, const unsigned char *bytes, size_t size)
{
	struct turning *turning = context;

	turning->records++;
	if (turning->is_done++)
		return 0;
	OK(ww_journal_turn(turning->journal, 0));
	return ww_journal_append(turning->journal, bytes, size);
}

/* fsck looks while a server writes. */
START_TEST(a_file_that_is_begun_while_others_are_read_is_not_missing)
{
	struct journal_fault fault;
	struct journal journal;
	struct turning turning = {.journal = &journal};
	struct replay replay = {.record = 1, .read = turn_once, .context = &turning, .salvage = 1};

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	world.jobs = NULL;
	empty_folder();
	ww_fault_init(&fault);
	ww_journal_open(&journal, world.path, &fault, 0, 1);
	for (int file = 0; file < 2; file++) {
		OK(ww_journal_turn(&journal, 0));
		OK(ww_journal_append(&journal, "record", 6));
	}
	/* While the first file is read, the second one ends and the third one begins. */
	replay.folder = world.path;
	OK(ww_replay(&replay));
	ck_assert_uint_eq(turning.records, 3);
	ck_assert_uint_eq(replay.last, 3);
	ck_assert_uint_eq(replay.record, 4);
	/* One that is missing is still missed. */
	OK(unlink(path_of("journal.3")));
	replay = (struct replay){
	    .folder = world.path, .record = 1, .read = count_record, .context = &turning.records, .salvage = 0};
	ck_assert_int_eq(ww_replay(&replay), WW_ECORRUPT);
	ww_journal_close(&journal);
	ww_fault_destroy(&fault);
	world.is_damaged = 1;
	world_end(&world);
}
END_TEST

START_TEST(each_flipped_bit_of_a_journal_is_found)
{
	uint64_t state = seed_of_run("test_jobs_damage");
	size_t used[FILES + 1];
	uint64_t whole = 0;
	uint64_t bytes;
	char name[32];

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	world.jobs = NULL;
	world.is_damaged = 1;
	empty_folder();
	write_journal(&state, used, &whole);
	OK(replays(&bytes, 0));
	ck_assert_uint_eq(bytes, whole);
	for (int i = 0; i < 1000; i++) {
		int file = 1 + (int)(seed_next(&state) % FILES);
		off_t at = (off_t)(seed_next(&state) % used[file]);
		int bit = (int)(seed_next(&state) % 8);
		(void)snprintf(name, sizeof name, "journal.%d", file);
		flip(name, at, bit);
		int error = replays(&bytes, 0);
		/* What fills up a record to a multiple of 8 has no meaning. */
		ck_assert_msg(error == WW_ECORRUPT || bytes == whole, "bit %d of byte %ld of %s", bit, (long)at, name);
		OK(replays(&bytes, 1));
		ck_assert_msg(bytes >= whole - 3000, "bit %d of byte %ld of %s: of %lu bytes %lu are saved", bit,
		    (long)at, name, (unsigned long)whole, (unsigned long)bytes);
		flip(name, at, bit);
	}
	for (int file = 1; file <= FILES; file++) {
		struct stat status;
		char away[128];
		(void)snprintf(name, sizeof name, "journal.%d", file);
		(void)snprintf(away, sizeof away, "%s.away", world.path);
		ck_assert_int_eq(rename(path_of(name), away), 0);
		ck_assert_msg(replays(&bytes, 0) == WW_ECORRUPT, "without %s", name);
		OK(replays(&bytes, 1));
		ck_assert_uint_ge(bytes, whole / 3);
		ck_assert_int_eq(rename(away, path_of(name)), 0);
		/* What is cut off was zeros: behind the end are no bytes. */
		ck_assert_int_eq(stat(path_of(name), &status), 0);
		ck_assert_int_eq(truncate(path_of(name), (off_t)used[file] + 25), 0);
		ck_assert_int_eq(replays(&bytes, 0), WW_ECORRUPT);
		OK(replays(&bytes, 1));
		ck_assert_uint_eq(bytes, whole);
		ck_assert_int_eq(truncate(path_of(name), status.st_size), 0);
	}
	world_end(&world);
}
END_TEST

/* ---- The whole store: each flipped bit that matters is found, and the jobs are saved */

enum { JOBS = 600, FLIPS = 300 };

/* A sum of everything that can be read of all jobs. */
struct digest {
	uint64_t jobs;
	uint64_t sum;
	uint64_t times; /* due times, of another clock after recovery */
};

static int add_job(const struct ww_job_info *info, void *context)
{
	struct digest *digest = context;
	uint64_t parts[] = {info->id, info->priority, info->version, info->attempts};
	uint32_t sum = ww_crc32c(0, parts, sizeof parts);

	sum = ww_crc32c(sum, info->tube, strlen(info->tube));
	sum = ww_crc32c(sum, info->key, info->key_length);
	sum = ww_crc32c(sum, info->body, info->body_length);
	digest->sum += random_mix(sum);
	digest->times += random_mix(info->id ^ info->due ^ info->state);
	digest->jobs++;
	return 0;
}

static int digest_of(const char *path, struct digest *digest)
{
	const struct ww_job_filter all = {.after = 0};
	struct ww_jobs_config config = world.config;
	struct ww_jobs *jobs = NULL;
	int error;

	*digest = (struct digest){0};
	config.path = path;
	config.flags = WW_JOBS_READONLY;
	error = ww_jobs_open(&jobs, &config);
	if (!error)
		error = ww_jobs_list(jobs, &all, SIZE_MAX, add_job, digest, NULL);
	if (!error)
		error = ww_jobs_check(jobs, NULL, NULL) ? WW_ECORRUPT : WW_OK;
	OK(ww_jobs_close(jobs));
	return error;
}

/* Jobs of all kinds, some far, some near, some ended; an index with a log, and a journal. */
static void fill_store(uint64_t *random)
{
	pid_t child;
	int status;

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	world.jobs = NULL;
	world.is_damaged = 1;
	for (int round = 0; round < 2; round++) {
		child = fork();
		if (child == 0) {
			OK(ww_jobs_open(&world.jobs, &world.config));
			for (int i = 0; i < JOBS; i++) {
				char body[900], key[16];
				memset(body, 'a' + i % 26, sizeof body);
				struct ww_job_spec spec = spec_of("");
				spec.tube = i % 3 ? "one" : "two";
				spec.body = body;
				spec.body_length = seed_next(random) % (i % 50 ? sizeof body : 20);
				/* Beyond the window: a driver of before the fork sets no timer. */
				spec.due = i % 4 ? 3600 * WW_SECOND + seed_next(random) % (6 * 86400 * WW_SECOND) : 0;
				spec.key = key;
				spec.key_length = i % 5 ? 0 : (size_t)snprintf(key, sizeof key, "%d.%d", round, i);
				uint64_t id = put_job(&world, &spec);
				struct ww_job_ref ref = {.id = id};
				if (i % 7 == 0)
					ck_assert_int_ge(ww_jobs_cancel(world.jobs, &ref), 0);
			}
			_exit(0);
		}
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
		*random ^= 1;
	}
}

static char target[160];

static void remove_target(void)
{
	char name[512];
	DIR *folder = opendir(target);

	for (const struct dirent *entry; folder && (entry = readdir(folder));) {
		(void)snprintf(name, sizeof name, "%s/%s", target, entry->d_name);
		(void)unlink(name);
	}
	if (folder)
		closedir(folder);
	(void)rmdir(target);
}

static int problems;

static void count_problem(const char *problem, void *unused)
{
	(void)problem;
	(void)unused;
	problems++;
}

static uint64_t recovers(void)
{
	struct ww_jobs_config config = world.config;
	uint64_t saved = 0;

	remove_target();
	config.path = target;
	config.sync = WW_SYNC_SYSTEM;
	problems = 0;
	OK(ww_jobs_recover(world.path, &config, &saved, count_problem, NULL));
	return saved;
}

/* A random place in the index, its log or the journal. */
static const char *choose(uint64_t *random, off_t *at)
{
	static char names[16][64];
	off_t sizes[16], total = 0;
	int count = 0;
	DIR *folder = opendir(world.path);

	for (const struct dirent *entry; (entry = readdir(folder));) {
		struct stat status;
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "index.db-shm") == 0)
			continue;
		ck_assert_int_eq(stat(path_of(entry->d_name), &status), 0);
		(void)snprintf(names[count], sizeof names[0], "%.60s", entry->d_name);
		/* Most of the journal is zeros. */
		sizes[count] =
		    strncmp(entry->d_name, "journal", 7) == 0 && status.st_size > 400000 ? 400000 : status.st_size;
		total += sizes[count++];
	}
	closedir(folder);
	*at = (off_t)(seed_next(random) % (uint64_t)total);
	int i = 0;
	for (; *at >= sizes[i]; i++)
		*at -= sizes[i];
	return names[i];
}

START_TEST(each_flipped_bit_that_matters_is_found)
{
	uint64_t random = seed_of_run("test_jobs_damage");
	struct digest before, after;
	int found = 0, harmless = 0, refused = 0;
	off_t at;

	fill_store(&random);
	(void)snprintf(target, sizeof target, "%s.new", world.path);
	ck_assert_int_eq(ww_jobs_examine(world.path, NULL, NULL), 0);
	OK(digest_of(world.path, &before));
	ck_assert_uint_ge(before.jobs, JOBS);
	ck_assert_uint_eq(recovers(), before.jobs);
	ck_assert_int_eq(problems, 0);
	OK(digest_of(target, &after));
	ck_assert_uint_eq(after.jobs, before.jobs);
	ck_assert_uint_eq(after.sum, before.sum);
	for (int i = 0; i < FLIPS; i++) {
		const char *name = choose(&random, &at);
		int bit = (int)(seed_next(&random) % 8);
		flip(name, at, bit);
		int count = ww_jobs_examine(world.path, NULL, NULL);
		int error = digest_of(world.path, &after);
		ck_assert_int_ge(count, 0);
		refused += error != WW_OK;
		found += count > 0 || error;
		if (count == 0 && !error) {
			harmless++;
			ck_assert_msg(
			    after.jobs == before.jobs && after.sum == before.sum && after.times == before.times,
			    "bit %d of byte %lld of %s is not found", bit, (long long)at, name);
		}
		if (i % 10 == 0) {
			uint64_t saved = recovers();
			ck_assert_msg(saved + 1 >= before.jobs || strcmp(name, "index.db-wal") == 0,
			    "bit %d of byte %lld of %s: %llu of %llu are saved", bit, (long long)at, name,
			    (unsigned long long)saved, (unsigned long long)before.jobs);
			OK(digest_of(target, &after));
		}
		flip(name, at, bit);
	}
	printf("%d flipped bits: %d found, %d changed nothing that can be read; %d times it is refused or not sound\n",
	    FLIPS, found, harmless, refused);
	OK(digest_of(world.path, &after));
	ck_assert_uint_eq(after.sum, before.sum);
	remove_target();
	world_end(&world);
}
END_TEST

TEST_MAIN("jobs/damage", each_page_of_the_index_has_a_sum,
    a_new_file_knows_that_the_records_of_a_killed_process_may_be_unsynced, a_store_without_one_of_its_files_is_refused,
    a_page_that_is_found_damaged_ends_changes_and_deliveries, a_page_that_the_indexer_finds_damaged_is_told,
    no_link_is_followed, a_store_belongs_to_one_process_whatever_is_deleted_in_it,
    a_file_that_is_begun_while_others_are_read_is_not_missing, each_flipped_bit_of_a_journal_is_found,
    each_flipped_bit_that_matters_is_found)
