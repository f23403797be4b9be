/* Making a wheel: configuration, memory, and what is refused. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"

static const uint32_t DEFAULT_SLOTS[] = {60, 60, 24, 7};

START_TEST(the_default_is_60_60_24_and_7_slots_of_one_second)
{
	struct ww_wheel_config config;

	memset(&config, 0xA5, sizeof config);
	OK(ww_wheel_config_default(&config));
	ck_assert_uint_eq(config.start, 0);
	ck_assert_uint_eq(config.tick_ns, 1000000000);
	ck_assert_ptr_null(config.allocator);
	ck_assert_uint_eq(config.flags, 0);
	ck_assert_uint_eq(config.levels, 4);
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(config.slots[i], DEFAULT_SLOTS[i]);
	}
}
END_TEST

START_TEST(a_new_wheel_is_empty_stands_at_its_start_and_reaches_a_week)
{
	struct ww_wheel *plain = make(NULL);
	struct ww_wheel *late = make_from(12345);
	struct ww_stats stats;
	uint64_t when = 0;

	ck_assert_uint_eq(ww_wheel_now(plain), 0);
	ck_assert_uint_eq(ww_wheel_now(late), 12345);
	ck_assert_uint_eq(ww_wheel_horizon(plain), WEEK);
	ck_assert_int_eq(ww_wheel_next(plain, &when), 0);
	ck_assert_uint_eq(when, WW_NEVER);
	stats = stats_of(late);
	ck_assert_uint_eq(stats.now, 12345);
	ck_assert_uint_eq(stats.pending, 0);
	ck_assert_uint_eq(stats.outside, 0);
	ck_assert_uint_eq(stats.due, 0);
	ck_assert_uint_eq(stats.scheduled, 0);
	ck_assert_uint_eq(stats.cancelled, 0);
	ck_assert_uint_eq(stats.drained, 0);
	ck_assert_uint_eq(stats.expired, 0);
	ck_assert_uint_eq(stats.demoted, 0);
	ck_assert_uint_eq(go(plain, WW_TIME_MAX), 0);
	unmake(plain);
	unmake(late);
}
END_TEST

START_TEST(an_empty_default_wheel_takes_at_most_16_kib)
{
	struct ww_wheel *wheel = make(NULL);
	size_t bytes = 0;

	OK(ww_wheel_size(NULL, &bytes));
	ck_assert_uint_gt(bytes, 0);
	ck_assert_uint_le(bytes, 16 * 1024);
	ck_assert_uint_eq(stats_of(wheel).bytes, bytes);
	unmake(wheel);
}
END_TEST

START_TEST(a_timer_takes_at_most_48_bytes)
{
	ck_assert_uint_le(sizeof(struct ww_timer), 48);
}
END_TEST

/* Invalid configurations, each a change of the default. */
static const struct {
	const char *name;
	uint64_t start;
	uint64_t tick_ns;
	uint32_t flags;
	uint32_t levels;
	uint32_t slots[WW_LEVELS_MAX];
	int error;
} refused[] = {
    {"no levels", 0, 1, 0, 0, {60, 60, 24, 7, 2, 2}, WW_EINVAL},
    {"one level too many", 0, 1, 0, WW_LEVELS_MAX + 1, {2, 2, 2, 2, 2, 2}, WW_EINVAL},
    {"far too many levels", 0, 1, 0, UINT32_MAX, {2, 2, 2, 2, 2, 2}, WW_EINVAL},
    {"lowest level of no slots", 0, 1, 0, 4, {0, 60, 24, 7, 0, 0}, WW_EINVAL},
    {"lowest level of 1 slot", 0, 1, 0, 4, {1, 60, 24, 7, 0, 0}, WW_EINVAL},
    {"lowest level of 65 slots", 0, 1, 0, 4, {65, 60, 24, 7, 0, 0}, WW_EINVAL},
    {"highest level of 1 slot", 0, 1, 0, 4, {60, 60, 24, 1, 0, 0}, WW_EINVAL},
    {"highest level of 65 slots", 0, 1, 0, 4, {60, 60, 24, 65, 0, 0}, WW_EINVAL},
    {"a level of 2^32 - 1 slots", 0, 1, 0, 4, {60, UINT32_MAX, 24, 7, 0, 0}, WW_EINVAL},
    {"sixth level of 65 slots", 0, 1, 0, 6, {2, 2, 2, 2, 2, 65}, WW_EINVAL},
    {"a tick of no length", 0, 0, 0, 4, {60, 60, 24, 7, 0, 0}, WW_EINVAL},
    {"an unknown flag", 0, 1, 2, 4, {60, 60, 24, 7, 0, 0}, WW_EINVAL},
    {"a known flag with an unknown one", 0, 1, WW_WHEEL_BOUNDED | 0x80000000u, 4, {60, 60, 24, 7, 0, 0}, WW_EINVAL},
    {"a start beyond the last time", WW_TIME_MAX + 1, 1, 0, 4, {60, 60, 24, 7, 0, 0}, WW_EOVERFLOW},
    {"a start at the end of the type", UINT64_MAX, 1, 0, 4, {60, 60, 24, 7, 0, 0}, WW_EOVERFLOW},
};

