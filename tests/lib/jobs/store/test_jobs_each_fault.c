/*
 * Every call on files and every allocation fails, one after the other, in each thing that the store on disk does: once,
 * or from then on. The process lives on, the error is one that jobs.h names, nothing acknowledged is lost, nothing that
 * has ended comes back, and without the fault the store opens and goes on.
 *
 * Of many calls a part fails, which the seed chooses; WW_FAULTS=100000 takes all of them, and WW_FAULT='making: memory' one
 * kind in one thing, or 'making' all.
 */
/* tier: long, no-valgrind */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/jobs/store/disk_internal.h"
#include "tests/lib/jobs/fixture.h"
#include "tests/lib/jobs/store/fault_memory.h"
#include "tests/lib/jobs/store/known.h"
#include "tests/support/seed.h"
#include "tests/support/system/fail.h"

enum { FOR_EVER = 1 << 30 };
#define HOUR (3600 * WW_SECOND)

static struct world world;
static struct known known_made;
static char home[] = "/tmp/weekwheel-fault-XXXXXX";
static char made_path[64], store_path[64], copy_path[64];

/* ---- Jobs */

static struct ww_job_spec next_job(uint64_t due)
{
	struct ww_job_spec spec = spec_of(known_body_of(known.jobs++));

	ck_assert_int_le(known.jobs, KNOWN_MOST);
	spec.due = due;
	return spec;
}

static int put(uint64_t due, const char *key)
{
	struct ww_job_spec spec = next_job(due);
	int job = known.jobs - 1;

	spec.key = key;
	spec.key_length = key ? strlen(key) : 0;
	int result = ww_jobs_put(world.jobs, &spec, &known.id[job], NULL);
	known_step("put", result, 0);
	known_judge(job, result, ALIVE);
	if (!key)
		return job;
	known_judge(known.keyed, result, ENDED);
	if (result >= 0)
		known.keyed = job;
	return job;
}

static void cancel(int job)
{
	struct ww_job_ref ref = {.id = known.id[job]};
	int result = ref.id ? ww_jobs_cancel(world.jobs, &ref) : WW_ENOTFOUND;

	known_step("cancel", result, WW_ENOTFOUND);
	known_judge(job, result, ENDED);
}

/* ---- Stores */

static void empty(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	(void)rmdir(path);
}

static int open_at(const char *path, uint32_t flags)
{
	world.config.path = path;
	world.config.flags = flags;
	return ww_jobs_open(&world.jobs, &world.config);
}

static int close_it(void)
{
	int result = ww_jobs_close(world.jobs);

	world.jobs = NULL;
	return result;
}

static int check_job(const struct ww_job_info *info, void *context)
{
	int job = known_number_in(info->body, info->body_length);
	char *found = context;

	ck_assert_msg(!found[job], "job %d is there twice", job);
	ck_assert_msg(known.fate[job] == ALIVE || known.fate[job] == EITHER, "job %d should not be there", job);
	found[job] = 1;
	return 0;
}

/* The store at that path has what it should, and goes on. */
static void verify(const char *path)
{
	static char found[KNOWN_MOST];
	struct ww_job_filter filter = {.after = 0};
	struct ww_job_spec spec = spec_of("more");
	uint64_t id;

	memset(found, 0, sizeof found);
	int result = open_at(path, 0);
	ck_assert_msg(result == WW_OK, "%s cannot be opened: %s", path, ww_strerror(result));
	world_check(&world);
	OK(ww_jobs_list(world.jobs, &filter, SIZE_MAX, check_job, found, NULL));
	for (int job = 0; job < known.jobs; job++)
		ck_assert_msg(known.fate[job] != ALIVE || found[job], "job %d is lost", job);
	OK(ww_jobs_put(world.jobs, &spec, &id, NULL));
	ck_assert_int_ge(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 0);
	OK(close_it());
}

/* ---- What the store does */

/* Wait until the index's thread has nothing to do, or cannot do it. */
static void await_index(void)
{
	struct disk *disk = local_of(world.jobs)->store.self;
	int rests = 0;

	for (int tries = 0; tries < 20000 && !rests; tries++) {
		pthread_mutex_lock(&disk->mutex);
		rests = disk->rests && (!disk->waits || disk->failed);
		pthread_mutex_unlock(&disk->mutex);
		if (!rests)
			(void)usleep(50);
	}
}

