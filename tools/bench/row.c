/* Turns the samples of a structure into its results. */
#include "tools/bench/result.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"

void row_keep(struct row *row, double first, double second)
{
	row->first[row->count] = first;
	row->second[row->count++] = second;
}

void row_keep_ticks(struct row *row, uint32_t *tick_ns)
{
	row->tick_ns[row->tick_count++] = tick_ns;
}

void row_drop(struct row *row)
{
	while (row->tick_count)
		free(row->tick_ns[--row->tick_count]);
	row->count = 0;
}

/* ---- Samples -------------------------------------------------------------------------------------------------- */

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median_of(double *value, unsigned count)
{
	qsort(value, count, sizeof *value, compare_doubles);
	return count % 2 ? value[count / 2] : (value[count / 2 - 1] + value[count / 2]) / 2;
}

void row_add_samples(const struct row *row, const double *value, struct result result, struct results *results)
{
	double sorted[PASSES_MAX];

	if (row->count == 0)
		return;
	memcpy(sorted, value, row->count * sizeof *value);
	result.median = median_of(sorted, row->count);
	result.min = sorted[0];
	result.max = sorted[row->count - 1];
	result.repetitions = row->count;
	results_add(results, result);
}

/* ---- Ticks ---------------------------------------------------------------------------------------------------- */

/*
 * A repetition does the same work in the same tick. A tick's time is its median over the repetitions: if there are three
 * or more, what else the machine did in one of them falls out. The longest tick is the longest of those medians. Its
 * minimum and maximum are those of the ticks' minima and maxima.
 */
enum { MEDIAN, MIN, MAX, KINDS };

static int compare_ticks(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static void gather_ticks(const struct row *row, uint32_t *const ns[KINDS])
{
	uint32_t sorted[PASSES_MAX];
	unsigned count = row->tick_count;

	for (uint64_t tick = 0; tick < BENCH_WEEK; tick++) {
		uint32_t above, below;

		for (unsigned i = 0; i < count; i++)
			sorted[i] = row->tick_ns[i][tick];
		qsort(sorted, count, sizeof *sorted, compare_ticks);
		above = sorted[count / 2];
		below = sorted[(count - 1) / 2];
		ns[MEDIAN][tick] = below + (above - below) / 2;
		ns[MIN][tick] = sorted[0];
		ns[MAX][tick] = sorted[count - 1];
	}
}

/* Add the result of the tick of that rank, of which `result` has all but the times. */
static void add_tick(struct results *results, struct result result, uint32_t *const sorted[KINDS], size_t rank)
{
	result.median = sorted[MEDIAN][rank] / 1e3;
	result.min = sorted[MIN][rank] / 1e3;
	result.max = sorted[MAX][rank] / 1e3;
	results_add(results, result);
}

void row_add_ticks(const struct row *row, enum workload workload, uint64_t n, struct results *results)
{
	struct result result = {row->structure, workload, n, MAX_TICK_US, 0, 0, 0, row->tick_count};
	struct ticks ticks = {row->structure, n, NULL};
	uint32_t *ns[KINDS];

	if (row->tick_count == 0)
		return;
	for (int kind = 0; kind < KINDS; kind++)
		ns[kind] = memory_zeroed(BENCH_WEEK, sizeof *ns[kind]);
	gather_ticks(row, ns);
	ticks.ns = memory_zeroed(BENCH_WEEK, sizeof *ticks.ns);
	memcpy(ticks.ns, ns[MEDIAN], BENCH_WEEK * sizeof *ticks.ns);
	results->ticks = memory_grow(results->ticks, &results->ticks_capacity, results->ticks_count, sizeof ticks);
	results->ticks[results->ticks_count++] = ticks;
	for (int kind = 0; kind < KINDS; kind++)
		qsort(ns[kind], BENCH_WEEK, sizeof *ns[kind], compare_ticks);
	add_tick(results, result, ns, BENCH_WEEK - 1);
	result.metric = P999_TICK_US;
	add_tick(results, result, ns, BENCH_WEEK - BENCH_WEEK / 1000 - 1);
	for (int kind = 0; kind < KINDS; kind++)
		free(ns[kind]);
}
