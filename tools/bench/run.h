#ifndef TOOLS_BENCH_RUN_H
#define TOOLS_BENCH_RUN_H

/* Runs a plan of measurements and gathers the results. */

#include <stdint.h>

#include "tools/bench/result.h"

#define SIZES_MAX 16
#define STRUCTURES_MAX 48

struct plan {
	uint64_t sizes[SIZES_MAX]; /* numbers of timers */
	size_t size_count;
	const struct structure *chosen[STRUCTURES_MAX]; /* ended by NULL */
	unsigned workloads;                             /* a bit each */
	uint64_t repetitions;
	uint64_t seed;
	uint64_t limit_ns; /* for one pass */
};

/* Return 1 if none of the structures has any of the workloads. */
int plan_is_empty(const struct plan *plan);

/* *results is zeroed before; results_free frees what it holds. */
void run_plan(const struct plan *plan, struct results *results);

#endif