static void pass(uint64_t ns)
{
	world_pass(&world, ns);
	await_index();
}

static const char *const tubes[] = {WW_TUBE_DEFAULT};

static void put_together(void)
{
	struct ww_job_spec specs[3];
	struct ww_job_put puts[3];
	char bodies[3][KNOWN_BODY];
	int first = known.jobs;

	for (int i = 0; i < 3; i++) {
		specs[i] = next_job(0);
		memcpy(bodies[i], specs[i].body, KNOWN_BODY);
		specs[i].body = bodies[i];
		puts[i] = (struct ww_job_put){.spec = &specs[i]};
	}
	int result = ww_jobs_put_many(world.jobs, puts, 3);
	known_step("put_many", result, 0);
	for (int i = 0; i < 3; i++)
		known_judge(first + i, result < 0 ? result : puts[i].result, ALIVE);
}

static void finish_together(void)
{
	struct ww_lease leases[3];
	struct ww_job_end ends[3];
	int jobs[3];
	int got = ww_jobs_reserve_many(world.jobs, tubes, 1, leases, 3);

	if (!known_step("reserve_many", got, 0) || !got)
		return;
	for (int i = 0; i < got; i++) {
		jobs[i] = known_number_in(leases[i].body, leases[i].body_length);
		ww_jobs_free(world.jobs, leases[i].body);
		ends[i] = (struct ww_job_end){.id = leases[i].id, .token = leases[i].token};
	}
	int result = ww_jobs_finish_many(world.jobs, ends, (size_t)got);
	known_step("finish_many", result, 0);
	for (int i = 0; i < got; i++)
		known_judge(jobs[i], result < 0 ? result : ends[i].result, ENDED);
}

static void work(int turn)
{
	struct ww_lease lease;
	int result = ww_jobs_reserve(world.jobs, tubes, 1, &lease);

	if (!known_step("reserve", result, 0) || !result)
		return;
	int job = known_number_in(lease.body, lease.body_length);
	ww_jobs_free(world.jobs, lease.body);
	known_step("touch", ww_jobs_touch(world.jobs, lease.id, lease.token, NULL), 0);
	if (turn == 0) {
		result = ww_jobs_finish(world.jobs, lease.id, lease.token);
		known_step("finish", result, 0);
		known_judge(job, result, ENDED);
	} else if (turn == 1)
		known_step("release", ww_jobs_release(world.jobs, lease.id, lease.token, 5, WW_SECOND, "why"), 0);
	else if (turn == 2)
		known_step("bury", ww_jobs_bury(world.jobs, lease.id, lease.token, 5, "why"), 0);
}

static int count_listed(const struct ww_job_info *info, void *context)
{
	(void)info;
	(void)context;
	return 0;
}

static int count_tube(const struct ww_tube_stats *tube, void *context)
{
	(void)tube;
	(void)context;
	return 0;
}

static void look(void)
{
	struct ww_job_filter filter = {.after = 0};
	struct ww_jobs_stats stats;
	struct ww_tube_stats tube;
	struct ww_job_info info;
	uint64_t counts[4];
	void *body = NULL;

	for (int state = WW_JOB_DELAYED; state <= WW_JOB_BURIED; state++) {
		int result = ww_jobs_peek_next(world.jobs, tubes[0], (enum ww_job_state)state, &info, &body);
		if (known_step("peek_next", result, WW_ENOTFOUND))
			ww_jobs_free(world.jobs, body);
	}
	known_step("list", ww_jobs_list(world.jobs, &filter, SIZE_MAX, count_listed, NULL, NULL), 0);
	known_step("forecast", ww_jobs_forecast(world.jobs, NULL, HOUR, counts, 4), 0);
	known_step("stats", ww_jobs_stats(world.jobs, &stats), 0);
	known_step("tube", ww_jobs_tube(world.jobs, tubes[0], &tube), WW_ENOTFOUND);
	known_step("tubes", ww_jobs_tubes(world.jobs, count_tube, NULL), 0);
}

