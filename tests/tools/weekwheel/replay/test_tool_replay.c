/* Tests the replay, the oracle, and their comparison, which must notice every kind of difference. */
/* tier: quick */

#include <unistd.h>

#include "tests/support/seed.h"
#include "tests/tools/weekwheel/fixture.h"
#include "tools/weekwheel/input/csv_write.h"
#include "tools/weekwheel/input/load.h"
#include "tools/weekwheel/replay/replay.h"
#include "tools/weekwheel/replay/verify.h"
#include "weekwheel/wheel.h"

static const struct replay_options everything = {0, 0, 1, 1, 1};

static void replay(struct events *events, const struct replay_options *options, struct replay_result *result)
{
	events_sort(events);
	ck_assert_int_eq(replay_run(events, options, result), 0);
	ck_assert_uint_eq(result->max_late_ticks, 0);
}

static void expect_agreement(struct events *events, const struct replay_options *options, struct replay_result *result)
{
	struct difference difference = {""};
	struct outcome oracle;
	int differs;

	oracle_run(events, options->to_end, &oracle);
	differs = verify_compare(&result->outcome, &oracle, events->keys, &difference);
	ck_assert_msg(!differs, "%s", difference.text);
	outcome_free(&oracle);
}

START_TEST(a_timer_expires_before_the_events_of_its_tick)
{
	struct replay_result result;
	struct events events;

	events_init(&events);
	add(&events, EVENT_SET, 'a', 0, 10);
	add(&events, EVENT_CANCEL, 'a', 10, 0);
	add(&events, EVENT_SET, 'b', 0, 11);
	add(&events, EVENT_CANCEL, 'b', 10, 0);
	replay(&events, &everything, &result);
	ck_assert_uint_eq(result.outcome.tally.expired, 1);
	ck_assert_uint_eq(result.outcome.tally.cancelled, 1);
	ck_assert_uint_eq(result.outcome.tally.idle_cancels, 1);
	ck_assert_uint_eq(result.outcome.tally.pending, 0);
	ck_assert_uint_eq(result.outcome.tally.peak, 2);
	ck_assert_uint_eq(result.outcome.expiries.at[0].time, 10);
	ck_assert_uint_eq(result.operations, 5);
	outcome_free(&result.outcome);
	events_free(&events);
}
END_TEST

START_TEST(a_timeout_of_nothing_expires_before_the_next_event)
{
	struct replay_result result;
	struct events events;

	events_init(&events);
	add(&events, EVENT_SET, 'a', 5, 0);
	add(&events, EVENT_CANCEL, 'a', 5, 0);
	add(&events, EVENT_SET, 'a', 5, 0);
	replay(&events, &everything, &result);
	ck_assert_uint_eq(result.outcome.tally.expired, 2);
	ck_assert_uint_eq(result.outcome.tally.idle_cancels, 1);
	expect_agreement(&events, &everything, &result);
	outcome_free(&result.outcome);
	events_free(&events);
}
END_TEST

START_TEST(sessions_know_their_requests)
{
	struct replay_result result;
	struct events events;
	const struct replay_expiry *expiry;

	events_init(&events);
	add(&events, EVENT_REFRESH, 'a', 0, 100);
	add(&events, EVENT_REFRESH, 'a', 50, 100);
	add(&events, EVENT_REFRESH, 'a', 60, 100);
	add(&events, EVENT_REFRESH, 'a', 500, 100);
	add(&events, EVENT_SET, 'a', 550, 100);
	add(&events, EVENT_CANCEL, 'z', 1000, 0);
	replay(&events, &everything, &result);
	ck_assert_uint_eq(result.outcome.expiries.count, 2);
	expiry = result.outcome.expiries.at;
	ck_assert_uint_eq(expiry[0].time, 160);
	ck_assert_uint_eq(expiry[0].first, 0);
	ck_assert_uint_eq(expiry[0].last, 2);
	ck_assert_uint_eq(expiry[0].requests, 3);
	ck_assert_uint_eq(expiry[1].time, 650);
	ck_assert_uint_eq(expiry[1].requests, 1);
	ck_assert_uint_eq(result.outcome.tally.scheduled, 2);
	ck_assert_uint_eq(result.outcome.tally.refreshed, 3);
	outcome_free(&result.outcome);
	events_free(&events);
}
END_TEST