START_TEST(an_invalid_configuration_is_refused_with_its_error_and_nothing_changes)
{
	_Alignas(64) static unsigned char memory[65536];
	_Alignas(64) static unsigned char copy[65536];

	memset(memory, 0x5A, sizeof memory);
	memcpy(copy, memory, sizeof memory);
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct test_memory counter;
		struct ww_wheel_config config = {.start = refused[i].start,
		    .tick_ns = refused[i].tick_ns,
		    .allocator = &counter.table,
		    .flags = refused[i].flags,
		    .levels = refused[i].levels};
		struct ww_wheel *const marker = (struct ww_wheel *)(void *)memory;
		struct ww_wheel *wheel = marker;
		size_t bytes = 4711;

		test_memory_init(&counter, 0);
		memcpy(config.slots, refused[i].slots, sizeof config.slots);
		ck_assert_msg(ww_wheel_create(&wheel, &config) == refused[i].error, "create: %s", refused[i].name);
		ck_assert_msg(wheel == marker, "create wrote its output: %s", refused[i].name);
		ck_assert_uint_eq(counter.calls, 0);
		ck_assert_msg(ww_wheel_create_at(&wheel, memory, sizeof memory, &config) == refused[i].error,
		    "create_at: %s", refused[i].name);
		ck_assert_msg(wheel == marker, "create_at wrote its output: %s", refused[i].name);
		ck_assert_msg(memcmp(memory, copy, sizeof memory) == 0, "create_at wrote: %s", refused[i].name);
		if (refused[i].error == WW_EINVAL) {
			ck_assert_msg(ww_wheel_size(&config, &bytes) == WW_EINVAL, "size: %s", refused[i].name);
			ck_assert_uint_eq(bytes, 4711);
		}
		ck_assert_uint_gt(strlen(ww_strerror(refused[i].error)), 0);
	}
}
END_TEST

START_TEST(slots_beyond_the_levels_are_ignored)
{
	struct ww_wheel_config config = config_of(2, DEFAULT_SLOTS);
	struct ww_wheel *wheel;

	config.slots[2] = 0;
	config.slots[3] = UINT32_MAX;
	wheel = make(&config);
	ck_assert_uint_eq(ww_wheel_horizon(wheel), HOUR);
	unmake(wheel);
}
END_TEST

START_TEST(a_wheel_can_start_at_the_last_time)
{
	struct ww_wheel *wheel = make_from(WW_TIME_MAX);
	struct ww_timer timer = WW_TIMER_INIT(note);

	ck_assert_int_eq(ww_wheel_schedule(wheel, &timer, 1), WW_EOVERFLOW);
	OK(ww_wheel_schedule(wheel, &timer, 0));
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX), 1);
	unmake(wheel);
}
END_TEST

