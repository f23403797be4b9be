/* Bounds: how many requests at a time, how long they may take, and how a pusher ends. */
/* tier: check, waits, threads */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/callback/pushing.h"

enum { MANY = 40 };

static struct pushing pushing;
static char value[256];

static void put_waiting(uint64_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ids[i] = pushing_post(&pushing, "/", "Answer-Do: wait\n");
}

START_TEST(no_more_requests_are_under_way_than_the_total_bound)
{
	uint64_t ids[MANY];
	struct ww_tube_stats tube;

	pushing_make(&pushing);
	pushing.config.in_flight = 5;
	put_waiting(ids, MANY);
	pushing_open(&pushing);
	receiver_wait(pushing.receiver, 5);
	pushing_wait(&pushing, "in_flight", 5);
	/* The pusher does not reserve jobs that it cannot send. */
	OK(ww_jobs_tube(pushing.world.jobs, WW_TUBE_DEFAULT, &tube));
	ck_assert_uint_eq(tube.ready, MANY - 5);
	ck_assert_uint_eq(pushing_stats(&pushing).waiting, 0);
	receiver_open(pushing.receiver);
	for (size_t i = 0; i < MANY; i++)
		expect_finished(&pushing, ids[i]);
	ck_assert_uint_le(receiver_most(pushing.receiver), 5);
	ck_assert_uint_eq(pushing_stats(&pushing).store_errors, 0);
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_slow_host_gets_no_more_than_its_bound_and_delays_no_others)
{
	struct receiver *quick = receiver_start_at("127.0.0.2", NULL);
	uint64_t slow[MANY];

	pushing_make(&pushing);
	pushing.config.per_host = 3;
	put_waiting(slow, MANY);
	pushing_open(&pushing);
	receiver_wait(pushing.receiver, 3);
	/* Put after forty jobs of the slow host. They are delivered while none of its requests is answered. */
	for (int i = 0; i < MANY; i++)
		expect_finished(&pushing, pushing_put(&pushing, NULL, "http://127.0.0.2:%u/", receiver_port(quick)));
	ck_assert_uint_eq(receiver_count(pushing.receiver), 3);
	ck_assert_uint_eq(pushing_stats(&pushing).waiting, MANY - 3);
	receiver_open(pushing.receiver);
	for (size_t i = 0; i < MANY; i++)
		expect_finished(&pushing, slow[i]);
	ck_assert_uint_le(receiver_most(pushing.receiver), 3);
	pushing_end(&pushing);
	receiver_stop(quick);
}
END_TEST

START_TEST(no_more_jobs_wait_than_the_bound)
{
	uint64_t ids[MANY];
	int times = 0;

	pushing_make(&pushing);
	pushing.config.per_host = 1;
	pushing.config.waiting = 7;
	put_waiting(ids, MANY);
	pushing_open(&pushing);
	pushing_wait(&pushing, "waiting", 7);
	receiver_wait(pushing.receiver, 1);
	/* The pusher looks further, and puts off the jobs that it finds, each time they come. */
	pushing_wait(&pushing, "crowded", MANY - 8);
	while (pushing_stats(&pushing).given_back < 2 * MANY) {
		ck_assert_uint_le(pushing_stats(&pushing).waiting, 8);
		pushing_pause(&times);
		world_pass(&pushing.world, 10 * WW_MILLISECOND);
	}
	receiver_open(pushing.receiver);
	for (size_t i = 0; i < MANY; i++)
		expect_finished_later(&pushing, ids[i]);
	/* A return does not count as an attempt. */
	ck_assert_uint_eq(receiver_count(pushing.receiver), MANY);
	for (size_t i = 0; i < MANY; i++)
		ck_assert_str_eq(header_of(receiver_got(pushing.receiver, i), "Weekwheel-Attempt", value), "1");
	pushing_end(&pushing);
}
END_TEST

static const char *const two_tubes[] = {WW_TUBE_DEFAULT, "other"};

