/* Handles and the memory behind them. A stale handle is refused for ever, as is any number that is no handle. */
/* tier: quick, threads */

#include "tests/lib/core/driver/fixture.h"

/* Every function answers that the handle is stale. */
static void assert_stale(ww_handle handle)
{
	uint64_t left = 12345;

	ck_assert(ww_driver_cancel(driver, handle) == WW_ESTALE);
	ck_assert(ww_driver_cancel_wait(driver, handle) == WW_ESTALE);
	ck_assert(ww_driver_reschedule(driver, handle, 0) == WW_ESTALE);
	ck_assert(ww_driver_time_left(driver, handle, &left) == WW_ESTALE);
	ck_assert(left == 12345);
}

START_TEST(a_handle_is_stale_once_its_timer_has_fired_or_was_cancelled)
{
	begin(0, 2);
	ww_handle one = after(TICK, note, NULL);
	ww_handle other = after(TICK, note, NULL);
	ck_assert_uint_ne(one, other);
	ck_assert_int_eq(ww_driver_cancel(driver, other), 1);
	assert_stale(other);
	go(2 * TICK);
	ck_assert_uint_eq(times_fired(one), 1);
	assert_stale(one);
	assert_stale(other);
	/* Also when another timer has the memory. */
	for (int i = 0; i < 2000; i++) {
		ww_handle next = after(i % 2 ? TICK : DAY_NS, note, NULL);
		ck_assert(next != one && next != other);
		assert_stale(one);
		assert_stale(other);
		if (i % 2)
			ck_assert(ww_driver_cancel(driver, next) == 1);
	}
	end();
}
END_TEST

START_TEST(numbers_that_never_were_handles_are_refused)
{
	static const ww_handle numbers[] = {0, 1, 2, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(511) << 32 | 1,
	    UINT64_C(512) << 32 | 1, UINT64_C(1) << 58, UINT64_C(63) << 58 | 1, (UINT64_C(1) << 58) - 1, UINT64_MAX - 1,
	    UINT64_MAX};

	begin(0, 2);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
			assert_stale(numbers[i]);
		(void)after_elsewhere(DAY_NS, note, NULL);
	}
	ck_assert_uint_eq(stats_of().pending, 1 + 1);
	end();
}
END_TEST

START_TEST(every_number_that_differs_in_one_bit_from_a_handle_is_refused)
{
	begin(0, 2);
	ww_handle handle = after(DAY_NS, note, NULL);
	for (int bit = 0; bit < 64; bit++)
		assert_stale(handle ^ UINT64_C(1) << bit);
	ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
	end();
}
END_TEST

START_TEST(random_and_stale_handles_harm_nothing)
{
	static ww_handle live[500];
	static ww_handle stale[5000];
	uint64_t seed = seed_of_run("test_driver_handle");
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);
	size_t stales = 0;
	uint64_t left;

	config.shards = 3;
	begin_with(&config);
	for (size_t i = 0; i < 500; i++)
		live[i] = after(DAY_NS, note, NULL);
	for (int step = 0; step < 200000; step++) {
		ww_handle handle = seed_next(&seed);
		size_t at = seed_below(&seed, 500);
		switch (seed_below(&seed, 4)) {
		case 0:
			break;
		case 1: /* close to live handles */
			handle = (handle & (UINT64_C(3) << 58 | UINT64_C(0x7ff) << 32 | 0xf)) + (seed_next(&seed) & 1);
			break;
		case 2:
			handle = stales ? stale[seed_below(&seed, stales < 5000 ? stales : 5000)] : 0;
			break;
		default:
			ck_assert(ww_driver_cancel(driver, live[at]) == 1);
			stale[stales++ % 5000] = live[at];
			live[at] = after(seed_below(&seed, DAY_NS), note, NULL);
			continue;
		}
		int found = 0;
		for (size_t i = 0; i < 500; i++)
			found |= live[i] == handle;
		if (found)
			ck_assert(ww_driver_time_left(driver, handle, &left) == 1);
		else
			assert_stale(handle);
	}
	ck_assert_uint_eq(stats_of().pending, 500);
	for (size_t i = 0; i < 500; i++)
		ck_assert_int_eq(ww_driver_cancel(driver, live[i]), 1);
	end();
}
END_TEST

