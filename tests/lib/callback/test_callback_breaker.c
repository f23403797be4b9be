/* Hosts that do not answer: they rest, and they take no more than their part of the room. */
/* tier: check, threads */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/callback/pushing.h"

enum { MANY = 40, REST_AFTER = 5 };

static struct pushing pushing;
static char value[256];

/* ---- What the pusher reports */

static _Atomic int rests;
static _Atomic int answers;

static void on_report(const char *sentence, void *context)
{
	(void)context;
	rests += strstr(sentence, "The host 127.0.0.1, port ") && strstr(sentence, "rests after 5 requests in a row");
	answers += strstr(sentence, "answers again after ") && strstr(sentence, "jobs were put off ");
}

static void start(uint64_t rest)
{
	rests = answers = 0;
	pushing_make(&pushing);
	pushing.config.rest = pushing.config.rest_max = rest;
	pushing.config.report = on_report;
	pushing_open(&pushing);
}

/* Five requests in a row that the receiver of 127.0.0.1 does not answer. */
static void let_it_rest(void)
{
	for (int i = 0; i < REST_AFTER; i++) {
		ck_assert_uint_eq(pushing_stats(&pushing).resting, 0);
		expect_backoff(&pushing, pushing_post(&pushing, "/", "Answer-Do: hang up\n"), "no answer: ");
	}
	pushing_wait(&pushing, "resting", 1);
	ck_assert_int_eq(rests, 1);
}

static void pass(uint64_t ns, int *times)
{
	pushing_pause(times);
	world_pass(&pushing.world, ns);
}

/* "rested" counts a job before the store is told. */
static void wait_until_put_off(const uint64_t *ids)
{
	int times = 0;

	pushing_wait(&pushing, "rested", MANY);
	for (size_t i = 0; i < MANY; i++)
		while (info_of(&pushing.world, ids[i]).state != WW_JOB_DELAYED)
			pushing_pause(&times);
}

START_TEST(jobs_of_a_host_that_rests_are_put_off_and_delay_no_others)
{
	struct receiver *quick = receiver_start_at("127.0.0.2", NULL);
	uint64_t ids[MANY];

	start(3600 * WW_SECOND);
	let_it_rest();
	for (size_t i = 0; i < MANY; i++)
		ids[i] = pushing_post(&pushing, "/", "");
	expect_finished(&pushing, pushing_put(&pushing, NULL, "http://127.0.0.2:%u/", receiver_port(quick)));
	wait_until_put_off(ids);
	ck_assert_uint_eq(receiver_count(pushing.receiver), REST_AFTER);
	for (size_t i = 0; i < MANY; i++) {
		struct ww_job_info info = info_of(&pushing.world, ids[i]);
		ck_assert_uint_eq(info.releases, 0);
		/* An hour, less a quarter by chance, is more than jobs are put off for. */
		ck_assert_uint_ge(info.left, 450 * WW_SECOND);
		ck_assert_uint_le(info.left, 600 * WW_SECOND);
		ck_assert_str_eq(info.error, "");
	}
	ck_assert_uint_eq(pushing_stats(&pushing).requests, REST_AFTER + 1);
	ck_assert_uint_eq(pushing_stats(&pushing).waiting, 0);
	pushing_end(&pushing);
	receiver_stop(quick);
}
END_TEST

START_TEST(jobs_that_are_put_off_come_back_one_by_one)
{
	uint64_t ids[MANY];
	uint64_t least = UINT64_MAX;
	uint64_t most = 0;

	start(60 * WW_SECOND);
	let_it_rest();
	uint64_t now = world_now(&pushing.world);
	for (size_t i = 0; i < MANY; i++)
		ids[i] = pushing_post(&pushing, "/", "");
	wait_until_put_off(ids);
	for (size_t i = 0; i < MANY; i++) {
		struct ww_job_info info = info_of(&pushing.world, ids[i]);
		least = info.due < least ? info.due : least;
		most = info.due > most ? info.due : most;
	}
	/* 5 ms after each other, from the next trial on. The store's clock stands still while they are taken. */
	ck_assert_uint_ge(least, now + 30 * WW_SECOND);
	ck_assert_uint_ge(most, least + MANY * WW_MILLISECOND);
	ck_assert_uint_le(most, now + 60 * WW_SECOND + MANY * 5 * WW_MILLISECOND);
	pushing_end(&pushing);
}
END_TEST

