#ifndef TESTS_LIB_CORE_SESSION_FIXTURE_H
#define TESTS_LIB_CORE_SESSION_FIXTURE_H

/* Shared by the tests of session maps: a map with its driver on a virtual clock, and a gone that keeps a log. */

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/memory.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "weekwheel/session.h"

#define MS WW_MILLISECOND
#define SEC WW_SECOND

/* Not a multiple of any tick. */
#define START (1000 * SEC + 123456789)

/* ---- The calls of gone ---------------------------------------------------------------------------------------- */

#define GONE_MAX 400000

struct gone_call {
	uintptr_t value;
	enum ww_gone why;
	char key[16]; /* the beginning of the key */
	size_t length;
	uint64_t deadline; /* that gone could ask for, or 0 */
};

static struct gone_call gone_log[GONE_MAX];
static size_t gone_count;
static pthread_mutex_t gone_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void note(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	(void)map;
	(void)user;
	pthread_mutex_lock(&gone_lock);
	if (gone_count < GONE_MAX) {
		struct gone_call *now = &gone_log[gone_count];
		*now = (struct gone_call){.value = (uintptr_t)value, .why = why, .length = length};
		memcpy(now->key, key, length < sizeof now->key ? length : sizeof now->key);
		(void)ww_session_gone_deadline(&now->deadline);
	}
	gone_count++;
	pthread_mutex_unlock(&gone_lock);
}

static inline size_t gone_calls(void)
{
	pthread_mutex_lock(&gone_lock);
	size_t count = gone_count;
	pthread_mutex_unlock(&gone_lock);
	return count;
}

/* The last call of gone. */
static inline void assert_last_gone(size_t count, const char *key, uintptr_t value, enum ww_gone why)
{
	ck_assert_uint_eq(gone_calls(), count);
	const struct gone_call *last = &gone_log[count - 1];
	ck_assert_uint_eq(last->value, value);
	ck_assert_int_eq((int)last->why, (int)why);
	ck_assert_uint_eq(last->length, strlen(key));
	ck_assert_mem_eq(last->key, key, last->length < sizeof last->key ? last->length : sizeof last->key);
}

/* ---- A map ---------------------------------------------------------------------------------------------------- */

struct rig {
	struct ww_clock *clock;
	struct ww_driver *driver;
	struct ww_session *map;
	struct test_memory memory; /* only maps without threads use it */
	struct ww_driver_config of_driver;
	struct ww_session_config of_map;
};

/*
 * Plan a driver without threads with a tick of 1 ms, and a map of one shard with a TTL of 10 s. The test may change the
 * plan.
 */
static inline void rig_plan(struct rig *rig)
{
	*rig = (struct rig){0};
	gone_count = 0;
	test_memory_init(&rig->memory, 0);
	OK(ww_driver_config_default(&rig->of_driver));
	rig->of_driver.flags = WW_DRIVER_THREADLESS;
	rig->of_driver.allocator = &rig->memory.table;
	OK(ww_session_config_default(&rig->of_map));
	rig->of_map.ttl = 10 * SEC;
	rig->of_map.shards = 1;
	rig->of_map.gone = note;
}

static inline void rig_plan_threads(struct rig *rig, uint32_t workers)
{
	rig_plan(rig);
	rig->of_driver.flags = 0;
	rig->of_driver.allocator = NULL;
	rig->of_driver.workers = workers;
}

static inline void rig_driver(struct rig *rig)
{
	OK(ww_clock_virtual_create(&rig->clock, START, NULL));
	rig->of_driver.clock = rig->clock;
	OK(ww_driver_create(&rig->driver, &rig->of_driver));
}

static inline void rig_open(struct rig *rig)
{
	rig_driver(rig);
	OK(ww_session_create(&rig->map, rig->driver, &rig->of_map));
}

static inline void rig_start(struct rig *rig)
{
	rig_plan(rig);
	rig_open(rig);
}

static inline void rig_close(struct rig *rig)
{
	OK(ww_session_destroy(rig->map));
	OK(ww_driver_destroy(rig->driver));
	OK(ww_clock_virtual_destroy(rig->clock));
	ck_assert_uint_eq(rig->memory.blocks, 0);
	ck_assert_uint_eq(rig->memory.bytes, 0);
}

/* ---- Calls with a string for a key and a number for a value ----------------------------------------------------- */

static inline int set(struct rig *rig, const char *key, uintptr_t value, uint64_t ttl)
{
	return ww_session_set(rig->map, key, strlen(key), (void *)value, ttl, NULL);
}