START_TEST(a_record_without_further_generations_is_not_used_again)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);
	ww_handle last[3];

	begin_with(&config);
	/* One ends by a cancel, one fires, one is cancelled while it runs. */
	for (int i = 0; i < 3; i++) {
		ww_handle handle = after(TICK, note, NULL);
		struct timer_record *record = slab_at(&driver->shards[0].slab, (uint32_t)(handle >> HANDLE_INDEX));
		ck_assert_uint_eq(record->generation, (uint32_t)handle);
		ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
		record->generation = UINT32_MAX - 1;
		last[i] = after(TICK, note, NULL);
		ck_assert_uint_eq((uint32_t)last[i], UINT32_MAX);
		ck_assert_uint_eq(last[i] >> 32, handle >> 32);
		if (i != 1)
			ck_assert_int_eq(ww_driver_cancel(driver, last[i]), 1);
		else
			go(2 * TICK);
	}
	ck_assert_uint_eq(records_taken(0), 3);
	for (uint32_t i = 0; i < 3 * SLAB_CHUNK; i++) {
		ww_handle handle = after(DAY_NS, note, NULL);
		for (int n = 0; n < 3; n++)
			ck_assert(handle >> 32 != last[n] >> 32);
		ck_assert((uint32_t)handle != 0);
	}
	for (int i = 0; i < 3; i++)
		assert_stale(last[i]);
	end();
}
END_TEST

START_TEST(an_overlapping_call_of_a_timer_has_no_handle)
{
	struct gate gate;
	ww_handle number = 0;

	gate_init(&gate);
	begin(0, 2);
	ww_handle handle = every(0, DAY_NS, WW_EVERY_OVERLAP, hold, &gate);
	struct shard *shard = &driver->shards[handle >> HANDLE_SHARD];
	advance(TICK);
	gate_wait(&gate, 1);
	for (uint32_t i = 0; i < slab_end(&shard->slab); i++) {
		const struct timer_record *record = slab_at(&shard->slab, i);
		if (record->state == RECORD_RUNNING)
			number =
			    (uint64_t)record->shard << HANDLE_SHARD | (uint64_t)i << HANDLE_INDEX | record->generation;
	}
	ck_assert_uint_ne(number, 0);
	ck_assert_uint_ne(number, handle);
	assert_stale(number);
	gate_open(&gate, 1);
	settle();
	assert_stale(number);
	ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
	end();
}
END_TEST

/* ---- Memory */

