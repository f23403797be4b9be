/*
 * What a run of the benchmark leaves out, and says so: passes that fail or take too long, what an interruption came before,
 * workloads that a structure has no part in.
 */
/* tier: check, no-valgrind */

#include <signal.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/bench/run.h"

enum { TIMERS = 200 };

static uint64_t pass, pass_that_fails, lost;

/* In one pass, a timer is lost. */
static void *create_for_pass(struct object *objects, uint64_t n, struct sink *sink)
{
	pass++;
	lost = 0;
	return structure_linked.create(objects, n, sink);
}

static void schedule_but_one(void *state, struct object *object, uint64_t delay)
{
	if (pass == pass_that_fails && lost++ == 0)
		return;
	structure_linked.schedule(state, object, delay);
}

/* Run D; the correctness run is the first pass, then come the one that warms up, and two of each repetition. */
static void run_with_failure(struct results *results, const struct structure *structure, uint64_t fails)
{
	struct plan plan = {.sizes = {TIMERS}, .size_count = 1, .chosen = {structure}, .repetitions = 2};

	plan.workloads = 1u << WORKLOAD_D;
	plan.limit_ns = UINT64_MAX;
	pass = 0;
	pass_that_fails = fails;
	memset(results, 0, sizeof *results);
	run_plan(&plan, results);
}

START_TEST(a_pass_that_is_given_up_is_listed_and_leaves_no_result)
{
	struct structure failing = structure_linked;
	struct results results;

	failing.create = create_for_pass;
	failing.schedule = schedule_but_one;
	/* A first repetition, its ticks, and a second one. */
	for (uint64_t fails = 3; fails <= 5; fails++) {
		run_with_failure(&results, &failing, fails);
		ck_assert_uint_eq(pass, fails);
		ck_assert_uint_eq(results.count, 0);
		ck_assert_uint_eq(results.ticks_count, 0);
		ck_assert_uint_eq(results.left_out_count, 1);
		ck_assert_ptr_eq(results.left_out[0].structure, &failing);
		ck_assert_int_eq(results.left_out[0].workload, WORKLOAD_D);
		ck_assert_str_eq(results.left_out[0].why, "not every timer expired");
		results_free(&results);
	}
}
END_TEST

START_TEST(what_took_too_long_is_not_tried_with_more)
{
	struct structure slow = structure_linked;
	struct plan plan = {
	    .sizes = {TIMERS, 2 * TIMERS, TIMERS}, .size_count = 3, .chosen = {&slow}, .repetitions = 1};
	struct results results = {0};

	slow.create = create_for_pass;
	plan.workloads = 1u << WORKLOAD_D;
	plan.limit_ns = 1;
	pass = 0;
	run_plan(&plan, &results);
	/* The correctness run, and twice the fewer. */
	ck_assert_uint_eq(pass, 3);
	ck_assert_uint_eq(results.left_out_count, 3);
	ck_assert_str_eq(results.left_out[0].why, "not done within the limit");
	ck_assert_uint_eq(results.left_out[1].n, 2 * TIMERS);
	ck_assert_str_eq(results.left_out[1].why, "not done within the limit with fewer timers");
	ck_assert_str_eq(results.left_out[2].why, "not done within the limit");
	results_free(&results);
}
END_TEST

/* What comes when a pass begins, and whether from then on both kinds end the program. */
static int interruption, both_end_it;

static int ends_it(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

static void *create_and_interrupt(struct object *objects, uint64_t n, struct sink *sink)
{
	if (++pass == pass_that_fails) {
		raise(interruption);
		both_end_it = ends_it(SIGINT) && ends_it(SIGTERM);
	}
	return structure_linked.create(objects, n, sink);
}

static void run_with_interruption(struct results *results, const struct structure *structure, uint64_t interrupted)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};

	struct plan plan = {.sizes = {TIMERS, TIMERS + 1}, .size_count = 2, .chosen = {structure}, .repetitions = 2};

	plan.workloads = 1u << WORKLOAD_D | 1u << WORKLOAD_F;
	plan.limit_ns = UINT64_MAX;
	pass = 0;
	pass_that_fails = interrupted;
	memset(results, 0, sizeof *results);
	interruption = SIGTERM;
	ck_assert_int_eq(sigaction(SIGTERM, &usual, NULL), 0);
	ck_assert_int_eq(sigaction(SIGINT, &usual, NULL), 0);
	run_plan(&plan, results);
	ck_assert_uint_eq(pass, interrupted);
	ck_assert_int_eq(results->interrupted, SIGTERM);
	ck_assert(both_end_it);
}