static void run_verbs(void)
{
	uint64_t count;

	for (int i = 0; i < 4; i++)
		(void)put(0, NULL);
	int far = put(3 * HOUR, NULL);
	(void)put(HOUR, "key");
	for (int i = 0; i < 4; i++)
		work(i);
	if (known.id[far])
		known_step("move",
		    ww_jobs_move(world.jobs, &(struct ww_job_ref){.id = known.id[far]}, 2 * HOUR, 0, NULL),
		    WW_ENOTFOUND);
	(void)put(2 * HOUR, "key");
	put_together();
	finish_together();
	look();
	known_step("kick", ww_jobs_kick(world.jobs, tubes[0], 3, &count), 0);
	known_step("kick_job", ww_jobs_kick_job(world.jobs, known.id[far]), WW_ENOTFOUND);
	cancel(far);
	known_step("pause", ww_jobs_pause(world.jobs, tubes[0], WW_SECOND), 0);
	known_step("begin", ww_jobs_begin(world.jobs), 0);
	int one = known.jobs, result;
	struct ww_job_spec spec = next_job(0);
	int put_result = ww_jobs_put(world.jobs, &spec, &known.id[one], NULL);
	known_step("put", put_result, 0);
	result = ww_jobs_commit(world.jobs);
	known_step("commit", result, 0);
	known_judge(one, put_result < 0 ? put_result : result, ALIVE);
	world_pass(&world, 2 * WW_SECOND);
	work(0);
}

/* Jobs are taken over by the index, in slots of several hours; some move or end there; slots are demoted and dropped. */
static void run_index(void)
{
	int first = known.jobs;

	for (int i = 0; i < 24; i++)
		(void)put((uint64_t)(2 + i % 3) * HOUR, NULL);
	await_index();
	for (int job = first; job < first + 24; job += 2)
		cancel(job);
	for (int i = 0; i < 16; i++)
		(void)put((uint64_t)(2 + i % 2) * HOUR, i == 7 ? "key" : NULL);
	await_index();
	for (int hour = 0; hour < 4; hour++) {
		pass(HOUR);
		for (int i = 0; i < 3; i++)
			work(0);
	}
	for (int i = 0; i < 8; i++)
		(void)put(2 * HOUR, NULL);
	await_index();
	look();
}

static void run_open(void)
{
	known_step("open", open_at(store_path, 0), 0);
}

static void run_close(void)
{
	known_step("close", close_it(), 0);
}

static int opened;
static int told; /* problems of what was recovered */
static unsigned what_failed;

static void run_backup(void)
{
	opened = ww_jobs_backup(store_path, copy_path);
	known_step("backup", opened, 0);
}

static void count_problem(const char *problem, void *context)
{
	(void)problem;
	(void)context;
	told++;
}

static void run_recover(void)
{
	uint64_t saved = 0;

	told = 0;

	world.config.path = copy_path;
	world.config.flags = 0;
	opened = ww_jobs_recover(store_path, &world.config, &saved, count_problem, NULL);
	known_step("recover", opened, 0);
}

static void run_read(void)
{
	(void)ww_jobs_examine(store_path, NULL, NULL);
	if (known_step("open", open_at(store_path, WW_JOBS_READONLY), 0))
		look();
	known_step("close", close_it(), 0);
}

static void check_copy(void)
{
	if (opened == WW_OK) {
		verify(copy_path);
		return;
	}
	/* It is as it was: missing, unless removing it is what failed. */
	DIR *folder = opendir(copy_path);
	if (folder && !(what_failed & (CALL_UNLINK | CALL_LOOK)))
		ck_abort_msg("the failed copy is still there");
	if (folder)
		closedir(folder);
}

static void check_recovered(void)
{
	const struct known all = known;

	/* What could not be read was told. */
	for (int job = 0; job < known.jobs && told; job++)
		known.fate[job] = EITHER;
	if (opened == WW_OK)
		verify(copy_path);
	known = all;
}

