/*
 * A process is killed amid its writes, again and again, and another one opens the store. No acknowledged put is lost,
 * no finished job comes again, the key of a unique job that was finished is still taken, and the store is sound.
 * A follow-up is there once its job was finished, and not before.
 *
 * WW_KILLS sets the number of kills, WW_SEED the seed, which is printed.
 */
/* tier: long, no-valgrind */

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"

/* Each kill is followed by a look at all jobs that were ever put, so a store that lives long makes later kills rare. */
enum { KILLS = 60, KILLS_OF_A_STORE = 20, IDS = 2000000, CALLS = 300, YIELDS = 20 };

/* A process reports each call, before and after it, through a pipe that outlives the process. */
enum what { WILL_FINISH = 1, HAS_PUT, HAS_FINISHED };

struct told {
	uint64_t id;
	uint32_t what;
	uint32_t delayed;
	uint64_t key;  /* HAS_PUT: of a unique job, or 0 */
	uint64_t then; /* HAS_PUT: the key of its follow-up, or 0 */
};

static struct world world;
static size_t told_of[HAS_FINISHED + 1]; /* reports, by what they tell */
static unsigned char put_of[IDS];        /* acknowledged */
static unsigned char finished[IDS];      /* acknowledged */
static unsigned char maybe_done[IDS];    /* begun: the finish may have happened */
static uint64_t keys[IDS];               /* of unique jobs that were put */
static uint64_t thens[IDS];              /* of follow-ups */
static size_t followed;                  /* follow-ups that were found */

static void tell(int to, uint64_t id, enum what what, uint64_t key, uint64_t then)
{
	struct told told = {id, what, 0, key, then};

	if (write(to, &told, sizeof told) != sizeof told)
		_exit(3);
}

/* A driver works only in the process that made it. */
static void own_store(void)
{
	struct ww_driver_config config;

	(void)ww_driver_config_default(&config);
	config.clock = world.clock;
	config.flags = WW_DRIVER_THREADLESS;
	if (ww_driver_create(&world.config.driver, &config))
		_exit(9);
	world.config.wall = world.config.driver;
	if (ww_jobs_open(&world.jobs, &world.config))
		_exit(2);
}

/* No job of this test lives as long as its key is taken. */
static void make_unique(struct ww_job_spec *spec, const uint64_t *key)
{
	spec->key = key;
	spec->key_length = *key ? sizeof *key : 0;
	spec->key_mode = *key ? WW_KEY_UNIQUE : WW_KEY_REPLACE;
	spec->key_span = *key ? 1000 * 3600 * WW_SECOND : 0;
}

/* One that nobody finishes. */
static void make_then(struct ww_job_spec *spec, const uint64_t *key)
{
	static char bytes[100];
	struct ww_job_spec next = spec_of("then");

	spec->then = bytes;
	spec->then_length = 0;
	if (!*key)
		return;
	spec->then_length = sizeof bytes;
	next.tube = "then";
	next.key = key;
	next.key_length = sizeof *key;
	if (ww_job_then_write(bytes, &spec->then_length, &next))
		_exit(10);
}

/* Put and finish jobs until the process is killed. */
static void work(int to, uint64_t seed)
{
	static const char *const tube[] = {WW_TUBE_DEFAULT};
	struct ww_lease lease;
	uint64_t ids[16];
	uint64_t key[16], then[16];

	own_store();
	for (;;) {
		uint64_t count = 1 + seed_below(&seed, 16);
		char body[300];
		memset(body, 'b', sizeof body);
		struct ww_job_spec spec = spec_of("");
		spec.body = body;
		spec.due = seed_below(&seed, 2) * 3600 * WW_SECOND;
		if (ww_jobs_begin(world.jobs))
			_exit(4);
		for (uint64_t i = 0; i < count; i++) {
			spec.body_length = seed_below(&seed, sizeof body);
			key[i] = seed_below(&seed, 3) ? 0 : seed_next(&seed);
			then[i] = seed_below(&seed, 3) ? 0 : seed_next(&seed);
			make_unique(&spec, &key[i]);
			make_then(&spec, &then[i]);
			if (ww_jobs_put(world.jobs, &spec, &ids[i], NULL))
				_exit(5);
		}
		if (ww_jobs_commit(world.jobs))
			_exit(6);
		for (uint64_t i = 0; i < count; i++)
			tell(to, ids[i], HAS_PUT, key[i], then[i]);
		/* Due jobs become ready, those of earlier processes too. */
		if (ww_driver_dispatch(world.config.driver, 1000) < 0)
			_exit(8);
		while (seed_below(&seed, 4) && ww_jobs_reserve(world.jobs, tube, 1, &lease) == 1) {
			tell(to, lease.id, WILL_FINISH, 0, 0);
			if (ww_jobs_finish(world.jobs, lease.id, lease.token))
				_exit(7);
			tell(to, lease.id, HAS_FINISHED, 0, 0);
		}
	}
}

