#ifndef TESTS_LIB_JOBS_FIXTURE_H
#define TESTS_LIB_JOBS_FIXTURE_H

/*
 * What the tests of jobs share: a store of each kind, on a virtual clock, and a table that says what a kind promises
 * beyond what all do.
 *
 * A test of what jobs.h says runs with each kind, whose index is _i:
 *
 *     START_TEST(a_job_is_delivered)
 *     {
 *             NEEDS(KIND_KEEPS);
 *             world_make(&world, _i);
 *             ...
 *     }
 *     END_TEST
 *
 *     KINDS_MAIN("jobs/this", a_job_is_delivered)
 */

#include <stdint.h>

#include "lib/jobs/local/local_internal.h"
#include "tests/support/suite.h"
#include "weekwheel/weekwheel.h"

#define MS WW_MILLISECOND

/* The places of the embedded ones in the table, which come first. */
enum { KIND_MEMORY, KIND_LMDB, KINDS_EMBEDDED };
/* And of those in Redis, which follow where they are built. */
enum { KIND_REDIS = KINDS_EMBEDDED, KIND_REDIS_SHARDS };

/* What a test may need that not every kind promises. */
enum {
	/* What was put is there when the store is opened again. */
	KIND_KEEPS = 1u << 0,
	/* Closing the store ends its leases and pauses; otherwise they go on. */
	KIND_ENDS_LEASES = 1u << 1,
	/*
	 * All jobs are in one row: ids are 1, 2, 3 and so on, tokens grow over all jobs, ready jobs of one priority are
	 * in order of ids. Otherwise ids grow in no order, and tokens with each job's deliveries.
	 */
	KIND_ONE_ROW = 1u << 2,
	/*
	 * What is done between begin and commit, or by one call, is one write, and fails as a whole; world_fail can see
	 * to it.
	 */
	KIND_BATCHES = 1u << 3,
	/* Statistics tell how many jobs are in memory, and of how many writes there were. */
	KIND_TELLS_MEMORY = 1u << 4,
	/* Elapsed time and wall time are two clocks, each of a driver of the configuration. */
	KIND_TWO_CLOCKS = 1u << 5,
	/* It is in this process, and on its driver: the end of the driver, damage done by hand. */
	KIND_IN_PROCESS = 1u << 6,
	/* Lists are in order of ids, and so are kicks of delayed jobs of one moment. */
	KIND_LISTS_IN_ORDER = 1u << 7,
	/* It is in Redis: it may be open more than once, and times are in us. */
	KIND_IN_REDIS = 1u << 8
};

enum failure { FAIL_NOTHING, FAIL_PUT, FAIL_COMMIT };

struct world;

/* A kind of store; what is NULL is not needed. */
struct kind {
	const char *name;
	unsigned promises; /* KIND_* */
	unsigned cost; /* how often more than a store in memory's a call costs, for tests of many steps; 0: no more */
	/* Whether what it needs is installed; if not, it says so. */
	int (*is_there)(void);
	/* Start that, for all tests of the program, unless it runs. */
	void (*begin)(void);
	/*
	 * Make what the store lives in, when the world has a clock and a driver, and remove it when the store is
	 * closed.
	 */
	void (*make)(struct world *world);
	void (*end)(struct world *world);
	/* Take all jobs out, before the store is closed, and see that nothing of them is left. */
	void (*empty)(struct world *world);
	/* Open it, in world->jobs. */
	int (*open)(struct world *world);
	/* Let all that is due happen: the clock has been set. NULL: the driver is dispatched. */
	void (*settle)(struct world *world);
	/* Let writes fail. With KIND_BATCHES. */
	void (*fail_writes)(struct world *world, enum failure what);
};

extern const struct kind *const kinds[];
const char *kinds_name(size_t i);
/*
 * How many kinds of the table are there: all or, without the costly ones that come last, those that every test runs
 * with.
 */
size_t kinds_count(int is_all);
/* Start what these need. */
void kinds_begin(void);

struct world {
	const struct kind *kind;
	struct ww_clock *clock;
	struct ww_driver *driver;
	struct ww_jobs *jobs;
	struct ww_jobs *other;        /* the same store, opened once more; or NULL */
	struct ww_jobs_config config; /* of the embedded kinds */
	char path[64];                /* "": in memory */
	int is_damaged;               /* by the test: it need not be sound at the end */
	void *own;                    /* the kind's */
};

/* A test that has nothing to say of a kind ends here. */
#define NEEDS(promise)                                                                                                 \
	do {                                                                                                           \
		if (!(kinds[_i]->promises & (promise)))                                                                \
			return;                                                                                        \
	} while (0)

#define KINDS_MAIN_OF(name, kinds, ...)                                                                                \
	int main(void)                                                                                                 \
	{                                                                                                              \
		const TTest *const tests[] = {__VA_ARGS__};                                                            \
		return suite_run_kinds(name, tests, sizeof tests / sizeof tests[0], kinds_name, kinds, kinds_begin);   \
	}

#define KINDS_MAIN(name, ...) KINDS_MAIN_OF(name, kinds_count(0), __VA_ARGS__)
/* Also with a cluster. */
#define KINDS_MAIN_ALL(name, ...) KINDS_MAIN_OF(name, kinds_count(1), __VA_ARGS__)

/* A new store of that place in the table. */
void world_make(struct world *world, int kind);
int world_promises(const struct world *world, unsigned promise);
/* Open it once more, and from now on let calls be of the one or of the other. With KIND_IN_REDIS. */
void world_share(struct world *world);
void world_turn(struct world *world);
/* Close it and open it again. */
void world_reopen(struct world *world);
/* It must be sound. Close it, and remove what it lived in. */
void world_end(struct world *world);
/* Let time pass, and all that is due happen. */
void world_pass(struct world *world, uint64_t ns);
/* Let all that is due happen. */
void world_settle(struct world *world);
uint64_t world_now(struct world *world);
/* The store must be sound. */
void world_check(struct world *world);
void world_fail(struct world *world, enum failure what);

/* A job with that body in the default tube. */
struct ww_job_spec spec_of(const char *body);
uint64_t put_job(struct world *world, const struct ww_job_spec *spec);
/* Reserve from the default tube; fails if nothing is ready. */
struct ww_lease reserve_job(struct world *world);
/* Nothing is ready in the default tube. */
void expect_none(struct world *world);
struct ww_job_info info_of(struct world *world, uint64_t id);

#endif
