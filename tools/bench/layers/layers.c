/* The order of measuring the layers, and their results. */
#include "tools/bench/layers.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/interrupt.h"
#include "tools/bench/row.h"
#include "tools/common/command.h"
#include "tools/common/message.h"
#include "tools/common/random.h"
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
enum { MAPS = sizeof maps / sizeof *maps };

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

/* No samples: an interruption came before. */
static void add(struct results *results, const struct row *row, const double *samples, struct result result)
{
	result.structure = row->structure;
	if (row->count)
		row_add_samples(row, samples, result, results);
	else
		results_leave_out(
		    results, (struct left_out){result.structure, result.workload, result.n, interrupt_why});
}

/* ---- The workloads */

static void run_maps(const struct plan *plan, uint64_t n, struct results *results)
{
	struct row rows[MAPS] = {0};
	double bytes[MAPS] = {0};
	unsigned repetition, i;

	/* In turns, so that what drifts does so for all. */
	for (repetition = 0; repetition < plan->repetitions; repetition++)
		for (i = 0; i < MAPS; i++)
			if (is_planned(plan, WORKLOAD_K, maps[i]->structure) && !interrupt_signal())
				row_keep(&rows[i], maps[i]->measure(n, plan->seed, &bytes[i]), 0);
	for (i = 0; i < MAPS; i++) {
		if (!is_planned(plan, WORKLOAD_K, maps[i]->structure))
			continue;
		rows[i].structure = maps[i]->structure;
		add(results, &rows[i], rows[i].first,
		    (struct result){.workload = WORKLOAD_K, .n = n, .metric = NS_PER_OP});
		if (bytes[i] > 0)
			results_add(results, (struct result){maps[i]->structure, WORKLOAD_K, n, BYTES_PER_TIMER,
			                         bytes[i], bytes[i], bytes[i], 1});
	}
}

static void run_threads(const struct plan *plan, struct results *results)
{
	struct row rows[] = {{.structure = &structure_driver1}, {.structure = &structure_driver2}};
	unsigned repetition, i;

	for (repetition = 0; repetition < plan->repetitions; repetition++)
		for (i = 0; i < 2; i++)
			if (is_planned(plan, WORKLOAD_T, rows[i].structure) && !interrupt_signal())
				row_keep(&rows[i], layer_threads(i + 1), 0);
	for (i = 0; i < 2; i++)
		if (is_planned(plan, WORKLOAD_T, rows[i].structure))
			add(results, &rows[i], rows[i].first,
			    (struct result){.workload = WORKLOAD_T, .n = 10000, .metric = NS_PER_OP});
}

static void run_late(const struct plan *plan, struct results *results)
{
	struct row rows[] = {{.structure = &structure_driver}, {.structure = &structure_sleep}};
	struct result result = {.workload = WORKLOAD_L, .n = LAYER_FIRINGS};
	unsigned repetition, i;

	for (repetition = 0; repetition < plan->repetitions; repetition++)
		for (i = 0; i < 2; i++) {
			if (!is_planned(plan, WORKLOAD_L, rows[i].structure) || interrupt_signal())
				continue;
			struct layer_lateness lateness = i == 0 ? layer_late() : layer_sleep();
			row_keep(&rows[i], lateness.median_us, lateness.p999_us);
		}
	for (i = 0; i < 2; i++) {
		if (!is_planned(plan, WORKLOAD_L, rows[i].structure))
			continue;
		result.metric = MEDIAN_LATE_US;
		add(results, &rows[i], rows[i].first, result);
		result.metric = P999_LATE_US;
		if (rows[i].count)
			add(results, &rows[i], rows[i].second, result);
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