/* Returns 0 at the end of the reports. */
static int listen_once(int from)
{
	struct told told;

	if (read(from, &told, sizeof told) != sizeof told)
		return 0;
	ck_assert_uint_lt(told.id, IDS);
	told_of[told.what]++;
	if (told.what == HAS_PUT) {
		put_of[told.id] = 1;
		keys[told.id] = told.key;
		thens[told.id] = told.then;
	} else if (told.what == HAS_FINISHED)
		finished[told.id] = 1;
	else
		maybe_done[told.id] = 1;
	return 1;
}

/*
 * Read so many reports, then wait a little longer. The process does not wait for us: it may be anywhere in a call.
 */
static void let_it_work(int from, uint64_t *seed)
{
	uint64_t calls = seed_below(seed, 8) ? seed_below(seed, CALLS) : 0;
	uint64_t yields = seed_below(seed, YIELDS);

	while (calls-- > 0)
		ck_assert_int_eq(listen_once(from), 1);
	while (yields-- > 0)
		sched_yield();
}

/* A put of the key of a unique job only tells its id. */
static void verify_key(uint64_t id)
{
	struct ww_job_spec spec = spec_of("");
	uint64_t has = 0;

	make_unique(&spec, &keys[id]);
	int result = ww_jobs_put(world.jobs, &spec, &has, NULL);
	if (has != id || (result != WW_PUT_ENDED && (finished[id] || result != WW_PUT_KEPT)))
		ck_abort_msg("the key of job %llu is free, or of job %llu: %d", (unsigned long long)id,
		    (unsigned long long)has, result);
}

/* It is there if its job has ended, and not if that is there. A job that was put twice would have a version. */
static void verify_then(uint64_t id, int is_there)
{
	struct ww_job_ref ref = {.tube = "then", .key = &thens[id], .key_length = sizeof thens[id]};
	struct ww_job_info info;
	int found = ww_jobs_peek(world.jobs, &ref, &info, NULL);

	if (found != (is_there ? WW_ENOTFOUND : WW_OK) || (!is_there && info.version != 1))
		ck_abort_msg("job %llu is %s, and a look for its follow-up answers %d", (unsigned long long)id,
		    is_there ? "there" : "gone", found);
	followed += !is_there;
}

static void verify(void)
{
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_check(&world);
	/* All are read at once. */
	OK(ww_jobs_begin(world.jobs));
	for (uint64_t id = 1; id < IDS; id++) {
		enum ww_job_state state;
		if (!put_of[id])
			continue;
		int found = ww_jobs_state(world.jobs, id, &state);
		if (finished[id] && found != WW_ENOTFOUND)
			ck_abort_msg("job %llu was finished, and is there", (unsigned long long)id);
		if (!maybe_done[id] && found != WW_OK)
			ck_abort_msg("job %llu was put, and is lost", (unsigned long long)id);
		if (thens[id])
			verify_then(id, found == WW_OK);
		if (keys[id])
			verify_key(id);
	}
	OK(ww_jobs_commit(world.jobs));
	OK(ww_jobs_close(world.jobs));
}

static void kill_once(uint64_t *seed)
{
	int ends[2];
	int status;

	ck_assert_int_eq(pipe(ends), 0);
	uint64_t child_seed = seed_next(seed);
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		work(ends[1], child_seed);
	}
	close(ends[1]);
	let_it_work(ends[0], seed);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	while (listen_once(ends[0]))
		continue;
	close(ends[0]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(WIFSIGNALED(status), 1);
	verify();
}

static void live(long kills, uint64_t *seed)
{
	memset(put_of, 0, sizeof put_of);
	memset(finished, 0, sizeof finished);
	memset(maybe_done, 0, sizeof maybe_done);
	memset(thens, 0, sizeof thens);
	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	while (kills-- > 0)
		kill_once(seed);
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_end(&world);
}

START_TEST(a_killed_process_loses_nothing_that_it_acknowledged)
{
	const char *text = getenv("WW_KILLS");
	uint64_t seed = seed_of_run("test_jobs_crash");

	for (long kills = text ? strtol(text, NULL, 10) : KILLS; kills > 0; kills -= KILLS_OF_A_STORE)
		live(kills < KILLS_OF_A_STORE ? kills : KILLS_OF_A_STORE, &seed);
	/* Without such jobs the test would test nothing. */
	ck_assert_uint_gt(told_of[HAS_PUT], 0);
	ck_assert_uint_gt(told_of[HAS_FINISHED], 0);
	ck_assert_uint_gt(followed, 0);
}
END_TEST

TEST_MAIN("jobs/crash", a_killed_process_loses_nothing_that_it_acknowledged)
