/* Fairness: a burst of one group delays its own firings only. All is counted; nothing depends on how long it takes. */
/* tier: quick, threads, no-valgrind (long, and of the driver others reach each line) */

#include "lib/core/driver/source.h"
#include "tests/lib/core/driver/fixture.h"

#define ITEMS 2000

/* A firing of a group, which waits at the group's gate, if it has one, and notes its number. */
struct item {
	union {
		struct ww_timer timer;
		struct firing firing;
	} as;
	uint32_t number;
};

struct crowd {
	struct timer_group *group;
	struct gate *gate; /* NULL: none */
	struct item item[ITEMS];
	uint32_t order[ITEMS];
	_Atomic uint32_t begun;
	_Atomic uint32_t ran;
};

static struct crowd crowds[3];
static char shard[1];

static struct firing *expire(void *of, struct ww_timer *timer)
{
	(void)of;
	return (struct firing *)(void *)timer;
}

static void run(void *owner, struct firing *firing)
{
	struct crowd *crowd = owner;
	const struct item *item = (const struct item *)(const void *)firing;

	crowd->order[crowd->begun++] = item->number;
	crowd->ran++;
	if (crowd->gate)
		hold(driver, &(struct ww_firing){0}, crowd->gate);
}

static const struct group_ops ops = {.expire = expire, .run = run};

static void attach(struct crowd *crowd, struct gate *gate)
{
	crowd->gate = gate;
	OK(ww_group_attach(&crowd->group, driver, &ops, crowd, shard, 1, 1));
}

/* Let `count` items, numbered on from those before, be due in the next ticks, `a_tick` in each. */
static void schedule(struct crowd *crowd, uint32_t first, uint32_t count, uint32_t a_tick)
{
	struct timer_source *source = ww_group_source(crowd->group, 0);

	ww_source_lock(source);
	OK(ww_source_prepare(source));
	for (uint32_t i = 0; i < count; i++) {
		struct item *item = &crowd->item[first + i];
		item->as.timer = (struct ww_timer){0};
		item->number = first + i;
		ww_source_schedule(source, &item->as.timer, now_ns() + i / a_tick * TICK);
	}
	ww_source_unlock(source);
}

static void in_order(const struct crowd *crowd, uint32_t a_tick)
{
	for (uint32_t i = 1; i < crowd->ran; i++)
		ck_assert_uint_le(crowd->order[i - 1] / a_tick, crowd->order[i] / a_tick);
}

START_TEST(a_group_whose_callbacks_all_wait_leaves_a_worker_to_others)
{
	for (uint32_t workers = 2; workers <= 16; workers *= 2) {
		struct gate gate;
		gate_init(&gate);
		begin(0, workers);
		attach(&crowds[0], &gate);
		attach(&crowds[1], NULL);
		schedule(&crowds[0], 0, ITEMS, ITEMS);
		advance(TICK);
		gate_wait(&gate, (int)workers - 1);
		/* A timer and another group's firing, one after the other: they share what is left. */
		for (uint32_t i = 0; i < 50; i++) {
			ww_handle handle = after(0, note, NULL);
			schedule(&crowds[1], i, 1, 1);
			advance(TICK);
			UNTIL(times_fired(handle) == 1);
			UNTIL(crowds[1].ran == i + 1);
		}
		ck_assert_uint_eq(crowds[0].ran, workers - 1);
		ck_assert_uint_eq(stats_of().queued, ITEMS - (workers - 1));
		gate_open(&gate, ITEMS);
		settle();
		ck_assert_uint_eq(crowds[0].ran, ITEMS);
		ck_assert_int_eq(gate.most, workers - 1);
		ww_group_detach(crowds[0].group);
		ww_group_detach(crowds[1].group);
		crowds[0].ran = crowds[1].ran = 0;
		crowds[0].begun = crowds[1].begun = 0;
		end();
	}
}
END_TEST

START_TEST(without_other_groups_all_workers_serve_the_timers)
{
	struct gate gate;

	gate_init(&gate);
	begin(0, 4);
	attach(&crowds[0], NULL);
	for (int i = 0; i < 20; i++)
		(void)after(0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 3);
	ck_assert_uint_eq(stats_of().running, 3);
	/* The last worker was kept for the group, and is needed no more when that is gone. */
	ww_group_detach(crowds[0].group);
	gate_wait(&gate, 1);
	ck_assert_uint_eq(stats_of().running, 4);
	gate_open(&gate, 20);
	end();
}
END_TEST

