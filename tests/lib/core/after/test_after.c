/* Timers that a thread waits for, and functions called later: the answer of each call in every state. */
/* tier: quick, threads */

#include "tests/lib/core/after/fixture.h"
#include "tests/support/memory.h"

static struct ww_after *after_in(struct world world, uint64_t delay)
{
	struct ww_after *after = NULL;

	OK(ww_after_create(&after, world.driver, delay));
	ck_assert_ptr_nonnull(after);
	return after;
}

static struct ww_after *func_in(struct world world, uint64_t delay, struct gate *gate)
{
	struct ww_after *after = NULL;

	OK(ww_after_func(&after, world.driver, delay, gate_fn, gate));
	ck_assert_ptr_nonnull(after);
	return after;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

START_TEST(null_is_refused_or_harmless)
{
	struct world world = make_world();
	struct ww_after *after = NULL;
	struct gate gate = {0};

	ck_assert_int_eq(ww_after_create(NULL, world.driver, 1), WW_EINVAL);
	ck_assert_int_eq(ww_after_create(&after, NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_after_func(NULL, world.driver, 1, gate_fn, &gate), WW_EINVAL);
	ck_assert_int_eq(ww_after_func(&after, NULL, 1, gate_fn, &gate), WW_EINVAL);
	ck_assert_int_eq(ww_after_func(&after, world.driver, 1, NULL, &gate), WW_EINVAL);
	ck_assert_int_eq(ww_after_receive(NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_after_poll(NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_after_stop(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_after_reset(NULL, 1), WW_EINVAL);
	OK(ww_after_destroy(NULL));
	ck_assert_ptr_null(after);
	end_world(world);
}
END_TEST

START_TEST(a_deadline_beyond_the_end_of_time_is_refused_and_changes_nothing)
{
	struct world world = make_world();
	struct ww_after *after = NULL;
	struct gate gate = {0};
	uint64_t time = 0;

	ck_assert_int_eq(ww_after_create(&after, world.driver, WW_DRIVER_TIME_MAX - START + 1), WW_EOVERFLOW);
	ck_assert_int_eq(ww_after_func(&after, world.driver, UINT64_MAX, gate_fn, &gate), WW_EOVERFLOW);
	ck_assert_ptr_null(after);
	after = after_in(world, WW_DRIVER_TIME_MAX - START);
	ck_assert_int_eq(ww_after_reset(after, 5 * MS), 1);
	ck_assert_int_eq(ww_after_reset(after, WW_DRIVER_TIME_MAX - START + 1), WW_EOVERFLOW);
	pass(world, 5 * MS);
	/* A value that waits for its receiver stays, too. */
	ck_assert_int_eq(ww_after_reset(after, UINT64_MAX), WW_EOVERFLOW);
	ck_assert_int_eq(ww_after_poll(after, &time), 1);
	ck_assert_uint_eq(time, START + 5 * MS);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

START_TEST(a_timer_with_a_function_has_no_channel)
{
	struct world world = make_world();
	struct gate gate = {0};
	struct ww_after *after = func_in(world, MS, &gate);
	uint64_t time = 7;

	ck_assert_int_eq(ww_after_receive(after, &time), WW_EINVAL);
	ck_assert_int_eq(ww_after_poll(after, &time), WW_EINVAL);
	ck_assert_uint_eq(time, 7);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

static void never(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver;
	(void)firing;
	(void)user;
}

START_TEST(a_call_without_memory_changes_nothing)
{
	struct ww_driver_config config;
	struct test_memory memory;
	struct world world;
	struct ww_after *after;
	struct ww_after *none = NULL;
	struct ww_ticker *ticker = NULL;

	OK(ww_clock_virtual_create(&world.clock, START, NULL));
	OK(ww_driver_config_default(&config));
	config.clock = world.clock;
	test_memory_init(&memory, 0);
	config.allocator = &memory.table;
	OK(ww_driver_create(&world.driver, &config));
	after = after_in(world, MS);
	pass(world, MS);
	memory.exhausted = 1;
	/* Use up the driver's memory. */
	while (ww_driver_schedule(world.driver, HOUR_NS, never, NULL, NULL) == WW_OK)
		continue;
	ck_assert_int_eq(ww_after_create(&none, world.driver, MS), WW_ENOMEM);
	ck_assert_int_eq(ww_ticker_create(&ticker, world.driver, MS), WW_ENOMEM);
	ck_assert_int_eq(ww_sleep(world.driver, MS), WW_ENOMEM);
	ck_assert_ptr_null(none);
	ck_assert_ptr_null(ticker);
	ck_assert_int_eq(ww_after_reset(after, MS), WW_ENOMEM);
	ck_assert_int_eq(ww_after_poll(after, NULL), 1);
	OK(ww_after_destroy(after));
	end_world(world);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

/* ---- Receiving -------------------------------------------------------------------------------------------------- */

START_TEST(a_value_comes_at_its_deadline_and_once)
{
	struct world world = make_world();
	struct ww_after *after = after_in(world, 10 * MS + 1);
	uint64_t time = 7;

	pass(world, 10 * MS);
	ck_assert_int_eq(ww_after_poll(after, &time), 0);
	ck_assert_uint_eq(time, 7);
	pass(world, MS);
	ck_assert_int_eq(ww_after_poll(after, &time), 1);
	ck_assert_uint_eq(time, START + 10 * MS + 1);
	ck_assert_int_eq(ww_after_poll(after, &time), 0);
	pass(world, HOUR_NS);
	ck_assert_int_eq(ww_after_poll(after, NULL), 0);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

START_TEST(a_value_waits_for_its_receiver)
{
	struct world world = make_world();
	struct ww_after *after = after_in(world, 0);
	uint64_t time = 7;

	pass(world, HOUR_NS);
	OK(ww_after_receive(after, &time));
	ck_assert_uint_eq(time, START);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

struct reader {
	struct ww_after *after;
	uint64_t time;
	int result;
	atomic_int done;
};

static void *read_one(void *argument)
{
	struct reader *reader = argument;

	reader->result = ww_after_receive(reader->after, &reader->time);
	atomic_store(&reader->done, 1);
	return NULL;
}

START_TEST(each_value_wakes_one_of_many_waiting_threads)
{
	enum { READERS = 4 };
	struct world world = make_world();
	struct ww_after *after = after_in(world, MS);
	struct reader readers[READERS];
	pthread_t threads[READERS];

	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.after = after};
		threads[i] = start_thread(read_one, &readers[i]);
	}
	for (int values = 1; values <= READERS; values++) {
		int done = 0;
		pass(world, MS);
		while (done < values) {
			done = 0;
			for (int i = 0; i < READERS; i++)
				done += atomic_load(&readers[i].done);
			sched_yield();
		}
		ck_assert_int_eq(done, values);
		ck_assert_int_eq(ww_after_reset(after, MS), 0);
	}
	for (int i = 0; i < READERS; i++) {
		end_thread(threads[i]);
		OK(readers[i].result);
		ck_assert_uint_gt(readers[i].time, START);
	}
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

START_TEST(without_threads_dispatch_delivers_a_value)
{
	struct world world = make_world_of(0, 10, WW_DRIVER_THREADLESS);
	struct ww_after *after = after_in(world, MS);

	OK(ww_clock_virtual_advance(world.clock, MS));
	ck_assert_int_eq(ww_after_poll(after, NULL), 0);
	ck_assert_int_eq(ww_driver_dispatch(world.driver, 10), 1);
	ck_assert_int_eq(ww_after_poll(after, NULL), 1);
	OK(ww_after_destroy(after));
	/* Nobody dispatches meanwhile: it returns at once, or never. */
	OK(ww_sleep(world.driver, 0));
	end_world(world);
}
END_TEST

/* ---- Stop and reset --------------------------------------------------------------------------------------------- */

START_TEST(stop_in_every_state)
{
	struct world world = make_world();
	struct ww_after *after = after_in(world, MS);

	ck_assert_int_eq(ww_after_stop(after), 1); /* pending */
	ck_assert_int_eq(ww_after_stop(after), 0); /* stopped */
	ck_assert_uint_eq(stats_of(world).pending, 0);
	pass(world, HOUR_NS);
	ck_assert_int_eq(ww_after_poll(after, NULL), 0);
	ck_assert_int_eq(ww_after_reset(after, MS), 0);
	pass(world, MS);
	ck_assert_int_eq(ww_after_stop(after), 1); /* expired, and not received */
	ck_assert_int_eq(ww_after_poll(after, NULL), 0);
	ck_assert_int_eq(ww_after_reset(after, MS), 0);
	pass(world, MS);
	ck_assert_int_eq(ww_after_poll(after, NULL), 1);
	ck_assert_int_eq(ww_after_stop(after), 0); /* received */
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

START_TEST(reset_in_every_state)
{
	struct world world = make_world();
	struct ww_after *after = after_in(world, 5 * MS);
	uint64_t time = 0;

	ck_assert_int_eq(ww_after_reset(after, 10 * MS), 1); /* pending, to a later deadline */
	pass(world, 5 * MS);
	ck_assert_int_eq(ww_after_poll(after, NULL), 0);
	ck_assert_int_eq(ww_after_reset(after, MS), 1); /* to an earlier one */
	pass(world, MS);
	ck_assert_int_eq(ww_after_reset(after, 3 * MS), 1); /* expired, and not received: that value is gone */
	ck_assert_int_eq(ww_after_poll(after, NULL), 0);
	pass(world, 3 * MS);
	ck_assert_int_eq(ww_after_poll(after, &time), 1);
	ck_assert_uint_eq(time, START + 9 * MS);
	ck_assert_int_eq(ww_after_reset(after, MS), 0); /* received */
	ck_assert_int_eq(ww_after_stop(after), 1);
	ck_assert_int_eq(ww_after_reset(after, MS), 0); /* stopped */
	pass(world, MS);
	ck_assert_int_eq(ww_after_poll(after, &time), 1);
	ck_assert_uint_eq(time, START + 10 * MS);
	ck_assert_uint_eq(stats_of(world).pending, 0);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

/* The only worker is busy: an expiry waits in the queue. */
START_TEST(stop_and_reset_take_an_expiry_out_of_the_queue)
{
	struct world world = make_world_of(1, 10, 0);
	struct gate gate = {.closed = 1};
	struct gate other = {0};
	struct ww_after *keeper = func_in(world, 0, &gate);
	struct ww_after *stopped = after_in(world, MS);
	struct ww_after *reset = after_in(world, MS);
	struct ww_after *func = func_in(world, MS, &other);

	wait_until_came(&gate, 1);
	OK(ww_clock_virtual_advance(world.clock, MS));
	while (stats_of(world).queued != 3)
		sched_yield();
	ck_assert_int_eq(ww_after_stop(stopped), 1);
	ck_assert_int_eq(ww_after_reset(reset, MS), 1);
	ck_assert_int_eq(ww_after_stop(func), 1);
	atomic_store(&gate.closed, 0);
	OK(ww_driver_settle(world.driver));
	ck_assert_int_eq(ww_after_poll(stopped, NULL), 0);
	ck_assert_int_eq(ww_after_poll(reset, NULL), 0);
	ck_assert_int_eq(atomic_load(&other.came), 0);
	pass(world, MS);
	ck_assert_int_eq(ww_after_poll(reset, NULL), 1);
	OK(ww_after_destroy(keeper));
	OK(ww_after_destroy(stopped));
	OK(ww_after_destroy(reset));
	OK(ww_after_destroy(func));
	end_world(world);
}
END_TEST

START_TEST(destroy_takes_a_pending_timer_back)
{
	struct world world = make_world();
	struct gate gate = {0};
	struct ww_after *after = after_in(world, MS);
	struct ww_after *func = func_in(world, MS, &gate);

	OK(ww_after_destroy(after));
	OK(ww_after_destroy(func));
	ck_assert_uint_eq(stats_of(world).pending, 0);
	pass(world, HOUR_NS);
	ck_assert_int_eq(atomic_load(&gate.came), 0);
	end_world(world);
}
END_TEST

/* ---- Functions -------------------------------------------------------------------------------------------------- */

START_TEST(a_function_is_called_at_its_deadline_and_once)
{
	struct world world = make_world();
	struct gate gate = {0};
	struct ww_after *after = func_in(world, 5 * MS, &gate);

	pass(world, 5 * MS - 1);
	ck_assert_int_eq(atomic_load(&gate.went), 0);
	pass(world, 1);
	ck_assert_int_eq(atomic_load(&gate.went), 1);
	ck_assert_int_eq(ww_after_stop(after), 0);
	pass(world, HOUR_NS);
	ck_assert_int_eq(atomic_load(&gate.went), 1);
	ck_assert_int_eq(ww_after_reset(after, MS), 0);
	ck_assert_int_eq(ww_after_reset(after, 2 * MS), 1);
	pass(world, MS);
	ck_assert_int_eq(atomic_load(&gate.went), 1);
	pass(world, MS);
	ck_assert_int_eq(atomic_load(&gate.went), 2);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

START_TEST(a_function_that_runs_is_neither_stopped_nor_waited_for)
{
	struct world world = make_world();
	struct gate gate = {.closed = 1};
	struct ww_after *after = func_in(world, 0, &gate);

	wait_until_came(&gate, 1);
	ck_assert_int_eq(ww_after_stop(after), 0);
	ck_assert_int_eq(ww_after_reset(after, 0), 0);
	/* The next call does not wait for the end of this one. */
	wait_until_came(&gate, 2);
	ck_assert_int_eq(atomic_load(&gate.went), 0);
	ck_assert_int_eq(ww_after_reset(after, MS), 0);
	ck_assert_int_eq(ww_after_stop(after), 1);
	atomic_store(&gate.closed, 0);
	pass(world, HOUR_NS);
	ck_assert_int_eq(atomic_load(&gate.went), 2);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

/* The answers that a function gets when it calls its own timer. */
struct own {
	struct ww_after *after;
	int calls;
	int stop;
	int reset;
	int second_stop;
};

static void call_own(void *user)
{
	struct own *own = user;

	own->stop = ww_after_stop(own->after);
	own->reset = ww_after_reset(own->after, 2 * MS);
	if (++own->calls == 3)
		own->second_stop = ww_after_stop(own->after);
}

START_TEST(a_function_may_stop_and_reset_its_own_timer)
{
	struct world world = make_world();
	struct own own = {.second_stop = -1};

	OK(ww_after_func(&own.after, world.driver, 0, call_own, &own));
	OK(ww_driver_settle(world.driver));
	for (int calls = 1; calls <= 3; calls++) {
		ck_assert_int_eq(own.calls, calls);
		ck_assert_int_eq(own.stop, 0);
		ck_assert_int_eq(own.reset, 0);
		pass(world, 2 * MS);
	}
	ck_assert_int_eq(own.second_stop, 1);
	pass(world, HOUR_NS);
	ck_assert_int_eq(own.calls, 3);
	OK(ww_after_destroy(own.after));
	end_world(world);
}
END_TEST

static void *destroy_driver(void *driver)
{
	OK(ww_driver_destroy(driver));
	return NULL;
}

struct own_end {
	struct ww_after *after;
	struct gate gate; /* where the first call waits after it has destroyed the timer */
	int reset;
	_Atomic int destroyed;
	atomic_int others;
};

static void destroy_own(void *user)
{
	struct own_end *end = user;

	if (atomic_fetch_add(&end->others, 1) > 0) {
		gate_fn(&end->gate);
		return;
	}
	if (end->reset)
		ck_assert_int_eq(ww_after_reset(end->after, MS), 0);
	OK(ww_after_destroy(end->after));
	/* The memory is there until the function returns. */
	OK(ww_after_destroy(end->after));
	end->destroyed = 1;
	gate_fn(&end->gate);
}

START_TEST(a_function_may_destroy_its_own_timer)
{
	for (int reset = 0; reset < 2; reset++) {
		struct world world = make_world();
		struct own_end end = {.reset = reset};
		OK(ww_after_func(&end.after, world.driver, 0, destroy_own, &end));
		OK(ww_driver_settle(world.driver));
		ck_assert_int_eq(end.destroyed, 1);
		ck_assert_uint_eq(stats_of(world).pending, 0);
		pass(world, HOUR_NS);
		ck_assert_int_eq(atomic_load(&end.others), 1);
		end_world(world);
	}
}
END_TEST

/* The driver is destroyed meanwhile, and waits for the function's end. A sanitizer sees what is freed too early. */
START_TEST(a_function_that_destroyed_its_timer_goes_on)
{
	struct world world = make_world();
	struct own_end end = {.gate.closed = 1};
	pthread_t thread;

	OK(ww_after_func(&end.after, world.driver, 0, destroy_own, &end));
	while (!end.destroyed)
		sched_yield();
	thread = start_thread(destroy_driver, world.driver);
	for (int i = 0; i < 100; i++)
		sched_yield();
	atomic_store(&end.gate.closed, 0);
	end_thread(thread);
	ck_assert_int_eq(atomic_load(&end.gate.went), 1);
	OK(ww_clock_virtual_destroy(world.clock));
}
END_TEST

/* Of two calls of the function, the one that ends last frees the timer. */
START_TEST(the_last_call_of_a_function_frees_the_timer_that_it_destroyed)
{
	for (int round = 0; round < 50; round++) {
		struct world world = make_world_of(2, 1000, 0);
		struct own_end end = {.gate.closed = 1, .others = 1};
		struct gate *gate = &end.gate;
		OK(ww_after_func(&end.after, world.driver, 0, destroy_own, &end));
		wait_until_came(gate, 1);
		/* The first call waits. The second one destroys the timer, and ends at once or waits, too. */
		atomic_store(&end.others, 0);
		ck_assert_int_eq(ww_after_reset(end.after, 0), 0);
		wait_until_came(gate, 2);
		ck_assert_int_eq(end.destroyed, 1);
		atomic_store(&gate->closed, 0);
		end_world(world);
		ck_assert_int_eq(atomic_load(&gate->went), 2);
	}
}
END_TEST

/* The timer's function may destroy another timer, and one whose function runs elsewhere is waited for. */
struct other {
	struct ww_after *victim;
	struct gate *gate;
	int result;
	int went;
};

static void destroy_other(void *user)
{
	struct other *other = user;

	other->result = ww_after_destroy(other->victim);
	other->went = atomic_load(&other->gate->went);
}

static void *destroy_in_thread(void *argument)
{
	destroy_other(argument);
	return NULL;
}

/* Give other threads the time to do what they must not do. */
static void let_others_run(void)
{
	for (int i = 0; i < 2000; i++)
		sched_yield();
}

START_TEST(destroy_waits_for_the_function)
{
	struct world world = make_world();
	struct gate gate = {.closed = 1};
	struct other other = {.victim = func_in(world, 0, &gate), .gate = &gate, .result = 1};
	pthread_t thread;

	wait_until_came(&gate, 1);
	/* A second start, of which the timer must be taken back. */
	ck_assert_int_eq(ww_after_reset(other.victim, MS), 0);
	thread = start_thread(destroy_in_thread, &other);
	wait_until_pending(world, 0);
	let_others_run();
	atomic_store(&gate.closed, 0);
	end_thread(thread);
	OK(other.result);
	ck_assert_int_eq(other.went, 1);
	end_world(world);
}
END_TEST

/* A function that starts its own timer again, as Go's time.AfterFunc is used for what repeats. */
struct again {
	struct ww_after *after;
	struct gate gate;
	atomic_int reset, stop;
	_Atomic int destroys; /* the next call destroys the timer before it waits at the gate */
};

static void call_again(void *user)
{
	struct again *again = user;

	if (atomic_exchange(&again->destroys, 0))
		OK(ww_after_destroy(again->after));
	gate_fn(&again->gate);
	atomic_store(&again->reset, ww_after_reset(again->after, MS));
	atomic_store(&again->stop, ww_after_stop(again->after));
	(void)ww_after_reset(again->after, 0);
}

static void *destroy_again(void *after)
{
	OK(ww_after_destroy(after));
	return NULL;
}

START_TEST(a_function_cannot_start_a_timer_that_is_being_destroyed)
{
	struct world world = make_world();
	struct again again = {.gate.closed = 1, .reset = 1, .stop = 1};
	pthread_t thread;

	OK(ww_after_func(&again.after, world.driver, 0, call_again, &again));
	wait_until_came(&again.gate, 1);
	/* The destruction has begun once it has taken this start back. */
	ck_assert_int_eq(ww_after_reset(again.after, MS), 0);
	thread = start_thread(destroy_again, again.after);
	wait_until_pending(world, 0);
	atomic_store(&again.gate.closed, 0);
	end_thread(thread);
	ck_assert_int_eq(again.reset, WW_ECLOSED);
	ck_assert_int_eq(again.stop, 0);
	ck_assert_uint_eq(stats_of(world).pending, 0);
	pass(world, HOUR_NS);
	ck_assert_int_eq(again.gate.came, 1);
	end_world(world);
}
END_TEST

/* The second call destroys it, and neither that call nor the first one can start it again. */
START_TEST(a_function_cannot_start_a_timer_that_it_destroyed)
{
	struct world world = make_world();
	struct again again = {.gate.closed = 1, .reset = 1, .stop = 1};

	OK(ww_after_func(&again.after, world.driver, 0, call_again, &again));
	wait_until_came(&again.gate, 1);
	again.destroys = 1;
	ck_assert_int_eq(ww_after_reset(again.after, 0), 0);
	wait_until_came(&again.gate, 2);
	atomic_store(&again.gate.closed, 0);
	OK(ww_driver_settle(world.driver));
	ck_assert_int_eq(again.reset, WW_ECLOSED);
	ck_assert_int_eq(again.stop, 0);
	ck_assert_uint_eq(stats_of(world).pending, 0);
	pass(world, HOUR_NS);
	ck_assert_int_eq(again.gate.came, 2);
	end_world(world);
}
END_TEST

START_TEST(destroy_in_the_function_of_another_timer_waits_too)
{
	struct world world = make_world();
	struct gate gate = {.closed = 1};
	struct other other = {.victim = func_in(world, 0, &gate), .gate = &gate, .result = 1};
	struct ww_after *after;

	wait_until_came(&gate, 1);
	OK(ww_after_func(&after, world.driver, 0, destroy_other, &other));
	while (stats_of(world).running != 2)
		sched_yield();
	let_others_run();
	atomic_store(&gate.closed, 0);
	OK(ww_driver_settle(world.driver));
	OK(other.result);
	ck_assert_int_eq(other.went, 1);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

/* ---- The driver's end */

START_TEST(the_driver_is_not_destroyed_before_its_timers)
{
	for (int stopped = 0; stopped < 2; stopped++) {
		struct world world = make_world();
		struct gate gate = {0};
		struct ww_after *after[] = {after_in(world, HOUR_NS), func_in(world, 0, &gate)};
		struct ww_ticker *ticker;
		OK(ww_ticker_create(&ticker, world.driver, MS));
		pass(world, MS);
		ck_assert_int_eq(ww_driver_destroy(world.driver), WW_EBUSY);
		/* Nothing has changed. */
		OK(ww_ticker_receive(ticker, NULL));
		if (stopped)
			OK(ww_driver_stop(world.driver, NULL, NULL, NULL));
		for (int i = 0; i < 2; i++) {
			OK(ww_after_destroy(after[i]));
			ck_assert_int_eq(ww_driver_destroy(world.driver), WW_EBUSY);
		}
		OK(ww_ticker_destroy(ticker));
		end_world(world);
	}
}
END_TEST

static void sleep_for_long(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct gate *gate = user;

	(void)firing;
	atomic_fetch_add(&gate->came, 1);
	atomic_store(&gate->went, ww_sleep(driver, HOUR_NS));
}

START_TEST(a_sleeping_callback_does_not_hold_up_its_driver)
{
	struct world world = make_world();
	struct gate gate = {0};

	OK(ww_driver_schedule(world.driver, 0, sleep_for_long, &gate, NULL));
	wait_until_came(&gate, 1);
	wait_until_pending(world, 1);
	end_world(world);
	ck_assert_int_eq(gate.went, WW_ECLOSED);
}
END_TEST

TEST_MAIN("after/after", null_is_refused_or_harmless, a_deadline_beyond_the_end_of_time_is_refused_and_changes_nothing,
    a_timer_with_a_function_has_no_channel, a_call_without_memory_changes_nothing,
    a_value_comes_at_its_deadline_and_once, a_value_waits_for_its_receiver,
    each_value_wakes_one_of_many_waiting_threads, without_threads_dispatch_delivers_a_value, stop_in_every_state,
    reset_in_every_state, stop_and_reset_take_an_expiry_out_of_the_queue, destroy_takes_a_pending_timer_back,
    a_function_is_called_at_its_deadline_and_once, a_function_that_runs_is_neither_stopped_nor_waited_for,
    a_function_may_stop_and_reset_its_own_timer, a_function_may_destroy_its_own_timer,
    a_function_that_destroyed_its_timer_goes_on, the_last_call_of_a_function_frees_the_timer_that_it_destroyed,
    destroy_waits_for_the_function, a_function_cannot_start_a_timer_that_is_being_destroyed,
    a_function_cannot_start_a_timer_that_it_destroyed, destroy_in_the_function_of_another_timer_waits_too,
    the_driver_is_not_destroyed_before_its_timers, a_sleeping_callback_does_not_hold_up_its_driver)
