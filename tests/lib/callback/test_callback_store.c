/* The store is lost for a while: requests go on, and their results are kept and stored when it is back. */
/* tier: check, waits, threads */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/jobs/backend.h"
#include "tests/support/callback/pushing.h"

/* ---- A store that hands its calls on to another one, unless the test lets them fail */

struct flaky {
	struct ww_jobs jobs;
	struct ww_jobs *real;
	_Atomic int error;
	_Atomic int refused; /* calls that failed since then */
};

static struct flaky flaky;

static int failing(void)
{
	if (flaky.error)
		flaky.refused++;
	return flaky.error;
}

static void hand_free(struct ww_jobs *jobs, void *body)
{
	(void)jobs;
	ww_jobs_free(flaky.real, body);
}

static int hand_now(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns)
{
	(void)jobs;
	return ww_jobs_now(flaky.real, flags, ns);
}

static int hand_reserve(struct ww_jobs *jobs, const struct ww_reserve *what, struct ww_lease *leases, size_t most)
{
	int error = failing();

	(void)jobs;
	return error ? error : ww_jobs_reserve_known(flaky.real, what, leases, most);
}

static int hand_finish(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count)
{
	int error = failing();

	(void)jobs;
	return error ? error : ww_jobs_finish_many(flaky.real, ends, count);
}

static int hand_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *why)
{
	int error = failing();

	(void)jobs;
	return error ? error : ww_jobs_release(flaky.real, id, token, priority, delay, why);
}

static int hand_return(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t delay)
{
	int error = failing();

	(void)jobs;
	return error ? error : ww_jobs_return_after(flaky.real, id, token, delay);
}

static int hand_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *why)
{
	int error = failing();

	(void)jobs;
	return error ? error : ww_jobs_bury(flaky.real, id, token, priority, why);
}

static int hand_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends)
{
	int error = failing();

	(void)jobs;
	return error ? error : ww_jobs_touch(flaky.real, id, token, ends);
}

static int hand_begin(struct ww_jobs *jobs)
{
	(void)jobs;
	return ww_jobs_begin(flaky.real);
}

static int hand_commit(struct ww_jobs *jobs)
{
	(void)jobs;
	return ww_jobs_commit(flaky.real);
}

/* All that a pusher calls. */
static const struct jobs_backend backend = {.free = hand_free,
    .now = hand_now,
    .begin = hand_begin,
    .commit = hand_commit,
    .reserve_many = hand_reserve,
    .finish_many = hand_finish,
    .release = hand_release,
    .return_after = hand_return,
    .bury = hand_bury,
    .touch = hand_touch};

/* ---- What the pusher reports */

static _Atomic int lost_reports;
static _Atomic int back_reports;
static _Atomic int end_reports;

static void on_report(const char *sentence, void *context)
{
	(void)context;
	lost_reports += strstr(sentence, "fails, and is asked again") != NULL;
	back_reports += strstr(sentence, "answers again") != NULL;
	end_reports += strstr(sentence, "ended with 2 results") != NULL;
}

static struct pushing pushing;

static void start(void)
{
	pushing_make(&pushing);
	flaky.jobs.backend = &backend;
	flaky.real = pushing.world.jobs;
	flaky.error = 0;
	flaky.refused = 0;
	lost_reports = back_reports = end_reports = 0;
	pushing.config.jobs = &flaky.jobs;
	pushing.config.report = on_report;
	pushing_open(&pushing);
}

static void wait_for_refusals(int count)
{
	int times = 0;

	while (flaky.refused < count)
		pushing_pause(&times);
}

/* The store is lost with a temporary error, while requests with each kind of result are under way. */
START_TEST(results_are_kept_and_stored_when_the_store_is_back)
{
	static const int errors[] = {WW_EIO, WW_EFULL, WW_ENOMEM, WW_EDENIED, WW_ESYSTEM};

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		start();
		uint64_t good = pushing_post(&pushing, "/", "Answer-Do: wait\n");
		uint64_t again = pushing_post(&pushing, "/", "Answer-Do: wait\nAnswer-Status: 503 Busy\n");
		uint64_t bad = pushing_post(&pushing, "/", "Answer-Do: wait\nAnswer-Status: 400 No\n");
		receiver_wait(pushing.receiver, 3);
		flaky.error = errors[i];
		receiver_open(pushing.receiver);
		pushing_wait(&pushing, "untold", 3);
		wait_for_refusals(3);
		ck_assert_int_eq(info_of(&pushing.world, good).state, WW_JOB_RESERVED);
		flaky.error = 0;
		expect_finished(&pushing, good);
		expect_backoff(&pushing, again, "HTTP 503");
		expect_buried(&pushing, bad, "HTTP 400");
		/* One report each, however often the store was asked. */
		expect_finished(&pushing, pushing_post(&pushing, "/", ""));
		ck_assert_int_eq(lost_reports, 1);
		ck_assert_int_eq(back_reports, 1);
		ck_assert_uint_eq(receiver_count(pushing.receiver), 4);
		ck_assert_uint_eq(pushing_stats(&pushing).lost, 0);
		pushing_end(&pushing);
	}
}
END_TEST

