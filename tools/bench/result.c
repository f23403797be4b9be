/* Names and look-up of results. */
#include "tools/bench/result.h"

#include "tools/common/memory.h"

enum { REPETITIONS_THAT_FILTER = 3 };

static const struct {
	const char *name, *summary;
} workload_words[WORKLOADS] = {
    [WORKLOAD_A] = {"A", "schedule"},
    [WORKLOAD_B] = {"B", "cancel in random order"},
    [WORKLOAD_C30] = {"C30", "heartbeat, timeout 30 s"},
    [WORKLOAD_C1800] = {"C1800", "heartbeat, timeout 1,800 s"},
    [WORKLOAD_CWEEK] = {"Cweek", "heartbeat, timeout a week"},
    [WORKLOAD_D] = {"D", "whole life: schedule, and every tick of the week until all have expired"},
    [WORKLOAD_R] = {"R", "whole life, scheduled in an order unrelated to memory"},
    [WORKLOAD_E] = {"E", "one timer 6.9 days away"},
    [WORKLOAD_F] = {"F", "churn: 80 % are cancelled before they expire"},
    [WORKLOAD_G] = {"G", "memory"},
    [WORKLOAD_K] = {"K", "sessions: refresh by a key of 16 bytes, beside a table's lookup"},
    [WORKLOAD_T] = {"T", "the driver: schedule and cancel, one thread and two"},
    [WORKLOAD_L] = {"L", "the driver: 100,000 expiries a second, ticks of 1 ms"},
    [WORKLOAD_H] = {"H", "sessions: 1,000 with one deadline among n that are not due"},
};

static const struct {
	const char *name, *unit;
} metric_words[METRICS] = {
    [NS_PER_OP] = {"ns_per_op", "ns"},
    [NS_PER_TIMER] = {"ns_per_timer", "ns"},
    [MAX_TICK_US] = {"max_tick_us", "us"},
    [P999_TICK_US] = {"p999_tick_us", "us"},
    [NS_PER_TICK] = {"ns_per_tick", "ns"},
    [JUMP_NS] = {"jump_ns", "ns"},
    [BYTES_PER_TIMER] = {"bytes_per_timer", "bytes"},
    [MEDIAN_LATE_US] = {"median_late_us", "us"},
    [P999_LATE_US] = {"p999_late_us", "us"},
    [LATE_TICKS] = {"late_ticks", "ticks"},
};

const char *workload_name(enum workload workload)
{
	return workload_words[workload].name;
}

const char *workload_summary(enum workload workload)
{
	return workload_words[workload].summary;
}

const char *metric_name(enum metric metric)
{
	return metric_words[metric].name;
}

const char *metric_unit(enum metric metric)
{
	return metric_words[metric].unit;
}

const struct result *results_find(const struct results *results, const struct structure *structure,
    enum workload workload, uint64_t n, enum metric metric)
{
	size_t i;

	for (i = 0; i < results->count; i++) {
		const struct result *result = &results->result[i];

		if (result->structure == structure && result->workload == workload && result->n == n &&
		    result->metric == metric)
			return result;
	}
	return NULL;
}

void results_add(struct results *results, struct result result)
{
	results->result = memory_grow(results->result, &results->capacity, results->count, sizeof *results->result);
	results->result[results->count++] = result;
}

void results_leave_out(struct results *results, struct left_out left_out)
{
	results->left_out = memory_grow(
	    results->left_out, &results->left_out_capacity, results->left_out_count, sizeof *results->left_out);
	results->left_out[results->left_out_count++] = left_out;
}

int results_ticks_are_raw(const struct results *results)
{
	size_t i;

	for (i = 0; i < results->count; i++) {
		const struct result *result = &results->result[i];

		if ((result->metric == MAX_TICK_US || result->metric == P999_TICK_US) &&
		    result->repetitions < REPETITIONS_THAT_FILTER)
			return 1;
	}
	return 0;
}
