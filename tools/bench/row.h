#ifndef TOOLS_BENCH_ROW_H
#define TOOLS_BENCH_ROW_H

/* A row has the samples of a structure in one workload at one size. This turns them into results. */

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

/* Keep the two values of a pass. */
void row_keep(struct row *row, double first, double second);

/* Keep the times of the ticks of a pass, which the row frees. */
void row_keep_ticks(struct row *row, uint32_t *tick_ns);

/* Forget all samples. */
void row_drop(struct row *row);

/* Add the result of the values, row->first or row->second, if there are any. `result` has all but their statistics. */
void row_add_samples(const struct row *row, const double *value, struct result result, struct results *results);

/* Add the results of the ticks, if there are any. */
void row_add_ticks(const struct row *row, enum workload workload, uint64_t n, struct results *results);

#endif
