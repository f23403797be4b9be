/* What the layers above the driver rely on: groups of sources that are attached to it and detached from it. */

#include "tests/lib/core/driver/fixture.h"

/* A timer of a group, which counts how often it expired and how often its job ran. */
struct item {
	union {
		struct ww_timer timer;
		struct job job;
		struct record record; /* what it is not: see a_stop_leaves_jobs_of_other_groups_alone */
	} as;
	_Atomic int expired;
	_Atomic int ran;
	sem_t *hold; /* what its job waits for */
};

static _Atomic int inside;

static uint32_t expire_alone(
    struct source *source, const struct ww_expiry *batch, size_t count, uint64_t time, struct job **jobs)
{
	(void)source;
	(void)time;
	(void)jobs;
	for (size_t i = 0; i < count; i++)
		((struct item *)(void *)batch[i].timer)->expired++;
	return 0;
}

static uint32_t expire_to_job(
    struct source *source, const struct ww_expiry *batch, size_t count, uint64_t time, struct job **jobs)
{
	for (size_t i = 0; i < count; i++) {
		struct item *item = (struct item *)(void *)batch[i].timer;
		item->expired++;
		item->as.job = (struct job){.group = source->group, .since = time};
		*jobs = &item->as.job;
		jobs = &item->as.job.next;
	}
	return (uint32_t)count;
}

static void run(struct group *group, struct job *job)
{
	struct item *item = (struct item *)(void *)job;

	MUST(ww_queue_inside(ww_driver_queue(group->driver), group, job));
	inside++;
	if (item->hold)
		while (sem_wait(item->hold) != 0)
			continue;
	inside--;
	item->ran++;
}

/* The first of a batch is due again at once, for as long as it has expired less than a hundred times. */
static uint32_t expire_again(
    struct source *source, const struct ww_expiry *batch, size_t count, uint64_t time, struct job **jobs)
{
	struct item *item = count ? (struct item *)(void *)batch[0].timer : NULL;

	(void)expire_alone(source, batch, count, time, jobs);
	if (item && item->expired < 100)
		ww_source_schedule(source, &item->as.timer, 0);
	return 0;
}

static const struct group_ops again_ops = {.expire = expire_again, .run = run, .queues = 0};
static const struct group_ops alone_ops = {.expire = expire_alone, .run = run, .queues = 0};
static const struct group_ops job_ops = {.expire = expire_to_job, .run = run, .queues = 1};

static struct source sources[2][4];
static struct group groups[2];

static void attach(int which, const struct group_ops *ops)
{
	OK(ww_driver_attach(&groups[which], driver, ops, sources[which], sizeof sources[which][0], 4));
}

static void set(int which, uint32_t shard, struct item *item, uint64_t delay)
{
	struct source *source = group_source(&groups[which], shard);

	ww_source_lock(source);
	ww_source_schedule(source, &item->as.timer, now_ns() + delay);
	ww_source_unlock(source);
}

START_TEST(a_group_is_driven_while_it_is_attached)
{
	struct item item[4] = {0};

	begin(0, 2);
	attach(0, &job_ops);
	ck_assert_int_eq(ww_driver_destroy(driver), WW_EBUSY);
	for (uint32_t i = 0; i < 4; i++)
		set(0, i, &item[i], (i + 1) * 10 * TICK);
	for (int n = 0; n < 5; n++) {
		for (int i = 0; i < 4; i++)
			ck_assert_int_eq(item[i].ran, i < n);
		go(10 * TICK + (n ? 0 : TICK));
	}
	ww_driver_detach(&groups[0]);
	end();
}
END_TEST

START_TEST(in_a_stall_timers_of_several_groups_fire_in_order_of_tick)
{
	struct item item = {0};
	sem_t semaphore;
	struct gate gate;

	/* The one worker comes to the group's timer before the driver's later one, whichever was attached first. */
	gate_init(&gate);
	sem_init(&semaphore, 0, 0);
	begin(0, 1);
	attach(0, &job_ops);
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
	ww_driver_detach(&groups[0]);
	end();
}
END_TEST

START_TEST(what_needs_no_room_in_the_queue_goes_on_while_that_is_full)
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
	UNTIL(driver->queue.starved);
	/* What comes due later; and what is due at once, in the very tick in which the others starve. */
	set(1, 1, &item[0], TICK);
	advance(2 * TICK);
	UNTIL(item[0].expired == 1);
	UNTIL(driver->armed != 0);
	set(1, 2, &item[1], 0);
	ww_source_lock(&sources[1][2]);
	ww_source_schedule(&sources[1][2], &item[1].as.timer, now_ns() - TICK);
	ww_source_unlock(&sources[1][2]);
	UNTIL(item[1].expired == 1);
	ck_assert_int_eq(gate.left, 0);
	gate_open(&gate, 1);
	settle();
	ck_assert_uint_eq(fired_count, 5);
	ww_driver_detach(&groups[1]);
	end();
}
END_TEST

START_TEST(a_pass_ends_although_what_expires_is_due_again_at_once)
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
	ww_driver_detach(&groups[0]);
	end();
}
END_TEST