START_TEST(one_request_tries_a_host_that_rests)
{
	uint64_t ids[MANY];
	int times = 0;

	start(WW_MILLISECOND);
	let_it_rest();
	for (size_t i = 0; i < MANY; i++)
		ids[i] = pushing_post(&pushing, "/", "Answer-Do: wait\n");
	while (receiver_count(pushing.receiver) == REST_AFTER)
		pass(10 * WW_MILLISECOND, &times);
	/* All of them come meanwhile. */
	for (uint64_t seen = pushing_stats(&pushing).rested; pushing_stats(&pushing).rested < seen + 2 * MANY;)
		pass(10 * WW_MILLISECOND, &times);
	ck_assert_uint_eq(receiver_count(pushing.receiver), REST_AFTER + 1);
	ck_assert_uint_eq(pushing_stats(&pushing).resting, 1);
	ck_assert_int_eq(answers, 0);
	receiver_open(pushing.receiver);
	for (size_t i = 0; i < MANY; i++)
		expect_finished_later(&pushing, ids[i]);
	ck_assert_uint_eq(pushing_stats(&pushing).resting, 0);
	ck_assert_int_eq(rests, 1);
	ck_assert_int_eq(answers, 1);
	/* No attempt was spent. */
	for (size_t i = REST_AFTER; i < REST_AFTER + MANY; i++)
		ck_assert_str_eq(header_of(receiver_got(pushing.receiver, i), "Weekwheel-Attempt", value), "1");
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_host_that_fails_its_trial_rests_on)
{
	struct ww_job_spec spec = pushing_spec();
	int times = 0;

	start(WW_MILLISECOND);
	let_it_rest();
	spec.backoff = 10 * WW_MILLISECOND;
	(void)pushing_put(
	    &pushing, &spec, "http://127.0.0.1:%u/\nAnswer-Do: hang up\n", receiver_port(pushing.receiver));
	while (receiver_count(pushing.receiver) < 3 * REST_AFTER)
		pass(10 * WW_MILLISECOND, &times);
	/* It is said once. */
	ck_assert_int_eq(rests, 1);
	ck_assert_int_eq(answers, 0);
	ck_assert_uint_eq(pushing_stats(&pushing).rests, 1);
	ck_assert_uint_eq(pushing_stats(&pushing).resting, 1);
	pushing_end(&pushing);
}
END_TEST

START_TEST(an_answer_of_any_status_begins_the_count_anew)
{
	start(WW_SECOND);
	for (int i = 0; i < 3 * REST_AFTER; i++)
		expect_backoff(&pushing,
		    pushing_post(&pushing, "/", i % REST_AFTER ? "Answer-Do: hang up\n" : "Answer-Status: 503 Busy\n"),
		    "");
	ck_assert_uint_eq(pushing_stats(&pushing).rests, 0);
	pushing_end(&pushing);
}
END_TEST

/* ---- Room */

START_TEST(ports_of_an_address_count_together)
{
	struct receiver *others[4];
	uint64_t ids[8];

	pushing_make(&pushing);
	pushing.config.per_host = 3;
	pushing_open(&pushing);
	for (size_t i = 0; i < 4; i++)
		others[i] = receiver_start(NULL);
	for (size_t i = 0; i < 8; i++)
		ids[i] = pushing_put(&pushing, NULL, "http://%s:%u/\nAnswer-Do: wait\n",
		    i % 2 ? "127.0.0.1" : "2130706433", receiver_port(others[i % 4]));
	pushing_wait(&pushing, "waiting", 5);
	pushing_wait(&pushing, "in_flight", 3);
	for (size_t i = 0; i < 4; i++)
		receiver_open(others[i]);
	for (size_t i = 0; i < 8; i++)
		expect_finished(&pushing, ids[i]);
	/* What found its address full was not sent. */
	ck_assert_uint_eq(pushing_stats(&pushing).retried, 0);
	pushing_end(&pushing);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(receiver_count(others[i]), 2);
		ck_assert_uint_le(receiver_most(others[i]), 3);
		receiver_stop(others[i]);
	}
}
END_TEST