/* The host does not answer. One of its requests may be under way, and two may wait. */
static void make_with_two_tubes(void)
{
	pushing_make(&pushing);
	pushing.config.per_host = 1;
	pushing.config.waiting = 2;
	pushing.config.tubes = two_tubes;
	pushing.config.tube_count = 2;
}

START_TEST(jobs_beyond_the_bound_delay_no_others)
{
	struct receiver *quick = receiver_start_at("127.0.0.2", NULL);
	struct ww_job_spec urgent = pushing_spec();
	struct ww_job_spec other = pushing_spec();
	uint64_t slow[MANY];

	make_with_two_tubes();
	put_waiting(slow, MANY);
	pushing_open(&pushing);
	pushing_wait(&pushing, "waiting", 2);
	urgent.priority = 0;
	other.tube = "other";
	for (int i = 0; i < MANY; i++) {
		expect_finished(&pushing, pushing_put(&pushing, &urgent, "http://127.0.0.2:%u/", receiver_port(quick)));
		expect_finished(&pushing, pushing_put(&pushing, &other, "http://127.0.0.2:%u/", receiver_port(quick)));
		/* Nor jobs of the same tube and priority. */
		expect_finished(&pushing, pushing_put(&pushing, NULL, "http://127.0.0.2:%u/", receiver_port(quick)));
	}
	ck_assert_uint_eq(receiver_count(pushing.receiver), 1);
	receiver_open(pushing.receiver);
	for (size_t i = 0; i < MANY; i++)
		expect_finished_later(&pushing, slow[i]);
	pushing_end(&pushing);
	receiver_stop(quick);
}
END_TEST

START_TEST(a_request_ends_before_its_lease)
{
	struct ww_job_spec spec = pushing_spec();

	/* Each job has its own timeout: a lease of 1 s is given up while a lease of 60 s goes on. */
	pushing_make(&pushing);
	pushing_open(&pushing);
	uint64_t patient = pushing_post(&pushing, "/", "Answer-Do: wait\n");
	spec.run = WW_SECOND;
	uint64_t hasty =
	    pushing_put(&pushing, &spec, "http://127.0.0.1:%u/\nAnswer-Do: wait\n", receiver_port(pushing.receiver));
	expect_backoff(&pushing, hasty, "no answer: ");
	ck_assert_uint_eq(pushing_stats(&pushing).in_flight, 1);
	receiver_open(pushing.receiver);
	expect_finished(&pushing, patient);
	/* Its own bound ends it, not the end of the lease. */
	ck_assert_uint_eq(info_of(&pushing.world, hasty).timeouts, 0);
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_request_has_a_bound_in_total)
{
	pushing_make(&pushing);
	pushing.config.timeout = 50 * WW_MILLISECOND;
	pushing_open(&pushing);
	expect_backoff(&pushing, pushing_post(&pushing, "/", "Answer-Do: wait\n"), "no answer: ");
	pushing_end(&pushing);
}
END_TEST

/* The kernel accepts the connection, and nobody answers the TLS handshake. */
START_TEST(a_connection_has_a_bound_of_its_own)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(listen(fd, 5), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	pushing_make(&pushing);
	pushing.config.connect_timeout = 50 * WW_MILLISECOND;
	pushing_open(&pushing);
	expect_backoff(&pushing,
	    pushing_put(&pushing, NULL, "https://127.0.0.1:%u/", (unsigned)ntohs(address.sin_port)), "no answer: ");
	pushing_end(&pushing);
	(void)close(fd);
}
END_TEST

