/* The order of measuring the layers, and their results. */
#include "tools/bench/layers.h"

#include <stdlib.h>

#include "tools/bench/interrupt.h"
#include "tools/common/memory.h"

const struct structure structure_session = {.name = "session", .summary = "K, H, S: the session map: refresh by key"};
const struct structure structure_session_many = {
    .name = "session-16", .summary = "K: the session map: refresh by key, 16 in a call"};
const struct structure structure_uthash = {.name = "uthash", .summary = "K: uthash: lookup by key"};
#ifdef HAVE_KHASH
const struct structure structure_khash = {.name = "khash", .summary = "K: khash: lookup by key"};
#endif
const struct structure structure_driver1 = {.name = "driver-1", .summary = "T: the driver, one thread"};
const struct structure structure_driver2 = {.name = "driver-2", .summary = "T: the driver, two threads"};
const struct structure structure_driver = {.name = "driver", .summary = "L: the driver on the real clock"};
const struct structure structure_sleep = {.name = "sleep", .summary = "L: a thread that only sleeps until each tick"};
const struct structure structure_map = {.name = "map", .summary = "M: one session map, in use"};
const struct structure structure_maps = {.name = "maps", .summary = "M: 4,000 session maps, one of which is in use"};
const struct structure structure_ww_sleep = {.name = "ww_sleep", .summary = "W: threads that sleep on a driver"};
const struct structure structure_driver64 = {.name = "driver-64", .summary = "L: the same with 64 workers"};
const struct structure structure_short = {.name = "short", .summary = "P: 100,000 callbacks of 20 us"};
const struct structure structure_slow = {.name = "slow", .summary = "P: 1,000 callbacks of 20 ms"};
const struct structure structure_due = {.name = "due", .summary = "X: the default number of workers"};
const struct structure structure_due1 = {.name = "due-1", .summary = "X: one worker"};
const struct structure structure_due2 = {.name = "due-2", .summary = "X: two workers"};
const struct structure structure_due_alone = {.name = "due-0", .summary = "X: a driver without threads"};
const struct structure structure_due_us = {.name = "due-us", .summary = "X: callbacks of 1 us, the default"};
const struct structure structure_due_us1 = {.name = "due-us-1", .summary = "X: callbacks of 1 us, one worker"};
const struct structure structure_due_us2 = {.name = "due-us-2", .summary = "X: callbacks of 1 us, two workers"};
const struct structure structure_nanosleep = {.name = "nanosleep", .summary = "W: threads that sleep in the kernel"};

/* Which layer is measured in which workload, and with how many timers if that is not the plan's number. */
static const struct contestant {
	enum workload workload;
	const struct structure *structure;
	struct layer_sample (*measure)(uint64_t n, uint64_t seed);
	uint64_t n; /* 0: the plan's */
	enum metric first, second;
} contestants[] = {
    {WORKLOAD_K, &structure_session, layer_session, 0, NS_PER_OP, BYTES_PER_TIMER},
    {WORKLOAD_K, &structure_session_many, layer_session_many, 0, NS_PER_OP, METRICS},
#ifdef HAVE_KHASH
    {WORKLOAD_K, &structure_khash, layer_khash, 0, NS_PER_OP, BYTES_PER_TIMER},
#endif
    {WORKLOAD_K, &structure_uthash, layer_uthash, 0, NS_PER_OP, BYTES_PER_TIMER},
    {WORKLOAD_T, &structure_driver1, layer_one_thread, LAYER_TIMERS, NS_PER_OP, METRICS},
    {WORKLOAD_T, &structure_driver2, layer_two_threads, LAYER_TIMERS, NS_PER_OP, METRICS},
    {WORKLOAD_L, &structure_driver, layer_late, LAYER_FIRINGS, MEDIAN_LATE_US, P999_LATE_US},
    {WORKLOAD_L, &structure_sleep, layer_sleep, LAYER_FIRINGS, MEDIAN_LATE_US, P999_LATE_US},
    {WORKLOAD_H, &structure_session, layer_herd, 0, LATE_TICKS, METRICS},
    {WORKLOAD_M, &structure_map, layer_one_map, LAYER_MAPS, NS_PER_TICK, METRICS},
    {WORKLOAD_M, &structure_maps, layer_many_maps, LAYER_MAPS, NS_PER_TICK, METRICS},
    {WORKLOAD_S, &structure_session, layer_restart, 0, SAVE_NS, LOAD_NS},
    {WORKLOAD_L, &structure_driver64, layer_late_64, LAYER_FIRINGS, MEDIAN_LATE_US, SWITCHES},
    {WORKLOAD_P, &structure_short, layer_short_burst, 100000, MEDIAN_LATE_US, METRICS},
    {WORKLOAD_P, &structure_slow, layer_slow_burst, 1000, MEDIAN_LATE_US, METRICS},
    {WORKLOAD_X, &structure_due, layer_due, LAYER_DUE, NS_PER_OP, METRICS},
    {WORKLOAD_X, &structure_due1, layer_due_1, LAYER_DUE, NS_PER_OP, METRICS},
    {WORKLOAD_X, &structure_due2, layer_due_2, LAYER_DUE, NS_PER_OP, METRICS},
    {WORKLOAD_X, &structure_due_alone, layer_due_alone, LAYER_DUE, NS_PER_OP, METRICS},
    {WORKLOAD_X, &structure_due_us, layer_due_us, LAYER_DUE, NS_PER_OP, METRICS},
    {WORKLOAD_X, &structure_due_us1, layer_due_us_1, LAYER_DUE, NS_PER_OP, METRICS},
    {WORKLOAD_X, &structure_due_us2, layer_due_us_2, LAYER_DUE, NS_PER_OP, METRICS},
    {WORKLOAD_W, &structure_ww_sleep, layer_ww_sleep, LAYER_SLEEPERS, SWITCHES, METRICS},
    {WORKLOAD_W, &structure_nanosleep, layer_nanosleep, LAYER_SLEEPERS, SWITCHES, METRICS},
};
enum { CONTESTANTS = sizeof contestants / sizeof *contestants };

