/*
 * The order of measuring. For each number of timers and each workload every structure has one pass that warms up and is
 * not counted; then the structures take turns within each repetition, so that a drift of the machine hits all alike. A
 * pass of some seconds needs no warming up, and no repetition: it is the only one of its structure.
 */
#include "bench/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/correct.h"
#include "bench/workload.h"
#include "memory.h"
#include "progress.h"

enum { REPETITIONS_MAX = 101 };
static const uint64_t long_pass_ns = UINT64_C(5000000000);

/* What one workload at one size has given so far, a structure a row. */
struct row {
	const struct structure *structure;
	double first[REPETITIONS_MAX], second[REPETITIONS_MAX];
	unsigned count;
	uint32_t *tick_ns[REPETITIONS_MAX];
	unsigned tick_count;
	int once; /* its passes are long */
	int out;
};

struct run {
	const struct plan *plan;
	struct results *results;
	struct arena arena;
	struct inputs inputs;
	struct row *rows;
	size_t row_count;
	enum workload workload; /* the one that is measured, A for A and B */
	uint64_t steps_done, steps;
	char label[64];
};

static int planned(const struct run *run, enum workload workload)
{
	return (run->plan->workloads >> workload & 1) != 0;
}

/* ---- Gathering ------------------------------------------------------------------------------------------------ */

static void leave_out(struct run *run, const struct structure *structure, enum workload workload, const char *why)
{
	struct results *results = run->results;

	results->left_out = memory_grow(
	    results->left_out, &results->left_out_capacity, results->left_out_count, sizeof *results->left_out);
	results->left_out[results->left_out_count++] =
	    (struct left_out){structure, workload, workload == WORKLOAD_E ? 1 : run->inputs.n, why};
}

