#ifndef TESTS_LIB_JOBS_MODEL_H
#define TESTS_LIB_JOBS_MODEL_H

/* The oracle of a store: an array of jobs without indices, and what each call and the time change in it. */

#include <stdint.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"

enum { JOBS = 60, TUBES = 3, KEYS = 8 };

/* Check's own assertions write to a file even if they hold, which is slow. */
#define AGREE(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			ck_abort_msg("step %llu: not true: %s", (unsigned long long)model_step, #condition);           \
	} while (0)

extern const char *const model_tubes[TUBES];

struct expected {
	uint64_t id; /* 0: free */
	unsigned tube;
	unsigned key; /* 0: none */
	uint64_t body;
	uint64_t due;
	uint64_t base;
	uint64_t period;
	uint64_t run;
	uint64_t ends;
	uint64_t token;
	uint64_t last_token; /* the greatest of its leases */
	uint64_t version;
	uint64_t missed;
	uint64_t burial;
	uint32_t priority;
	uint32_t code;
	uint32_t attempts;
	uint32_t tries;
	uint32_t reserves, timeouts, releases, buries, kicks;
	uint64_t first; /* debounced put; 0: none */
	uint64_t hold;
	uint64_t expire, expires; /* 0: never */
	enum ww_expired expired;
	enum ww_job_state state;
};

/* A job that has ended, and has its key until then. */
struct ended {
	uint64_t id; /* 0: none */
	uint64_t version;
	uint64_t until;
};

struct oracle {
	struct expected jobs[JOBS];
	struct ended ended[TUBES][KEYS + 1];
	uint64_t last_id;
	uint64_t last_token;
};

extern struct oracle model_oracle;
extern struct world model_world; /* with the store to compare */
extern uint64_t model_random;
extern uint64_t model_step;
extern uint64_t model_now; /* time of jobs */

uint64_t model_below(uint64_t limit);
/* NULL if there is none. */
struct expected *model_find(uint64_t id);
struct expected *model_find_key(unsigned tube, unsigned key);
/* The ended job that still has the key, or NULL. */
const struct ended *model_find_ended(unsigned tube, unsigned key);

/* Let the job wait until `due`, or be buried. Either ends its lease. */
void model_wait(struct expected *job, uint64_t due);
void model_bury(struct expected *job);
/* What has expired and has no lease ends. */
void model_expire(void);
/* Its moment is that of its due time, or there is none. */
void model_set_expires(struct expected *job);
void model_unexpire(struct expected *job);
/* Let time pass, in the store too: what is due by then comes due, one moment after the other. */
void model_pass(uint64_t ns);

/* Whether `one` is delivered before `other`, which may be NULL. */
int model_is_before(const struct expected *one, const struct expected *other);
/* The store leased it. */
void model_lease(struct expected *job, const struct ww_lease *lease);
void model_kick(struct expected *job);

/* Compare everything that the store says about its jobs. */
void model_compare(void);

#endif
