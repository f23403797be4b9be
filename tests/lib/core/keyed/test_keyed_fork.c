/* A child of fork can destroy a map, whatever the parent was just doing with its memory. */
/* tier: check, no-valgrind (it looks at the child of a process with threads) */

#include <stdio.h>

#include "tests/lib/core/keyed/fixture.h"
#include "tests/support/forking.h"

#define KEYS 1500

static struct forking_memory memory;

static void destroy(void *of)
{
	struct rig *rig = of;

	if (ww_keyed_destroy(rig->keyed) != WW_OK || ww_driver_destroy(rig->driver) != WW_OK)
		_exit(1);
}

/* One key in eight is a block of its own. */
static size_t name_key(char *key, size_t size, int i)
{
	int length = snprintf(key, size, i % 8 ? "%d" : "%d, which is a long key", i);

	return (size_t)length;
}

START_TEST(a_child_destroys_a_map_that_grows_or_shrinks)
{
	static struct rig rig;
	struct ww_driver_config config;
	char key[64];

	/* What is exchanged, and the alarm, which stays as the virtual clock may be locked. */
	forking_init(&memory, 3);
	OK(ww_clock_virtual_create(&rig.clock, START, NULL));
	OK(ww_driver_config_default(&config));
	config.clock = rig.clock;
	config.allocator = &memory.table;
	config.flags = WW_DRIVER_THREADLESS;
	OK(ww_driver_create(&rig.driver, &config));
	OK(ww_keyed_create(&rig.keyed, rig.driver, &(struct ww_keyed_config){.fn = note, .user = &rig}));
	memory.context = &rig;
	memory.free_all = destroy;
	for (int i = 0; i < KEYS; i++)
		ck_assert_int_eq(ww_keyed_set(rig.keyed, key, name_key(key, sizeof key, i), NULL, S, NULL, NULL), 0);
	for (int i = 0; i < KEYS / 2; i++)
		OK(ww_keyed_remove(rig.keyed, key, name_key(key, sizeof key, i), ANY, NULL));
	ck_assert_uint_gt(memory.forks, 400);
	/* The others fire, and their records are given back now and then. */
	pass(&rig, 2 * S);
	ck_assert_uint_eq(rig.count, KEYS / 2);
	ck_assert_uint_gt(memory.forks, 500);
	memory.free_all = NULL;
	destroy(&rig);
	OK(ww_clock_virtual_destroy(rig.clock));
	ck_assert_uint_eq(memory.count, 0);
}
END_TEST

TEST_MAIN("keyed/fork", a_child_destroys_a_map_that_grows_or_shrinks)
