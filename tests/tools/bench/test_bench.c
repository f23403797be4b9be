/*
 * The benchmark around its structures: what it draws, what it finds wrong, and that it gives every result it promises.
 */
/* tier: check, no-valgrind */

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/bench/machine.h"
#include "tools/bench/result.h"
#include "tools/bench/run.h"
#include "tools/bench/workload.h"
#include "weekwheel/wheel.h"

enum { TIMERS = 200, EVERY = 100 };

/* ---- Structures that err now and then ---------------------------------------------------------------------------- */

static struct sink *odd_sink;
static uint64_t odd_calls;

static void *odd_create(struct object *objects, uint64_t n, struct sink *sink)
{
	odd_sink = sink;
	odd_calls = 0;
	return structure_linked.create(objects, n, sink);
}

static void advance_twice(void *state, uint64_t now)
{
	structure_linked.advance(state, now);
	if (odd_sink->count == 1 && ++odd_calls % EVERY == 0)
		sink_report(odd_sink, odd_sink->expired[0]);
}

/* Far more often than there are objects. */
static void advance_again_and_again(void *state, uint64_t now)
{
	structure_linked.advance(state, now);
	for (int i = 0; odd_sink->count > 0 && i < 100000; i++)
		sink_report(odd_sink, odd_sink->expired[0]);
}

static void schedule_early(void *state, struct object *object, uint64_t delay)
{
	structure_linked.schedule(state, object, delay > 1 && ++odd_calls % EVERY == 0 ? delay - 1 : delay);
}

static void schedule_late(void *state, struct object *object, uint64_t delay)
{
	structure_linked.schedule(state, object, ++odd_calls % EVERY == 0 ? delay + 3 : delay);
}

static const char *correct(const struct structure *structure, uint64_t *latest)
{
	return correct_run(structure, seed_of_run("bench/bench"), latest);
}

START_TEST(one_wrong_expiry_of_hundreds_is_found)
{
	struct structure twice = structure_linked, early = structure_linked;
	uint64_t latest;

	twice.create = early.create = odd_create;
	twice.advance = advance_twice;
	early.schedule = schedule_early;
	ck_assert_pstr_eq(correct(&structure_linked, &latest), NULL);
	ck_assert_uint_eq(latest, 0);
	ck_assert_pstr_eq(correct(&twice, &latest), "a timer expired twice, or after it was cancelled");
	ck_assert_pstr_eq(correct(&early, &latest), "a timer expired early");
}
END_TEST

START_TEST(what_expires_without_end_overwrites_nothing)
{
	struct structure endless = structure_linked;
	uint64_t latest;

	endless.create = odd_create;
	endless.advance = advance_again_and_again;
	ck_assert_pstr_eq(correct(&endless, &latest), "a timer expired twice, or after it was cancelled");
}
END_TEST

START_TEST(one_late_timer_of_hundreds_is_told)
{
	struct structure late = structure_linked;
	uint64_t latest;

	late.create = odd_create;
	late.schedule = schedule_late;
	ck_assert_pstr_eq(correct(&late, &latest), NULL);
	ck_assert_uint_eq(latest, 3);
}
END_TEST

START_TEST(what_is_wrong_is_not_timed)
{
	struct structure wrong = structure_linked;
	struct plan plan = {.sizes = {TIMERS}, .size_count = 1, .chosen = {&wrong}, .repetitions = 1};
	struct results results = {0};

	wrong.create = odd_create;
	wrong.advance = advance_twice;
	plan.workloads = 1u << WORKLOAD_A | 1u << WORKLOAD_G;
	plan.limit_ns = UINT64_MAX;
	run_plan(&plan, &results);
	ck_assert_uint_eq(results.count, 0);
	ck_assert_uint_eq(results.checked_count, 1);
	ck_assert_ptr_eq(results.checked[0].structure, &wrong);
	ck_assert_ptr_nonnull(results.checked[0].wrong);
	results_free(&results);
}
END_TEST

/* ---- Ticks -------------------------------------------------------------------------------------------------------- */

/* Ticks of `ns` each, but for the first. */
static void keep_pass(struct row *row, uint32_t first, uint32_t ns)
{
	uint32_t *ticks = calloc(BENCH_WEEK, sizeof *ticks);

	ck_assert_ptr_nonnull(ticks);
	for (uint64_t i = 0; i < BENCH_WEEK; i++)
		ticks[i] = ns;
	ticks[0] = first;
	row_keep_ticks(row, ticks);
}