START_TEST(a_stop_leaves_jobs_of_other_groups_alone)
{
	struct item item = {0};
	sem_t semaphore;
	size_t count;

	sem_init(&semaphore, 0, 0);
	begin(0, 1);
	attach(0, &job_ops);
	item.hold = &semaphore;
	set(0, 0, &item, 0);
	advance(TICK);
	UNTIL(inside == 1);
	/* Were it a timer of the driver, this would be one that a worker has taken. */
	item.as.record.state = RECORD_QUEUED;
	OK(ww_driver_stop(driver, take, NULL, &count));
	ck_assert_uint_eq(count, 0);
	sem_post(&semaphore);
	ww_driver_detach(&groups[0]);
	ck_assert_int_eq(item.ran, 1);
	end();
}
END_TEST

static int inside_at_return;

static void *detach_elsewhere(void *argument)
{
	ww_driver_detach(argument);
	inside_at_return = inside;
	return NULL;
}

START_TEST(detaching_waits_for_jobs_that_run_and_forgets_those_that_wait)
{
	struct item item[6] = {0};
	sem_t semaphore;
	pthread_t thread;

	sem_init(&semaphore, 0, 0);
	begin(0, 2);
	attach(0, &job_ops);
	for (uint32_t i = 0; i < 6; i++) {
		item[i].hold = &semaphore;
		set(0, i % 4, &item[i], i < 5 ? 0 : DAY_NS);
	}
	advance(TICK);
	UNTIL(inside == 2);
	UNTIL(stats_of().queued == 3);
	ck_assert_int_eq(pthread_create(&thread, NULL, detach_elsewhere, &groups[0]), 0);
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

/* All in one chain: asked for one by one, those behind jobs of others would each be another walk through the queue. */
START_TEST(all_jobs_of_a_group_are_taken_back_at_once_in_their_order_and_no_others)
{
	enum { OTHERS = 1000, OWN = 1000 };
	static struct job job[OTHERS + OWN];
	struct queue queue;
	struct job *taken;

	OK(ww_queue_create(&queue, OTHERS + OWN, 0, ww_allocator_default()));
	for (int i = 0; i < OTHERS + OWN; i++) {
		job[i].group = &groups[i >= OTHERS];
		ww_queue_push(&queue, &job[i], 1);
	}
	/* And one of the others behind them. */
	job[OTHERS].group = &groups[0];
	MUST(ww_queue_remove(&queue, &job[OTHERS]));
	ww_queue_push(&queue, &job[OTHERS], 1);
	taken = ww_queue_take_back(&queue, &groups[1]);
	for (int i = OTHERS + 1; i < OTHERS + OWN; i++, taken = taken->prev) {
		MUST(taken == &job[i]);
		MUST(!ww_queue_remove(&queue, taken));
	}
	ck_assert_ptr_null(taken);
	ck_assert_ptr_null(ww_queue_take_back(&queue, &groups[1]));
	ck_assert_uint_eq(queue.length, OTHERS + 1);
	taken = ww_queue_take_back(&queue, &groups[0]);
	for (int i = 0; i <= OTHERS; i++, taken = taken->prev)
		MUST(taken == &job[i]);
	ck_assert_ptr_null(taken);
	ck_assert_uint_eq(queue.length, 0);
	ck_assert_ptr_eq(queue.jobs.next, &queue.jobs);
	ww_queue_destroy(&queue);
}
END_TEST

START_TEST(attaching_fails_without_memory_and_after_a_stop_and_leaves_nothing)
{
	struct ww_driver_config config = config_of(0, 1);
	struct counted memory;

	counted_init(&memory, 0);
	config.allocator = &memory.table;
	begin_with(&config);
	size_t blocks = memory.blocks;
	for (size_t fail = 1; fail <= 8; fail++) {
		memory.fail_at = memory.calls + fail;
		ck_assert_int_eq(
		    ww_driver_attach(&groups[0], driver, &job_ops, sources[0], sizeof sources[0][0], 4), WW_ENOMEM);
		ck_assert_uint_eq(memory.blocks, blocks);
	}
	OK(ww_driver_stop(driver, NULL, NULL, NULL));
	ck_assert_int_eq(
	    ww_driver_attach(&groups[0], driver, &job_ops, sources[0], sizeof sources[0][0], 4), WW_ECLOSED);
	ck_assert_uint_eq(memory.blocks, blocks);
	end();
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

TEST_MAIN("driver/group", a_group_is_driven_while_it_is_attached,
    in_a_stall_timers_of_several_groups_fire_in_order_of_tick,
    what_needs_no_room_in_the_queue_goes_on_while_that_is_full, a_pass_ends_although_what_expires_is_due_again_at_once,
    a_stop_leaves_jobs_of_other_groups_alone, detaching_waits_for_jobs_that_run_and_forgets_those_that_wait,
    all_jobs_of_a_group_are_taken_back_at_once_in_their_order_and_no_others,
    attaching_fails_without_memory_and_after_a_stop_and_leaves_nothing)
