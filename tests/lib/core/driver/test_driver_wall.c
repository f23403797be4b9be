/*
 * A clock that is stepped, like the wall clock. A step forwards fires timers, one backwards delays them, and nothing
 * fires twice or early.
 */
/* tier: quick, threads, forks */

#include "tests/lib/core/driver/fixture.h"

static void step_to(uint64_t ns)
{
	OK(ww_clock_virtual_set(virtual_clock, ns));
	settle();
}

static struct ww_driver_config both[2];

static void prepare(void)
{
	both[0] = config_of(0, 1);
	both[1] = config_of(WW_DRIVER_THREADLESS, 0);
}

START_TEST(a_step_forwards_fires_the_timers_that_became_due)
{
	for (int i = 0; i < 2; i++) {
		prepare();
		begin_with(&both[i]);
		ww_handle one = after(3600 * WW_SECOND, note, NULL);
		ww_handle two = after(3601 * WW_SECOND, note, NULL);
		ww_handle three = after(7200 * WW_SECOND, note, NULL);
		step_to(START + 3602 * WW_SECOND);
		ck_assert_uint_eq(fired_count, 2);
		ck_assert_uint_eq(fired[0].handle, one);
		ck_assert_uint_eq(fired[1].handle, two);
		step_to(START + 7201 * WW_SECOND);
		ck_assert_uint_eq(times_fired(three), 1);
		end();
	}
}
END_TEST

START_TEST(a_step_backwards_delays_timers_until_the_clock_gets_there_again)
{
	static const uint64_t delays[] = {1, 49, 50, 51, 1000, 60000, 3600000, 86400000};

	for (int i = 0; i < 2; i++)
		for (size_t d = 0; d < sizeof delays / sizeof delays[0]; d++) {
			prepare();
			begin_with(&both[i]);
			ww_handle handle = after(delays[d] * TICK, note, NULL);
			uint64_t deadline = now_ns() + delays[d] * TICK;
			go(delays[d] * TICK / 2);
			step_to(START / 3);
			ck_assert_uint_eq(fired_count, 0);
			step_to(deadline - 1);
			ck_assert_uint_eq(fired_count, 0);
			step_to(deadline + TICK);
			ck_assert_uint_eq(times_fired(handle), 1);
			step_to(START);
			step_to(deadline + 2 * TICK);
			ck_assert_uint_eq(fired_count, 1);
			end();
		}
}
END_TEST

START_TEST(timers_scheduled_after_a_step_backwards_are_neither_early_nor_late)
{
	/* The driver is idle or waits, and has noticed the step or not. */
	static const uint64_t delays[] = {0, 1, 10, 49, 51, 700, 5000, 999000};

	for (int i = 0; i < 2; i++)
		for (int kind = 0; kind < 4; kind++)
			for (size_t d = 0; d < sizeof delays / sizeof delays[0]; d++) {
				prepare();
				begin_with(&both[i]);
				(void)after(1000 * WW_SECOND, note, NULL);
				if (kind % 2)
					(void)after(DAY_NS, note, NULL);
				go(1001 * WW_SECOND);
				fired_count = 0;
				OK(ww_clock_virtual_set(virtual_clock, START));
				if (kind / 2)
					settle();
				ww_handle handle = after(delays[d] * TICK, note, NULL);
				uint64_t deadline = START + delays[d] * TICK;
				uint64_t due = (deadline + TICK - 1) / TICK * TICK;
				go(due - now_ns() - 1);
				ck_assert_uint_eq(fired_count, 0);
				go(1);
				ck_assert_uint_eq(times_fired(handle), 1);
				ck_assert_uint_eq(fired_count, 1);
				end();
			}
}
END_TEST

/* No pass with the time before the step is running, and due timers not yet queued wait for the queue to report room. */
static uint32_t waits_for_room(void)
{
	pthread_mutex_lock(&driver->agenda.lock);
	pthread_mutex_lock(&driver->queue.lock);
	uint32_t starved = driver->queue.starving;
	pthread_mutex_unlock(&driver->queue.lock);
	pthread_mutex_unlock(&driver->agenda.lock);
	return starved;
}

