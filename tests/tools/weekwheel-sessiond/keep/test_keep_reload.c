/* What a server that is killed has noted, and what the next one makes of it, in time that stands still between steps. */
/* tier: check, forks */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/keep/keep.h"

static char folder[] = "/tmp/weekwheel-keep-XXXXXX";

static struct outbox *outbox;
static struct data *data;
static int is_real;     /* time goes on by itself */
static long gone_takes; /* ns */
static const struct data_key key = {0, "k", 1};

static void gone(
    void *context, unsigned database, const void *name, size_t length, const struct value *value, enum ww_gone why)
{
	struct outbox_item item = {.why = why,
	    .database = database,
	    .deadline_ms = data_gone_ms(data),
	    .key = name,
	    .length = length,
	    .value = value->bytes,
	    .size = value->size};

	(void)context;
	(void)nanosleep(&(struct timespec){0, gone_takes}, NULL);
	(void)outbox_add(outbox, &item);
}

static void serve(int tells)
{
	struct data_config config = {
	    .databases = 2, .is_virtual = !is_real, .has_lifetimes = 1, .gone = tells ? gone : NULL};

	outbox = outbox_open(1 << 20);
	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	ck_assert_ptr_nonnull(keep_open(
	    data, &(struct keep_config){
	              .folder = folder, .sync = KEEP_SYSTEM, .grows = 1 << 20, .outbox = outbox, .reports = tells}));
}

static void set(const struct data_key *at, uint64_t ttl, uint64_t end)
{
	ck_assert_int_eq(data_set(data, at, "value", 5, &(struct data_times){.ttl = ttl, .end = end}), WW_OK);
}

/* In a process that is killed: with its threads. */
static void in_a_server(void (*act)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		act();
		(void)kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void in_two_servers(void (*first)(void), void (*second)(void))
{
	char command[sizeof folder + 10];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	in_a_server(first);
	in_a_server(second);
	(void)snprintf(command, sizeof command, "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static void find_it(void)
{
	serve(0);
	ck_assert_int_eq(data_is_there(data, &key), 1);
}

/* ---- A transaction that touches what would have expired before its end */

static void *set_another(void *context)
{
	const struct data_key another = {0, "another", 7};

	set(&another, DATA_NEVER, DATA_NEVER);
	ck_assert_int_eq(data_settle(data), WW_OK);
	return context;
}

static void touch_in_a_long_transaction(void)
{
	struct data_entry entry;
	pthread_t thread;

	serve(0);
	set(&key, 16 * WW_SECOND, DATA_NEVER);
	ck_assert_int_eq(data_settle(data), WW_OK);
	ck_assert_int_eq(data_save(data, 1), WW_OK);
	for (int i = 0; i < 2; i++) {
		data_begin(data);
		ck_assert_int_eq(data_inspect(data, &key, &entry, NULL, NULL), 1);
		ck_assert_int_eq(data_touch(data, &key, &entry, 3600 * WW_SECOND, 0), 1);
		ck_assert_int_eq(data_advance(data, 18 * WW_SECOND), WW_OK);
		ck_assert_int_eq(pthread_create(&thread, NULL, set_another, NULL), 0);
		pthread_join(thread, NULL);
		data_commit(data);
		ck_assert_int_eq(data_settle(data), WW_OK);
	}
}

START_TEST(a_touch_counts_though_its_record_is_later)
{
	in_two_servers(touch_in_a_long_transaction, find_it);
}
END_TEST

/* ---- A lifetime of decades is over at its end, and not at a start */

static void set_for_decades(void)
{
	serve(0);
	set(&key, 100 * WW_SECOND, data_now(data) + DATA_LAST / 2);
	ck_assert_int_eq(data_settle(data), WW_OK);
}

START_TEST(a_lifetime_of_decades_is_not_over_at_a_start)
{
	in_two_servers(set_for_decades, find_it);
}
END_TEST

/* ---- What has expired before a flush is told, though nobody had come to that */

static uint64_t waiting(void)
{
	struct outbox_stats stats;

	outbox_stats(outbox, &stats);
	return stats.waiting;
}

static void flush_what_has_expired(void)
{
	const struct data_key other = {1, "other", 5};
	struct data_stripes stripes = {0};

	is_real = 1;
	gone_takes = 50 * WW_MILLISECOND;
	serve(1);
	ck_assert_int_eq(data_select(data, other.database), WW_OK);
	/* Nobody else is there: ThreadSanitizer takes 64 locks at a time, and not all. */
	data_stripes_add(&stripes, key.bytes, key.length);
	data_stripes_add(&stripes, other.bytes, other.length);
	set(&key, 20 * WW_MILLISECOND, DATA_NEVER);
	set(&other, 20 * WW_SECOND, DATA_NEVER);
	while (data_is_there(data, &key))
		continue;
	data_lock(data, &stripes);
	data_begin(data);
	ck_assert_int_eq(data_clear(data, 0, 1), WW_OK);
	data_commit(data);
	data_unlock(data, &stripes);
	ck_assert_int_eq(data_settle(data), WW_OK);
	ck_assert_int_eq(data_is_there(data, &other), 0);
}

static void find_one_that_waits(void)
{
	serve(1);
	ck_assert_uint_eq(waiting(), 1);
	ck_assert_uint_eq(data_count(data, 0) + data_count(data, 1), 0);
}

START_TEST(what_expires_before_a_flush_is_told)
{
	in_two_servers(flush_what_has_expired, find_one_that_waits);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/keep_reload", a_touch_counts_though_its_record_is_later,
    a_lifetime_of_decades_is_not_over_at_a_start, what_expires_before_a_flush_is_told)
