/* A forked child has a map that refuses all calls and can be destroyed. */
/* tier: check, no-valgrind */

#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/core/session/fixture.h"
#include "tests/support/forking.h"

/* ---- A forked child ------------------------------------------------------------------------------------------- */

static int status_of(pid_t child)
{
	int status = -1;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return status;
}

/* In the child: destroy the map and the driver. 0: all was well. */
static int free_here(struct rig *rig)
{
	size_t before = gone_calls();

	if (ww_session_destroy(rig->map) != WW_OK || ww_driver_destroy(rig->driver) != WW_OK)
		return 2;
	if (gone_calls() != before)
		return 3;
	/* The alarm stays: the virtual clock may be locked. */
	return rig->memory.blocks <= 1 ? 0 : 4;
}

START_TEST(in_a_child_all_is_refused_and_destroy_frees)
{
	struct ww_session_stats unused;
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.lifetime = SEC;
	rig_open(&rig);
	OK(ww_session_recall(rig.map, SEC));
	OK(ww_session_remember(rig.map, "ended", 5, START, START + SEC));
	OK(set(&rig, "a", 1, SEC));
	OK(set(&rig, "a key that is a block of its own", 2, SEC));
	OK(set(&rig, "another key that was a block of its own", 2, SEC));
	ck_assert_int_eq(erase(&rig, "another key that was a block of its own"), 1);
	pid_t child = fork();
	if (child == 0) {
		assert_closed(rig.map);
		_exit(ww_session_stats(rig.map, &unused) == WW_ECLOSED ? free_here(&rig) : 1);
	}
	ck_assert_int_eq(status_of(child), 0);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	rig_close(&rig);
}
END_TEST

static void fork_in_gone(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	pid_t child;

	note(map, key, length, value, why, user);
	child = fork();
	if (child == 0)
		_exit(free_here(user));
	ck_assert_int_eq(status_of(child), 0);
}

START_TEST(a_child_forked_in_gone_can_destroy_too)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.gone = fork_in_gone;
	rig.of_map.user = &rig;
	rig_open(&rig);
	OK(set(&rig, "a key that is a block of its own", 1, SEC));
	OK(set(&rig, "another key that is a block of its own", 2, 0));
	/* gone is called by an expiry, and by a delete. */
	pass(&rig, 2 * SEC);
	ck_assert_uint_eq(gone_calls(), 1);
	ck_assert_int_eq(erase(&rig, "another key that is a block of its own"), 1);
	ck_assert_uint_eq(gone_calls(), 2);
	rig_close(&rig);
}
END_TEST

/* The child has a condition variable with waiting threads that do not exist there. */
static int fork_when_others_wait(const void *key, size_t length, void **value, uint64_t *ttl, void *context)
{
	struct rig *rig = context;
	pid_t child;

	(void)key;
	(void)length;
	(void)ttl;
	while (stats(rig).loads_shared == 0)
		(void)sched_yield();
	child = fork();
	if (child == 0)
		_exit(ww_session_destroy(rig->map) == WW_OK ? 0 : 1);
	ck_assert_int_eq(status_of(child), 0);
	*value = (void *)2;
	return WW_OK;
}

static void *take_a(void *argument)
{
	struct rig *rig = argument;
	void *value = NULL;

	ck_assert(ww_session_take(rig->map, "a", 1, fork_when_others_wait, rig, &value) == 0);
	return value;
}

START_TEST(a_child_can_destroy_although_threads_waited_for_a_loader)
{
	struct rig rig;
	pthread_t thread;
	void *value = NULL;

	rig_start(&rig);
	ck_assert_int_eq(pthread_create(&thread, NULL, take_a, &rig), 0);
	ck_assert_ptr_eq(take_a(&rig), (void *)2);
	ck_assert_int_eq(pthread_join(thread, &value), 0);
	ck_assert_ptr_eq(value, (void *)2);
	rig_close(&rig);
}
END_TEST

/* ---- A child that is forked at each call of the allocator ------------------------------------------------------- */

static struct forking_memory memory;
static uint32_t told;

static void count_gone(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	(void)map;
	(void)key;
	(void)length;
	(void)value;
	(void)why;
	(void)user;
	told++;
}

static void destroy(void *of)
{
	struct rig *rig = of;

	if (ww_session_destroy(rig->map) != WW_OK || ww_driver_destroy(rig->driver) != WW_OK)
		_exit(1);
}

/* One key in eight is a block of its own. */
static size_t name_key(char *key, size_t size, int i)
{
	return (size_t)snprintf(key, size, i % 8 ? "%d" : "%d, which is a long key", i);
}

START_TEST(a_child_destroys_a_map_that_grows_or_shrinks)
{
	enum { KEYS = 1500 };
	struct ww_driver_config config;
	struct ww_session_config map;
	struct rig rig = {0};
	char key[64];

	/* What is exchanged, a block on its way to the pool with its node, and the alarm. */
	forking_init(&memory, 4);
	OK(ww_clock_virtual_create(&rig.clock, START, NULL));
	OK(ww_driver_config_default(&config));
	config.clock = rig.clock;
	config.allocator = &memory.table;
	config.flags = WW_DRIVER_THREADLESS;
	OK(ww_driver_create(&rig.driver, &config));
	OK(ww_session_config_default(&map));
	map.gone = count_gone;
	OK(ww_session_create(&rig.map, rig.driver, &map));
	memory.context = &rig;
	memory.free_all = destroy;
	for (int i = 0; i < KEYS; i++)
		OK(ww_session_set(rig.map, key, name_key(key, sizeof key, i), NULL, SEC, NULL));
	for (int i = 0; i < KEYS / 2; i++)
		ck_assert_int_eq(ww_session_delete(rig.map, key, name_key(key, sizeof key, i), NULL), 1);
	ck_assert_uint_gt(memory.forks, 400);
	/* The others expire, and their records are given back now and then. */
	told = 0;
	pass(&rig, 2 * SEC);
	ck_assert_uint_eq(told, KEYS / 2);
	ck_assert_uint_gt(memory.forks, 500);
	memory.free_all = NULL;
	destroy(&rig);
	OK(ww_clock_virtual_destroy(rig.clock));
	ck_assert_uint_eq(memory.count, 0);
}
END_TEST

TEST_MAIN("session/fork", in_a_child_all_is_refused_and_destroy_frees, a_child_forked_in_gone_can_destroy_too,
    a_child_can_destroy_although_threads_waited_for_a_loader, a_child_destroys_a_map_that_grows_or_shrinks)
