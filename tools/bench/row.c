/* From the samples of a structure to its results. */
#include "tools/bench/row.h"

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
 * A repetition does the same work in the same tick. So a tick's time is its median over the repetitions, from which
 * falls out what else the machine did meanwhile, if there are three of them or more; the longest tick is the longest of
 * those medians, and its minimum and maximum are those of the ticks' minima and maxima.
 */
struct tick_times {
	uint32_t *median, *min, *max;
};

static int compare_ticks(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static uint32_t tick_median(uint32_t *ns, unsigned count)
{
	uint32_t above, below;

	qsort(ns, count, sizeof *ns, compare_ticks);
	above = ns[count / 2];
	below = ns[(count - 1) / 2];
	return below + (above - below) / 2;
}

static struct tick_times tick_times(const struct row *row)
{
	struct tick_times times;
	uint32_t sorted[PASSES_MAX];
	uint64_t tick;
	unsigned i;

	times.median = memory_zeroed(BENCH_WEEK, sizeof(uint32_t));
	times.min = memory_zeroed(BENCH_WEEK, sizeof(uint32_t));
	times.max = memory_zeroed(BENCH_WEEK, sizeof(uint32_t));
	for (tick = 0; tick < BENCH_WEEK; tick++) {
		for (i = 0; i < row->tick_count; i++)
			sorted[i] = row->tick_ns[i][tick];
		times.median[tick] = tick_median(sorted, row->tick_count);
		times.min[tick] = sorted[0];
		times.max[tick] = sorted[row->tick_count - 1];
	}
	return times;
}

static uint32_t *sorted_copy(const uint32_t *ns)
{
	uint32_t *sorted = memory_zeroed(BENCH_WEEK, sizeof *sorted);

	memcpy(sorted, ns, BENCH_WEEK * sizeof *sorted);
	qsort(sorted, BENCH_WEEK, sizeof *sorted, compare_ticks);
	return sorted;
}

static void add_tick_results(const struct tick_times *times, struct result result, struct results *results)
{
	static const struct {
		enum metric metric;
		size_t rank;
	} wanted[] = {{MAX_TICK_US, BENCH_WEEK - 1}, {P999_TICK_US, BENCH_WEEK - BENCH_WEEK / 1000 - 1}};
	uint32_t *median = sorted_copy(times->median);
	uint32_t *min = sorted_copy(times->min);
	uint32_t *max = sorted_copy(times->max);
	size_t i;

	for (i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		result.metric = wanted[i].metric;
		result.median = median[wanted[i].rank] / 1e3;
		result.min = min[wanted[i].rank] / 1e3;
		result.max = max[wanted[i].rank] / 1e3;
		results_add(results, result);
	}
	free(median);
	free(min);
	free(max);
}

void row_add_ticks(const struct row *row, enum workload workload, uint64_t n, struct results *results)
{
	struct tick_times times;

	if (row->tick_count == 0)
		return;
	times = tick_times(row);
	add_tick_results(
	    &times, (struct result){row->structure, workload, n, MAX_TICK_US, 0, 0, 0, row->tick_count}, results);
	free(times.min);
	free(times.max);
	results->ticks =
	    memory_grow(results->ticks, &results->ticks_capacity, results->ticks_count, sizeof *results->ticks);
	results->ticks[results->ticks_count++] = (struct ticks){row->structure, n, times.median};
}
