#ifndef TOOLS_BENCH_RESULT_H
#define TOOLS_BENCH_RESULT_H

/* The results of a run of the benchmark, and the names of workloads and metrics. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/bench/structure.h"

enum workload {
	WORKLOAD_A,
	WORKLOAD_B,
	WORKLOAD_O,
	WORKLOAD_C30,
	WORKLOAD_C1800,
	WORKLOAD_CWEEK,
	WORKLOAD_D,
	WORKLOAD_R,
	WORKLOAD_E,
	WORKLOAD_F,
	WORKLOAD_G,
	/* Of the layers above the wheel: see layers.h. */
	WORKLOAD_K,
	WORKLOAD_T,
	WORKLOAD_L,
	WORKLOAD_H,
	WORKLOAD_M,
	WORKLOAD_S,
	WORKLOAD_W,
	WORKLOAD_P,
	WORKLOAD_X,
	WORKLOADS
};

enum metric {
	NS_PER_OP,
	NS_PER_TIMER,
	MAX_TICK_US,
	P999_TICK_US,
	NS_PER_TICK,
	JUMP_NS,
	BYTES_PER_TIMER,
	MEDIAN_LATE_US,
	P999_LATE_US,
	LATE_TICKS,
	SAVE_NS,
	LOAD_NS,
	SWITCHES,
	METRICS
};

/* "A", "C30", "Cweek"; and a few words of what it is: "schedule", "heartbeat, 30 s". */
extern const struct workload_words {
	const char *name, *summary;
} workload_words[WORKLOADS];

/* "ns_per_op", its unit, "ns", and what a table calls it: "ns an operation". */
extern const struct metric_words {
	const char *name, *unit, *title;
} metric_words[METRICS];
/* The same for a workload that needs another title. */
const char *metric_title(enum metric metric, enum workload workload);

struct result {
	const struct structure *structure;
	enum workload workload;
	uint64_t n;
	enum metric metric;
	double median, min, max; /* over the repetitions */
	unsigned repetitions;    /* how many there were */
};

/* The times of the ticks of a whole life (workload D): each is the median over the repetitions. */
struct ticks {
	const struct structure *structure;
	uint64_t n;
	uint32_t *ns; /* of BENCH_WEEK ticks */
};

/* What the correctness run found. */
struct checked {
	const struct structure *structure;
	const char *wrong; /* NULL, or a sentence: the structure is then not timed */
	uint64_t latest;   /* ticks by which a timer was late */
};

/* Why a structure has no result of a workload. */
struct left_out {
	const struct structure *structure;
	enum workload workload;
	uint64_t n;
	const char *why;
};

struct results {
	struct result *result;
	size_t count, capacity;
	struct ticks *ticks;
	size_t ticks_count, ticks_capacity;
	struct checked *checked;
	size_t checked_count, checked_capacity;
	struct left_out *left_out;
	size_t left_out_count, left_out_capacity;
	uint64_t seed;
	int interrupted; /* the signal that ended it early, or 0 */
	/* How it was measured, for people: the command, the processor, the compiler. */
	char command[400];
	char machine[400];
};

/* Return the result, or NULL if there is none. */
const struct result *results_find(const struct results *results, const struct structure *structure,
    enum workload workload, uint64_t n, enum metric metric);

void results_add(struct results *results, struct result result);
void results_leave_out(struct results *results, struct left_out left_out);
void results_free(struct results *results);

/* Return 1 if times of ticks have too few repetitions for their medians to leave out what else the machine did. */
int results_ticks_are_raw(const struct results *results);

/* Write the results as tables for a person. */
void bench_report_table(FILE *out, const struct results *results);

/* Write the results as a JSON object; docs/benchmark.md lists its keys. "results" has one object per line. */
void bench_report_json(FILE *out, const struct results *results);

/* ---- Rows (row.c): the samples of a structure in one workload at one size, which become results */

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