START_TEST(what_was_measured_before_an_interruption_is_kept)
{
	struct structure interrupted = structure_linked;
	struct results results;
	const struct result *result;

	interrupted.create = create_and_interrupt;
	/* The second repetition. */
	run_with_interruption(&results, &interrupted, 5);
	ck_assert_uint_eq(results.left_out_count, 0);
	ck_assert_uint_eq(results.ticks_count, 1);
	ck_assert_uint_eq(results.count, 3);
	result = results_find(&results, &interrupted, WORKLOAD_D, TIMERS, NS_PER_TIMER);
	ck_assert_ptr_nonnull(result);
	ck_assert_uint_eq(result->repetitions, 1);
	results_free(&results);
}
END_TEST

START_TEST(what_is_ignored_does_not_interrupt)
{
	struct structure interrupted = structure_linked;
	struct plan plan = {.sizes = {TIMERS}, .size_count = 1, .chosen = {&interrupted}, .repetitions = 2};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, now;
	struct results results = {0};

	interrupted.create = create_and_interrupt;
	interruption = SIGINT;
	ck_assert_int_eq(sigaction(SIGINT, &ignore, NULL), 0);
	plan.workloads = 1u << WORKLOAD_D;
	plan.limit_ns = UINT64_MAX;
	pass = 0;
	pass_that_fails = 3;
	run_plan(&plan, &results);
	ck_assert_int_eq(results.interrupted, 0);
	ck_assert_uint_eq(results.left_out_count, 0);
	ck_assert_int_eq(sigaction(SIGINT, NULL, &now), 0);
	ck_assert(now.sa_handler == SIG_IGN);
	results_free(&results);
}
END_TEST

START_TEST(what_an_interruption_came_before_is_listed)
{
	struct structure interrupted = structure_linked;
	struct results results;

	interrupted.create = create_and_interrupt;
	/* The pass that warms up. */
	run_with_interruption(&results, &interrupted, 2);
	ck_assert_uint_eq(results.count, 0);
	ck_assert_uint_eq(results.left_out_count, 1);
	ck_assert_int_eq(results.left_out[0].workload, WORKLOAD_D);
	ck_assert_str_eq(results.left_out[0].why, "interrupted before it was measured");
	results_free(&results);
}
END_TEST

/* Run the workloads with a structure that holds a minute only. */
static void run_with_too_short(struct results *results, unsigned workloads)
{
	struct plan plan = {.sizes = {TIMERS}, .size_count = 1, .chosen = {&structure_flat60}, .repetitions = 1};

	plan.workloads = workloads;
	plan.limit_ns = UINT64_MAX;
	memset(results, 0, sizeof *results);
	run_plan(&plan, results);
	ck_assert_uint_eq(results->count, 0);
}

START_TEST(what_is_left_out_is_what_was_asked_for)
{
	struct results results;

	run_with_too_short(&results, 1u << WORKLOAD_B);
	ck_assert_uint_eq(results.left_out_count, 1);
	ck_assert_int_eq(results.left_out[0].workload, WORKLOAD_B);
	results_free(&results);
	run_with_too_short(&results, 1u << WORKLOAD_A | 1u << WORKLOAD_B | 1u << WORKLOAD_E);
	ck_assert_uint_eq(results.left_out_count, 3);
	ck_assert_int_eq(results.left_out[0].workload, WORKLOAD_E);
	ck_assert_uint_eq(results.left_out[0].n, 1);
	ck_assert_int_eq(results.left_out[1].workload, WORKLOAD_A);
	ck_assert_int_eq(results.left_out[2].workload, WORKLOAD_B);
	results_free(&results);
}
END_TEST

START_TEST(the_reference_has_no_ticks_and_takes_no_part_in_some)
{
	struct plan plan = {.sizes = {TIMERS}, .size_count = 1, .chosen = {&structure_floor}, .repetitions = 1};
	struct results results = {0};

	plan.limit_ns = UINT64_MAX;
	plan.workloads = 1u << WORKLOAD_E | 1u << WORKLOAD_G;
	ck_assert_int_eq(plan_is_empty(&plan), 1);
	plan.workloads |= 1u << WORKLOAD_D | 1u << WORKLOAD_R;
	ck_assert_int_eq(plan_is_empty(&plan), 0);
	run_plan(&plan, &results);
	ck_assert_uint_eq(results.count, 2);
	ck_assert_int_eq(results.result[0].metric, NS_PER_TIMER);
	ck_assert_int_eq(results.result[1].metric, NS_PER_TIMER);
	ck_assert_uint_eq(results.ticks_count + results.left_out_count, 0);
	results_free(&results);
	plan.workloads = 1u << WORKLOAD_G;
	plan.chosen[1] = &structure_flat60;
	ck_assert_int_eq(plan_is_empty(&plan), 0);
}
END_TEST

TEST_MAIN("bench/left_out", a_pass_that_is_given_up_is_listed_and_leaves_no_result,
    what_took_too_long_is_not_tried_with_more, what_was_measured_before_an_interruption_is_kept,
    what_an_interruption_came_before_is_listed, what_is_ignored_does_not_interrupt,
    what_is_left_out_is_what_was_asked_for, the_reference_has_no_ticks_and_takes_no_part_in_some)