static int is_planned(const struct plan *plan, const struct contestant *contestant)
{
	const struct structure *const *chosen = plan->chosen;

	while (*chosen && *chosen != contestant->structure)
		chosen++;
	return *chosen && plan->workloads >> contestant->workload & 1;
}

static void add_results(const struct contestant *contestant, const struct row *row, uint64_t n, struct results *results)
{
	struct result result = {contestant->structure, contestant->workload, n, contestant->first, 0, 0, 0, 0};
	double bytes = row->count ? row->second[row->count - 1] : 0;

	if (!row->count)
		results_leave_out(results, (struct left_out){result.structure, result.workload, n, interrupt_why});
	row_add_samples(row, row->first, result, results);
	result.metric = contestant->second;
	if (result.metric != METRICS && result.metric != BYTES_PER_TIMER) {
		row_add_samples(row, row->second, result, results);
	} else if (result.metric == BYTES_PER_TIMER && bytes > 0) {
		result.median = result.min = result.max = bytes;
		result.repetitions = 1;
		results_add(results, result);
	}
}

/* The contestants take turns: a drift of the machine hits all alike. H runs on a virtual clock, and once is enough. */
static void run(const struct plan *plan, enum workload workload, uint64_t n, struct results *results)
{
	struct row *rows = memory_zeroed(CONTESTANTS, sizeof *rows);
	uint64_t repetitions = workload == WORKLOAD_H ? 1 : plan->repetitions;

	for (uint64_t repetition = 0; repetition < repetitions; repetition++)
		for (size_t i = 0; i < CONTESTANTS; i++) {
			const struct contestant *contestant = &contestants[i];
			struct layer_sample sample;

			if (contestant->workload != workload || !is_planned(plan, contestant) || interrupt_signal())
				continue;
			sample = contestant->measure(n, plan->seed);
			row_keep(&rows[i], sample.first, sample.second);
		}
	for (size_t i = 0; i < CONTESTANTS; i++)
		if (contestants[i].workload == workload && is_planned(plan, &contestants[i]))
			add_results(&contestants[i], &rows[i], contestants[i].n ? contestants[i].n : n, results);
	free(rows);
}

void layers_run_once(const struct plan *plan, struct results *results)
{
	run(plan, WORKLOAD_T, 0, results);
	run(plan, WORKLOAD_L, 0, results);
	run(plan, WORKLOAD_M, 0, results);
	run(plan, WORKLOAD_X, 0, results);
	run(plan, WORKLOAD_W, 0, results);
	run(plan, WORKLOAD_P, 0, results);
}

void layers_run_size(const struct plan *plan, uint64_t n, struct results *results)
{
	run(plan, WORKLOAD_K, n, results);
	run(plan, WORKLOAD_H, n, results);
	run(plan, WORKLOAD_S, n, results);
}