/* Put jobs for as many addresses that do not answer. */
static void put_for_many(
    const struct receiver *everywhere, const struct ww_job_spec *spec, unsigned first, size_t count)
{
	for (unsigned i = 0; i < count; i++)
		(void)pushing_put(
		    &pushing, spec, "http://127.0.1.%u:%u/\nAnswer-Do: wait\n", first + i, receiver_port(everywhere));
}

START_TEST(addresses_that_hang_leave_room_for_another)
{
	struct receiver *everywhere = receiver_start_at("0.0.0.0", NULL);

	pushing_make(&pushing);
	pushing.config.in_flight = 64;
	pushing_open(&pushing);
	for (int i = 0; i < MANY; i++)
		put_for_many(everywhere, NULL, 1, 6);
	/* Six times 16 would be more than all. */
	for (int i = 0; i < MANY; i++)
		expect_finished(
		    &pushing, pushing_put(&pushing, NULL, "http://127.0.0.1:%u/", receiver_port(pushing.receiver)));
	ck_assert_uint_gt(pushing_stats(&pushing).in_flight, 32);
	receiver_open(everywhere);
	pushing_wait(&pushing, "finished", 7 * MANY);
	pushing_end(&pushing);
	receiver_stop(everywhere);
}
END_TEST

static const char *const two_tubes[] = {WW_TUBE_DEFAULT, "other"};

START_TEST(a_tube_and_urgent_jobs_always_have_room)
{
	struct receiver *everywhere = receiver_start_at("0.0.0.0", NULL);
	struct ww_job_spec spec = pushing_spec();

	pushing_make(&pushing);
	pushing.config.in_flight = 32;
	pushing.config.tubes = two_tubes;
	pushing.config.tube_count = 2;
	pushing_open(&pushing);
	put_for_many(everywhere, NULL, 1, MANY);
	/* Of 32 each tube has 4, and what is urgent 2. */
	pushing_wait(&pushing, "in_flight", 26);
	uint64_t late = pushing_put(&pushing, NULL, "http://127.0.0.1:%u/", receiver_port(pushing.receiver));
	for (int i = 0; i < MANY; i++) {
		spec.tube = "other";
		spec.priority = 1024;
		expect_finished(
		    &pushing, pushing_put(&pushing, &spec, "http://127.0.0.1:%u/", receiver_port(pushing.receiver)));
		spec.tube = WW_TUBE_DEFAULT;
		spec.priority = 1023;
		expect_finished(
		    &pushing, pushing_put(&pushing, &spec, "http://127.0.0.1:%u/", receiver_port(pushing.receiver)));
	}
	ck_assert_uint_eq(pushing_stats(&pushing).in_flight, 26);
	/* The tubes are full now, and the place of urgent jobs, too. */
	put_for_many(everywhere, &spec, 50, 2);
	spec.tube = "other";
	spec.priority = 1024;
	put_for_many(everywhere, &spec, 60, 5);
	pushing_wait(&pushing, "in_flight", 32);
	receiver_open(everywhere);
	expect_finished(&pushing, late);
	pushing_wait(&pushing, "finished", 2 * MANY + MANY + 8);
	pushing_end(&pushing);
	receiver_stop(everywhere);
}
END_TEST

TEST_MAIN("callback/breaker", jobs_of_a_host_that_rests_are_put_off_and_delay_no_others,
    jobs_that_are_put_off_come_back_one_by_one, one_request_tries_a_host_that_rests,
    a_host_that_fails_its_trial_rests_on, an_answer_of_any_status_begins_the_count_anew,
    ports_of_an_address_count_together, addresses_that_hang_leave_room_for_another,
    a_tube_and_urgent_jobs_always_have_room)
