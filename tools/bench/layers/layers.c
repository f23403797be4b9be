/* The order of measuring the layers, and their results. */
#include "tools/bench/layers.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/interrupt.h"
#include "tools/common/message.h"
#include "tools/common/random.h"
#include "tools/weekwheel/command.h"
#include "weekwheel/weekwheel.h"

const struct structure structure_session = {.name = "session", .summary = "K, H: the session map: refresh by key"};
const struct structure structure_uthash = {.name = "uthash", .summary = "K: uthash: lookup by key"};
#ifdef HAVE_KHASH
const struct structure structure_khash = {.name = "khash", .summary = "K: khash: lookup by key"};
#endif
const struct structure structure_driver1 = {.name = "driver-1", .summary = "T: the driver, one thread"};
const struct structure structure_driver2 = {.name = "driver-2", .summary = "T: the driver, two threads"};
const struct structure structure_driver = {.name = "driver", .summary = "L: the driver on the real clock"};
const struct structure structure_sleep = {.name = "sleep", .summary = "L: a thread that only sleeps until each tick"};

static const struct layer_map *const maps[] = {
    &layer_session,
#ifdef HAVE_KHASH
    &layer_khash,
#endif
    &layer_uthash,
};
enum { MAPS = sizeof maps / sizeof *maps, REPETITIONS_MAX = 100 };

void layer_check(int error, const char *what)
{
	if (error >= 0)
		return;
	message_error("%s: %s", what, ww_strerror(error));
	exit(STATUS_FAILED);
}

void layer_key(uint64_t i, uint64_t seed, unsigned char key[16])
{
	uint64_t state = i * UINT64_C(0x9e3779b97f4a7c15) + seed;
	uint64_t half = random_next(&state);

	memcpy(key, &half, sizeof half);
	half = random_next(&state);
	memcpy(key + sizeof half, &half, sizeof half);
}

/* ---- Results */

static int is_chosen(const struct plan *plan, const struct structure *structure)
{
	const struct structure *const *chosen;

	for (chosen = plan->chosen; *chosen; chosen++)
		if (*chosen == structure)
			return 1;
	return 0;
}

static int is_planned(const struct plan *plan, enum workload workload, const struct structure *structure)
{
	return plan->workloads >> workload & 1 && is_chosen(plan, structure);
}

static int by_value(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

/* No samples: an interruption came before. */
static void add(struct results *results, struct result result, double *samples, unsigned count)
{
	if (!count) {
		results_leave_out(
		    results, (struct left_out){result.structure, result.workload, result.n, interrupt_why});
		return;
	}
	qsort(samples, count, sizeof *samples, by_value);
	result.median = (samples[(count - 1) / 2] + samples[count / 2]) / 2;
	result.min = samples[0];
	result.max = samples[count - 1];
	result.repetitions = count;
	results_add(results, result);
}

/* ---- The workloads */

static void run_maps(const struct plan *plan, uint64_t n, struct results *results)
{
	static double ns[MAPS][REPETITIONS_MAX];
	double bytes[MAPS] = {0};
	unsigned count[MAPS] = {0};
	unsigned repetition, i;

	/* In turns, so that what drifts does so for all. */
	for (repetition = 0; repetition < plan->repetitions; repetition++)
		for (i = 0; i < MAPS; i++)
			if (is_planned(plan, WORKLOAD_K, maps[i]->structure) && !interrupt_signal())
				ns[i][count[i]++] = maps[i]->measure(n, plan->seed, &bytes[i]);
	for (i = 0; i < MAPS; i++) {
		if (!is_planned(plan, WORKLOAD_K, maps[i]->structure))
			continue;
		add(results, (struct result){maps[i]->structure, WORKLOAD_K, n, NS_PER_OP, 0, 0, 0, 0}, ns[i],
		    count[i]);
		if (bytes[i] > 0)
			results_add(results, (struct result){maps[i]->structure, WORKLOAD_K, n, BYTES_PER_TIMER,
			                         bytes[i], bytes[i], bytes[i], 1});
	}
}

static void run_threads(const struct plan *plan, struct results *results)
{
	static const struct structure *const labels[] = {&structure_driver1, &structure_driver2};
	static double ns[2][REPETITIONS_MAX];
	unsigned count[2] = {0};
	unsigned repetition, i;

	for (repetition = 0; repetition < plan->repetitions; repetition++)
		for (i = 0; i < 2; i++)
			if (is_planned(plan, WORKLOAD_T, labels[i]) && !interrupt_signal())
				ns[i][count[i]++] = layer_threads(i + 1);
	for (i = 0; i < 2; i++)
		if (is_planned(plan, WORKLOAD_T, labels[i]))
			add(results, (struct result){labels[i], WORKLOAD_T, 10000, NS_PER_OP, 0, 0, 0, 0}, ns[i],
			    count[i]);
}

static void run_late(const struct plan *plan, struct results *results)
{
	static const struct structure *const labels[] = {&structure_driver, &structure_sleep};
	static double median[2][REPETITIONS_MAX], p999[2][REPETITIONS_MAX];
	unsigned count[2] = {0};
	unsigned repetition, i;

	for (repetition = 0; repetition < plan->repetitions; repetition++)
		for (i = 0; i < 2; i++) {
			if (!is_planned(plan, WORKLOAD_L, labels[i]) || interrupt_signal())
				continue;
			struct layer_lateness lateness = labels[i] == &structure_driver ? layer_late() : layer_sleep();
			median[i][count[i]] = lateness.median_us;
			p999[i][count[i]++] = lateness.p999_us;
		}
	for (i = 0; i < 2; i++) {
		if (!is_planned(plan, WORKLOAD_L, labels[i]))
			continue;
		add(results, (struct result){labels[i], WORKLOAD_L, LAYER_FIRINGS, MEDIAN_LATE_US, 0, 0, 0, 0},
		    median[i], count[i]);
		if (count[i])
			add(results, (struct result){labels[i], WORKLOAD_L, LAYER_FIRINGS, P999_LATE_US, 0, 0, 0, 0},
			    p999[i], count[i]);
	}
}

void layers_run_once(const struct plan *plan, struct results *results)
{
	if (plan->workloads >> WORKLOAD_T & 1)
		run_threads(plan, results);
	if (plan->workloads >> WORKLOAD_L & 1)
		run_late(plan, results);
}

void layers_run_size(const struct plan *plan, uint64_t n, struct results *results)
{
	double late;

	if (plan->workloads >> WORKLOAD_K & 1)
		run_maps(plan, n, results);
	if (!is_planned(plan, WORKLOAD_H, &structure_session))
		return;
	if (interrupt_signal()) {
		results_leave_out(results, (struct left_out){&structure_session, WORKLOAD_H, n, interrupt_why});
		return;
	}
	late = layer_herd(n, plan->seed);
	results_add(results, (struct result){&structure_session, WORKLOAD_H, n, LATE_TICKS, late, late, late, 1});
}
