/* States in the log: once when one begins and once when it ends, however often it is met and however fast it changes. */
/* tier: check */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/suite.h"
#include "tools/common/message.h"
#include "tools/service/state/state.h"

static uint64_t ms; /* the clock of these tests */

int clock_gettime(clockid_t id, struct timespec *now)
{
	(void)id;
	now->tv_sec = (time_t)(ms / 1000);
	now->tv_nsec = (long)(ms % 1000 * 1000000);
	return 0;
}

static char log_text[65536];
static FILE *log_saved;

static void begin(void)
{
	state_finish();
	ms = 5000;
	message_level = MESSAGE_INFO;
	message_form = MESSAGE_TEXT;
	memset(log_text, 0, sizeof log_text);
	log_saved = stderr;
	stderr = fmemopen(log_text, sizeof log_text, "w");
	ck_assert_ptr_nonnull(stderr);
	setvbuf(stderr, NULL, _IONBF, 0);
}

static void finish(void)
{
	state_finish();
	fclose(stderr);
	stderr = log_saved;
}

static int lines(void)
{
	int count = 0;

	for (const char *at = log_text; (at = strchr(at, '\n')) != NULL; at++)
		count++;
	return count;
}

struct wanted {
	const char *key;
	int is_on;
};

static void look(const struct state_info *state, void *context)
{
	struct wanted *wanted = context;

	if (strcmp(state->key, wanted->key) == 0)
		wanted->is_on = state->is_on;
}

static int state_is(const char *key)
{
	struct wanted wanted = {key, 0};

	state_each(look, &wanted);
	return wanted.is_on;
}

static void full(void)
{
	state_begin("disk", STATE_STOPS_WRITING, "the disk of %s is full", "jobs");
}

START_TEST(a_state_is_told_twice_however_often_it_is_met)
{
	begin();
	ck_assert(!state_is("disk"));
	for (int i = 0; i < 1000; i++) {
		full();
		ms += 3;
	}
	ck_assert(state_is("disk"));
	ck_assert_str_eq(log_text, "weekwheel: warning: the disk of jobs is full\n");
	state_end("disk", "there is room again");
	state_end("disk", "there is room again");
	ck_assert(!state_is("disk"));
	finish();
	ck_assert_str_eq(log_text, "weekwheel: warning: the disk of jobs is full\n"
	                           "weekwheel: there is room again (after 3.000 s, met 1000 times)\n");
}
END_TEST

START_TEST(one_that_comes_and_goes_is_told_at_most_four_times)
{
	begin();
	for (int i = 0; i < 5000; i++) {
		full();
		ms += 5;
		ck_assert(state_is("disk"));
		state_end("disk", "there is room again");
		ms += 5;
		ck_assert(!state_is("disk"));
		(void)state_settle();
	}
	ck_assert_int_eq(lines(), 3);
	ck_assert_int_eq(state_settle(), STATE_QUIET_MS - 5);
	ms += STATE_QUIET_MS - 5;
	ck_assert_int_eq(state_settle(), -1);
	finish();
	ck_assert_int_eq(lines(), 4);
	ck_assert_ptr_nonnull(strstr(log_text, "(again: from now on"));
	ck_assert_ptr_nonnull(strstr(log_text, "room again (after 49.985 s, met 4999 times)\n"));
}
END_TEST

START_TEST(what_is_only_seen_ends_by_itself)
{
	begin();
	for (int i = 0; i < 30; i++) {
		state_seen("refused", "clients are turned away");
		ms += 1000;
		(void)state_settle();
	}
	ck_assert(state_is("refused"));
	ck_assert_int_eq(lines(), 1);
	ms += STATE_QUIET_MS;
	ck_assert_int_eq(state_settle(), -1);
	ck_assert(!state_is("refused"));
	finish();
	ck_assert_ptr_nonnull(strstr(log_text, "it is over: clients are turned away (after 29.000 s, met 30 times)\n"));
	ck_assert_int_eq(lines(), 2);
}
END_TEST

START_TEST(what_is_seen_once_has_no_length)
{
	begin();
	state_seen("refused", "a client is turned away");
	ms += STATE_QUIET_MS;
	ck_assert_int_eq(state_settle(), -1);
	finish();
	ck_assert_ptr_nonnull(strstr(log_text, "it is over: a client is turned away (met once)\n"));
	ck_assert_int_eq(lines(), 2);
}
END_TEST

START_TEST(json_has_the_fields)
{
	begin();
	message_form = MESSAGE_JSON;
	full();
	ms += 250;
	state_end("disk", "room");
	finish();
	ck_assert_str_eq(log_text,
	    "{\"time\":\"1970-01-01T00:00:05.000Z\",\"level\":\"warning\",\"message\":\"the disk of jobs is full\","
	    "\"state\":\"disk\",\"event\":\"begin\"}\n"
	    "{\"time\":\"1970-01-01T00:00:05.250Z\",\"level\":\"info\",\"message\":\"room (after 0.250 s, met 1 time)\","
	    "\"state\":\"disk\",\"event\":\"end\",\"milliseconds\":250,\"count\":1}\n");
}
END_TEST

START_TEST(long_and_wild_texts_stay_a_line)
{
	static char text[9000];

	memset(text, '\n', sizeof text - 1);
	begin();
	message_form = MESSAGE_JSON;
	message_log(MESSAGE_ERROR, MESSAGE_FIELDS({"client", text, 0}), "%s\xff", text);
	finish();
	ck_assert_int_eq(lines(), 1);
	ck_assert_ptr_nonnull(strstr(log_text, "...\",\"client\":\""));
}
END_TEST

static void count_on(const struct state_info *state, void *context)
{
	*(unsigned *)context += (unsigned)state->is_on;
}

START_TEST(there_are_only_so_many)
{
	char key[32];
	unsigned on = 0;

	begin();
	message_level = MESSAGE_ERROR;
	for (int i = 0; i < 2 * STATES_MAX; i++) {
		snprintf(key, sizeof key, "node %d", i);
		state_begin(key, 0, "away");
		if (i < STATES_MAX)
			state_end(key, "back");
	}
	state_begin("one more", 0, "away");
	ck_assert(!state_is("one more"));
	ck_assert(!state_is("node 0"));
	ck_assert(state_is(key));
	state_each(count_on, &on);
	ck_assert_uint_eq(on, STATES_MAX);
	finish();
	ck_assert_int_eq(lines(), 0);
}
END_TEST

static void *flap(void *key)
{
	for (int i = 0; i < 20000; i++) {
		state_begin(key, 0, "begun %d", i);
		state_end(key, "ended %d", i);
		state_seen("shared", "seen");
	}
	return NULL;
}

static void woken(void *context)
{
	++*(int *)context;
}

START_TEST(threads_may_tell_at_once)
{
	pthread_t threads[2];
	int wakes = 0;

	begin();
	state_watch(woken, &wakes);
	pthread_create(&threads[0], NULL, flap, "one");
	pthread_create(&threads[1], NULL, flap, "two");
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	ck_assert_int_ge(wakes, 1);
	state_watch(NULL, NULL);
	finish();
	ck_assert_int_le(lines(), 9);
}
END_TEST

TEST_MAIN("weekwheeld/state", a_state_is_told_twice_however_often_it_is_met,
    one_that_comes_and_goes_is_told_at_most_four_times, what_is_only_seen_ends_by_itself,
    what_is_seen_once_has_no_length, json_has_the_fields, long_and_wild_texts_stay_a_line, there_are_only_so_many,
    threads_may_tell_at_once)