static void expect_longest(const struct row *row, double median, double min, double max)
{
	struct results results = {0};

	row_add_ticks(row, WORKLOAD_D, TIMERS, &results);
	ck_assert_uint_eq(results.count, 2);
	ck_assert_int_eq(results.result[0].metric, MAX_TICK_US);
	ck_assert_double_eq_tol(results.result[0].median, median, 1e-9);
	ck_assert_double_eq_tol(results.result[0].min, min, 1e-9);
	ck_assert_double_eq_tol(results.result[0].max, max, 1e-9);
	ck_assert_uint_eq(results.result[0].repetitions, row->tick_count);
	ck_assert_int_eq(results_ticks_are_raw(&results), row->tick_count < 3);
	results_free(&results);
}

START_TEST(a_tick_has_the_median_of_its_repetitions)
{
	struct row *row = calloc(1, sizeof *row);

	ck_assert_ptr_nonnull(row);
	row->structure = &structure_linked;
	keep_pass(row, 4000, 1000);
	expect_longest(row, 4, 4, 4);
	keep_pass(row, 9000, 2000);
	expect_longest(row, 6.5, 4, 9);
	keep_pass(row, 1000000, 1000);
	expect_longest(row, 9, 4, 1000);
	keep_pass(row, 3000, 4001);
	expect_longest(row, 6.5, 3, 1000);
	row_drop(row);
	free(row);
}
END_TEST

/* ---- Inputs ------------------------------------------------------------------------------------------------------- */

START_TEST(the_same_seed_draws_the_same)
{
	struct inputs inputs, again, other;

	inputs_draw(&inputs, TIMERS, 5);
	inputs_draw(&again, TIMERS, 5);
	inputs_draw(&other, TIMERS, 6);
	inputs_draw_churn(&inputs, 5);
	inputs_draw_churn(&again, 5);
	ck_assert_mem_eq(inputs.delay, again.delay, TIMERS * sizeof *inputs.delay);
	ck_assert_mem_ne(inputs.delay, other.delay, TIMERS * sizeof *inputs.delay);
	ck_assert_uint_eq(inputs.churn.lives, again.churn.lives);
	ck_assert_mem_eq(inputs.churn.object, again.churn.object, inputs.churn.lives * sizeof *inputs.churn.object);
	inputs_free(&inputs);
	inputs_free(&again);
	inputs_free(&other);
}
END_TEST

START_TEST(an_order_names_each_object_once)
{
	struct inputs inputs;
	unsigned char seen[TIMERS];

	inputs_draw(&inputs, TIMERS, seed_of_run("bench/bench"));
	for (int order = 0; order < ORDERS; order++) {
		memset(seen, 0, sizeof seen);
		for (int i = 0; i < TIMERS; i++) {
			ck_assert_uint_lt(inputs.order[order][i], TIMERS);
			ck_assert_uint_eq(seen[inputs.order[order][i]]++, 0);
		}
	}
	for (int i = 0; i < TIMERS; i++) {
		ck_assert_uint_ge(inputs.delay[i], 1);
		ck_assert_uint_lt(inputs.delay[i], BENCH_WEEK);
	}
	inputs_free(&inputs);
}
END_TEST

/* The script, played with an array of deadlines. */
struct stage {
	const struct churn *churn;
	uint64_t deadline[TIMERS];
	uint64_t now, life;
};

/* The next life begins where one has expired or is cancelled; every object has one again. */
static void stage_live(struct stage *stage, int expired)
{
	uint64_t object = stage->churn->object[stage->life];
	uint64_t delay = stage->churn->delay[stage->life++];

	ck_assert_uint_lt(object, TIMERS);
	ck_assert_uint_ge(delay, 1);
	ck_assert_uint_lt(delay, BENCH_WEEK);
	if (expired)
		ck_assert_uint_eq(stage->deadline[object], stage->now);
	else
		ck_assert_uint_gt(stage->deadline[object], stage->now);
	stage->deadline[object] = stage->now + delay;
}

static void stage_tick(struct stage *stage, uint32_t expired, uint32_t cancelled)
{
	uint64_t due = 0;

	stage->now++;
	for (int i = 0; i < TIMERS; i++)
		due += stage->deadline[i] == stage->now;
	ck_assert_uint_eq(due, expired);
	while (expired-- > 0)
		stage_live(stage, 1);
	while (cancelled-- > 0)
		stage_live(stage, 0);
	for (int i = 0; i < TIMERS; i++)
		ck_assert_uint_gt(stage->deadline[i], stage->now);
}

