#ifndef TOOLS_BENCH_WORKLOAD_H
#define TOOLS_BENCH_WORKLOAD_H

/* One pass of one workload over one structure. Only the work that the workload names is timed, not its preparation. */

#include <stdint.h>

#include "tools/bench/result.h"

/* ---- The inputs: drawn from a seed before anything is timed, and the same for every structure (inputs.c) */

/* Orders in which objects are touched; the heartbeat takes them in turn. */
#define ORDERS 4

/*
 * The script of workload F. In each tick some timers expire and are scheduled again, and four times as many that are
 * pending are cancelled and scheduled again. At any time n are pending, and 80 % are cancelled before they expire. The
 * deadlines decide which ones expire: the whole script can be written beforehand.
 */
struct churn {
	uint32_t *first_delay; /* of each object at the start, when part of its delay has passed */
	uint32_t *object;      /* of each life, in order: what is scheduled, and for how long */
	uint32_t *delay;
	uint64_t lives;
	uint32_t *expired;   /* of each tick: this many lives follow an expiry, */
	uint32_t *cancelled; /* and after those this many follow a cancel */
	uint64_t ticks;
};

struct inputs {
	uint64_t n;
	uint32_t *delay;         /* n delays, uniform in 1 to 604,799 */
	uint32_t *order[ORDERS]; /* n indices each, shuffled */
	struct churn churn;      /* empty until inputs_draw_churn */
};

void inputs_draw(struct inputs *inputs, uint64_t n, uint64_t seed);
void inputs_draw_churn(struct inputs *inputs, uint64_t seed);
void inputs_free(struct inputs *inputs);

/* ---- Passes (workload.c) */

/* What all passes over n timers share. */
struct arena {
	const struct inputs *inputs;
	struct object *objects;
	struct sink sink;
	uint64_t limit_ns; /* a pass that takes longer is given up */
};

struct sample {
	double ns_per_op;    /* A, C and F; of D and R ns a timer; of E ns a tick */
	double ns_per_other; /* of A and B together that of B; of E ns a jump */
	uint64_t timed_ns;   /* of all that was timed */
	const char *why;     /* NULL, or why there is no sample */
};

/* The `why` of a pass that took longer than the limit. */
extern const char *const workload_too_long;

/* Schedule all (A), then cancel all in random order (B). */
struct sample workload_schedule_cancel(struct arena *arena, const struct structure *structure);

/* Cancel all in the order of memory (O). */
struct sample workload_cancel_in_order(struct arena *arena, const struct structure *structure);

/* The heartbeat, C, of a timeout. */
struct sample workload_heartbeat(struct arena *arena, const struct structure *structure, uint64_t timeout);

/*
 * D, or R if shuffled: schedule all, then every tick until all have expired. tick_ns, unless NULL, gets the time of
 * each of BENCH_WEEK ticks, which costs a reading of the clock each.
 */
struct sample workload_life(struct arena *arena, const struct structure *structure, int shuffled, uint32_t *tick_ns);

/* E: one timer 6.9 days away. */
struct sample workload_lonely(struct arena *arena, const struct structure *structure);

/* F, churn. */
struct sample workload_churn(struct arena *arena, const struct structure *structure);

#endif