static const struct scenario {
	const char *name;
	int is_made; /* there is a store before */
	int is_open;
	void (*run)(void);
	void (*check)(void);
} scenarios[] = {
    {"making", 0, 0, run_open, NULL},
    {"opening", 1, 0, run_open, NULL},
    {"all verbs", 1, 1, run_verbs, NULL},
    {"the index", 1, 1, run_index, NULL},
    {"closing", 1, 1, run_close, NULL},
    {"reading", 1, 0, run_read, NULL},
    {"backup", 1, 1, run_backup, check_copy},
    {"recover", 1, 0, run_recover, check_recovered},
};

/* ---- Faults */

/*
 * SQLite takes a file for one that it may only read if it cannot be opened to write, and a page for damaged that the
 * disk cannot read. Of a file of which half is written, or that it asks for twice, it does not know why.
 */
static const struct fault {
	const char *name;
	unsigned which;
	int error;
	int kind; /* of a write without an error: enum fault_split; of memory: 1: SQLite's */
	int allowed[3];
} faults[] = {
    {"open that makes, EIO", CALL_OPEN, EIO, 0, {WW_EIO, WW_EDENIED}},
    {"open that makes, ENOSPC", CALL_OPEN, ENOSPC, 0, {WW_EFULL, WW_EDENIED, WW_EIO}},
    {"write, EIO", CALL_WRITE, EIO, 0, {WW_EIO}},
    {"write, ENOSPC", CALL_WRITE, ENOSPC, 0, {WW_EFULL}},
    {"half a part of a write", CALL_WRITE, 0, FAULT_HALF_PART, {WW_EFULL, WW_EIO}},
    {"half a write", CALL_WRITE, 0, FAULT_HALF, {WW_EFULL, WW_EIO}},
    {"a write but its last byte", CALL_WRITE, 0, FAULT_LAST, {WW_EFULL, WW_EIO}},
    {"sync, EIO", CALL_SYNC, EIO, 0, {WW_EIO}},
    {"sync, ENOSPC", CALL_SYNC, ENOSPC, 0, {WW_EIO, WW_EFULL}},
    {"size, EIO", CALL_SIZE, EIO, 0, {WW_EIO}},
    {"size, ENOSPC", CALL_SIZE, ENOSPC, 0, {WW_EFULL}},
    {"unlink, EIO", CALL_UNLINK, EIO, 0, {WW_EIO}},
    {"rename, EIO", CALL_RENAME, EIO, 0, {WW_EIO}},
    {"rename, ENOSPC", CALL_RENAME, ENOSPC, 0, {WW_EFULL}},
    {"read, EIO", CALL_READ, EIO, 0, {WW_EIO, WW_ECORRUPT}},
    {"open and map, EIO", CALL_LOOK, EIO, 0, {WW_EIO, WW_EDENIED}},
    {"open and map, ENOMEM", CALL_LOOK, ENOMEM, 0, {WW_EIO, WW_ENOMEM, WW_EDENIED}},
    {"memory", CALL_MEMORY, ENOMEM, 0, {WW_ENOMEM}},
    /* Whatever keeps it from the index of its log, a file or memory, SQLite says IOERR_SHMLOCK later. */
    {"memory of SQLite", CALL_MEMORY, ENOMEM, 1, {WW_ENOMEM, WW_EIO}},
};

static void begin_world(void)
{
	world_make(&world, KIND_MEMORY);
	OK(close_it());
	world.config.sync = WW_SYNC_ALWAYS;
	world.config.allocator = &fault_memory_table;
}

static void end_world(void)
{
	world.config.flags = WW_JOBS_MEMORY;
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}

/* A store as a process leaves it that was killed, with jobs everywhere. */
static void make_template(void)
{
	memset(&known, 0, sizeof known);
	known.keyed = -1;
	begin_world();
	OK(open_at(store_path, 0));
	run_verbs();
	run_index();
	(void)put(0, NULL);
	OK(ww_jobs_backup(store_path, made_path));
	OK(close_it());
	known_made = known;
	end_world();
	empty(store_path);
}

