#ifndef TESTS_JOBS_FIXTURE_H
#define TESTS_JOBS_FIXTURE_H

/*
 * What the tests of jobs share: a store of either kind in a folder of its own, on a virtual clock and a driver without
 * threads.
 */

#include <stdint.h>

#include "jobs/jobs_internal.h"
#include "support/suite.h"
#include "weekwheel/weekwheel.h"

#define MS WW_MILLISECOND

/* Each test runs with both kinds of store: the loop variable of _i. */
enum kind { KIND_MEMORY, KIND_LMDB, KINDS };

struct world {
	struct ww_clock *clock;
	struct ww_driver *driver;
	struct ww_jobs *jobs;
	struct ww_jobs_config config;
	char path[64]; /* "": in memory */
};

/* A new store. */
void world_make(struct world *world, enum kind kind);
/* Close it and open it again. */
void world_reopen(struct world *world);
/* Close it, and remove the folder. */
void world_end(struct world *world);
/* Let time pass, and all that is due happen. */
void world_pass(struct world *world, uint64_t ns);
/* Let all that is due happen. */
void world_settle(struct world *world);
uint64_t world_now(struct world *world);
/* The store must be sound. */
void world_check(struct world *world);

/* A job with that body in the default tube. */
struct ww_job_spec spec_of(const char *body);
uint64_t put_job(struct world *world, const struct ww_job_spec *spec);
/* Reserve from the default tube; fails if nothing is ready. */
struct ww_lease reserve_job(struct world *world);
/* Nothing is ready in the default tube. */
void expect_none(struct world *world);
struct ww_job_info info_of(struct world *world, uint64_t id);

#endif