START_TEST(leases_that_wait_for_their_host_are_renewed)
{
	struct ww_job_spec hour = pushing_spec();
	struct ww_job_info info;
	struct ww_job_spec short_one = pushing_spec();
	int times = 0;

	pushing_make(&pushing);
	pushing.config.per_host = 1;
	hour.run = 3600 * WW_SECOND;
	uint64_t first =
	    pushing_put(&pushing, &hour, "http://127.0.0.1:%u/\nAnswer-Do: wait\n", receiver_port(pushing.receiver));
	pushing_open(&pushing);
	receiver_wait(pushing.receiver, 1);
	short_one.run = 2 * WW_SECOND;
	uint64_t waits = pushing_put(&pushing, &short_one, "http://127.0.0.1:%u/", receiver_port(pushing.receiver));
	pushing_wait(&pushing, "waiting", 1);
	/* Three times as long as its lease, in steps of half a lease. */
	for (int i = 0; i < 6; i++) {
		world_pass(&pushing.world, WW_SECOND);
		while (info = info_of(&pushing.world, waits), info.left <= WW_SECOND)
			pushing_pause(&times);
	}
	receiver_open(pushing.receiver);
	expect_finished(&pushing, first);
	expect_finished(&pushing, waits);
	struct ww_jobs_stats stats;
	OK(ww_jobs_stats(pushing.world.jobs, &stats));
	ck_assert_uint_eq(stats.timeouts, 0);
	ck_assert_uint_eq(receiver_count(pushing.receiver), 2);
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_result_that_comes_too_late_is_counted_and_dropped)
{
	struct ww_job_spec spec = pushing_spec();

	pushing_make(&pushing);
	spec.key = "k";
	spec.key_length = 1;
	pushing_open(&pushing);
	(void)pushing_put(&pushing, &spec, "http://127.0.0.1:%u/\nAnswer-Do: wait\n", receiver_port(pushing.receiver));
	receiver_wait(pushing.receiver, 1);
	/* Another job takes its place, due on another day. */
	spec.due = 3600 * WW_SECOND;
	uint64_t id;
	ck_assert_int_eq(ww_jobs_put(pushing.world.jobs, &spec, &id, NULL), 1);
	receiver_open(pushing.receiver);
	pushing_wait(&pushing, "stale", 1);
	ck_assert_int_eq(info_of(&pushing.world, id).state, WW_JOB_DELAYED);
	ck_assert_uint_eq(pushing_stats(&pushing).finished, 0);
	pushing_end(&pushing);
}
END_TEST

/* The store wakes the pusher when a job is ready. */
static void on_ready(const char *tube, void *context)
{
	struct ww_callback *callback = *(struct ww_callback **)context;

	(void)tube;
	if (callback)
		(void)ww_callback_wake(callback);
}

START_TEST(a_ready_job_wakes_the_pusher)
{
	pushing_make(&pushing);
	OK(ww_jobs_close(pushing.world.jobs));
	pushing.world.config.ready = on_ready;
	pushing.world.config.context = &pushing.callback;
	OK(ww_jobs_open(&pushing.world.jobs, &pushing.world.config));
	pushing.config.jobs = pushing.world.jobs;
	pushing.config.poll = 3600 * WW_SECOND;
	pushing_open(&pushing);
	for (int i = 0; i < 20; i++)
		expect_finished(&pushing, pushing_post(&pushing, "/", ""));
	struct ww_job_spec later = pushing_spec();
	later.due = 10 * WW_SECOND;
	uint64_t id = pushing_put(&pushing, &later, "http://127.0.0.1:%u/", receiver_port(pushing.receiver));
	world_pass(&pushing.world, 10 * WW_SECOND);
	expect_finished(&pushing, id);
	pushing_end(&pushing);
}
END_TEST