START_TEST(after_reserve_scheduling_allocates_nothing)
{
	static ww_handle handle[10000];
	struct ww_driver_config config = config_of(0, 2);
	struct test_memory memory;

	test_memory_init(&memory, 0);
	config.allocator = &memory.table;
	begin_with(&config);
	OK(ww_driver_reserve(driver, 0));
	OK(ww_driver_reserve(driver, 10000));
	size_t calls = memory.calls;
	size_t bytes = memory.bytes;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 10000; i++)
			ck_assert(ww_driver_schedule(driver, (i % 7) * TICK, note, NULL, &handle[i]) == WW_OK);
		for (size_t i = 0; i < 5000; i++)
			ck_assert(ww_driver_cancel(driver, handle[i]) == 1);
		fired_count = 0;
		go(10 * TICK);
		ck_assert_uint_eq(fired_count, 5000);
	}
	ck_assert_uint_eq(memory.calls, calls);
	ck_assert_uint_eq(memory.bytes, bytes);
	end();
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(a_reserve_that_fails_changes_nothing)
{
	struct ww_driver_config config = config_of(0, 2);
	struct test_memory memory;

	test_memory_init(&memory, 0);
	config.allocator = &memory.table;
	begin_with(&config);
	uint64_t bytes = stats_of().bytes;
	ck_assert_int_eq(ww_driver_reserve(driver, ((size_t)1 << 26) + 1), WW_ENOMEM);
	ck_assert_int_eq(ww_driver_reserve(driver, SIZE_MAX), WW_ENOMEM);
	for (size_t fail = 1; fail <= 4; fail++) {
		memory.fail_at = memory.calls + fail;
		ck_assert_int_eq(ww_driver_reserve(driver, 2000), WW_ENOMEM);
		ck_assert_uint_eq(stats_of().bytes, bytes);
	}
	memory.exhausted = 1;
	ww_handle handle = 5;
	ck_assert_int_eq(ww_driver_schedule(driver, 0, note, NULL, &handle), WW_ENOMEM);
	ck_assert_int_eq(ww_driver_schedule_every(driver, 0, 1, 0, note, NULL, &handle), WW_ENOMEM);
	ck_assert_uint_eq(handle, 5);
	ck_assert_uint_eq(stats_of().scheduled, 0);
	ck_assert_uint_eq(stats_of().bytes, bytes);
	memory.exhausted = 0;
	handle = after(TICK, note, NULL);
	go(2 * TICK);
	ck_assert_uint_eq(times_fired(handle), 1);
	end();
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(the_record_of_a_cancelled_timer_is_reused_at_once)
{
	static ww_handle handle[1000];
	uint64_t seed = seed_of_run("test_driver_handle");
	struct ww_driver_config config = config_of(0, 2);
	struct test_memory memory;

	test_memory_init(&memory, 0);
	config.allocator = &memory.table;
	begin_with(&config);
	for (size_t i = 0; i < 1000; i++)
		handle[i] = after(DAY_NS, note, NULL);
	uint64_t bytes = stats_of().bytes;
	size_t calls = memory.calls;
	for (int i = 0; i < 200000; i++) {
		size_t at = seed_below(&seed, 1000);
		ck_assert(ww_driver_cancel(driver, handle[at]) == 1);
		ck_assert(ww_driver_schedule(driver, DAY_NS, note, NULL, &handle[at]) == WW_OK);
	}
	ck_assert_uint_eq(stats_of().bytes, bytes);
	ck_assert_uint_eq(memory.calls, calls);
	ck_assert_uint_eq(stats_of().pending, 1000);
	end();
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(a_call_without_memory_is_counted_as_dropped_and_reported_as_missed)
{
	struct ww_driver_config config = config_of(0, 2);
	struct test_memory memory;

	test_memory_init(&memory, 0);
	config.allocator = &memory.table;
	begin_with(&config);
	OK(ww_driver_reserve(driver, SLAB_CHUNK));
	ww_handle handle = every(TICK, 10 * TICK, WW_EVERY_OVERLAP, note, NULL);
	/* No record is left for a call. */
	for (uint32_t i = 1; i < SLAB_CHUNK; i++)
		(void)after(DAY_NS, note, NULL);
	memory.exhausted = 1;
	go(2 * TICK);
	go(10 * TICK);
	ck_assert_uint_eq(fired_count, 0);
	ck_assert_uint_eq(stats_of().dropped, 2);
	memory.exhausted = 0;
	go(10 * TICK);
	ck_assert_uint_eq(times_fired(handle), 1);
	ck_assert_uint_eq(fired[0].missed, 2);
	end();
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

TEST_MAIN("driver/handle", an_overlapping_call_of_a_timer_has_no_handle,
    a_handle_is_stale_once_its_timer_has_fired_or_was_cancelled, numbers_that_never_were_handles_are_refused,
    every_number_that_differs_in_one_bit_from_a_handle_is_refused, random_and_stale_handles_harm_nothing,
    a_record_without_further_generations_is_not_used_again, after_reserve_scheduling_allocates_nothing,
    a_reserve_that_fails_changes_nothing, the_record_of_a_cancelled_timer_is_reused_at_once,
    a_call_without_memory_is_counted_as_dropped_and_reported_as_missed)