/* Such results are told in one write, which a store may begin although it fails. */
START_TEST(a_loss_is_reported_once_if_no_request_succeeded)
{
	start();
	uint64_t again = pushing_post(&pushing, "/", "Answer-Do: wait\nAnswer-Status: 503 Busy\n");
	receiver_wait(pushing.receiver, 1);
	flaky.error = WW_EIO;
	receiver_open(pushing.receiver);
	pushing_wait(&pushing, "untold", 1);
	wait_for_refusals(4);
	flaky.error = 0;
	expect_backoff(&pushing, again, "HTTP 503");
	expect_finished(&pushing, pushing_post(&pushing, "/", ""));
	ck_assert_int_eq(lost_reports, 1);
	ck_assert_int_eq(back_reports, 1);
	pushing_end(&pushing);
}
END_TEST

START_TEST(as_many_results_are_kept_as_requests_may_be_under_way)
{
	uint64_t ids[6];

	pushing_make(&pushing);
	pushing_end(&pushing);
	start();
	OK(ww_callback_close(pushing.callback, 0));
	pushing.config.in_flight = 2;
	pushing_open(&pushing);
	for (int i = 0; i < 6; i++)
		ids[i] = pushing_post(&pushing, "/", "Answer-Do: wait\n");
	receiver_wait(pushing.receiver, 2);
	flaky.error = WW_EIO;
	receiver_open(pushing.receiver);
	pushing_wait(&pushing, "untold", 2);
	wait_for_refusals(4);
	ck_assert_uint_eq(receiver_count(pushing.receiver), 2);
	flaky.error = 0;
	for (int i = 0; i < 6; i++)
		expect_finished(&pushing, ids[i]);
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_lease_that_ended_meanwhile_is_stale)
{
	start();
	uint64_t id = pushing_post(&pushing, "/", "Answer-Do: wait\n");
	receiver_wait(pushing.receiver, 1);
	flaky.error = WW_EIO;
	receiver_open(pushing.receiver);
	pushing_wait(&pushing, "untold", 1);
	world_pass(&pushing.world, 61 * WW_SECOND);
	ck_assert_int_eq(info_of(&pushing.world, id).state, WW_JOB_DELAYED);
	flaky.error = 0;
	pushing_wait(&pushing, "stale", 1);
	ck_assert_uint_eq(pushing_stats(&pushing).finished, 0);
	/* The job is delivered again. */
	world_pass(&pushing.world, 8 * WW_SECOND);
	expect_finished(&pushing, id);
	pushing_end(&pushing);
}
END_TEST

START_TEST(jobs_that_wait_for_their_host_outlast_the_loss)
{
	pushing_make(&pushing);
	pushing_end(&pushing);
	start();
	OK(ww_callback_close(pushing.callback, 0));
	pushing.config.per_host = 1;
	pushing_open(&pushing);
	uint64_t first = pushing_post(&pushing, "/", "Answer-Do: wait\n");
	receiver_wait(pushing.receiver, 1);
	uint64_t second = pushing_post(&pushing, "/", "");
	pushing_wait(&pushing, "waiting", 1);
	flaky.error = WW_EIO;
	receiver_open(pushing.receiver);
	pushing_wait(&pushing, "untold", 1);
	wait_for_refusals(2);
	ck_assert_uint_eq(pushing_stats(&pushing).waiting, 1);
	flaky.error = 0;
	expect_finished(&pushing, first);
	expect_finished(&pushing, second);
	pushing_end(&pushing);
}
END_TEST

