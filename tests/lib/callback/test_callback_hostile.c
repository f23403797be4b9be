/* Hostile receivers, and names with many addresses, with addresses of others, or without an answer. */
/* tier: check, threads */

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "tests/support/callback/pushing.h"

static struct pushing pushing;
static char value[256];

/* ---- The resolver that libcurl calls in this program */

static const struct {
	const char *name;
	const char *addresses[4];
} names[] = {
    {"here.test", {"127.0.0.1"}},
    {"inner.test", {"127.0.0.2"}},
    {"also-here.test", {"127.0.0.1"}},
    {"mixed-here.test", {"127.0.0.1", "127.0.0.2"}},
    {"mixed.test", {"10.0.0.1", "192.168.0.1", "127.0.0.1"}},
    {"inside.test", {"10.0.0.1", "192.168.0.1", "fd00::1"}},
    {"mapped.test", {"::ffff:127.0.0.1"}},
    {"silent.test", {"127.0.0.1"}},
    {"slow.test", {"127.0.0.1"}},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_asked; /* for silent.test */
static int may_go;   /* let questions for it and for slow.test be answered */
static int inside;   /* questions that wait for may_go */
static int gave_up;

static struct timespec in_seconds(int seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	return until;
}

/* No answer until the test sets may_go or has failed. */
static void be_silent(int is_awaited)
{
	const struct timespec until = in_seconds(30);
	int error = 0;

	pthread_mutex_lock(&lock);
	is_asked |= is_awaited;
	inside++;
	pthread_cond_broadcast(&changed);
	while (!may_go && !error)
		error = pthread_cond_timedwait(&changed, &lock, &until);
	gave_up |= error != 0;
	inside--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void wait_until(const int *count, int wanted)
{
	const struct timespec until = in_seconds(60);

	pthread_mutex_lock(&lock);
	while (*count != wanted)
		ck_assert_int_eq(pthread_cond_timedwait(&changed, &lock, &until), 0);
	pthread_mutex_unlock(&lock);
}

static void answer_the_silent(void)
{
	pthread_mutex_lock(&lock);
	ck_assert(!gave_up);
	may_go = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* One block with the addrinfo and its address. */
struct answer {
	struct addrinfo info;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} address;
};

static struct addrinfo *make_answer(const char *text, uint16_t port, struct addrinfo *next)
{
	struct answer *answer = calloc(1, sizeof *answer);

	ck_assert_ptr_nonnull(answer);
	answer->info = (struct addrinfo){.ai_family = AF_INET,
	    .ai_socktype = SOCK_STREAM,
	    .ai_protocol = IPPROTO_TCP,
	    .ai_addrlen = sizeof answer->address.in,
	    .ai_addr = &answer->address.any,
	    .ai_next = next};
	answer->address.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	if (inet_pton(AF_INET, text, &answer->address.in.sin_addr) == 1)
		return &answer->info;
	answer->info.ai_family = AF_INET6;
	answer->info.ai_addrlen = sizeof answer->address.in6;
	answer->address.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	ck_assert_int_eq(inet_pton(AF_INET6, text, &answer->address.in6.sin6_addr), 1);
	return &answer->info;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *info)
{
	while (info) {
		struct addrinfo *next = info->ai_next;
		free(info);
		info = next;
	}
}

__attribute__((visibility("default"))) int getaddrinfo(
    const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	uint16_t port = (uint16_t)(service ? strtoul(service, NULL, 10) : 0);

	(void)hints;
	*result = NULL;
	for (size_t i = 0; node && i < sizeof names / sizeof *names; i++) {
		if (strcmp(node, names[i].name) != 0)
			continue;
		if (strcmp(node, "silent.test") == 0 || strcmp(node, "slow.test") == 0)
			be_silent(strcmp(node, "silent.test") == 0);
		for (size_t j = 4; j-- > 0;)
			if (names[i].addresses[j])
				*result = make_answer(names[i].addresses[j], port, *result);
		return 0;
	}
	return EAI_NONAME;
}

static uint64_t call(const char *name, unsigned port)
{
	return pushing_put(&pushing, NULL, "http://%s:%u/", name, port);
}

START_TEST(only_the_allowed_addresses_of_a_name_are_called)
{
	pushing_make(&pushing);
	pushing_open(&pushing);
	const unsigned port = receiver_port(pushing.receiver);
	expect_finished(&pushing, call("here.test", port));
	expect_finished(&pushing, call("mixed.test", port));
	ck_assert_uint_eq(pushing_stats(&pushing).refused, 2);
	expect_buried(&pushing, call("inside.test", port), "may not be called");
	/* IPv4 mapped into IPv6 is another class. */
	expect_buried(&pushing, call("mapped.test", port),
	    "the address ::ffff:127.0.0.1 may not be called, since it is not public: weekwheeld "
	    "--push-networks special allows it");
	/* The allowed address does not answer: the job is tried again. */
	expect_backoff(&pushing, call("mixed.test", 1), "no answer: ");
	ck_assert_uint_eq(receiver_count(pushing.receiver), 2);
	pushing_end(&pushing);
}
END_TEST

START_TEST(names_of_an_address_count_together)
{
	static const char *const places[] = {"here.test", "also-here.test", "127.0.0.1", "2130706433"};
	struct receiver *inner;
	uint64_t ids[12];

	pushing_make(&pushing);
	pushing.config.per_host = 3;
	pushing_open(&pushing);
	const unsigned port = receiver_port(pushing.receiver);
	for (size_t i = 0; i < 12; i++)
		ids[i] = pushing_put(&pushing, NULL, "http://%s:%u/\nAnswer-Do: wait\n", places[i % 4], port);
	pushing_wait(&pushing, "waiting", 9);
	pushing_wait(&pushing, "in_flight", 3);
	/* A name that has another address, too, goes there. */
	inner = receiver_start_at("127.0.0.2", NULL);
	expect_finished(&pushing, call("mixed-here.test", receiver_port(inner)));
	receiver_open(pushing.receiver);
	for (size_t i = 0; i < 12; i++)
		expect_finished(&pushing, ids[i]);
	ck_assert_uint_le(receiver_most(pushing.receiver), 3);
	ck_assert_uint_eq(receiver_count(pushing.receiver), 12);
	for (size_t i = 0; i < 12; i++)
		ck_assert_str_eq(header_of(receiver_got(pushing.receiver, i), "Weekwheel-Attempt", value), "1");
	ck_assert_uint_eq(pushing_stats(&pushing).retried, 0);
	pushing_end(&pushing);
	receiver_stop(inner);
}
END_TEST

START_TEST(redirections_are_judged_by_their_address)
{
	static const char *const allow[] = {"127.0.0.1"};
	static const char *const places[] = {"inner.test", "0x7f.2", "2130706434", "0177.0.0.2", "[::ffff:127.0.0.2]",
	    "[::ffff:7f00:2]", "127.2", "inside.test", "mapped.test", "0"};

	pushing_make(&pushing);
	pushing.config.networks = 0;
	pushing.config.allow = allow;
	pushing.config.allow_count = 1;
	pushing_open(&pushing);
	const unsigned port = receiver_port(pushing.receiver);
	size_t sent = 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		char lines[256];
		(void)snprintf(lines, sizeof lines,
		    "Answer-Status: 307 Elsewhere\nAnswer-Header: Location: http://%s:%u/end\n", places[i], port);
		uint64_t id = pushing_post(&pushing, "/", lines);
		if (strcmp(places[i], "mapped.test") == 0) {
			/* This one is allowed. */
			expect_finished(&pushing, id);
			sent++;
		} else {
			expect_buried(&pushing, id, "may not be called");
		}
		ck_assert_uint_eq(receiver_count(pushing.receiver), ++sent);
	}
	pushing_end(&pushing);
}
END_TEST

START_TEST(a_name_without_an_answer_delays_neither_requests_nor_the_end)
{
	pushing_make(&pushing);
	pushing.config.connect_timeout = 50 * WW_MILLISECOND;
	pushing_open(&pushing);
	const unsigned port = receiver_port(pushing.receiver);
	expect_backoff(&pushing, call("slow.test", port), "no answer: ");
	OK(ww_callback_close(pushing.callback, 0));
	pushing.config.connect_timeout = 3600 * WW_SECOND;
	pushing_open(&pushing);
	uint64_t silent = call("silent.test", port);
	wait_until(&is_asked, 1);
	expect_finished(&pushing, call("here.test", port));
	/* The name is not answered before the pusher has ended. */
	OK(ww_callback_close(pushing.callback, 0));
	pushing.callback = NULL;
	expect_backoff(&pushing, silent, "the pusher ended before the answer came");
	answer_the_silent();
	wait_until(&inside, 0);
	pushing_end(&pushing);
}
END_TEST

START_TEST(proxies_of_the_environment_are_not_used)
{
	struct receiver *proxy = receiver_start(NULL);
	static const char *const variables[] = {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"};
	char url[64];

	(void)snprintf(url, sizeof url, "http://127.0.0.1:%u", receiver_port(proxy));
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		ck_assert_int_eq(setenv(variables[i], url, 1), 0);
	pushing_make(&pushing);
	pushing_open(&pushing);
	expect_finished(&pushing, call("here.test", receiver_port(pushing.receiver)));
	expect_buried(&pushing, call("inside.test", receiver_port(pushing.receiver)), "may not be called");
	ck_assert_uint_eq(receiver_connections(proxy), 0);
	pushing_end(&pushing);
	receiver_stop(proxy);
}
END_TEST

/* ---- Answers without end */

START_TEST(endless_answers_are_cut_off)
{
	static const char *const long_heads[] = {"endless head", "endless interim"};
	char lines[128];

	pushing_make(&pushing);
	pushing.config.timeout = 3600 * WW_SECOND;
	pushing_open(&pushing);
	for (size_t i = 0; i < sizeof long_heads / sizeof *long_heads; i++) {
		(void)snprintf(lines, sizeof lines, "Answer-Status: 200 Fine\nAnswer-Do: %s\n", long_heads[i]);
		expect_backoff(&pushing, pushing_post(&pushing, "/", lines), "the head of the answer is too long");
	}
	expect_backoff(&pushing, pushing_post(&pushing, "/", "Answer-Status: 200 Fine\nAnswer-Do: endless line\n"), "");
	expect_backoff(&pushing, pushing_post(&pushing, "/", "Answer-Status: 200 Fine\nAnswer-Do: endless trailer\n"),
	    "HTTP 200, and then: ");
	pushing_end(&pushing);
}
END_TEST

START_TEST(an_answer_without_head_and_body_ends_with_the_timeout)
{
	pushing_make(&pushing);
	pushing.config.timeout = 500 * WW_MILLISECOND;
	pushing_open(&pushing);
	expect_backoff(&pushing, pushing_post(&pushing, "/", "Answer-Do: drip\n"), "time");
	ck_assert_uint_eq(pushing_stats(&pushing).timed_out, 1);
	pushing_end(&pushing);
}
END_TEST

/* libcurl's own counts have nothing of an extension of a chunk. */
START_TEST(every_byte_counts)
{
	pushing_make(&pushing);
	pushing_open(&pushing);
	for (uint64_t i = 1; i <= 3; i++) {
		/* Also on a connection that has had another answer. */
		if (i == 2)
			expect_finished(&pushing, pushing_post(&pushing, "/", ""));
		expect_backoff(&pushing,
		    pushing_post(&pushing, "/", "Answer-Status: 200 Fine\nAnswer-Do: endless chunk\n"),
		    "HTTP 200, and then: more than 524288 bytes came, framing included");
		ck_assert_uint_eq(pushing_stats(&pushing).over, i);
	}
	ck_assert_uint_lt(receiver_sent(pushing.receiver), 3 * (8u << 20));
	/* Requests that share a connection one after the other have their bytes each. */
	for (int i = 0; i < 20; i++)
		expect_finished(
		    &pushing, pushing_post(&pushing, "/", "Answer-Status: 200 Fine\nAnswer-Do: big body\n"));
	ck_assert_uint_eq(pushing_stats(&pushing).over, 3);
	pushing_end(&pushing);
}
END_TEST

/* ---- Long fields of a job */

START_TEST(the_longest_key_and_tube_are_written_whole)
{
	struct ww_job_spec spec = pushing_spec();
	unsigned char key[WW_JOB_KEY_MAX];
	char tube[WW_TUBE_MAX + 1];
	const char *tubes[] = {tube};

	memset(key, '\n', sizeof key);
	memset(tube, '\r', sizeof tube);
	tube[WW_TUBE_MAX] = '\0';
	pushing_make(&pushing);
	spec.key = key;
	spec.key_length = sizeof key;
	spec.tube = tube;
	pushing.config.tubes = tubes;
	pushing_open(&pushing);
	expect_finished(
	    &pushing, pushing_put(&pushing, &spec, "http://127.0.0.1:%u/", receiver_port(pushing.receiver)));
	const char *got = receiver_got(pushing.receiver, 0);
	const char *header = strstr(got, "Weekwheel-Job-Key: %0A%0A");
	ck_assert_ptr_nonnull(header);
	ck_assert_uint_eq(strcspn(header, "\r"), strlen("Weekwheel-Job-Key: ") + 3 * sizeof key);
	header = strstr(got, "Weekwheel-Tube: %0D%0D");
	ck_assert_ptr_nonnull(header);
	ck_assert_uint_eq(strcspn(header, "\r"), strlen("Weekwheel-Tube: ") + 3 * WW_TUBE_MAX);
	ck_assert_str_eq(header_of(got, "Weekwheel-Attempt", value), "1");
	pushing_end(&pushing);
}
END_TEST

/* ---- Children */

TEST_MAIN("callback/hostile", only_the_allowed_addresses_of_a_name_are_called, names_of_an_address_count_together,
    redirections_are_judged_by_their_address, a_name_without_an_answer_delays_neither_requests_nor_the_end,
    proxies_of_the_environment_are_not_used, endless_answers_are_cut_off, every_byte_counts,
    an_answer_without_head_and_body_ends_with_the_timeout, the_longest_key_and_tube_are_written_whole)
