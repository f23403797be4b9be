/*
 * A server is killed between a set of a key that had just expired and the note that this is to be told. The next one finds
 * that out and tells it, and is killed, too: the one after it must take that for told.
 */
/* tier: check */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/keep/keep.h"

static char folder[] = "/tmp/weekwheel-keep-XXXXXX";

static struct outbox *outbox;
static struct data *data;
static const struct data_key key = {0, "k", 1};

static void serve(void)
{
	/* What expires is noted by nobody: the server is killed first. */
	struct data_config config = {.databases = 1, .is_virtual = 1};

	outbox = outbox_open(1 << 20);
	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	ck_assert_ptr_nonnull(keep_open(
	    data, &(struct keep_config){
	              .folder = folder, .sync = KEEP_SYSTEM, .grows = 1 << 20, .outbox = outbox, .reports = 1}));
}

static void set(const char *value)
{
	ck_assert_int_eq(
	    data_set(data, &key, value, strlen(value), &(struct data_times){.ttl = 16 * WW_SECOND}), WW_OK);
}

/* A touch that is not written lets it expire later than the deadline on disk, and earlier than a load would think. */
static void expire_and_set(void)
{
	struct data_entry entry;

	serve();
	set("first");
	ck_assert_int_eq(data_advance(data, WW_SECOND / 2), WW_OK);
	ck_assert_int_eq(data_inspect(data, &key, &entry, NULL, NULL), 1);
	ck_assert_int_eq(data_touch(data, &key, &entry, 16 * WW_SECOND, 0), 1);
	ck_assert_int_eq(data_advance(data, 16 * WW_SECOND + WW_SECOND / 10), WW_OK);
	ck_assert_int_eq(data_is_there(data, &key), 0);
	set("second");
	ck_assert_int_eq(data_settle(data), WW_OK);
}

static uint64_t waiting(void)
{
	struct outbox_stats stats;

	outbox_stats(outbox, &stats);
	return stats.waiting;
}

static void tell_it(void)
{
	struct outbox_item item;

	serve();
	ck_assert_uint_eq(waiting(), 1);
	ck_assert_int_eq(outbox_settle(outbox), WW_OK);
	ck_assert_int_eq(outbox_take(outbox, &item), 1);
	ck_assert_mem_eq(item.value, "first", 5);
	(void)outbox_answered(outbox, OUTBOX_DELIVERED);
	ck_assert_int_eq(outbox_settle(outbox), WW_OK);
}

static void find_nothing_to_tell(void)
{
	serve();
	ck_assert_uint_eq(waiting(), 0);
	ck_assert_int_eq(data_is_there(data, &key), 1);
}

/* In a process that ends as if it were killed. */
static void in_a_server(void (*act)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		act();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

START_TEST(what_a_load_tells_is_told_once)
{
	char command[sizeof folder + 10];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	in_a_server(expire_and_set);
	in_a_server(tell_it);
	in_a_server(find_nothing_to_tell);
	(void)snprintf(command, sizeof command, "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/keep_twice", what_a_load_tells_is_told_once)
