/* A callback that destroys its own map, and the driver that it runs on. */
/* tier: quick */

#include <sched.h>
#include <stdatomic.h>

#include "tests/lib/core/keyed/fixture.h"
#include "tests/support/seed.h"

struct place {
	struct ww_clock *clock;
	struct ww_driver *driver;
	struct test_memory memory;
	_Atomic int answer;      /* of the destruction */
	_Atomic int after;       /* of a call after it */
	_Atomic int came;        /* callbacks */
	_Atomic int destroyed;   /* maps */
	_Atomic int held;        /* callbacks for "hold" wait while it is set */
	int with_driver;         /* destroy the driver as well */
	_Atomic int driver_gone; /* it answered OK */
};

static void make_place(struct place *place, uint32_t flags)
{
	struct ww_driver_config config;

	*place = (struct place){.answer = 77};
	test_memory_init(&place->memory, 0);
	OK(ww_clock_virtual_create(&place->clock, START, NULL));
	OK(ww_driver_config_default(&config));
	config.clock = place->clock;
	config.flags = flags;
	config.workers = 3;
	config.allocator = &place->memory.table;
	OK(ww_driver_create(&place->driver, &config));
}

static void unmake_place(struct place *place)
{
	if (!place->driver_gone)
		OK(ww_driver_destroy(place->driver));
	OK(ww_clock_virtual_destroy(place->clock));
	ck_assert_uint_eq(place->memory.blocks, 0);
}

static void destroy_own(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	struct place *place = user;

	place->came++;
	if (entry->length == 4 && memcmp(entry->key, "hold", 4) == 0) {
		while (place->held)
			sched_yield();
		/* The map is there until this returns, too. */
		ck_assert_int_eq(ww_keyed_get(keyed, "a", 1, NULL, NULL, NULL), WW_ECLOSED);
		return;
	}
	struct ww_keyed_stats stats;
	size_t count = 9;

	OK(ww_keyed_destroy(keyed));
	place->destroyed++;
	place->after = ww_keyed_set(keyed, "a", 1, NULL, S, NULL, NULL);
	ck_assert_int_eq(ww_keyed_move(keyed, "a", 1, ANY, S), WW_ECLOSED);
	ck_assert_int_eq(ww_keyed_remove(keyed, "a", 1, ANY, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_keyed_get(keyed, "a", 1, NULL, NULL, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_keyed_drain(keyed, NULL, NULL, NULL), WW_ECLOSED);
	OK(ww_keyed_stop(keyed, NULL, NULL, &count));
	ck_assert_uint_eq(count, 0);
	OK(ww_keyed_stats(keyed, &stats));
	OK(ww_keyed_destroy(keyed));
	if (place->with_driver)
		place->driver_gone = ww_driver_destroy(place->driver) == WW_OK;
	/* The key is the callback's until it returns. */
	ck_assert_mem_eq(entry->key, "the key of the destroyer", entry->length);
	place->answer = WW_OK;
}

static struct ww_keyed *make_map(struct place *place)
{
	struct ww_keyed *keyed;

	OK(ww_keyed_create(&keyed, place->driver, &(struct ww_keyed_config){.fn = destroy_own, .user = place}));
	return keyed;
}

static void add(struct ww_keyed *keyed, const char *key, uint64_t delay)
{
	ck_assert_int_eq(ww_keyed_set(keyed, key, strlen(key), NULL, delay, NULL, NULL), 0);
}

START_TEST(a_callback_may_destroy_its_map)
{
	for (uint32_t flags = 0; flags <= WW_DRIVER_THREADLESS; flags++) {
		struct place place;
		make_place(&place, flags);
		struct ww_keyed *keyed = make_map(&place);
		struct ww_keyed *other = make_map(&place);
		add(keyed, "the key of the destroyer", S);
		add(keyed, "a key that is left", 100 * S);
		OK(ww_clock_virtual_advance(place.clock, 3 * S));
		OK(ww_driver_settle(place.driver));
		ck_assert_int_eq(place.answer, WW_OK);
		ck_assert_int_eq(place.after, WW_ECLOSED);
		ck_assert_int_eq(place.came, 1);
		/* Other maps go on. */
		add(other, "the key of the destroyer", S);
		OK(ww_clock_virtual_advance(place.clock, 3 * S));
		OK(ww_driver_settle(place.driver));
		ck_assert_int_eq(place.came, 2);
		unmake_place(&place);
	}
}
END_TEST

START_TEST(the_map_is_freed_when_all_its_callbacks_have_ended)
{
	struct place place;

	make_place(&place, 0);
	place.held = 1;
	struct ww_keyed *keyed = make_map(&place);
	add(keyed, "hold", S);
	add(keyed, "the key of the destroyer", 2 * S);
	OK(ww_clock_virtual_advance(place.clock, S + MS));
	while (place.came != 1)
		sched_yield();
	OK(ww_clock_virtual_advance(place.clock, S));
	while (place.answer != WW_OK)
		sched_yield();
	for (int i = 0; i < 100; i++)
		sched_yield();
	place.held = 0;
	/* The driver can be destroyed at once: it waits for the rest. */
	unmake_place(&place);
	ck_assert_int_eq(place.came, 2);
}
END_TEST

START_TEST(a_callback_may_destroy_its_map_and_then_the_driver_without_threads)
{
	for (int settles = 0; settles < 2; settles++) {
		struct place place;
		make_place(&place, WW_DRIVER_THREADLESS);
		place.with_driver = 1;
		add(make_map(&place), "the key of the destroyer", S);
		OK(ww_clock_virtual_advance(place.clock, 2 * S));
		if (settles)
			ck_assert_int_eq(ww_driver_settle(place.driver), WW_ECLOSED);
		else
			ck_assert_int_eq(ww_driver_dispatch(place.driver, 5), 1);
		ck_assert_int_eq(place.driver_gone, 1);
		unmake_place(&place);
	}
}
END_TEST

START_TEST(maps_are_destroyed_in_callbacks_while_others_are_made)
{
	uint64_t seed = seed_of_run("maps_are_destroyed_in_callbacks_while_others_are_made");
	struct place place;

	make_place(&place, 0);
	for (int i = 1; i <= 200; i++) {
		struct ww_keyed *keyed = make_map(&place);
		/* Those are left: a second callback that destroys the map would use it after its end. */
		for (int n = 0; n < 20; n++) {
			char key[2] = {(char)('a' + n), 0};
			add(keyed, key, 10000 * S + seed_below(&seed, 1000) * MS);
		}
		add(keyed, "the key of the destroyer", seed_below(&seed, 3000) * MS);
		OK(ww_clock_virtual_advance(place.clock, seed_below(&seed, 200) * MS));
		if (i % 10 == 0) {
			OK(ww_clock_virtual_advance(place.clock, 3 * S));
			while (place.destroyed < i)
				sched_yield();
		}
	}
	unmake_place(&place);
	ck_assert_int_eq(place.came, 200);
}
END_TEST

TEST_MAIN("keyed/destroy", a_callback_may_destroy_its_map, the_map_is_freed_when_all_its_callbacks_have_ended,
    a_callback_may_destroy_its_map_and_then_the_driver_without_threads,
    maps_are_destroyed_in_callbacks_while_others_are_made)