START_TEST(the_smallest_and_largest_geometries_reach_their_horizon_exactly)
{
	static const uint32_t sizes[] = {2, 3, 60, 63, 64};

	for (uint32_t levels = 1; levels <= WW_LEVELS_MAX; levels++) {
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			uint32_t slots[WW_LEVELS_MAX];
			struct ww_timer timer = WW_TIMER_INIT(note);
			struct ww_wheel_config config;
			struct ww_wheel *wheel;
			uint64_t horizon = 1;

			for (uint32_t k = 0; k < levels; k++) {
				slots[k] = sizes[i];
				horizon *= sizes[i];
			}
			config = config_of(levels, slots);
			config.flags = WW_WHEEL_BOUNDED;
			wheel = make(&config);
			ck_assert_uint_eq(ww_wheel_horizon(wheel), horizon);
			OK(ww_wheel_schedule(wheel, &timer, horizon));
			assert_sound(wheel);
			ck_assert_uint_eq(go(wheel, horizon - 1), 0);
			ck_assert_uint_eq(go(wheel, horizon), 1);
			ck_assert_uint_eq(record[0].now, horizon);
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(the_levels_of_the_statistics_are_those_of_the_configuration)
{
	static const uint32_t slots[] = {3, 5, 7, 64, 2};
	struct ww_wheel_config config = config_of(5, slots);
	struct ww_wheel *wheel = make(&config);
	struct ww_stats stats = stats_of(wheel);
	uint64_t span = 1;

	ck_assert_uint_eq(stats.levels, 5);
	for (uint32_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(stats.level[i].slots, slots[i]);
		ck_assert_uint_eq(stats.level[i].span, span);
		span *= slots[i];
	}
	unmake(wheel);
}
END_TEST

START_TEST(create_allocates_the_size_once_and_destroy_frees_it)
{
	static const uint32_t small[] = {2};
	static const uint32_t large[] = {64, 64, 64, 64, 64, 64};
	struct ww_wheel_config configs[] = {config_of(1, small), config_of(6, large), config_of(4, DEFAULT_SLOTS)};

	for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
		struct test_memory memory;
		struct ww_wheel *wheel;
		struct ww_timer timer = WW_TIMER_INIT(note);
		size_t bytes;

		test_memory_init(&memory, 0);
		configs[i].allocator = &memory.table;
		OK(ww_wheel_size(&configs[i], &bytes));
		ck_assert_uint_eq(memory.calls, 0);
		wheel = make(&configs[i]);
		ck_assert_uint_eq(memory.calls, 1);
		ck_assert_uint_eq(memory.last_size, bytes);
		OK(ww_wheel_schedule(wheel, &timer, 1));
		go(wheel, 100);
		OK(ww_wheel_schedule(wheel, &timer, UINT64_C(1) << 40));
		ck_assert_uint_eq(memory.calls, 1);
		OK(ww_wheel_destroy(wheel));
		ck_assert_uint_eq(memory.blocks, 0);
		ck_assert_uint_eq(memory.bytes, 0);
	}
}
END_TEST

START_TEST(each_failed_allocation_is_reported_and_nothing_leaks)
{
	struct ww_wheel_config config = config_of(4, DEFAULT_SLOTS);
	size_t fail_at = 1;
	int answer;

	do {
		struct test_memory memory;
		struct ww_wheel *wheel = NULL;

		test_memory_init(&memory, fail_at);
		config.allocator = &memory.table;
		answer = ww_wheel_create(&wheel, &config);
		if (answer != WW_OK) {
			ck_assert_int_eq(answer, WW_ENOMEM);
			ck_assert_ptr_null(wheel);
			ck_assert_uint_eq(memory.calls, fail_at);
		} else {
			ck_assert_uint_lt(memory.calls, fail_at);
			OK(ww_wheel_destroy(wheel));
		}
		ck_assert_uint_eq(memory.blocks, 0);
		ck_assert_uint_eq(memory.bytes, 0);
		fail_at++;
	} while (answer != WW_OK);
	ck_assert_uint_ge(fail_at, 3); /* at least one failed */
}
END_TEST

START_TEST(create_at_works_in_the_callers_memory_and_allocates_nothing)
{
	struct test_memory memory;
	struct ww_wheel_config config = config_of(4, DEFAULT_SLOTS);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct placed placed;

	test_memory_init(&memory, 1);
	config.allocator = &memory.table;
	placed = place(&config);
	ck_assert_uint_eq(stats_of(placed.wheel).bytes, placed.size);
	OK(ww_wheel_schedule(placed.wheel, &timer, 7100));
	ck_assert_uint_eq(go(placed.wheel, 7099), 0);
	ck_assert_uint_eq(go(placed.wheel, 7100), 1);
	unplace(&placed);
	ck_assert_uint_eq(memory.calls, 0);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(create_at_takes_memory_of_any_content)
{
	struct placed placed = place(NULL);

	OK(ww_wheel_destroy(placed.wheel));
	memset(placed.memory, 0xA5, placed.size);
	OK(ww_wheel_create_at(&placed.wheel, placed.memory, placed.size, NULL));
	assert_sound(placed.wheel);
	ck_assert_uint_eq(pending_in(placed.wheel), 0);
	unplace(&placed);
}
END_TEST

START_TEST(create_at_refuses_memory_that_is_null_misaligned_or_too_small)
{
	static const size_t off[] = {1, 2, 4, 8, 16, 32, 63};
	size_t size;
	unsigned char *memory;
	unsigned char *copy;
	struct ww_wheel *wheel = NULL;

	OK(ww_wheel_size(NULL, &size));
	memory = aligned_alloc(64, ((size + 63) & ~(size_t)63) + 128);
	copy = malloc(size + 64);
	ck_assert_ptr_nonnull(memory);
	ck_assert_ptr_nonnull(copy);
	memset(memory, 0x5A, size + 64);
	memcpy(copy, memory, size + 64);
	ck_assert_int_eq(ww_wheel_create_at(&wheel, NULL, size, NULL), WW_EINVAL);
	for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
		ck_assert_int_eq(ww_wheel_create_at(&wheel, memory + off[i], size + 64 - off[i], NULL), WW_EINVAL);
	}
	ck_assert_int_eq(ww_wheel_create_at(&wheel, memory, size - 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_wheel_create_at(&wheel, memory, 0, NULL), WW_EINVAL);
	ck_assert_ptr_null(wheel);
	ck_assert_mem_eq(memory, copy, size + 64);
	OK(ww_wheel_create_at(&wheel, memory, size, NULL));
	ck_assert_mem_eq(memory + size, copy + size, 64);
	OK(ww_wheel_destroy(wheel));
	free(memory);
	free(copy);
}
END_TEST

START_TEST(the_configuration_is_copied)
{
	struct ww_wheel_config config = config_of(4, DEFAULT_SLOTS);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_wheel *wheel;

	config.start = 100;
	wheel = make(&config);
	memset(&config, 0xFF, sizeof config);
	OK(ww_wheel_schedule(wheel, &timer, 7100));
	ck_assert_uint_eq(ww_wheel_horizon(wheel), WEEK);
	ck_assert_uint_eq(go(wheel, 7199), 0);
	ck_assert_uint_eq(go(wheel, 7200), 1);
	unmake(wheel);
}
END_TEST

START_TEST(destroy_takes_null_and_touches_no_pending_timer)
{
	static const uint64_t delays[] = {0, 1, 100, 5000, 100000, 900000};
	struct ww_timer timers[6];
	struct ww_timer copies[6];
	struct ww_wheel *wheel = make(NULL);

	OK(ww_wheel_destroy(NULL));
	for (size_t i = 0; i < 6; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(wheel, &timers[i], delays[i]));
	}
	memcpy(copies, timers, sizeof timers);
	OK(ww_wheel_destroy(wheel));
	ck_assert_mem_eq(copies, timers, sizeof timers);

	/* Initialised afresh, they can be used again. */
	wheel = make(NULL);
	for (size_t i = 0; i < 6; i++) {
		OK(ww_timer_init(&timers[i], note));
		ck_assert_int_eq(ww_timer_pending(&timers[i]), 0);
		OK(ww_wheel_schedule(wheel, &timers[i], delays[i]));
	}
	ck_assert_uint_eq(go(wheel, 900000), 6);
	unmake(wheel);
}
END_TEST

START_TEST(wheels_are_independent)
{
	struct ww_wheel *one = make(NULL);
	struct ww_wheel *two = make_from(1000);
	struct ww_timer first = WW_TIMER_INIT(note);
	struct ww_timer second = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(one, &first, 50));
	OK(ww_wheel_schedule(two, &second, 50));
	ck_assert_uint_eq(go(two, 1050), 1);
	ck_assert_int_eq(ww_timer_pending(&first), 1);
	ck_assert_uint_eq(ww_wheel_now(one), 0);
	/* An idle timer may go to another wheel. */
	OK(ww_wheel_schedule(one, &second, 50));
	ck_assert_uint_eq(go(one, 50), 2);
	unmake(one);
	unmake(two);
}
END_TEST

TEST_MAIN("wheel/create", the_default_is_60_60_24_and_7_slots_of_one_second,
    a_new_wheel_is_empty_stands_at_its_start_and_reaches_a_week, an_empty_default_wheel_takes_at_most_16_kib,
    a_timer_takes_at_most_48_bytes, an_invalid_configuration_is_refused_with_its_error_and_nothing_changes,
    slots_beyond_the_levels_are_ignored, a_wheel_can_start_at_the_last_time,
    the_smallest_and_largest_geometries_reach_their_horizon_exactly,
    the_levels_of_the_statistics_are_those_of_the_configuration, create_allocates_the_size_once_and_destroy_frees_it,
    each_failed_allocation_is_reported_and_nothing_leaks, create_at_works_in_the_callers_memory_and_allocates_nothing,
    create_at_takes_memory_of_any_content, create_at_refuses_memory_that_is_null_misaligned_or_too_small,
    the_configuration_is_copied, destroy_takes_null_and_touches_no_pending_timer, wheels_are_independent)
