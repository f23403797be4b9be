#ifndef TOOLS_BENCH_INPUTS_H
#define TOOLS_BENCH_INPUTS_H

/* The inputs of the workloads: drawn from a seed before anything is timed, and the same for every structure. */

#include <stdint.h>

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
	uint32_t *expired;   /* of each tick: so many lives follow an expiry, */
	uint32_t *cancelled; /* and after those so many follow a cancel */
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

#endif