static void add_result(struct run *run, struct result result)
{
	struct results *results = run->results;

	results->result = memory_grow(results->result, &results->capacity, results->count, sizeof *results->result);
	results->result[results->count++] = result;
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static int compare_ticks(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static double median_of(double *value, unsigned count)
{
	qsort(value, count, sizeof *value, compare_doubles);
	return count % 2 ? value[count / 2] : (value[count / 2 - 1] + value[count / 2]) / 2;
}

static void add_samples(
    struct run *run, const struct row *row, const double *value, enum workload workload, enum metric metric)
{
	struct result result = {row->structure, workload, run->inputs.n, metric, 0, 0, 0, row->count};
	double sorted[REPETITIONS_MAX];

	if (!planned(run, workload))
		return;
	if (workload == WORKLOAD_E)
		result.n = 1;
	memcpy(sorted, value, row->count * sizeof *value);
	result.median = median_of(sorted, row->count);
	result.min = sorted[0];
	result.max = sorted[row->count - 1];
	add_result(run, result);
}

/* ---- Ticks ---------------------------------------------------------------------------------------------------- */

/*
 * A repetition does the same work in the same tick. So a tick's time is its median over the repetitions, from which falls
 * out what else the machine did meanwhile; the longest tick is the longest of those medians, and its minimum and maximum
 * are those of the ticks' minima and maxima.
 */
struct tick_times {
	uint32_t *median, *min, *max;
};

static struct tick_times tick_times(const struct row *row)
{
	struct tick_times times;
	uint32_t sorted[REPETITIONS_MAX];
	uint64_t tick;
	unsigned i;

	times.median = memory_zeroed(BENCH_WEEK, sizeof(uint32_t));
	times.min = memory_zeroed(BENCH_WEEK, sizeof(uint32_t));
	times.max = memory_zeroed(BENCH_WEEK, sizeof(uint32_t));
	for (tick = 0; tick < BENCH_WEEK; tick++) {
		for (i = 0; i < row->tick_count; i++)
			sorted[i] = row->tick_ns[i][tick];
		qsort(sorted, row->tick_count, sizeof *sorted, compare_ticks);
		times.median[tick] = sorted[row->tick_count / 2];
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

static void add_tick_results(struct run *run, const struct row *row, const struct tick_times *times)
{
	const size_t p999 = BENCH_WEEK - BENCH_WEEK / 1000 - 1;
	struct result longest = {row->structure, run->workload, run->inputs.n, MAX_TICK_US, 0, 0, 0, row->tick_count};
	struct result high = longest;
	uint32_t *median = sorted_copy(times->median);
	uint32_t *min = sorted_copy(times->min);
	uint32_t *max = sorted_copy(times->max);

	high.metric = P999_TICK_US;
	longest.median = median[BENCH_WEEK - 1] / 1e3;
	longest.min = min[BENCH_WEEK - 1] / 1e3;
	longest.max = max[BENCH_WEEK - 1] / 1e3;
	high.median = median[p999] / 1e3;
	high.min = min[p999] / 1e3;
	high.max = max[p999] / 1e3;
	add_result(run, longest);
	add_result(run, high);
	free(median);
	free(min);
	free(max);
}

static void add_ticks(struct run *run, const struct row *row)
{
	struct results *results = run->results;
	struct tick_times times = tick_times(row);

	add_tick_results(run, row, &times);
	free(times.min);
	free(times.max);
	results->ticks =
	    memory_grow(results->ticks, &results->ticks_capacity, results->ticks_count, sizeof *results->ticks);
	results->ticks[results->ticks_count++] =
	    (struct ticks){row->structure, run->inputs.n, BENCH_WEEK, times.median};
}

/* ---- Measuring ------------------------------------------------------------------------------------------------ */

static struct sample measure(struct run *run, const struct structure *structure, uint32_t *tick_ns)
{
	switch (run->workload) {
	case WORKLOAD_C30:
		return workload_heartbeat(&run->arena, structure, 30);
	case WORKLOAD_C1800:
		return workload_heartbeat(&run->arena, structure, 1800);
	case WORKLOAD_CWEEK:
		return workload_heartbeat(&run->arena, structure, BENCH_WEEK - 1);
	case WORKLOAD_D:
	case WORKLOAD_R:
		return workload_life(&run->arena, structure, run->workload == WORKLOAD_R, tick_ns);
	case WORKLOAD_E:
		return workload_lonely(&run->arena, structure);
	case WORKLOAD_F:
		return workload_churn(&run->arena, structure);
	default:
		return workload_schedule_cancel(&run->arena, structure);
	}
}

static void keep_sample(struct row *row, const struct sample *sample)
{
	row->first[row->count] = sample->ns_per_op;
	row->second[row->count++] = sample->ns_per_other;
}

/* The pass that warms up, and shows whether there is time for more. */
static void measure_first(struct run *run, struct row *row)
{
	struct sample sample = measure(run, row->structure, NULL);

	if (sample.why) {
		row->out = 1;
		leave_out(run, row->structure, run->workload, sample.why);
		return;
	}
	row->once = sample.timed_ns > long_pass_ns;
	if (row->once)
		keep_sample(row, &sample);
}

/* The longest tick is of the whole life in the order of memory. */
static void measure_ticks(struct run *run, struct row *row)
{
	uint32_t *tick_ns = memory_zeroed(BENCH_WEEK, sizeof *tick_ns);
	struct sample sample;

	/* Touched, so that no tick pays for that. */
	memset(tick_ns, 1, BENCH_WEEK * sizeof *tick_ns);
	sample = measure(run, row->structure, tick_ns);
	if (sample.why)
		free(tick_ns);
	else
		row->tick_ns[row->tick_count++] = tick_ns;
}

static void measure_again(struct run *run, struct row *row)
{
	struct sample sample;

	if (!row->once) {
		sample = measure(run, row->structure, NULL);
		if (!sample.why)
			keep_sample(row, &sample);
	}
	if (run->workload == WORKLOAD_D && (!row->once || row->tick_count == 0))
		measure_ticks(run, row);
}

static void show_step(struct run *run, const struct row *row)
{
	snprintf(run->label, sizeof run->label, "%-5s %9" PRIu64 " %-13s", workload_name(run->workload), run->inputs.n,
	    row->structure->name);
	progress_show(run->steps_done++, run->steps);
}

static const char *why_unfit(const struct run *run, const struct structure *structure)
{
	static const uint64_t longest[WORKLOADS] = {[WORKLOAD_A] = BENCH_WEEK - 1,
	    [WORKLOAD_B] = BENCH_WEEK - 1,
	    [WORKLOAD_C30] = 30,
	    [WORKLOAD_C1800] = 1800,
	    [WORKLOAD_CWEEK] = BENCH_WEEK - 1,
	    [WORKLOAD_D] = BENCH_WEEK - 1,
	    [WORKLOAD_R] = BENCH_WEEK - 1,
	    [WORKLOAD_E] = BENCH_WEEK - 1,
	    [WORKLOAD_F] = BENCH_WEEK - 1};

	if (structure->most && run->inputs.n > structure->most)
		return "too many timers for it";
	if (structure->longest && longest[run->workload] > structure->longest)
		return "its range is too short";
	if (structure == &structure_floor && (run->workload == WORKLOAD_E || run->workload == WORKLOAD_G))
		return "";
	return NULL;
}

static int is_wrong(const struct results *results, const struct structure *structure)
{
	size_t i;

	for (i = 0; i < results->checked_count; i++)
		if (results->checked[i].structure == structure)
			return results->checked[i].wrong != NULL;
	return 0;
}

static void make_rows(struct run *run)
{
	const struct structure *const *structure;

	run->row_count = 0;
	for (structure = run->plan->chosen; *structure; structure++) {
		const char *why = why_unfit(run, *structure);

		if (is_wrong(run->results, *structure))
			continue;
		if (why && *why)
			leave_out(run, *structure, run->workload, why);
		if (why)
			continue;
		memset(&run->rows[run->row_count], 0, sizeof *run->rows);
		run->rows[run->row_count++].structure = *structure;
	}
}

static void close_row(struct run *run, struct row *row)
{
	unsigned i;

	if (row->count) {
		switch (run->workload) {
		case WORKLOAD_A:
			add_samples(run, row, row->first, WORKLOAD_A, NS_PER_OP);
			add_samples(run, row, row->second, WORKLOAD_B, NS_PER_OP);
			break;
		case WORKLOAD_D:
		case WORKLOAD_R:
			add_samples(run, row, row->first, run->workload, NS_PER_TIMER);
			break;
		case WORKLOAD_E:
			add_samples(run, row, row->first, WORKLOAD_E, NS_PER_TICK);
			add_samples(run, row, row->second, WORKLOAD_E, JUMP_NS);
			break;
		default:
			add_samples(run, row, row->first, run->workload, NS_PER_OP);
		}
	}
	if (row->tick_count)
		add_ticks(run, row);
	for (i = 0; i < row->tick_count; i++)
		free(row->tick_ns[i]);
}

static void run_workload(struct run *run, enum workload workload)
{
	unsigned repetition;
	size_t i;

	run->workload = workload;
	make_rows(run);
	for (i = 0; i < run->row_count; i++) {
		show_step(run, &run->rows[i]);
		measure_first(run, &run->rows[i]);
	}
	for (repetition = 0; repetition < run->plan->repetitions; repetition++)
		for (i = 0; i < run->row_count; i++) {
			show_step(run, &run->rows[i]);
			if (!run->rows[i].out)
				measure_again(run, &run->rows[i]);
		}
	for (i = 0; i < run->row_count; i++)
		close_row(run, &run->rows[i]);
}

/* G is not measured but added up: what a timer takes in its object and outside it, and its share of the rest. */
static void add_memory(struct run *run)
{
	size_t i;

	run->workload = WORKLOAD_G;
	make_rows(run);
	for (i = 0; i < run->row_count; i++) {
		const struct structure *structure = run->rows[i].structure;
		size_t fixed = structure->fixed_bytes ? structure->fixed_bytes(BENCH_WEEK) : 0;
		double bytes =
		    (double)(structure->node_bytes + structure->own_bytes) + (double)fixed / (double)run->inputs.n;

		add_result(run,
		    (struct result){structure, WORKLOAD_G, run->inputs.n, BYTES_PER_TIMER, bytes, bytes, bytes, 1});
	}
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

static void check_structures(struct run *run)
{
	const struct structure *const *structure;
	struct results *results = run->results;

	for (structure = run->plan->chosen; *structure; structure++) {
		struct checked checked = {*structure, NULL, 0};

		if (*structure == &structure_floor)
			continue;
		snprintf(run->label, sizeof run->label, "correctness of %-13s", (*structure)->name);
		progress_show(run->steps_done, run->steps);
		checked.wrong = correct_run(*structure, run->plan->seed, &checked.latest);
		results->checked = memory_grow(
		    results->checked, &results->checked_capacity, results->checked_count, sizeof *results->checked);
		results->checked[results->checked_count++] = checked;
	}
}

static void begin_size(struct run *run, uint64_t n)
{
	inputs_draw(&run->inputs, n, run->plan->seed);
	if (planned(run, WORKLOAD_F))
		inputs_draw_churn(&run->inputs, run->plan->seed);
	run->arena.inputs = &run->inputs;
	run->arena.limit_ns = run->plan->limit_ns;
	run->arena.objects = memory_aligned(n, sizeof *run->arena.objects);
	run->arena.sink.expired = memory_aligned(n, sizeof(struct object *));
	run->arena.sink.room = n;
}

static void end_size(struct run *run)
{
	inputs_free(&run->inputs);
	free(run->arena.objects);
	free(run->arena.sink.expired);
}

static void run_size(struct run *run, uint64_t n)
{
	static const enum workload timed[] = {
	    WORKLOAD_C30, WORKLOAD_C1800, WORKLOAD_CWEEK, WORKLOAD_D, WORKLOAD_R, WORKLOAD_F};
	size_t i;

	begin_size(run, n);
	if (planned(run, WORKLOAD_A) || planned(run, WORKLOAD_B))
		run_workload(run, WORKLOAD_A);
	for (i = 0; i < sizeof timed / sizeof *timed; i++)
		if (planned(run, timed[i]))
			run_workload(run, timed[i]);
	if (planned(run, WORKLOAD_G))
		add_memory(run);
	end_size(run);
}

static void run_lonely(struct run *run)
{
	inputs_draw(&run->inputs, 1, run->plan->seed);
	run->arena.inputs = &run->inputs;
	run->arena.limit_ns = run->plan->limit_ns;
	run->arena.objects = memory_aligned(1, sizeof *run->arena.objects);
	run->arena.sink.expired = memory_aligned(1, sizeof(struct object *));
	run->arena.sink.room = 1;
	run_workload(run, WORKLOAD_E);
	end_size(run);
}

/* A pass each, as far as can be said before. */
static uint64_t count_steps(const struct run *run)
{
	uint64_t structures_chosen = 0, workloads = 0, each;
	int i;

	while (run->plan->chosen[structures_chosen])
		structures_chosen++;
	for (i = 0; i < WORKLOADS; i++)
		workloads += i != WORKLOAD_G && i != WORKLOAD_E && i != WORKLOAD_B && planned(run, (enum workload)i);
	workloads += planned(run, WORKLOAD_B) && !planned(run, WORKLOAD_A);
	each = structures_chosen * (1 + run->plan->repetitions);
	return each * workloads * run->plan->size_count + (planned(run, WORKLOAD_E) ? each : 0);
}

void run_plan(const struct plan *plan, struct results *results)
{
	struct run run = {.plan = plan, .results = results};
	size_t i;

	results->seed = plan->seed;
	run.rows = memory_zeroed(STRUCTURES_MAX, sizeof *run.rows);
	run.steps = count_steps(&run);
	progress_begin(run.label);
	check_structures(&run);
	if (planned(&run, WORKLOAD_E))
		run_lonely(&run);
	for (i = 0; i < plan->size_count; i++)
		if (plan->workloads & ~(1u << WORKLOAD_E))
			run_size(&run, plan->sizes[i]);
	progress_clear();
	free(run.rows);
}

void results_free(struct results *results)
{
	size_t i;

	for (i = 0; i < results->ticks_count; i++)
		free(results->ticks[i].ns);
	free(results->ticks);
	free(results->result);
	free(results->checked);
	free(results->left_out);
	memset(results, 0, sizeof *results);
}