START_TEST(what_is_pending_at_the_end_stays_or_expires)
{
	struct replay_options options = everything;
	struct replay_result result;
	struct events events;

	events_init(&events);
	add(&events, EVENT_SET, 'a', 10, 5);
	add(&events, EVENT_SET, 'b', 20, 10000000);
	replay(&events, &options, &result);
	ck_assert_uint_eq(result.outcome.tally.pending, 1);
	ck_assert_uint_eq(result.end, 20);
	expect_agreement(&events, &options, &result);
	outcome_free(&result.outcome);
	options.to_end = 1;
	replay(&events, &options, &result);
	ck_assert_uint_eq(result.outcome.tally.pending, 0);
	ck_assert_uint_eq(result.end, 10000020);
	expect_agreement(&events, &options, &result);
	outcome_free(&result.outcome);
	events_free(&events);
}
END_TEST

static void random_events(struct events *events, uint64_t *seed, size_t count)
{
	static const uint64_t spans[] = {2, 60, 3600, 86400, 604800, 6048000};
	size_t i;

	for (i = 0; i < count; i++) {
		static const enum event_kind kinds[] = {EVENT_SET, EVENT_REFRESH, EVENT_REFRESH, EVENT_CANCEL};
		uint64_t timeout = seed_below(seed, spans[seed_below(seed, 6)]);

		add(events, kinds[seed_below(seed, 4)], (char)('A' + seed_below(seed, 60)), seed_below(seed, 200000),
		    timeout);
	}
}

START_TEST(the_wheel_and_the_oracle_agree_on_random_events)
{
	uint64_t seed = seed_of_run("the_wheel_and_the_oracle_agree_on_random_events");
	int round;

	for (round = 0; round < 12; round++) {
		struct replay_options options = everything;
		struct replay_result result;
		struct events events;

		options.to_end = round % 2;
		options.every_tick = round % 6 == 2;
		events_init(&events);
		random_events(&events, &seed, 5000);
		replay(&events, &options, &result);
		expect_agreement(&events, &options, &result);
		outcome_free(&result.outcome);
		events_free(&events);
	}
}
END_TEST

START_TEST(no_events_are_no_problem)
{
	struct replay_result result;
	struct events events;

	events_init(&events);
	replay(&events, &everything, &result);
	expect_agreement(&events, &everything, &result);
	outcome_free(&result.outcome);
	events_free(&events);
}
END_TEST

/* An outcome of the wheel, for a test to change, and the outcome of the oracle. */
struct trial {
	struct events events;
	struct replay_result result;
	struct outcome oracle;
	struct difference difference;
};

static void trial_begin(struct trial *trial)
{
	memset(trial, 0, sizeof *trial);
	events_init(&trial->events);
	add(&trial->events, EVENT_SET, 'a', 0, 10);
	add(&trial->events, EVENT_SET, 'b', 0, 10);
	add(&trial->events, EVENT_SET, 'c', 0, 20);
	add(&trial->events, EVENT_SET, 'd', 0, 90);
	add(&trial->events, EVENT_SET, 'e', 50, 5);
	replay(&trial->events, &everything, &trial->result);
	oracle_run(&trial->events, 0, &trial->oracle);
	ck_assert_uint_eq(trial->result.outcome.expiries.count, 3);
}

/* The difference must say `says`. NULL: there must be none. */
static void trial_end(struct trial *trial, const char *says)
{
	int differs = verify_compare(&trial->result.outcome, &trial->oracle, trial->events.keys, &trial->difference);

	ck_assert_int_eq(differs, says != NULL);
	if (says)
		ck_assert_msg(strstr(trial->difference.text, says) != NULL, "'%s' does not say '%s'",
		    trial->difference.text, says);
	outcome_free(&trial->oracle);
	outcome_free(&trial->result.outcome);
	events_free(&trial->events);
}

START_TEST(the_order_within_a_tick_is_free)
{
	struct trial trial;
	struct replay_expiry first;

	trial_begin(&trial);
	first = trial.result.outcome.expiries.at[0];
	trial.result.outcome.expiries.at[0] = trial.result.outcome.expiries.at[1];
	trial.result.outcome.expiries.at[1] = first;
	trial_end(&trial, NULL);
}
END_TEST

START_TEST(a_lost_expiry_is_noticed)
{
	struct trial trial;

	trial_begin(&trial);
	trial.result.outcome.expiries.count--;
	trial_end(&trial, "at 20, key 'c': the wheel did not expire it; the oracle expires it then");
}
END_TEST