static void prepare(const struct scenario *scenario)
{
	begin_world();
	memset(&known, 0, sizeof known);
	known.keyed = -1;
	opened = WW_EINVAL;
	if (!scenario->is_made)
		return;
	known = known_made;
	OK(ww_jobs_backup(made_path, store_path));
	if (scenario->is_open)
		OK(open_at(store_path, 0));
}

/* What each test is at, also for the process that finds it dead. */
static char (*now)[160];
static uint64_t seed;

/* Returns how many calls there were of that kind. */
static unsigned run_once(const struct scenario *scenario, const struct fault *fault, unsigned first, unsigned times)
{
	prepare(scenario);
	memcpy(known_allowed, fault->allowed, sizeof known_allowed);
	what_failed = fault->which;
	fault_memory_of_sqlite = fault->which == CALL_MEMORY && fault->kind;
	fault_plan.split = (unsigned)fault->kind;
	fault_arm(fault->which, NULL, first, times, fault->error);
	scenario->run();
	unsigned calls = fault_plan.calls;
	/* Closing is part of what has to stand it. */
	if (world.jobs)
		known_step("close", close_it(), 0);
	fault_disarm();
	memset(known_allowed, 0, sizeof known_allowed);
	if (scenario->check)
		scenario->check();
	verify(store_path);
	end_world();
	empty(store_path);
	empty(copy_path);
	ck_assert_uint_eq(fault_memory_used.blocks, 0);
	return calls;
}

static unsigned most(void)
{
	const char *text = getenv("WW_FAULTS");

	return text ? (unsigned)strtoul(text, NULL, 10) : 1;
}

START_TEST(each_call_fails_in_turn)
{
	const struct scenario *scenario = &scenarios[_i];
	const char *only = getenv("WW_FAULT");
	uint64_t random = seed + (uint64_t)_i;
	unsigned runs = 0;

	if (only && strncmp(only, scenario->name, strlen(scenario->name)) != 0)
		return;
	ck_assert_ptr_nonnull(mkdtemp(home));
	(void)snprintf(made_path, sizeof made_path, "%s/made", home);
	(void)snprintf(store_path, sizeof store_path, "%s/store", home);
	(void)snprintf(copy_path, sizeof copy_path, "%s/copy", home);
	(void)setenv("SQLITE_TMPDIR", "/tmp", 1);
	ww_store_sizes = (struct store_sizes){.active = 12000, .journal = 40000, .view = 4, .few = 2};
	fault_plan.quick = 1;
	fault_memory_count();
	make_template();
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		(void)snprintf(now[_i], sizeof now[_i], "%s: %s", scenario->name, faults[i].name);
		if (only && strncmp(now[_i], only, strlen(only)) != 0)
			continue;
		unsigned calls = run_once(scenario, &faults[i], 0, 0);
		for (unsigned times = 1; times; times = times == 1 ? FOR_EVER : 0) {
			unsigned stride = calls / most() + 1;
			for (unsigned n = 1 + (stride > 1 ? (unsigned)seed_next(&random) % stride : 0); n <= calls;
			     n += stride, runs++) {
				(void)snprintf(now[_i], sizeof now[_i], "%s, call %u of %u%s", faults[i].name, n, calls,
				    times == 1 ? "" : " and all after it");
				(void)run_once(scenario, &faults[i], n, times);
			}
		}
	}
	now[_i][0] = 0;
	if (getenv("WW_FAULTS"))
		(void)fprintf(stderr, "%s: %u faults\n", scenario->name, runs);
	empty(made_path);
	(void)rmdir(home);
}
END_TEST

static const char *name_of(size_t i)
{
	return scenarios[i].name;
}

int main(void)
{
	const TTest *const tests[] = {each_call_fails_in_turn};
	enum { COUNT = sizeof scenarios / sizeof *scenarios };
	int status;

	now = mmap(NULL, COUNT * sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (now == MAP_FAILED)
		return EXIT_FAILURE;
	seed = seed_of_run("test_jobs_each_fault");
	status = suite_run_kinds("jobs/each_fault", tests, 1, name_of, COUNT, NULL);
	for (int i = 0; i < COUNT; i++)
		if (now[i][0])
			(void)fprintf(stderr, "%s: failed at %s\n", scenarios[i].name, now[i]);
	return status;
}
