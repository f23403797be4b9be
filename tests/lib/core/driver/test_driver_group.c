/* What the layers above the driver rely on: attaching groups of sources, and detaching them. */
/* tier: check, threads */

#include "tests/lib/core/driver/fixture.h"

/* A timer of a group, which counts its expiries and the runs of its firing. */
struct item {
	union {
		struct ww_timer timer;
		struct firing firing;
		struct timer_record record; /* what it is not: see a_stop_leaves_firings_of_other_groups_alone */
	} as;
	_Atomic int expired;
	_Atomic int ran;
	sem_t *hold; /* its firing waits for this */
};

static _Atomic int inside;

static struct firing *expire_alone(void *shard, struct ww_timer *timer)
{
	(void)shard;
	((struct item *)(void *)timer)->expired++;
	return NULL;
}

static struct firing *expire_to_firing(void *shard, struct ww_timer *timer)
{
	(void)expire_alone(shard, timer);
	return &((struct item *)(void *)timer)->as.firing;
}

static struct timer_group *groups[2];

static void run(void *owner, struct firing *firing)
{
	struct timer_group *group = *(struct timer_group **)owner;
	struct item *item = (struct item *)(void *)firing;

	ck_assert(ww_group_inside(group) && ww_queue_inside(&driver->queue, group, firing));
	inside++;
	if (item->hold)
		while (sem_wait(item->hold) != 0)
			continue;
	inside--;
	item->ran++;
}

/* It is due again at once, until it has expired a hundred times. */
static struct firing *expire_again(void *shard, struct ww_timer *timer)
{
	struct item *item = (struct item *)(void *)timer;

	if (++item->expired < 100)
		ww_source_schedule(ww_group_source(groups[0], *(uint32_t *)shard), timer, 0);
	return NULL;
}

static const struct group_ops again_ops = {.expire = expire_again};
static const struct group_ops alone_ops = {.expire = expire_alone};
static const struct group_ops firing_ops = {.expire = expire_to_firing, .run = run};

/* The shards know only their number. */
static uint32_t shards[4] = {0, 1, 2, 3};

static int try_attach(int which, const struct group_ops *ops)
{
	return ww_group_attach(&groups[which], driver, ops, &groups[which], shards, sizeof shards[0], 4);
}

static void attach(int which, const struct group_ops *ops)
{
	OK(try_attach(which, ops));
}

static void set(int which, uint32_t shard, struct item *item, uint64_t delay)
{
	struct timer_source *source = ww_group_source(groups[which], shard);

	ww_source_lock(source);
	OK(ww_source_prepare(source));
	ww_source_schedule(source, &item->as.timer, now_ns() + delay);
	ww_source_unlock(source);
}

START_TEST(a_group_is_driven_while_it_is_attached)
{
	struct item item[4] = {0};

	begin(0, 2);
	attach(0, &firing_ops);
	ck_assert_int_eq(ww_driver_destroy(driver), WW_EBUSY);
	for (uint32_t i = 0; i < 4; i++)
		set(0, i, &item[i], (i + 1) * 10 * TICK);
	for (int n = 0; n < 5; n++) {
		for (int i = 0; i < 4; i++)
			ck_assert_int_eq(item[i].ran, i < n);
		go(10 * TICK + (n ? 0 : TICK));
	}
	ww_group_detach(groups[0]);
	end();
}
END_TEST

START_TEST(in_a_stall_timers_of_several_groups_fire_in_order_of_tick)
{
	struct item item = {0};
	sem_t semaphore;
	struct gate gate;

	/* The only worker runs the group's timer before the driver's later one, whichever was attached first. */
	gate_init(&gate);
	sem_init(&semaphore, 0, 0);
	begin(0, 1);
	attach(0, &firing_ops);
	item.hold = &semaphore;
	ww_handle second = after(2 * TICK, note, NULL);
	set(0, 3, &item, TICK);
	advance(10 * TICK);
	UNTIL(inside == 1);
	ck_assert_uint_eq(times_fired(second), 0);
	sem_post(&semaphore);
	settle();
	ck_assert_uint_eq(times_fired(second), 1);
	ck_assert_int_eq(item.ran, 1);
	ww_group_detach(groups[0]);
	end();
}
END_TEST