START_TEST(an_expiry_too_many_is_noticed)
{
	struct trial trial;

	trial_begin(&trial);
	expiries_add(&trial.result.outcome.expiries, 20, 2);
	trial_end(&trial, "at 20, key 'c': the wheel expired it; the oracle does not expire it then");
}
END_TEST

START_TEST(an_expiry_at_another_time_is_noticed)
{
	struct trial trial;

	trial_begin(&trial);
	trial.result.outcome.expiries.at[2].time++;
	trial_end(&trial, "at 20, key 'c': the wheel did not expire it");
	trial_begin(&trial);
	trial.result.outcome.expiries.at[2].time--;
	trial_end(&trial, "at 19, key 'c': the wheel expired it");
}
END_TEST

START_TEST(the_expiry_of_another_timer_is_noticed)
{
	struct trial trial;

	trial_begin(&trial);
	trial.result.outcome.expiries.at[2].id = 3;
	trial_end(&trial, "at 20, key 'c': the wheel did not expire it");
}
END_TEST

START_TEST(time_that_runs_backwards_is_noticed)
{
	struct trial trial;
	struct replay_expiry last;

	trial_begin(&trial);
	last = trial.result.outcome.expiries.at[2];
	trial.result.outcome.expiries.at[2] = trial.result.outcome.expiries.at[0];
	trial.result.outcome.expiries.at[0] = last;
	trial_end(&trial, "after a later timer");
}
END_TEST

START_TEST(another_pending_timer_is_noticed)
{
	struct trial trial;

	trial_begin(&trial);
	trial.result.outcome.deadline[3] = WW_NEVER;
	trial_end(&trial, "key 'd': the wheel has it idle at the end; the oracle has it pending");
	trial_begin(&trial);
	trial.result.outcome.deadline[3]++;
	trial_end(
	    &trial, "key 'd': the wheel has it pending at the end; the oracle has it pending at another deadline");
}
END_TEST

START_TEST(another_count_is_noticed)
{
	struct trial trial;

	trial_begin(&trial);
	trial.result.outcome.tally.refreshed++;
	trial_end(&trial, "timers refreshed: the wheel says 1; the oracle 0");
}
END_TEST

START_TEST(csv_that_was_written_reads_as_the_same_events)
{
	static const char *const keys[] = {
	    "plain", "a,b", "say \"hi\"", " blank ", "tab\there", "#hash", "cr\r", "\"", "é"};
	struct load_options options = {NULL, {0, 0}, 1};
	struct source source;
	struct events events, again;
	uint64_t reported = 0;
	char name[] = "/tmp/weekwheel-test-XXXXXX";
	uint32_t i;

	events_init(&events);
	events_init(&again);
	for (i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct moment time = {i, i * 1000003u};
		struct moment due = {i + 7, 999999999};
		uint32_t id = keys_intern(events.keys, keys[i], strlen(keys[i]));

		events_add(&events, i % 2 ? EVENT_SET : EVENT_REFRESH, id, time, due);
		events_add_cancel(&events, id, time);
	}
	close(mkstemp(name));
	ck_assert_int_eq(csv_write(&events, name, "a remark"), 0);
	ck_assert_int_eq(load_file(name, &options, &again, &source, &reported), 0);
	unlink(name);
	ck_assert_ptr_eq(source.format, &format_csv);
	ck_assert_uint_eq(again.count, events.count);
	ck_assert_mem_eq(again.at, events.at, events.count * sizeof *events.at);
	for (i = 0; i < sizeof keys / sizeof *keys; i++)
		ck_assert_str_eq(key_of(&again, i), keys[i]);
	events_free(&again);
	events_free(&events);
}
END_TEST

TEST_MAIN("weekwheel/replay", a_timer_expires_before_the_events_of_its_tick,
    a_timeout_of_nothing_expires_before_the_next_event, sessions_know_their_requests,
    what_is_pending_at_the_end_stays_or_expires, the_wheel_and_the_oracle_agree_on_random_events,
    no_events_are_no_problem, the_order_within_a_tick_is_free, a_lost_expiry_is_noticed, an_expiry_too_many_is_noticed,
    an_expiry_at_another_time_is_noticed, the_expiry_of_another_timer_is_noticed, time_that_runs_backwards_is_noticed,
    another_pending_timer_is_noticed, another_count_is_noticed, csv_that_was_written_reads_as_the_same_events)
