/* How threads are spread over a driver's shards. */
/* tier: quick, threads, forks */

#include "tests/lib/core/driver/fixture.h"

enum { SHARDS = 16, DRIVERS = 8 };

static struct ww_driver *drivers[DRIVERS];

static void begin_drivers(void)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);

	config.shards = SHARDS;
	for (int i = 0; i < DRIVERS; i++)
		OK(ww_driver_create(&drivers[i], &config));
}

static void end_drivers(void)
{
	for (int i = 0; i < DRIVERS; i++)
		OK(ww_driver_destroy(drivers[i]));
	OK(ww_clock_virtual_destroy(virtual_clock));
}

/* The shard in which this thread schedules. */
static uint64_t shard_in(struct ww_driver *of)
{
	ww_handle handle = 0;

	ck_assert(ww_driver_schedule(of, DAY_NS, note, NULL, &handle) == WW_OK);
	return handle >> HANDLE_SHARD;
}

static void *use_first(void *unused)
{
	(void)unused;
	(void)shard_in(drivers[0]);
	return NULL;
}

static void *use_both(void *unused)
{
	(void)shard_in(drivers[1]);
	return use_first(unused);
}

static void in_thread(void *(*use)(void *))
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, use, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* As in a server of which every eighth thread does what needs the second driver. */
START_TEST(threads_use_all_shards_of_a_driver_whoever_uses_others)
{
	begin_drivers();
	for (int n = 0; n < 8 * SHARDS; n++)
		in_thread(n % 8 ? use_first : use_both);
	for (int i = 0; i < SHARDS; i++) {
		ck_assert_uint_eq(drivers[0]->shards[i].scheduled, 8);
		ck_assert_uint_eq(drivers[1]->shards[i].scheduled, 1);
	}
	end_drivers();
}
END_TEST

START_TEST(a_thread_keeps_its_shard_in_each_of_eight_drivers)
{
	uint64_t shard[DRIVERS];

	begin_drivers();
	for (int i = 0; i < DRIVERS; i++) {
		/* Other threads ask first, in each driver another number. */
		for (int n = 0; n < i; n++)
			in_thread(use_both);
		shard[i] = shard_in(drivers[i]);
	}
	for (int n = 0; n < 50; n++)
		ck_assert_uint_eq(shard_in(drivers[n * 3 % DRIVERS]), shard[n * 3 % DRIVERS]);
	end_drivers();
}
END_TEST

/* A driver made where another one was is not taken for it. */
START_TEST(a_thread_that_outlives_many_drivers_gets_a_shard_of_each)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);

	for (uint32_t n = 0; n < 100; n++) {
		config.shards = 1 + n % 3;
		begin_with(&config);
		ck_assert_uint_eq(shard_in(driver), 1 % config.shards);
		ck_assert_uint_eq(shard_in(driver), 1 % config.shards);
		OK(ww_driver_destroy(driver));
	}
	OK(ww_clock_virtual_destroy(virtual_clock));
}
END_TEST

TEST_MAIN("driver/home", threads_use_all_shards_of_a_driver_whoever_uses_others,
    a_thread_keeps_its_shard_in_each_of_eight_drivers, a_thread_that_outlives_many_drivers_gets_a_shard_of_each)
