/* The names of workloads and metrics, and the lists of results. */
#include "tools/bench/result.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"

enum { REPETITIONS_THAT_FILTER = 3 };

const struct workload_words workload_words[WORKLOADS] = {
    [WORKLOAD_A] = {"A", "schedule"},
    [WORKLOAD_B] = {"B", "cancel in random order"},
    [WORKLOAD_O] = {"O", "cancel in the order of memory"},
    [WORKLOAD_C30] = {"C30", "heartbeat, timeout 30 s"},
    [WORKLOAD_C1800] = {"C1800", "heartbeat, timeout 1,800 s"},
    [WORKLOAD_CWEEK] = {"Cweek", "heartbeat, timeout a week"},
    [WORKLOAD_D] = {"D", "whole life: schedule, and every tick of the week until all have expired"},
    [WORKLOAD_R] = {"R", "whole life, scheduled in an order unrelated to memory"},
    [WORKLOAD_E] = {"E", "one timer 6.9 days away"},
    [WORKLOAD_F] = {"F", "churn: 80 % are cancelled before they expire"},
    [WORKLOAD_G] = {"G", "memory"},
    [WORKLOAD_K] = {"K", "sessions: refresh by a key of 16 bytes, against a table's lookup"},
    [WORKLOAD_T] = {"T", "the driver: schedule and cancel, one thread and two"},
    [WORKLOAD_L] = {"L", "the driver: 100,000 expiries a second, ticks of 1 ms"},
    [WORKLOAD_H] = {"H", "sessions: 1,000 with one deadline among n that are not due"},
    [WORKLOAD_M] = {"M", "the driver: one map in use, alone and among 4,000"},
    [WORKLOAD_S] = {"S", "sessions: all are saved into memory, and loaded into a new map"},
    [WORKLOAD_P] = {"P", "the driver: an unrelated timer while a burst of sessions expires"},
    [WORKLOAD_X] = {"X", "the driver: a million timers that are due at once"},
    [WORKLOAD_W] = {"W", "500 threads that sleep for four seconds"},
};

const struct metric_words metric_words[METRICS] = {
    [NS_PER_OP] = {"ns_per_op", "ns", "ns an operation"},
    [NS_PER_TIMER] = {"ns_per_timer", "ns", "ns a timer"},
    [MAX_TICK_US] = {"max_tick_us", "us", "longest tick, us"},
    [P999_TICK_US] = {"p999_tick_us", "us", "99.9 % of the ticks take at most, us"},
    [NS_PER_TICK] = {"ns_per_tick", "ns", "ns a tick"},
    [JUMP_NS] = {"jump_ns", "ns", "to schedule it and jump over all of it, ns"},
    [BYTES_PER_TIMER] = {"bytes_per_timer", "bytes", "bytes a timer"},
    [MEDIAN_LATE_US] = {"median_late_us", "us", "half of the callbacks start later than, us"},
    [P999_LATE_US] = {"p999_late_us", "us", "one callback in a thousand starts later than, us"},
    [LATE_TICKS] = {"late_ticks", "ticks", "ticks by which the last one is late"},
    [SAVE_NS] = {"save_ns", "ns", "to save a session, ns"},
    [LOAD_NS] = {"load_ns", "ns", "to load a session, ns"},
    [SWITCHES] = {"switches", "", "changes of threads"},
};

const char *metric_title(enum metric metric, enum workload workload)
{
	if (workload == WORKLOAD_F)
		return "ns a life: a schedule, 0.8 of a cancel, 0.2 of an expiry, and their share of the ticks";
	return metric_words[metric].title;
}

const struct result *results_find(const struct results *results, const struct structure *structure,
    enum workload workload, uint64_t n, enum metric metric)
{
	for (size_t i = 0; i < results->count; i++) {
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
	for (size_t i = 0; i < results->count; i++) {
		const struct result *result = &results->result[i];

		if ((result->metric == MAX_TICK_US || result->metric == P999_TICK_US) &&
		    result->repetitions < REPETITIONS_THAT_FILTER)
			return 1;
	}
	return 0;
}

void results_free(struct results *results)
{
	for (size_t i = 0; i < results->ticks_count; i++)
		free(results->ticks[i].ns);
	free(results->ticks);
	free(results->result);
	free(results->checked);
	free(results->left_out);
	memset(results, 0, sizeof *results);
}
