/*
 * The order of measuring. For each number of timers and each workload, every structure first has one pass that warms up
 * and is not counted. The structures then take turns within each repetition: a drift of the machine hits all alike. A
 * pass of some seconds needs no warming up and no repetition. It is the only one of its structure.
 */
#include "tools/bench/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/interrupt.h"
#include "tools/bench/layers.h"
#include "tools/bench/workload.h"
#include "tools/common/memory.h"
#include "tools/common/progress.h"

static const uint64_t long_pass_ns = UINT64_C(5000000000);
static const char *const too_long_before = "not done within the limit with fewer timers";

struct bench_run {
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

/* The longest delay of each workload that schedules timers, and the metrics of the two values of a pass. */
static const struct {
	uint64_t longest;
	enum metric first, second;
} workloads[WORKLOADS] = {
    [WORKLOAD_A] = {BENCH_WEEK - 1, NS_PER_OP, METRICS},
    [WORKLOAD_O] = {BENCH_WEEK - 1, NS_PER_OP, METRICS},
    [WORKLOAD_C30] = {30, NS_PER_OP, METRICS},
    [WORKLOAD_C1800] = {1800, NS_PER_OP, METRICS},
    [WORKLOAD_CWEEK] = {BENCH_WEEK - 1, NS_PER_OP, METRICS},
    [WORKLOAD_D] = {BENCH_WEEK - 1, NS_PER_TIMER, METRICS},
    [WORKLOAD_R] = {BENCH_WEEK - 1, NS_PER_TIMER, METRICS},
    [WORKLOAD_E] = {BENCH_WEEK - 1, NS_PER_TICK, JUMP_NS},
    [WORKLOAD_F] = {BENCH_WEEK - 1, NS_PER_OP, METRICS},
};

static int planned(const struct bench_run *run, enum workload workload)
{
	return (run->plan->workloads >> workload & 1) != 0;
}

static void leave_out_of(
    struct bench_run *run, const struct structure *structure, enum workload workload, const char *why)
{
	if (planned(run, workload))
		results_leave_out(run->results, (struct left_out){structure, workload, run->inputs.n, why});
}

/* B is measured with A: neither has a result. */
static void leave_out(struct bench_run *run, const struct structure *structure, const char *why)
{
	leave_out_of(run, structure, run->workload, why);
	if (run->workload == WORKLOAD_A)
		leave_out_of(run, structure, WORKLOAD_B, why);
}

/* ---- Measuring ------------------------------------------------------------------------------------------------ */

static struct sample measure(struct bench_run *run, const struct structure *structure, uint32_t *tick_ns)
{
	switch (run->workload) {
	case WORKLOAD_O:
		return workload_cancel_in_order(&run->arena, structure);
	case WORKLOAD_C30:
	case WORKLOAD_C1800:
	case WORKLOAD_CWEEK:
		return workload_heartbeat(&run->arena, structure, workloads[run->workload].longest);
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

/*
 * A structure with one pass given up has no result: a median of the passes that were fast enough would be too good. An
 * interrupted pass says nothing about those before it.
 */
static void give_up(struct bench_run *run, struct row *row, const char *why)
{
	if (interrupt_signal() && why == workload_too_long)
		return;
	row->out = 1;
	row_drop(row);
	leave_out(run, row->structure, why);
}

/* The pass that warms up, and shows whether there is time for more. */
static void measure_first(struct bench_run *run, struct row *row)
{
	struct sample sample = measure(run, row->structure, NULL);

	if (sample.why) {
		give_up(run, row, sample.why);
		return;
	}
	row->once = sample.timed_ns > long_pass_ns;
	if (row->once)
		row_keep(row, sample.ns_per_op, sample.ns_per_other);
}

/* A pass of the whole life that takes the time of each tick. */
static void measure_ticks(struct bench_run *run, struct row *row)
{
	uint32_t *tick_ns = memory_zeroed(BENCH_WEEK, sizeof *tick_ns);
	struct sample sample;

	/* Touch the memory now, or ticks would pay for it. */
	memset(tick_ns, 1, BENCH_WEEK * sizeof *tick_ns);
	sample = measure(run, row->structure, tick_ns);
	if (sample.why) {
		free(tick_ns);
		give_up(run, row, sample.why);
	} else {
		row_keep_ticks(row, tick_ns);
	}
}

/* The floor does all its work in the last tick, which says nothing about ticks. */
static int wants_ticks(const struct bench_run *run, const struct row *row)
{
	return run->workload == WORKLOAD_D && row->structure != &structure_floor && !row->out &&
	       (!row->once || row->tick_count == 0);
}

static void measure_again(struct bench_run *run, struct row *row)
{
	struct sample sample;

	if (!row->once) {
		sample = measure(run, row->structure, NULL);
		if (sample.why)
			give_up(run, row, sample.why);
		else
			row_keep(row, sample.ns_per_op, sample.ns_per_other);
	}
	if (wants_ticks(run, row) && !interrupt_signal())
		measure_ticks(run, row);
}

/* What a pass takes grows with the timers; with few, its ticks are most of it. */
static uint64_t weight(uint64_t n)
{
	return n + 50000;
}

static void show_step(struct bench_run *run, const struct row *row)
{
	snprintf(run->label, sizeof run->label, "%-5s %9" PRIu64 " %-13s", workload_words[run->workload].name,
	    run->inputs.n, row->structure->name);
	progress_show(run->steps_done, run->steps);
	run->steps_done += weight(run->inputs.n);
}

static const char *why_unfit(const struct bench_run *run, const struct structure *structure)
{
	if (structure->most && run->inputs.n > structure->most)
		return "too many timers for it";
	if (structure->longest && workloads[run->workload].longest > structure->longest)
		return "its range is too short";
	return NULL;
}

static int takes_part(const struct structure *structure, enum workload workload)
{
	if (!structure->create || workload >= WORKLOAD_K)
		return !structure->create && workload >= WORKLOAD_K;
	if (structure->cancel_many)
		return workload == WORKLOAD_A || workload == WORKLOAD_B || workload == WORKLOAD_O ||
		       workload == WORKLOAD_R;
	return structure != &structure_floor || (workload != WORKLOAD_E && workload != WORKLOAD_G);
}

int plan_is_empty(const struct plan *plan)
{
	for (const struct structure *const *structure = plan->chosen; *structure; structure++)
		for (int i = 0; i < WORKLOADS; i++)
			if ((plan->workloads >> i & 1) != 0 && takes_part(*structure, (enum workload)i))
				return 0;
	return 1;
}

static int is_wrong(const struct results *results, const struct structure *structure)
{
	for (size_t i = 0; i < results->checked_count; i++)
		if (results->checked[i].structure == structure)
			return results->checked[i].wrong != NULL;
	return 0;
}

/* Return 1 if its pass was given up with fewer timers. There is no need to see it given up again. */
static int was_too_long(const struct bench_run *run, const struct structure *structure)
{
	const struct results *results = run->results;
	for (size_t i = 0; i < results->left_out_count; i++) {
		const struct left_out *out = &results->left_out[i];

		if (out->structure == structure && out->workload == run->workload && out->n < run->inputs.n &&
		    (out->why == workload_too_long || out->why == too_long_before))
			return 1;
	}
	return 0;
}

static void make_rows(struct bench_run *run)
{
	run->row_count = 0;
	for (const struct structure *const *structure = run->plan->chosen; *structure; structure++) {
		const char *why = why_unfit(run, *structure);

		if (!takes_part(*structure, run->workload) || is_wrong(run->results, *structure))
			continue;
		if (!why && was_too_long(run, *structure))
			why = too_long_before;
		if (why) {
			leave_out(run, *structure, why);
			continue;
		}
		memset(&run->rows[run->row_count], 0, sizeof *run->rows);
		run->rows[run->row_count++].structure = *structure;
	}
}

static void add_samples(
    struct bench_run *run, const struct row *row, const double *value, enum workload workload, enum metric metric)
{
	if (planned(run, workload))
		row_add_samples(row, value,
		    (struct result){row->structure, workload, run->inputs.n, metric, 0, 0, 0, 0}, run->results);
}

static void close_row(struct bench_run *run, struct row *row)
{
	if (interrupt_signal() && !row->out && !row->count)
		leave_out(run, row->structure, interrupt_why);
	add_samples(run, row, row->first, run->workload, workloads[run->workload].first);
	if (run->workload == WORKLOAD_A)
		add_samples(run, row, row->second, WORKLOAD_B, NS_PER_OP);
	if (workloads[run->workload].second != METRICS)
		add_samples(run, row, row->second, run->workload, workloads[run->workload].second);
	row_add_ticks(row, run->workload, run->inputs.n, run->results);
	row_drop(row);
}

static void run_workload(struct bench_run *run, enum workload workload)
{
	run->workload = workload;
	make_rows(run);
	for (size_t i = 0; i < run->row_count && !interrupt_signal(); i++) {
		show_step(run, &run->rows[i]);
		measure_first(run, &run->rows[i]);
	}
	for (uint64_t repetition = 0; repetition < run->plan->repetitions; repetition++)
		for (size_t i = 0; i < run->row_count && !interrupt_signal(); i++) {
			show_step(run, &run->rows[i]);
			if (!run->rows[i].out)
				measure_again(run, &run->rows[i]);
		}
	for (size_t i = 0; i < run->row_count; i++)
		close_row(run, &run->rows[i]);
}

/* G is not measured but added up: the bytes of a timer in its object and outside it, and its share of the rest. */
static void add_memory(struct bench_run *run)
{
	run->workload = WORKLOAD_G;
	make_rows(run);
	for (size_t i = 0; i < run->row_count; i++) {
		const struct structure *structure = run->rows[i].structure;
		uint64_t horizon =
		    structure->longest && structure->longest < BENCH_WEEK ? structure->longest : BENCH_WEEK;
		double bytes = (double)(structure->node_bytes + structure->own_bytes) +
		               (double)structure_empty_bytes(structure, horizon) / (double)run->inputs.n;

		results_add(run->results,
		    (struct result){structure, WORKLOAD_G, run->inputs.n, BYTES_PER_TIMER, bytes, bytes, bytes, 1});
	}
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

static void check_structures(struct bench_run *run)
{
	struct results *results = run->results;

	for (const struct structure *const *structure = run->plan->chosen; *structure && !interrupt_signal();
	     structure++) {
		struct checked checked = {*structure, NULL, 0};

		if (*structure == &structure_floor || !(*structure)->create)
			continue;
		snprintf(run->label, sizeof run->label, "correctness of %-13s", (*structure)->name);
		progress_show(run->steps_done, run->steps);
		checked.wrong = correct_run(*structure, run->plan->seed, &checked.latest);
		results->checked = memory_grow(
		    results->checked, &results->checked_capacity, results->checked_count, sizeof *results->checked);
		results->checked[results->checked_count++] = checked;
	}
}

static void begin_size(struct bench_run *run, uint64_t n)
{
	inputs_draw(&run->inputs, n, run->plan->seed);
	run->arena.inputs = &run->inputs;
	run->arena.limit_ns = run->plan->limit_ns;
	run->arena.objects = memory_aligned(n, sizeof *run->arena.objects);
	run->arena.sink.expired = memory_aligned(n, sizeof(struct object *));
	run->arena.sink.room = n;
}

static void end_size(struct bench_run *run)
{
	inputs_free(&run->inputs);
	free(run->arena.objects);
	free(run->arena.sink.expired);
}

static void run_size(struct bench_run *run, uint64_t n)
{
	static const enum workload timed[] = {
	    WORKLOAD_O, WORKLOAD_C30, WORKLOAD_C1800, WORKLOAD_CWEEK, WORKLOAD_D, WORKLOAD_R, WORKLOAD_F};

	begin_size(run, n);
	if (planned(run, WORKLOAD_F))
		inputs_draw_churn(&run->inputs, run->plan->seed);
	if (planned(run, WORKLOAD_A) || planned(run, WORKLOAD_B))
		run_workload(run, WORKLOAD_A);
	for (size_t i = 0; i < sizeof timed / sizeof *timed && !interrupt_signal(); i++)
		if (planned(run, timed[i]))
			run_workload(run, timed[i]);
	if (planned(run, WORKLOAD_G))
		add_memory(run);
	end_size(run);
}

static void run_lonely(struct bench_run *run)
{
	begin_size(run, 1);
	run_workload(run, WORKLOAD_E);
	end_size(run);
}

/* The weight of all passes, as far as it is known before. */
static uint64_t count_steps(const struct bench_run *run)
{
	uint64_t structures_chosen = 0, timed = 0, timers = 0, each;

	for (size_t i = 0; run->plan->chosen[i]; i++)
		structures_chosen += run->plan->chosen[i]->create != NULL;
	for (size_t i = 0; i < WORKLOAD_K; i++)
		timed += i != WORKLOAD_G && i != WORKLOAD_E && i != WORKLOAD_B && planned(run, (enum workload)i);
	timed += planned(run, WORKLOAD_B) && !planned(run, WORKLOAD_A);
	each = structures_chosen * (1 + run->plan->repetitions);
	for (size_t i = 0; i < run->plan->size_count; i++)
		timers += weight(run->plan->sizes[i]);
	return each * timed * timers + (planned(run, WORKLOAD_E) ? each * weight(1) : 0);
}

void run_plan(const struct plan *plan, struct results *results)
{
	const unsigned with_timers = ((1u << WORKLOAD_K) - 1) & ~(1u << WORKLOAD_E);
	struct bench_run run = {.plan = plan, .results = results};

	results->seed = plan->seed;
	run.rows = memory_zeroed(STRUCTURES_MAX, sizeof *run.rows);
	run.steps = count_steps(&run);
	progress_begin(run.label);
	interrupt_begin();
	check_structures(&run);
	if (planned(&run, WORKLOAD_E) && !interrupt_signal())
		run_lonely(&run);
	for (size_t i = 0; i < plan->size_count && !interrupt_signal(); i++) {
		if (plan->workloads & with_timers)
			run_size(&run, plan->sizes[i]);
		layers_run_size(plan, plan->sizes[i], results);
	}
	layers_run_once(plan, results);
	interrupt_end();
	results->interrupted = interrupt_signal();
	progress_clear();
	free(run.rows);
}