START_TEST(a_group_that_needs_no_queue_goes_on_while_the_queue_is_full)
{
	struct ww_driver_config config = config_of(0, 1);
	struct item item[2] = {0};
	struct gate gate;

	gate_init(&gate);
	config.queue = 1;
	begin_with(&config);
	attach(1, &alone_ops);
	(void)after(0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	for (int i = 0; i < 5; i++)
		(void)after(0, note, NULL);
	advance(TICK);
	UNTIL(driver->queue.starving);
	/* Timers that come due later, and timers due at once in the very tick in which the others starve. */
	set(1, 1, &item[0], TICK);
	advance(2 * TICK);
	UNTIL(item[0].expired == 1);
	UNTIL(driver->armed != 0);
	set(1, 2, &item[1], 0);
	struct timer_source *source = ww_group_source(groups[1], 2);
	ww_source_lock(source);
	OK(ww_source_prepare(source));
	ww_source_schedule(source, &item[1].as.timer, now_ns() - TICK);
	ww_source_unlock(source);
	UNTIL(item[1].expired == 1);
	ck_assert_int_eq(gate.left, 0);
	gate_open(&gate, 1);
	settle();
	ck_assert_uint_eq(fired_count, 5);
	ww_group_detach(groups[1]);
	end();
}
END_TEST

START_TEST(a_pass_ends_although_its_timers_are_due_again_at_once)
{
	struct item item = {0};

	begin(WW_DRIVER_THREADLESS, 0);
	attach(0, &again_ops);
	set(0, 0, &item, 0);
	advance(TICK);
	for (int i = 1; i <= 100; i++) {
		ck_assert_int_eq(ww_driver_dispatch(driver, 1), 0);
		ck_assert_int_eq(item.expired, i);
	}
	settle();
	ck_assert_int_eq(item.expired, 100);
	ww_group_detach(groups[0]);
	end();
}
END_TEST

START_TEST(a_stop_leaves_firings_of_other_groups_alone)
{
	struct item item = {0};
	sem_t semaphore;
	size_t count;

	sem_init(&semaphore, 0, 0);
	begin(0, 1);
	attach(0, &firing_ops);
	item.hold = &semaphore;
	set(0, 0, &item, 0);
	advance(TICK);
	UNTIL(inside == 1);
	/* In a timer of the driver, this would mark a firing that a worker has taken. */
	item.as.record.state = RECORD_QUEUED;
	OK(ww_driver_stop(driver, take, NULL, &count));
	ck_assert_uint_eq(count, 0);
	sem_post(&semaphore);
	ww_group_detach(groups[0]);
	ck_assert_int_eq(item.ran, 1);
	end();
}
END_TEST

static int inside_at_return;

static void *detach_elsewhere(void *argument)
{
	ww_group_detach(argument);
	inside_at_return = inside;
	return NULL;
}

START_TEST(detaching_waits_for_running_firings_and_forgets_queued_ones)
{
	struct item item[6] = {0};
	sem_t semaphore;
	pthread_t thread;

	sem_init(&semaphore, 0, 0);
	/* One of them is kept for the timers. */
	begin(0, 3);
	attach(0, &firing_ops);
	for (uint32_t i = 0; i < 6; i++) {
		item[i].hold = &semaphore;
		set(0, i % 4, &item[i], i < 5 ? 0 : DAY_NS);
	}
	advance(TICK);
	UNTIL(inside == 2);
	UNTIL(stats_of().queued == 3);
	ck_assert_int_eq(pthread_create(&thread, NULL, detach_elsewhere, groups[0]), 0);
	UNTIL(stats_of().queued == 0);
	ck_assert_int_eq(inside, 2);
	sem_post(&semaphore);
	sem_post(&semaphore);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(inside_at_return, 0);
	for (int i = 0; i < 6; i++)
		ck_assert_int_le(item[i].ran, 1);
	(void)after(0, note, NULL);
	go(DAY_NS + TICK);
	ck_assert_uint_eq(fired_count, 1);
	end();
}
END_TEST

/*
 * All come in one chain. If each were asked for alone, those behind firings of others would each cost another walk
 * through the queue.
 */
START_TEST(a_group_takes_back_all_its_firings_at_once_in_order_and_no_others)
{
	enum { OTHERS = 1000, OWN = 1000 };
	static struct firing firing[OTHERS + OWN];
	struct timer_group *others = calloc(1, sizeof *others);
	struct timer_group *own = calloc(1, sizeof *own);
	struct queue queue;
	struct firing *taken;

	OK(ww_queue_create(&queue, OTHERS + OWN, 0, ww_clock_elapsed(), ww_allocator_default()));
	ww_queue_join(&queue, &others->lane);
	ww_queue_join(&queue, &own->lane);
	for (int i = 0; i < OTHERS + OWN; i++) {
		firing[i].group = i < OTHERS ? others : own;
		ww_queue_push(&queue, &firing[i], 1);
	}
	/* And one firing of the others behind them. */
	ck_assert(ww_queue_withdraw(&queue, &firing[OTHERS]));
	firing[OTHERS].group = others;
	ww_queue_push(&queue, &firing[OTHERS], 1);
	taken = ww_queue_withdraw_all(&queue, own);
	for (int i = OTHERS + 1; i < OTHERS + OWN; i++, taken = taken->prev) {
		ck_assert(taken == &firing[i]);
		ck_assert(!ww_queue_withdraw(&queue, taken));
	}
	ck_assert_ptr_null(taken);
	ck_assert_ptr_null(ww_queue_withdraw_all(&queue, own));
	ck_assert_uint_eq(queue.lanes.length, OTHERS + 1);
	taken = ww_queue_withdraw_all(&queue, others);
	for (int i = 0; i <= OTHERS; i++, taken = taken->prev)
		ck_assert(taken == &firing[i]);
	ck_assert_ptr_null(taken);
	ck_assert_uint_eq(queue.lanes.length, 0);
	ck_assert_ptr_null(queue.lanes.turn);
	ww_queue_destroy(&queue);
	free(others);
	free(own);
}
END_TEST

START_TEST(attaching_fails_without_memory_and_after_a_stop_and_leaves_nothing)
{
	struct ww_driver_config config = config_of(0, 1);
	struct test_memory memory;

	test_memory_init(&memory, 0);
	config.allocator = &memory.table;
	begin_with(&config);
	size_t blocks = memory.blocks;
	for (size_t fail = 1; fail <= 1; fail++) {
		memory.fail_at = memory.calls + fail;
		ck_assert_int_eq(try_attach(0, &firing_ops), WW_ENOMEM);
		ck_assert_uint_eq(memory.blocks, blocks);
	}
	OK(ww_driver_stop(driver, NULL, NULL, NULL));
	ck_assert_int_eq(try_attach(0, &firing_ops), WW_ECLOSED);
	ck_assert_uint_eq(memory.blocks, blocks);
	end();
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

TEST_MAIN("driver/group", a_group_is_driven_while_it_is_attached,
    in_a_stall_timers_of_several_groups_fire_in_order_of_tick,
    a_group_that_needs_no_queue_goes_on_while_the_queue_is_full, a_pass_ends_although_its_timers_are_due_again_at_once,
    a_stop_leaves_firings_of_other_groups_alone, detaching_waits_for_running_firings_and_forgets_queued_ones,
    a_group_takes_back_all_its_firings_at_once_in_order_and_no_others,
    attaching_fails_without_memory_and_after_a_stop_and_leaves_nothing)