START_TEST(the_script_of_the_churn_keeps_all_pending_and_cancels_four_of_five)
{
	uint64_t seed = seed_of_run("bench/bench"), expired = 0, cancelled = 0;
	struct inputs inputs;
	struct stage stage = {0};

	inputs_draw(&inputs, TIMERS, seed);
	inputs_draw_churn(&inputs, seed);
	stage.churn = &inputs.churn;
	for (int i = 0; i < TIMERS; i++)
		stage.deadline[i] = inputs.churn.first_delay[i];
	for (uint64_t tick = 0; tick < inputs.churn.ticks; tick++) {
		stage_tick(&stage, inputs.churn.expired[tick], inputs.churn.cancelled[tick]);
		expired += inputs.churn.expired[tick];
		cancelled += inputs.churn.cancelled[tick];
		/* The last tick may be cut short. */
		if (tick + 1 < inputs.churn.ticks)
			ck_assert_uint_eq(cancelled, 4 * expired);
	}
	ck_assert_uint_eq(stage.life, inputs.churn.lives);
	ck_assert_uint_eq(expired + cancelled, inputs.churn.lives);
	ck_assert_uint_ge(inputs.churn.lives, 4 * TIMERS);
	ck_assert_uint_le(inputs.churn.lives, 5 * TIMERS);
	inputs_free(&inputs);
}
END_TEST

/* ---- A run -------------------------------------------------------------------------------------------------------- */

static const struct {
	enum workload workload;
	enum metric metric;
} promised[] = {
    {WORKLOAD_A, NS_PER_OP},
    {WORKLOAD_B, NS_PER_OP},
    {WORKLOAD_O, NS_PER_OP},
    {WORKLOAD_C30, NS_PER_OP},
    {WORKLOAD_C1800, NS_PER_OP},
    {WORKLOAD_CWEEK, NS_PER_OP},
    {WORKLOAD_D, NS_PER_TIMER},
    {WORKLOAD_D, MAX_TICK_US},
    {WORKLOAD_D, P999_TICK_US},
    {WORKLOAD_R, NS_PER_TIMER},
    {WORKLOAD_E, NS_PER_TICK},
    {WORKLOAD_E, JUMP_NS},
    {WORKLOAD_F, NS_PER_OP},
    {WORKLOAD_G, BYTES_PER_TIMER},
};

enum { PROMISED = sizeof promised / sizeof *promised };

static void run_all(struct results *results)
{
	struct plan plan = {.sizes = {TIMERS},
	    .size_count = 1,
	    .chosen = {&structure_weekwheel, &structure_linked},
	    .workloads = (1u << WORKLOADS) - 1,
	    .repetitions = 2,
	    .seed = 3,
	    .limit_ns = UINT64_MAX};

	memset(results, 0, sizeof *results);
	run_plan(&plan, results);
}

static void expect_each_once(const struct results *results, const struct structure *structure)
{
	for (size_t i = 0; i < PROMISED; i++) {
		uint64_t n = promised[i].workload == WORKLOAD_E ? 1 : TIMERS;
		const struct result *result =
		    results_find(results, structure, promised[i].workload, n, promised[i].metric);

		ck_assert_msg(result != NULL, "%s has no %s of %s", structure->name,
		    metric_words[promised[i].metric].name, workload_words[promised[i].workload].name);
		ck_assert_double_le(result->min, result->median);
		ck_assert_double_le(result->median, result->max);
		ck_assert_double_ge(result->min, 0);
		/* A pass of seconds, on a machine that is slow, is not repeated. */
		ck_assert_uint_ge(result->repetitions, 1);
		ck_assert_uint_le(result->repetitions, 2);
	}
}

static void expect_memory(const struct results *results)
{
	const struct result *bytes = results_find(results, &structure_weekwheel, WORKLOAD_G, TIMERS, BYTES_PER_TIMER);
	size_t size;

	OK(ww_wheel_size(NULL, &size));
	ck_assert_double_eq_tol(bytes->median, 48 + (double)size / TIMERS, 1e-9);
}

static void expect_ticks(const struct results *results)
{
	ck_assert_uint_eq(results->ticks_count, 2);
	for (size_t i = 0; i < results->ticks_count; i++) {
		const struct ticks *ticks = &results->ticks[i];
		uint32_t longest = 0;

		ck_assert_uint_eq(ticks->n, TIMERS);
		for (uint64_t tick = 0; tick < BENCH_WEEK; tick++)
			if (ticks->ns[tick] > longest)
				longest = ticks->ns[tick];
		ck_assert_double_eq_tol(
		    results_find(results, ticks->structure, WORKLOAD_D, TIMERS, MAX_TICK_US)->median, longest / 1e3,
		    1e-9);
	}
}

