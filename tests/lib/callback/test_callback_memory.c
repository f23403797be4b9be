/*
 * Every allocation fails in turn. Opening reports it and leaves nothing behind. Requests under way are tried again, and
 * nothing leaks or is lost.
 */
/* tier: check, threads */

#include <pthread.h>
#include <string.h>

#include "tests/support/callback/pushing.h"
#include "tests/support/memory.h"

static struct pushing pushing;
static struct test_memory memory;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The pusher's thread uses it as well as the test's thread. */
static void *allocate(void *user, size_t size)
{
	void *block;

	pthread_mutex_lock(&lock);
	block = test_memory_allocate(user, size);
	pthread_mutex_unlock(&lock);
	return block;
}

static void give(void *user, void *block, size_t size)
{
	pthread_mutex_lock(&lock);
	test_memory_free(user, block, size);
	pthread_mutex_unlock(&lock);
}

static size_t calls(void)
{
	pthread_mutex_lock(&lock);
	size_t count = memory.calls;
	pthread_mutex_unlock(&lock);
	return count;
}

/* Deliver a job whatever fails. A retry waits in virtual time. Returns whether the pusher could be opened. */
static int live(size_t fail_at)
{
	static const char *const deny[] = {"10.0.0.0/8"};
	static const char *const allow[] = {"127.0.0.1"};
	static const uint16_t success[] = {404};

	pushing_make(&pushing);
	test_memory_init(&memory, fail_at);
	memory.table.allocate = allocate;
	memory.table.free = give;
	pushing.config.allocator = &memory.table;
	pushing.config.deny = deny;
	pushing.config.allow = allow;
	pushing.config.deny_count = pushing.config.allow_count = 1;
	pushing.config.success = success;
	pushing.config.success_count = 1;
	pushing.config.secret = "secret";
	pushing.config.secret_length = 6;
	pushing.config.ca_file = "/nowhere";
	pushing.config.user_agent = "agent";
	int error = ww_callback_open(&pushing.callback, &pushing.config);
	if (error) {
		ck_assert_int_eq(error, WW_ENOMEM);
		ck_assert_uint_eq(memory.blocks, 0);
		pushing.callback = NULL;
		pushing_end(&pushing);
		return 0;
	}
	uint64_t id = pushing_post(&pushing, "/end", "X-More: y\nAnswer-Status: 500 No\n");
	const struct ww_job_ref ref = {.id = id};
	struct ww_job_info info;
	int times = 0;
	while (ww_jobs_peek(pushing.world.jobs, &ref, &info, NULL) != WW_ENOTFOUND) {
		if (info.state == WW_JOB_DELAYED)
			world_pass(&pushing.world, 8 * WW_SECOND);
		else
			pushing_pause(&times);
	}
	OK(ww_callback_close(pushing.callback, 0));
	pushing.callback = NULL;
	ck_assert_uint_eq(memory.blocks, 0);
	pushing_end(&pushing);
	return 1;
}

START_TEST(each_allocation_that_fails_is_survived)
{
	size_t count;
	size_t opened = 0;

	ck_assert(live(0));
	count = calls();
	ck_assert_uint_gt(count, 10);
	for (size_t fail_at = 1; fail_at <= count; fail_at++)
		opened += (size_t)live(fail_at);
	ck_assert_uint_gt(opened, 3);
	ck_assert_uint_lt(opened, count);
}
END_TEST

TEST_MAIN("callback/memory", each_allocation_that_fails_is_survived)
