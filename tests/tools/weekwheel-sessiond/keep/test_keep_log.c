/* How changes become records of the journal: what belongs together is in one, and none is too large. */
/* tier: check */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/keep/keep_internal.h"

enum { RECORD = 1000 };

static char folder[64];
static struct outbox *outbox;
static struct data *data;
static struct keep *keep;

static void serve(void)
{
	const struct data_config config = {.databases = 1, .is_virtual = 1};

	outbox = outbox_open(1 << 20);
	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	keep = keep_open(data, &(struct keep_config){.folder = folder,
	                           .sync = KEEP_SYSTEM,
	                           .interval = WW_SECOND,
	                           .grows = 1 << 20,
	                           .record = RECORD,
	                           .outbox = outbox});
	ck_assert_ptr_nonnull(keep);
}

static void begin(void)
{
	(void)snprintf(folder, sizeof folder, "/tmp/weekwheel-keep-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	serve();
}

static void leave(void)
{
	ck_assert_int_eq(keep_close(keep), 0);
	data_leave(data);
	data_close(data);
	outbox_close(outbox);
}

static void end(void)
{
	char command[128];

	leave();
	(void)snprintf(command, sizeof command, "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c) */
}

static int set(const char *name, size_t size)
{
	const struct data_key key = {0, name, strlen(name)};
	char value[RECORD];

	memset(value, 'v', sizeof value);
	return data_set(data, &key, value, size, &(struct data_times){.ttl = DATA_NEVER});
}

static int is_there(const char *name)
{
	return data_is_there(data, &(struct data_key){0, name, strlen(name)});
}

/* The number of records. */
static uint64_t records(void)
{
	uint64_t record;

	(void)ww_journal_end(&keep->journal, &record);
	return record;
}

START_TEST(a_transaction_has_the_changes_that_a_record_takes)
{
	begin();
	data_begin(data);
	ck_assert_int_eq(set("a", 500), WW_OK);
	ck_assert_int_eq(set("b", 500), WW_EFULL);
	ck_assert_int_eq(set("c", 300), WW_OK);
	ck_assert_int_eq(set("d", 300), WW_EFULL);
	/* Several are asked for at once, so that all or none of them are done. */
	ck_assert_int_eq(data_takes(data, 2, 10), 1);
	ck_assert_int_eq(data_takes(data, 2, 300), 0);
	data_commit(data);
	ck_assert_int_eq(data_takes(data, 1, RECORD), 1);
	ck_assert_int_eq(data_takes(data, 2, RECORD - 100), 1);
	ck_assert_int_eq(data_takes(data, 2, RECORD), 0);
	uint64_t before = records();
	ck_assert_int_eq(data_settle(data), WW_OK);
	ck_assert_uint_eq(records(), before + 1);
	/* Nothing of the next ones belongs together with these. */
	ck_assert_int_eq(set("b", 500), WW_OK);
	ck_assert_int_eq(set("d", 900), WW_OK);
	ck_assert_int_eq(data_delete(data, &(struct data_key){0, "b", 1}), 1);
	leave();
	serve();
	ck_assert_uint_eq(data_count(data, 0), 3);
	ck_assert(is_there("a") && is_there("c") && is_there("d"));
	end();
}
END_TEST

/* Also of other threads. */
START_TEST(what_is_pending_becomes_as_many_records_as_it_needs)
{
	uint64_t before;
	char name[8];

	begin();
	before = records();
	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof name, "%d", i);
		ck_assert_int_eq(set(name, 400), WW_OK);
	}
	ck_assert_int_eq(set("large", 900), WW_OK);
	ck_assert_uint_eq(records(), before);
	ck_assert_int_eq(data_settle(data), WW_OK);
	/* Two of the small ones are in each. */
	ck_assert_uint_eq(records(), before + 21);
	ck_assert_int_eq(set("more", 300), WW_OK);
	ck_assert_int_eq(data_settle(data), WW_OK);
	ck_assert_uint_eq(records(), before + 22);
	leave();
	serve();
	ck_assert_uint_eq(data_count(data, 0), 42);
	end();
}
END_TEST

TEST_MAIN("weekwheel-sessiond/keep_log", a_transaction_has_the_changes_that_a_record_takes,
    what_is_pending_becomes_as_many_records_as_it_needs)
