/* Memory by use: a shard in which nothing is scheduled has no wheel. */
/* tier: quick, threads */

#include "tests/lib/core/driver/fixture.h"

enum { SHARDS = 64 };

static struct timer_group *group;
static uint32_t shards[SHARDS];
static struct test_memory memory;

static struct firing *expire(void *shard, struct ww_timer *timer)
{
	(void)shard;
	(void)timer;
	return NULL;
}

static const struct group_ops ops = {.expire = expire};

static void begin_counted(uint32_t flags)
{
	struct ww_driver_config config = config_of(flags, flags ? 0 : 1);

	test_memory_init(&memory, 0);
	config.allocator = &memory.table;
	config.shards = SHARDS;
	begin_with(&config);
}

static void set(uint32_t shard, struct ww_timer *timer, uint64_t delay)
{
	struct timer_source *source = ww_group_source(group, shard);

	ww_source_lock(source);
	OK(ww_source_prepare(source));
	ww_source_schedule(source, timer, now_ns() + delay);
	ww_source_unlock(source);
}

START_TEST(a_group_has_a_wheel_for_each_shard_that_is_used)
{
	struct ww_timer timer[2] = {0};

	begin_counted(0);
	size_t blocks = memory.blocks;
	OK(ww_group_attach(&group, driver, &ops, NULL, shards, sizeof shards[0], SHARDS));
	size_t empty = ww_group_bytes(group);
	ck_assert_uint_le(empty, SHARDS * 200);
	ck_assert_uint_eq(memory.blocks, blocks + 1);
	memory.exhausted = 1;
	ck_assert_int_eq(ww_source_prepare(ww_group_source(group, 5)), WW_ENOMEM);
	memory.exhausted = 0;
	ck_assert_uint_eq(ww_group_bytes(group), empty);
	set(5, &timer[0], TICK);
	ck_assert_uint_eq(ww_group_bytes(group), empty + driver->wheel_bytes);
	/* From then on nothing can fail there, also after the clock was stepped back. */
	memory.exhausted = 1;
	go(3600 * WW_SECOND);
	set(5, &timer[0], 2 * TICK);
	OK(ww_clock_virtual_set(virtual_clock, START));
	set(5, &timer[1], TICK);
	go(3601 * WW_SECOND);
	ck_assert_uint_eq(ww_group_bytes(group), empty + driver->wheel_bytes);
	memory.exhausted = 0;
	ww_group_detach(group);
	ck_assert_uint_eq(memory.blocks, blocks);
	end();
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(a_driver_has_a_wheel_for_each_shard_that_is_used)
{
	struct ww_driver_stats stats;

	begin_counted(WW_DRIVER_THREADLESS);
	stats = stats_of();
	ck_assert_uint_le(stats.bytes, sizeof *driver + SHARDS * (200 + sizeof(struct shard)));
	ck_assert_uint_ge(stats.levels, 4);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1), 0);
	ww_handle handle = after(TICK, note, NULL);
	ck_assert_uint_ge(stats_of().bytes, stats.bytes + driver->wheel_bytes);
	ck_assert_uint_eq(driver->timers->wheels, 1);
	go(2 * TICK);
	ck_assert_uint_eq(times_fired(handle), 1);
	end();
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

/* All that waits is taken out of the wheel and put into the one that takes its place. */
START_TEST(a_step_backwards_keeps_every_timer)
{
	enum { TIMERS = 5000 };
	uint64_t seed = seed_of_run("test_driver_memory");
	ww_handle handle[TIMERS];
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);

	config.shards = 1;
	begin_with(&config);
	for (int i = 0; i < TIMERS; i++)
		handle[i] = after(1001 * WW_SECOND + seed_below(&seed, 100 * DAY_NS), note, NULL);
	for (int n = 0; n < 5; n++) {
		go(1000 * WW_SECOND);
		(void)after(TICK, note, NULL);
		OK(ww_clock_virtual_set(virtual_clock, START));
		settle();
		ck_assert_uint_eq(stats_of().pending, (uint64_t)TIMERS + (uint64_t)n + 1);
	}
	OK(ww_wheel_check(driver->shards[0].source->wheel, NULL, 0));
	go(1000 * WW_SECOND - TICK);
	ck_assert_uint_eq(fired_count, 0);
	go(101 * DAY_NS);
	for (int i = 0; i < TIMERS; i += 100)
		ck_assert_uint_eq(times_fired(handle[i]), 1);
	ck_assert_uint_eq(fired_count, TIMERS + 5);
	end();
}
END_TEST

TEST_MAIN("driver/memory", a_group_has_a_wheel_for_each_shard_that_is_used,
    a_driver_has_a_wheel_for_each_shard_that_is_used, a_step_backwards_keeps_every_timer)