START_TEST(an_end_without_the_store_reports_the_lost_results)
{
	start();
	uint64_t ids[2] = {
	    pushing_post(&pushing, "/", "Answer-Do: wait\n"), pushing_post(&pushing, "/", "Answer-Do: wait\n")};
	receiver_wait(pushing.receiver, 2);
	flaky.error = WW_EIO;
	receiver_open(pushing.receiver);
	pushing_wait(&pushing, "untold", 2);
	ck_assert_int_eq(ww_callback_close(pushing.callback, 20 * WW_MILLISECOND), 2);
	pushing.callback = NULL;
	ck_assert_int_eq(end_reports, 1);
	/* Their leases expire, and the jobs are delivered again. */
	world_pass(&pushing.world, 61 * WW_SECOND);
	ck_assert_int_eq(info_of(&pushing.world, ids[0]).state, WW_JOB_DELAYED);
	ck_assert_int_eq(info_of(&pushing.world, ids[1]).timeouts, 1);
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_result_that_the_store_refuses_for_good_is_dropped)
{
	start();
	(void)pushing_post(&pushing, "/", "Answer-Do: wait\n");
	receiver_wait(pushing.receiver, 1);
	flaky.error = WW_ECORRUPT;
	receiver_open(pushing.receiver);
	int times = 0;
	/* One after the other. */
	while (pushing_stats(&pushing).lost != 1 || pushing_stats(&pushing).untold != 0)
		pushing_pause(&times);
	/* For good: it is not tried again. */
	ck_assert_uint_eq(pushing_stats(&pushing).lost, 1);
	ck_assert_uint_eq(pushing_stats(&pushing).retried, 0);
	flaky.error = 0;
	pushing_end(&pushing);
}
END_TEST

/* Each kind of result reaches a store on disk, and is still there when the store is opened again. */
START_TEST(results_are_on_disk)
{
	struct ww_job_spec keyed = pushing_spec();

	pushing_make_upon(&pushing, KIND_DISK);
	pushing.config.per_host = 4;
	const unsigned port = receiver_port(pushing.receiver);
	keyed.key = "k";
	keyed.key_length = 1;
	keyed.priority = 5;
	uint64_t good = pushing_put(&pushing, &keyed, "http://127.0.0.1:%u/", port);
	uint64_t again = pushing_post(&pushing, "/", "Answer-Status: 503 Busy\n");
	uint64_t bad = pushing_post(&pushing, "/", "Answer-Status: 400 No\n");
	pushing_open(&pushing);
	expect_finished(&pushing, good);
	expect_backoff(&pushing, again, "HTTP 503");
	expect_buried(&pushing, bad, "HTTP 400");
	/* The requests ran at the same time and came in any order. */
	int keyed_ones = 0;
	for (size_t i = 0; i < 3; i++)
		keyed_ones += has_header(receiver_got(pushing.receiver, i), "Weekwheel-Job-Key");
	ck_assert_int_eq(keyed_ones, 1);
	for (int i = 0; i < 4; i++)
		(void)pushing_post(&pushing, "/", "Answer-Do: wait\n");
	receiver_wait(pushing.receiver, 7);
	uint64_t untried = pushing_post(&pushing, "/", "");
	pushing_wait(&pushing, "waiting", 1);
	OK(ww_callback_close(pushing.callback, 0));
	pushing.callback = NULL;
	world_reopen(&pushing.world);
	ck_assert_int_eq(info_of(&pushing.world, again).state, WW_JOB_DELAYED);
	ck_assert_str_eq(info_of(&pushing.world, bad).error, "HTTP 400");
	ck_assert_int_eq(info_of(&pushing.world, untried).state, WW_JOB_READY);
	/* The jobs that were broken off wait for their backoff, and are delivered with the other one. */
	receiver_open(pushing.receiver);
	pushing.config.jobs = pushing.world.jobs;
	pushing_open(&pushing);
	expect_finished(&pushing, untried);
	world_pass(&pushing.world, 8 * WW_SECOND);
	pushing_wait(&pushing, "finished", 5);
	pushing_end(&pushing);
}
END_TEST

TEST_MAIN("callback/store", results_are_on_disk, results_are_kept_and_stored_when_the_store_is_back,
    a_loss_is_reported_once_if_no_request_succeeded, as_many_results_are_kept_as_requests_may_be_under_way,
    a_lease_that_ended_meanwhile_is_stale, jobs_that_wait_for_their_host_outlast_the_loss,
    an_end_without_the_store_reports_the_lost_results, a_result_that_the_store_refuses_for_good_is_dropped)