START_TEST(a_full_lane_holds_back_its_own_group_only)
{
	struct ww_driver_config config = config_of(0, 2);
	struct gate gate;

	gate_init(&gate);
	config.queue = 4;
	begin_with(&config);
	attach(&crowds[0], &gate);
	attach(&crowds[1], NULL);
	schedule(&crowds[0], 0, 100, 10);
	advance(11 * TICK);
	gate_wait(&gate, 1);
	UNTIL(driver->queue.starving == 1);
	ck_assert_uint_le(stats_of().queued, 4);
	/* More than fits a lane at a time, in ticks behind those that wait. */
	schedule(&crowds[1], 0, 100, 10);
	for (int i = 0; i < 30; i++)
		(void)after((uint64_t)i % 3 * TICK, note, NULL);
	advance(11 * TICK);
	UNTIL(crowds[1].ran == 100);
	UNTIL(fired_count == 30);
	ck_assert_uint_eq(crowds[0].ran, 1);
	UNTIL(crowds[0].group->lane.starved);
	ck_assert(!crowds[1].group->lane.starved);
	in_order(&crowds[1], 10);
	gate_open(&gate, 100);
	settle();
	ck_assert_uint_eq(crowds[0].ran, 100);
	in_order(&crowds[0], 10);
	ck_assert_uint_eq(driver->queue.starving, 0);
	ww_group_detach(crowds[0].group);
	ww_group_detach(crowds[1].group);
	end();
}
END_TEST

START_TEST(one_thread_serves_groups_in_turn_by_their_shares)
{
	uint32_t share[3];

	/* On a virtual clock each callback counts the same. Only how shares compare counts, not how large they are. */
	for (uint32_t times = 1; times <= WW_DRIVER_SHARE_MAX / 3; times += WW_DRIVER_SHARE_MAX / 3 - 1) {
		begin(WW_DRIVER_THREADLESS, 0);
		for (int i = 0; i < 3; i++) {
			attach(&crowds[i], NULL);
			ww_group_share(crowds[i].group, i == 2 ? 3 * times : times);
			schedule(&crowds[i], 0, ITEMS, 100);
		}
		advance((ITEMS / 100 + 1) * TICK);
		ck_assert_int_eq(ww_driver_dispatch(driver, 2000), 2000);
		for (int i = 0; i < 3; i++)
			share[i] = crowds[i].ran;
		ck_assert_uint_ge(share[0], 300);
		ck_assert_uint_ge(share[1], 300);
		ck_assert_uint_ge(share[2], 1000);
		settle();
		for (int i = 0; i < 3; i++) {
			ck_assert_uint_eq(crowds[i].ran, ITEMS);
			in_order(&crowds[i], 100);
			ww_group_detach(crowds[i].group);
			crowds[i].ran = crowds[i].begun = 0;
		}
		end();
	}
}
END_TEST

START_TEST(the_timers_have_the_share_of_the_configuration)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);

	config.share = 3;
	begin_with(&config);
	attach(&crowds[0], NULL);
	schedule(&crowds[0], 0, 1000, 1000);
	for (int i = 0; i < 1000; i++)
		(void)after(0, note, NULL);
	advance(TICK);
	ck_assert_int_eq(ww_driver_dispatch(driver, 800), 800);
	ck_assert_uint_ge(fired_count, 500);
	ck_assert_uint_ge(crowds[0].ran, 100);
	settle();
	ww_group_detach(crowds[0].group);
	end();
}
END_TEST

START_TEST(a_group_that_was_idle_has_saved_up_nothing)
{
	begin(WW_DRIVER_THREADLESS, 0);
	attach(&crowds[0], NULL);
	attach(&crowds[1], NULL);
	schedule(&crowds[0], 0, 1000, 1000);
	go(TICK);
	ck_assert_uint_eq(crowds[0].ran, 1000);
	schedule(&crowds[0], 1000, 1000, 1000);
	schedule(&crowds[1], 0, ITEMS, ITEMS);
	advance(TICK);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1000), 1000);
	ck_assert_uint_ge(crowds[0].ran, 1300);
	ck_assert_uint_ge(crowds[1].ran, 300);
	settle();
	ww_group_detach(crowds[0].group);
	ww_group_detach(crowds[1].group);
	end();
}
END_TEST

START_TEST(short_callbacks_that_all_wait_get_more_workers_in_the_end)
{
	struct gate gate;

	/* There are fewer processors. */
	gate_init(&gate);
	begin(0, WW_DRIVER_WORKERS_MAX);
	for (int i = 0; i < ITEMS; i++)
		(void)after(0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 200);
	gate_open(&gate, ITEMS);
	settle();
	ck_assert_int_eq(gate.left, ITEMS);
	end();
}
END_TEST