/* Each return wakes the pusher, and so does each job of the other tube. Yet a tube rests for a second. */
START_TEST(returned_jobs_are_not_reserved_again_and_again)
{
	struct receiver *quick = receiver_start_at("127.0.0.2", NULL);
	struct ww_job_spec other = pushing_spec();
	uint64_t slow[MANY];

	make_with_two_tubes();
	OK(ww_jobs_close(pushing.world.jobs));
	pushing.world.config.ready = on_ready;
	pushing.world.config.context = &pushing.callback;
	OK(ww_jobs_open(&pushing.world.jobs, &pushing.world.config));
	pushing.config.jobs = pushing.world.jobs;
	pushing.config.poll = 3600 * WW_SECOND;
	pushing_open(&pushing);
	put_waiting(slow, MANY);
	other.tube = "other";
	for (int i = 0; i < 5 * MANY; i++)
		expect_finished(&pushing, pushing_put(&pushing, &other, "http://127.0.0.2:%u/", receiver_port(quick)));
	/* Their time does not pass: each has come once. */
	ck_assert_uint_le(pushing_stats(&pushing).given_back, MANY);
	/* Once there is room, they are delivered. */
	receiver_open(pushing.receiver);
	for (size_t i = 0; i < MANY; i++)
		expect_finished_later(&pushing, slow[i]);
	pushing_end(&pushing);
	receiver_stop(quick);
}
END_TEST

/* ---- The end */

static void *close_it(void *grace)
{
	ck_assert_int_eq(ww_callback_close(pushing.callback, *(uint64_t *)grace), 0);
	return NULL;
}

START_TEST(requests_under_way_may_end_within_the_grace_time)
{
	uint64_t ids[3];
	uint64_t grace = 3600 * WW_SECOND;
	pthread_t thread;
	int times = 0;

	pushing_make(&pushing);
	pushing.config.per_host = 2;
	put_waiting(ids, 3);
	pushing_open(&pushing);
	receiver_wait(pushing.receiver, 2);
	pushing_wait(&pushing, "waiting", 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, close_it, &grace), 0);
	/* The third job is returned at once. */
	while (info_of(&pushing.world, ids[2]).state != WW_JOB_READY)
		pushing_pause(&times);
	ck_assert_int_eq(info_of(&pushing.world, ids[0]).state, WW_JOB_RESERVED);
	receiver_open(pushing.receiver);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	expect_finished(&pushing, ids[0]);
	expect_finished(&pushing, ids[1]);
	ck_assert_str_eq(info_of(&pushing.world, ids[2]).error, "");
	pushing.callback = NULL;
	pushing_end(&pushing);
}
END_TEST

START_TEST(jobs_that_outlast_the_grace_time_are_returned)
{
	struct ww_job_spec last = pushing_spec();
	uint64_t ids[2];

	pushing_make(&pushing);
	pushing.config.per_host = 1;
	put_waiting(ids, 1);
	/* It has only one attempt, which was not used. */
	last.attempts = 1;
	ids[1] = pushing_put(&pushing, &last, "http://127.0.0.1:%u/", receiver_port(pushing.receiver));
	pushing_open(&pushing);
	receiver_wait(pushing.receiver, 1);
	pushing_wait(&pushing, "waiting", 1);
	OK(ww_callback_close(pushing.callback, 0));
	pushing.callback = NULL;
	expect_backoff(&pushing, ids[0], "the pusher ended before the answer came");
	ck_assert_int_eq(info_of(&pushing.world, ids[1]).state, WW_JOB_READY);
	/* The next pusher delivers it. */
	pushing_open(&pushing);
	expect_finished(&pushing, ids[1]);
	ck_assert_str_eq(header_of(receiver_got(pushing.receiver, 1), "Weekwheel-Attempt", value), "1");
	pushing_end(&pushing);
}
END_TEST

TEST_MAIN("callback/bounds", no_more_requests_are_under_way_than_the_total_bound,
    a_slow_host_gets_no_more_than_its_bound_and_delays_no_others, no_more_jobs_wait_than_the_bound,
    jobs_beyond_the_bound_delay_no_others, a_request_ends_before_its_lease, a_request_has_a_bound_in_total,
    a_connection_has_a_bound_of_its_own, leases_that_wait_for_their_host_are_renewed,
    a_result_that_comes_too_late_is_counted_and_dropped, a_ready_job_wakes_the_pusher,
    returned_jobs_are_not_reserved_again_and_again, requests_under_way_may_end_within_the_grace_time,
    jobs_that_outlast_the_grace_time_are_returned)
