/* A clock that is stepped back while a pass runs: what is scheduled after the step is judged by the new time. */
/* tier: quick, threads */

#include "tests/lib/core/driver/fixture.h"

#define SHARDS 4
#define LATER (500 * WW_SECOND)

struct item {
	struct ww_timer timer;
	_Atomic int expired;
};

static struct timer_group *group;
static uint32_t shards[SHARDS];

static void set(uint32_t shard, struct item *item, uint64_t deadline)
{
	struct timer_source *source = ww_group_source(group, shard);

	ww_source_lock(source);
	OK(ww_source_prepare(source));
	ww_source_schedule(source, &item->timer, deadline);
	ww_source_unlock(source);
}

static _Atomic uint64_t expired;

static struct firing *expire(void *shard, struct ww_timer *timer)
{
	(void)shard;
	((struct item *)(void *)timer)->expired++;
	expired++;
	return NULL;
}

static ww_handle handle;

/* In the middle of a pass, the clock is stepped back by another, who then schedules a timer. */
static struct firing *step_back(void *shard, struct ww_timer *timer)
{
	(void)expire(shard, timer);
	OK(ww_clock_virtual_set(virtual_clock, START));
	handle = after(LATER, note, NULL);
	return NULL;
}

static const struct group_ops step_ops = {.expire = step_back};
static const struct group_ops ops = {.expire = expire};

static void attach(const struct group_ops *with)
{
	OK(ww_group_attach(&group, driver, with, NULL, shards, sizeof shards[0], SHARDS));
}

START_TEST(a_timer_scheduled_after_a_step_within_a_pass_waits_for_its_deadline)
{
	struct item item = {0};

	begin(WW_DRIVER_THREADLESS, 0);
	attach(&step_ops);
	set(0, &item, now_ns() + TICK);
	ww_handle due = after(2 * TICK, note, NULL);
	go(1000 * WW_SECOND);
	ck_assert_int_eq(item.expired, 1);
	ck_assert_uint_eq(now_ns(), START);
	ck_assert_uint_eq(times_fired(handle), 0);
	/* It was due by the old time, and is not any more. */
	ck_assert_uint_eq(times_fired(due), 0);
	go(3 * TICK);
	ck_assert_uint_eq(times_fired(due), 1);
	go(LATER - 4 * TICK);
	ck_assert_uint_eq(times_fired(handle), 0);
	go(2 * TICK);
	ck_assert_uint_eq(times_fired(handle), 1);
	ww_group_detach(group);
	end();
}
END_TEST

/* The pass has much to do, and the step comes at any place in it. */
START_TEST(timers_scheduled_after_a_step_by_another_thread_are_never_early)
{
	enum { ROUNDS = 300, DUE = 2000 };
	static struct item due[DUE], later[SHARDS];
	uint64_t seed = seed_of_run("test_driver_step");

	begin(0, 1);
	attach(&ops);
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < DUE; i++)
			set(i % SHARDS, &due[i], now_ns() + (1 + i % 100) * TICK);
		uint64_t reached = expired + seed_below(&seed, DUE);
		advance(1000 * WW_SECOND);
		UNTIL(expired >= reached);
		OK(ww_clock_virtual_set(virtual_clock, START));
		for (uint32_t i = 0; i < SHARDS; i++)
			set(i, &later[i], START + LATER);
		settle();
		for (uint32_t i = 0; i < SHARDS; i++)
			ck_assert_int_eq(later[i].expired, round);
		go(LATER + TICK);
		for (uint32_t i = 0; i < SHARDS; i++)
			ck_assert_int_eq(later[i].expired, round + 1);
		for (uint32_t i = 0; i < DUE; i++)
			ck_assert_int_eq(due[i].expired, round + 1);
		OK(ww_clock_virtual_set(virtual_clock, START));
		settle();
	}
	ww_group_detach(group);
	end();
}
END_TEST

TEST_MAIN("driver/step", a_timer_scheduled_after_a_step_within_a_pass_waits_for_its_deadline,
    timers_scheduled_after_a_step_by_another_thread_are_never_early)
