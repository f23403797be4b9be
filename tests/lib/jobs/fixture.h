#ifndef TESTS_LIB_JOBS_FIXTURE_H
#define TESTS_LIB_JOBS_FIXTURE_H

/*
 * Worlds for the tests of jobs: a store of each kind, on a virtual clock. A table says what a kind promises beyond the
 * promises of all kinds.
 *
 * A test of jobs.h runs once with each kind, whose index is _i:
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

#include "lib/jobs/local/local.h"
#include "tests/support/suite.h"
#include "weekwheel/weekwheel.h"

#define MS WW_MILLISECOND

/* Indices into the table. The embedded kinds come first. */
enum { KIND_MEMORY, KIND_DISK, KINDS_EMBEDDED };
/* The kinds in PostgreSQL and Redis follow if they are built. */
#ifdef HAVE_POSTGRES
enum { KIND_POSTGRES = KINDS_EMBEDDED, KIND_REDIS, KIND_REDIS_SHARDS };
#else
enum { KIND_REDIS = KINDS_EMBEDDED, KIND_REDIS_SHARDS };
#endif

/* What not every kind promises. */
enum {
	/* Jobs survive closing the store. */
	KIND_KEEPS = 1u << 0,
	/* Closing the store ends its leases and pauses. Otherwise they go on. */
	KIND_ENDS_LEASES = 1u << 1,
	/*
	 * All jobs are in one row: ids are 1, 2, 3 and so on, tokens grow over all jobs, and ready jobs of one priority
	 * come in order of ids. Otherwise ids have no order, and tokens grow with the deliveries of each job.
	 */
	KIND_ONE_ROW = 1u << 2,
	/*
	 * All changes between begin and commit, or of one call, are one write and fail together. world_fail lets writes
	 * fail.
	 */
	KIND_BATCHES = 1u << 3,
	/* Statistics count the jobs in memory and the writes. */
	KIND_TELLS_MEMORY = 1u << 4,
	/* Elapsed time and wall time are two clocks, each with its driver in the configuration. */
	KIND_TWO_CLOCKS = 1u << 5,
	/* It is in this process and on its driver: tests may stop the driver, and damage the store by hand. */
	KIND_IN_PROCESS = 1u << 6,
	/* Lists come in order of ids, and so do kicks of jobs with the same due time. */
	KIND_LISTS_IN_ORDER = 1u << 7,
	/* It is in Redis: it may be open more than once, and its times have a resolution of 1 us. */
	KIND_IN_REDIS = 1u << 8,
	/* It keeps limits. */
	KIND_LIMITS = 1u << 9,
	/* Groups of a tube take turns, and have limits of their own. */
	KIND_GROUPS = 1u << 10,
	/* Jobs expire, and have follow-ups. */
	KIND_EXPIRES = 1u << 11,
	/* Jobs have codes. */
	KIND_CODES = 1u << 12,
	/* Groups have weights. */
	KIND_WEIGHTS = 1u << 13
};

enum failure { FAIL_NOTHING, FAIL_PUT, FAIL_COMMIT };

struct world;

/* A kind of store. Functions that a kind does not need are NULL. */
struct kind {
	const char *name;
	unsigned promises; /* KIND_* */
	unsigned cost; /* of a call, in calls of the store in memory; tests of many steps divide by it; 0: the same */
	/* Whether the programs it needs are installed. If not, it prints a message. */
	int (*is_there)(void);
	/* Start them for all tests of the program, unless they run already. */
	void (*begin)(void);
	/*
	 * Make the place of the store, once the world has a clock and a driver, and remove it when the store is closed.
	 */
	void (*make)(struct world *world);
	void (*end)(struct world *world);
	/* Before the store is closed: take out all jobs, and check that nothing is left of them. */
	void (*empty)(struct world *world);
	/* Open the store as world->jobs. */
	int (*open)(struct world *world);
	/* The clock has been set: let everything happen that is due. NULL: dispatch the driver. */
	void (*settle)(struct world *world);
	/* Let writes fail. With KIND_BATCHES. */
	void (*fail_writes)(struct world *world, enum failure what);
};

/* Let writes fail of a store that the engine of the embedded kinds stands on. */
void kinds_fail_embedded(struct world *world, enum failure what);

extern const struct kind *const kinds[];
const char *kinds_name(size_t i);
/*
 * How many kinds the table has. Unless is_all, the costly kinds at its end do not count: most tests leave them out.
 */
size_t kinds_count(int is_all);
/* Start the programs that these need. */
void kinds_begin(void);

struct world {
	const struct kind *kind;
	struct ww_clock *clock;
	struct ww_driver *driver;
	struct ww_jobs *jobs;
	struct ww_jobs *other;        /* the same store, opened once more; or NULL */
	struct ww_jobs_config config; /* of the embedded kinds */
	char path[64];                /* "": in memory */
	int is_damaged;               /* the test has damaged it: do not check it at the end */
	void *own;                    /* data of the kind */
};

/* A test ends here for a kind that does not make the promise. */
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
/* The same with a Redis cluster too. */
#define KINDS_MAIN_ALL(name, ...) KINDS_MAIN_OF(name, kinds_count(1), __VA_ARGS__)

/* Make a new store of the kind with this index. */
void world_make(struct world *world, int kind);
int world_promises(const struct world *world, unsigned promise);
/* Open the store once more; world_turn then swaps the two handles. With KIND_IN_REDIS. */
void world_share(struct world *world);
void world_turn(struct world *world);
/* Close it and open it again. */
void world_reopen(struct world *world);
/* Check the store, close it, and remove its place. */
void world_end(struct world *world);
/* Let time pass, and everything happen that is due. */
void world_pass(struct world *world, uint64_t ns);
/* Let everything happen that is due. */
void world_settle(struct world *world);
uint64_t world_now(struct world *world);
/* Check the store. */
void world_check(struct world *world);
void world_fail(struct world *world, enum failure what);

/* A job with this body in the default tube. */
struct ww_job_spec spec_of(const char *body);
uint64_t put_job(struct world *world, const struct ww_job_spec *spec);
/* Reserve from the default tube; fails if nothing is ready. */
struct ww_lease reserve_job(struct world *world);
/* Check that nothing is ready in the default tube. */
void expect_none(struct world *world);
/* The job becomes ready when so much time has passed, and no job does before. */
void expect_job_in(struct world *world, uint64_t ns, uint64_t id);
struct ww_job_info info_of(struct world *world, uint64_t id);

#endif