START_TEST(a_step_backwards_while_the_queue_is_full_fires_each_once)
{
	struct ww_driver_config config = config_of(0, 1);
	struct gate gate;

	gate_init(&gate);
	config.queue = 5;
	begin_with(&config);
	(void)after(0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	for (uint64_t i = 0; i < 100; i++)
		(void)after(i * TICK, note, NULL);
	advance(200 * TICK);
	UNTIL(stats_of().queued == 5);
	UNTIL(waits_for_room());
	OK(ww_clock_virtual_set(virtual_clock, START));
	gate_open(&gate, 1);
	settle();
	/* The queued ones had come due. The others wait again. */
	ck_assert_uint_le(fired_count, 5 + 1);
	for (int i = 0; i < 50; i++)
		go(TICK);
	ck_assert_uint_le(fired_count, 5 + 51);
	go(200 * TICK);
	ck_assert_uint_eq(fired_count, 100);
	end();
}
END_TEST

/* A pass takes 256 of a group and then goes on; here the queue is full before the rest has entered it. */
START_TEST(what_stays_due_after_a_step_backwards_waits_for_nothing_but_room)
{
	struct ww_driver_config config = config_of(0, 1);
	struct gate gate;

	gate_init(&gate);
	config.queue = 300;
	begin_with(&config);
	(void)after(0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	for (uint64_t i = 0; i < 400; i++)
		(void)after(10 * TICK, note, NULL);
	advance(200 * TICK);
	UNTIL(stats_of().queued == 300);
	UNTIL(waits_for_room());
	OK(ww_clock_virtual_set(virtual_clock, START + 100 * TICK));
	gate_open(&gate, 1);
	settle();
	ck_assert_uint_eq(fired_count, 400);
	end();
}
END_TEST

START_TEST(a_periodic_timer_waits_after_a_step_backwards_and_misses_after_one_forwards)
{
	begin(0, 2);
	uint64_t first = now_ns() + 10 * TICK;
	(void)every(10 * TICK, 10 * TICK, 0, note, NULL);
	go(11 * TICK);
	ck_assert_uint_eq(fired_count, 1);
	step_to(START - 500 * TICK);
	go(500 * TICK);
	ck_assert_uint_eq(fired_count, 1);
	go(21 * TICK);
	ck_assert_uint_eq(fired_count, 2);
	ck_assert_uint_eq(fired[1].deadline, first + 10 * TICK);
	ck_assert_uint_eq(fired[1].missed, 0);
	step_to(first + 1000 * TICK + TICK);
	go(11 * TICK);
	ck_assert_uint_eq(fired_count, 4);
	ck_assert_uint_eq(fired[2].deadline, first + 20 * TICK);
	ck_assert_uint_eq(fired[3].missed, 98);
	ck_assert_uint_eq(fired[3].deadline, first + 1010 * TICK);
	end();
}
END_TEST

/* ---- Settle */

START_TEST(a_settle_that_began_before_a_step_backwards_ends)
{
	struct ww_driver_config config = config_of(0, 1);
	struct gate gate;
	pthread_t thread;
	void *result = NULL;

	gate_init(&gate);
	config.queue = 1;
	begin_with(&config);
	(void)after(0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	/*
	 * One timer is in the queue. The other one, also due when the settle begins, waits for room and then for the
	 * clock.
	 */
	(void)after(700 * TICK, note, NULL);
	(void)after(700 * TICK, note, NULL);
	advance(800 * TICK);
	UNTIL(driver->queue.starving);
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_elsewhere, NULL), 0);
	UNTIL(waiting_for_queue() == 1);
	OK(ww_clock_virtual_set(virtual_clock, START));
	gate_open(&gate, 1);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_int_eq((int)(intptr_t)result, WW_OK);
	ck_assert_uint_eq(fired_count, 1);
	go(800 * TICK);
	ck_assert_uint_eq(fired_count, 2);
	end();
}
END_TEST

START_TEST(random_steps_lose_nothing_and_fire_nothing_early_or_twice)
{
	static ww_handle handle[2000];
	uint64_t seed = seed_of_run("test_driver_wall");

	for (int i = 0; i < 2; i++) {
		uint64_t last = 0;
		prepare();
		both[i].shards = 3;
		begin_with(&both[i]);
		for (size_t n = 0; n < 2000; n++) {
			uint64_t range = seed_below(&seed, 3) ? 100 * TICK : 100 * WW_SECOND;
			handle[n] = after(seed_below(&seed, range), note, NULL);
			last = now_ns() + 101 * WW_SECOND > last ? now_ns() + 101 * WW_SECOND : last;
			if (n % 4 == 0)
				step_to(START + seed_below(&seed, 200 * TICK));
			if (n % 100 == 0)
				step_to(START + seed_below(&seed, 50 * WW_SECOND));
		}
		step_to(last);
		ck_assert_uint_eq(fired_count, 2000);
		for (size_t n = 0; n < 2000; n++)
			ck_assert(fired[n].now >= fired[n].deadline);
		for (size_t n = 0; n < 2000; n += 100)
			ck_assert_uint_eq(times_fired(handle[n]), 1);
		end();
	}
}
END_TEST

START_TEST(the_real_wall_clock_drives_a_driver)
{
	struct ww_driver_config config = config_of(0, 1);

	config.clock = ww_clock_wall();
	OK(ww_driver_create(&driver, &config));
	OK(ww_driver_schedule_at(driver, 1, note, NULL, NULL));
	UNTIL(fired_count == 1);
	(void)after(TICK, note, NULL);
	UNTIL(fired_count == 2);
	ck_assert_uint_ge(fired[1].now, fired[1].deadline);
	OK(ww_driver_destroy(driver));
}
END_TEST

TEST_MAIN("driver/wall", a_step_forwards_fires_the_timers_that_became_due,
    a_step_backwards_delays_timers_until_the_clock_gets_there_again,
    timers_scheduled_after_a_step_backwards_are_neither_early_nor_late,
    a_step_backwards_while_the_queue_is_full_fires_each_once,
    what_stays_due_after_a_step_backwards_waits_for_nothing_but_room,
    a_periodic_timer_waits_after_a_step_backwards_and_misses_after_one_forwards,
    a_settle_that_began_before_a_step_backwards_ends, random_steps_lose_nothing_and_fire_nothing_early_or_twice,
    the_real_wall_clock_drives_a_driver)