/* Each line is an object with these keys in this order. */
static void expect_json_line(const char *line, const struct result *result)
{
	char structure[32], workload[32], metric[32], unit[32], end[4] = "";
	unsigned long long n;
	double median, min, max;
	unsigned repetitions;
	int got = sscanf(line,
	    "{\"structure\": \"%31[^\"]\", \"workload\": \"%31[^\"]\", \"n\": %llu, \"metric\": \"%31[^\"]\","
	    " \"unit\": \"%31[^\"]\", \"median\": %lf, \"min\": %lf, \"max\": %lf, \"repetitions\": %u%3[},]",
	    structure, workload, &n, metric, unit, &median, &min, &max, &repetitions, end);

	ck_assert_msg(got == 10, "%s", line);
	ck_assert_str_eq(structure, result->structure->name);
	ck_assert_str_eq(workload, workload_words[result->workload].name);
	ck_assert_str_eq(metric, metric_words[result->metric].name);
	ck_assert_str_eq(unit, metric_words[result->metric].unit);
	ck_assert_uint_eq(n, result->n);
	ck_assert_uint_eq(repetitions, result->repetitions);
	ck_assert_double_eq_tol(median, result->median, result->median / 1e5);
}

static void expect_json(const struct results *results)
{
	char *text, *line, *rest;
	size_t size, lines = 0;
	FILE *out = open_memstream(&text, &size);

	bench_report_json(out, results);
	ck_assert_int_eq(fclose(out), 0);
	ck_assert_uint_eq(size, strlen(text));
	line = strtok_r(text, "\n", &rest);
	ck_assert_str_eq(line, "{");
	while ((line = strtok_r(NULL, "\n", &rest)) && strcmp(line, "\"results\": [") != 0)
		;
	ck_assert_ptr_nonnull(line);
	while ((line = strtok_r(NULL, "\n", &rest)) && *line == ' ') {
		ck_assert_uint_lt(lines, results->count);
		expect_json_line(line + 2, &results->result[lines++]);
		ck_assert_int_eq(line[strlen(line) - 1], lines < results->count ? ',' : '}');
	}
	ck_assert_pstr_eq(line, "],");
	ck_assert_uint_eq(lines, results->count);
	free(text);
}

START_TEST(a_run_gives_every_promised_result_once)
{
	struct results results;

	run_all(&results);
	for (size_t i = 0; i < results.checked_count; i++)
		ck_assert_pstr_eq(results.checked[i].wrong, NULL);
	ck_assert_uint_eq(results.left_out_count, 0);
	ck_assert_uint_eq(results.count, 2 * PROMISED);
	expect_each_once(&results, &structure_weekwheel);
	expect_each_once(&results, &structure_linked);
	expect_memory(&results);
	expect_ticks(&results);
	expect_json(&results);
	results_free(&results);
}
END_TEST

/* ---- The machine -------------------------------------------------------------------------------------------------- */

static void put_file(const char *folder, const char *index, const char *name, const char *text)
{
	char path[100];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, index);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%s/%s", folder, index, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

static void remove_cache(const char *folder, const char *index)
{
	static const char *const names[] = {"level", "size", ""};
	char path[100];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s/%s", folder, index, names[i]);
		(void)remove(path);
	}
}

START_TEST(the_size_of_a_cache_is_that_of_the_processor)
{
	char folder[] = "/tmp/weekwheel-cache-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_uint_eq(machine_cache_kib(folder, 3), 0);
	put_file(folder, "index0", "level", "1\n");
	put_file(folder, "index0", "size", "32K\n");
	put_file(folder, "index1", "level", "3\n");
	put_file(folder, "index1", "size", "32768K\n");
	put_file(folder, "index2", "level", "2\n");
	ck_assert_uint_eq(machine_cache_kib(folder, 3), 32768);
	ck_assert_uint_eq(machine_cache_kib(folder, 2), 0);
	put_file(folder, "index2", "size", "1024K\n");
	ck_assert_uint_eq(machine_cache_kib(folder, 2), 1024);
	remove_cache(folder, "index0");
	remove_cache(folder, "index1");
	remove_cache(folder, "index2");
	ck_assert_int_eq(remove(folder), 0);
}
END_TEST

START_TEST(no_results_are_a_list_too)
{
	struct results results = {0};

	expect_json(&results);
}
END_TEST

TEST_MAIN("bench/bench", one_wrong_expiry_of_hundreds_is_found, what_expires_without_end_overwrites_nothing,
    one_late_timer_of_hundreds_is_told, what_is_wrong_is_not_timed, a_tick_has_the_median_of_its_repetitions,
    the_same_seed_draws_the_same, an_order_names_each_object_once,
    the_script_of_the_churn_keeps_all_pending_and_cancels_four_of_five, a_run_gives_every_promised_result_once,
    the_size_of_a_cache_is_that_of_the_processor, no_results_are_a_list_too)