/* ---- How many workers a lane gets */

static struct lanes lanes;
static struct lane lane;
static struct firing waiting;

/* A queue of 16 workers on as many processors, in which a callback runs and another waits. */
static void begin_lane(uint64_t callback_ns)
{
	lanes = (struct lanes){.count = 1, .workers = 16, .processors = 16};
	ww_lane_init(&lane);
	for (int i = 0; i < 100; i++)
		ww_lane_end(&lanes, &lane, ww_lane_begin(&lanes, &lane), callback_ns, 0);
	waiting = (struct firing){.next = NULL};
	ww_lane_push(&lanes, &lane, &waiting, 1);
	(void)ww_lane_begin(&lanes, &lane);
}

static uint32_t workers_for(uint64_t callback_ns)
{
	begin_lane(callback_ns);
	while (ww_lane_choose(&lanes))
		(void)ww_lane_begin(&lanes, &lane);
	return lane.running;
}

START_TEST(shorter_callbacks_get_fewer_workers)
{
	ck_assert_uint_eq(workers_for(100), 1);
	ck_assert_uint_eq(workers_for(900), 1);
	ck_assert_uint_eq(workers_for(1300), 2);
	ck_assert_uint_eq(workers_for(3000), 5);
	ck_assert_uint_eq(workers_for(50000), 16);
}
END_TEST

START_TEST(another_worker_goes_on_in_place_of_a_slow_callback)
{
	begin_lane(200);
	ck_assert_ptr_null(ww_lane_choose(&lanes));
	ck_assert_int_eq(ww_lane_any(&lanes), 0);
	ck_assert_int_eq(ww_lane_any_later(&lanes), 1);
	ww_lane_slow(&lane);
	ck_assert_ptr_eq(ww_lane_choose(&lanes), &lane);
	int64_t charged = ww_lane_begin(&lanes, &lane);
	ck_assert_ptr_null(ww_lane_choose(&lanes));
	/* The slow one ends, and leaves the other one alone in its place. */
	ww_lane_end(&lanes, &lane, charged, 5 * WW_MILLISECOND, 1);
	ck_assert_ptr_null(ww_lane_choose(&lanes));
	ck_assert_uint_eq(lane.brisk, 1);
}
END_TEST

START_TEST(one_long_callback_brings_no_workers_for_the_short_ones)
{
	begin_lane(200);
	ww_lane_end(&lanes, &lane, ww_lane_begin(&lanes, &lane), 10 * WW_MILLISECOND, 0);
	ck_assert_int_eq(ww_lane_any(&lanes), 0);
	/* But they are not short for ever. */
	for (int i = 0; i < 10; i++)
		ww_lane_end(&lanes, &lane, ww_lane_begin(&lanes, &lane), 10 * WW_MILLISECOND, 0);
	ck_assert_int_eq(ww_lane_any(&lanes), 1);
}
END_TEST

/* ---- Waking */

START_TEST(no_wake_up_is_lost)
{
	/* Each firing alone: if its wake-up were lost, nothing would come after it. */
	begin(0, 16);
	attach(&crowds[0], NULL);
	for (uint32_t i = 0; i < 200; i++) {
		(void)after(0, note, NULL);
		advance(TICK);
		UNTIL(fired_count == i + 1);
	}
	for (uint32_t i = 0; i < ITEMS; i += 4) {
		schedule(&crowds[0], i, 4, 2);
		(void)after(0, note, NULL);
		advance(2 * TICK);
		UNTIL(crowds[0].ran == i + 4);
	}
	settle();
	ww_group_detach(crowds[0].group);
	end();
}
END_TEST

TEST_MAIN("driver/fair", a_group_whose_callbacks_all_wait_leaves_a_worker_to_others,
    without_other_groups_all_workers_serve_the_timers, a_full_lane_holds_back_its_own_group_only,
    one_thread_serves_groups_in_turn_by_their_shares, the_timers_have_the_share_of_the_configuration,
    a_group_that_was_idle_has_saved_up_nothing, short_callbacks_that_all_wait_get_more_workers_in_the_end,
    shorter_callbacks_get_fewer_workers, another_worker_goes_on_in_place_of_a_slow_callback,
    one_long_callback_brings_no_workers_for_the_short_ones, no_wake_up_is_lost)