/* 0: not there. The tests use other values. */
static inline uintptr_t get(struct rig *rig, const char *key)
{
	void *value = (void *)77;
	int found = ww_session_get(rig->map, key, strlen(key), &value);

	ck_assert(found == 0 || found == 1);
	ck_assert(found || value == (void *)77);
	return found ? (uintptr_t)value : 0;
}

static inline int refresh(struct rig *rig, const char *key, uint64_t ttl)
{
	return ww_session_refresh(rig->map, key, strlen(key), ttl, NULL);
}

static inline int erase(struct rig *rig, const char *key)
{
	return ww_session_delete(rig->map, key, strlen(key), NULL);
}

/* 0: not there. */
static inline uint64_t left(struct rig *rig, const char *key)
{
	uint64_t ns = 4711;
	int found = ww_session_time_left(rig->map, key, strlen(key), &ns);

	ck_assert(found ? found == 1 && ns > 0 : ns == 4711);
	return found ? ns : 0;
}

static inline struct ww_session_stats stats(struct rig *rig)
{
	struct ww_session_stats now;

	OK(ww_session_stats(rig->map, &now));
	return now;
}

/* Let time pass, and the driver not notice. */
static inline void step(struct rig *rig, uint64_t ns)
{
	OK(ww_clock_virtual_advance(rig->clock, ns));
}

/* Let time pass, and the driver do all that is due. */
static inline void pass(struct rig *rig, uint64_t ns)
{
	step(rig, ns);
	OK(ww_driver_settle(rig->driver));
}

static inline int load_never(const void *key, size_t length, void **value, uint64_t *ttl, void *context)
{
	(void)key;
	(void)length;
	(void)ttl;
	(void)context;
	*value = (void *)5;
	return WW_OK;
}

static inline void look_never(void *value, void *context)
{
	(void)context;
	ck_abort_msg("look is called with %p", value);
}

static inline int inspect_never(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	(void)key;
	(void)length;
	look_never(found->value, context);
	return 0;
}

/* Assert that every function refuses, as after a stop or a destroy, and changes nothing. */
static inline void assert_closed(struct ww_session *map)
{
	struct ww_session_item item = {"a", 1, NULL, 0};
	void *value = map;
	uint64_t ns;
	size_t count = 9;
	struct ww_session_found found = {.version = 9};

	ck_assert_int_eq(ww_session_put(map, "a", 1, NULL, NULL, &found, &value), WW_ECLOSED);
	ck_assert_int_eq(ww_session_find(map, "a", 1, &found), WW_ECLOSED);
	ck_assert_int_eq(ww_session_rename(map, "a", 1, "b", 1, NULL, &found, &value), WW_ECLOSED);
	ck_assert_int_eq(ww_session_delete_if(map, "a", 1, 9, &value), WW_ECLOSED);
	ck_assert_uint_eq(found.version, 9);
	ck_assert_int_eq(ww_session_set(map, "a", 1, NULL, 0, &value), WW_ECLOSED);
	ck_assert_int_eq(ww_session_get(map, "a", 1, &value), WW_ECLOSED);
	ck_assert_int_eq(ww_session_refresh(map, "a", 1, 0, &value), WW_ECLOSED);
	ck_assert_int_eq(ww_session_look(map, "a", 1, look_never, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_session_inspect(map, "a", 1, inspect_never, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_session_time_left(map, "a", 1, &ns), WW_ECLOSED);
	ck_assert_int_eq(ww_session_get_many(map, &item, 1, &count), WW_ECLOSED);
	ck_assert_int_eq(ww_session_refresh_many(map, &item, 1, 0, &count), WW_ECLOSED);
	ck_assert_int_eq(ww_session_delete_many(map, &item, 1, &count), WW_ECLOSED);
	ck_assert_int_eq(ww_session_delete(map, "a", 1, &value), WW_ECLOSED);
	ck_assert_int_eq(ww_session_take(map, "a", 1, load_never, NULL, &value), WW_ECLOSED);
	ck_assert_int_eq(ww_session_clear(map, &count), WW_ECLOSED);
	ck_assert_int_eq(ww_session_ended(map, "a", 1, &ns), WW_ECLOSED);
	ck_assert_int_eq(ww_session_remember(map, "a", 1, 1, UINT64_MAX), WW_ECLOSED);
	ck_assert_int_eq(ww_session_recall(map, 1), WW_ECLOSED);
	ck_assert_ptr_eq(value, map);
	ck_assert_uint_eq(count, 9);
}

#endif
