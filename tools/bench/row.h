#ifndef TOOLS_BENCH_ROW_H
#define TOOLS_BENCH_ROW_H

/* What the passes of one workload at one size have given of a structure so far, and the results that come of it. */

#include <stdint.h>

#include "tools/bench/result.h"

enum { PASSES_MAX = 101 };

struct row {
	const struct structure *structure;
	double first[PASSES_MAX], second[PASSES_MAX];
	unsigned count;
	uint32_t *tick_ns[PASSES_MAX]; /* BENCH_WEEK ticks each */
	unsigned tick_count;
	int once; /* its passes are long */
	int out;  /* one was given up */
};

/* Keep what a pass has given. */
void row_keep(struct row *row, double first, double second);

/* Keep the times of the ticks of a pass, which the row frees. */
void row_keep_ticks(struct row *row, uint32_t *tick_ns);

/* Forget all of it. */
void row_drop(struct row *row);

/* Add the result that the values come to, row->first or row->second; `result` says of what. None if there are none. */
void row_add_samples(const struct row *row, const double *value, struct result result, struct results *results);

/* Add what the ticks come to, if there are any. */
void row_add_ticks(const struct row *row, enum workload workload, uint64_t n, struct results *results);

#endif
