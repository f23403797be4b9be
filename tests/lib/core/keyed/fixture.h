#ifndef TESTS_LIB_CORE_KEYED_FIXTURE_H
#define TESTS_LIB_CORE_KEYED_FIXTURE_H

/* Shared by the tests of keyed maps: a virtual clock, a driver with a map, and a log of the entries handed out. */

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/memory.h"
#include "tests/support/suite.h"
#include "weekwheel/keyed.h"

#define S WW_SECOND
#define MS WW_MILLISECOND
#define ANY WW_KEYED_ANY

/* The time at which clocks begin: not a whole second. */
#define START (1000 * S + 123456789)

#define LOG_MAX 65536
#define LOG_KEY 24

struct logged {
	char key[LOG_KEY]; /* as much of the key as fits, and a 0 */
	void *value;
	uint64_t version;
	uint64_t deadline;
	uint64_t now;
};

struct rig {
	struct ww_clock *clock;
	struct ww_driver *driver;
	struct ww_keyed *keyed;
	pthread_mutex_t lock; /* protects the log */
	size_t count;
	struct logged log[LOG_MAX];
};

/* Write an entry that was handed out to the log. user is the rig. */
static inline void note(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	struct rig *rig = user;
	size_t length = entry->length < LOG_KEY - 1 ? entry->length : LOG_KEY - 1;
	struct logged *logged;

	(void)keyed;
	pthread_mutex_lock(&rig->lock);
	ck_assert_uint_lt(rig->count, LOG_MAX);
	logged = &rig->log[rig->count++];
	memcpy(logged->key, entry->key, length);
	logged->key[length] = '\0';
	logged->value = entry->value;
	logged->version = entry->version;
	logged->deadline = entry->deadline;
	OK(ww_driver_now(rig->driver, &logged->now));
	pthread_mutex_unlock(&rig->lock);
}

/* Like ww_driver_config_default, but without threads and with ticks of a second. */
static inline struct ww_driver_config quiet_config(void)
{
	struct ww_driver_config config;

	OK(ww_driver_config_default(&config));
	config.flags = WW_DRIVER_THREADLESS;
	config.tick_ns = S;
	return config;
}

/* A rig whose map calls fn(keyed, entry, rig). */
static inline struct rig *make_with(const struct ww_driver_config *driver, ww_keyed_fn *fn, uint32_t shards)
{
	struct rig *rig = calloc(1, sizeof *rig);
	struct ww_driver_config config = driver ? *driver : quiet_config();

	ck_assert_ptr_nonnull(rig);
	pthread_mutex_init(&rig->lock, NULL);
	OK(ww_clock_virtual_create(&rig->clock, START, NULL));
	config.clock = rig->clock;
	OK(ww_driver_create(&rig->driver, &config));
	OK(ww_keyed_create(
	    &rig->keyed, rig->driver, &(struct ww_keyed_config){.fn = fn, .user = rig, .shards = shards}));
	return rig;
}

static inline struct rig *make(void)
{
	return make_with(NULL, note, 0);
}

/* Destroys the map too, unless that is gone. */
static inline void unmake(struct rig *rig)
{
	OK(ww_keyed_destroy(rig->keyed));
	OK(ww_driver_destroy(rig->driver));
	OK(ww_clock_virtual_destroy(rig->clock));
	pthread_mutex_destroy(&rig->lock);
	free(rig);
}

static inline void settle(struct rig *rig)
{
	OK(ww_driver_settle(rig->driver));
}

/* Let ns pass at once. */
static inline void pass(struct rig *rig, uint64_t ns)
{
	OK(ww_clock_virtual_advance(rig->clock, ns));
	settle(rig);
}

/* Set the clock to ns after START. */
static inline void come_to(struct rig *rig, uint64_t ns)
{
	OK(ww_clock_virtual_set(rig->clock, START + ns));
	settle(rig);
}

/* ---- Keys that are strings, and values that are numbers */

static inline void *value_of(uint64_t number)
{
	return (void *)(uintptr_t)number;
}

/* The answer of a set whose key is a string. */
static inline int set(struct rig *rig, const char *key, uint64_t value, uint64_t delay)
{
	return ww_keyed_set(rig->keyed, key, strlen(key), value_of(value), delay, NULL, NULL);
}

/* The version after a set, which must succeed. */
static inline uint64_t set_version(struct rig *rig, const char *key, uint64_t value, uint64_t delay)
{
	uint64_t version = 0;

	ck_assert_int_ge(ww_keyed_set(rig->keyed, key, strlen(key), value_of(value), delay, &version, NULL), 0);
	ck_assert_uint_ne(version, 0);
	return version;
}

static inline int move(struct rig *rig, const char *key, uint64_t version, uint64_t delay)
{
	return ww_keyed_move(rig->keyed, key, strlen(key), version, delay);
}

static inline int drop(struct rig *rig, const char *key, uint64_t version)
{
	return ww_keyed_remove(rig->keyed, key, strlen(key), version, NULL);
}

/* Whether the key is in the map. */
static inline int has(struct rig *rig, const char *key)
{
	return ww_keyed_get(rig->keyed, key, strlen(key), NULL, NULL, NULL);
}

/* The value under a key, which must be in the map. */
static inline uint64_t at(struct rig *rig, const char *key)
{
	void *value = NULL;

	ck_assert_int_eq(ww_keyed_get(rig->keyed, key, strlen(key), &value, NULL, NULL), 1);
	return (uint64_t)(uintptr_t)value;
}

static inline struct ww_keyed_stats stats_of(struct rig *rig)
{
	struct ww_keyed_stats stats;

	OK(ww_keyed_stats(rig->keyed, &stats));
	return stats;
}

/* ---- The log of entries handed out */

#define ASSERT_LOGGED(rig, i, KEY, VALUE)                                                                              \
	do {                                                                                                           \
		ck_assert_uint_gt((rig)->count, (i));                                                                  \
		ck_assert_str_eq((rig)->log[i].key, (KEY));                                                            \
		ck_assert_ptr_eq((rig)->log[i].value, value_of(VALUE));                                                \
	} while (0)

/* The clock's time of the first tick that is not before this delay from now. */
static inline uint64_t rounded_up(uint64_t now, uint64_t delay, uint64_t tick)
{
	return (now + delay + tick - 1) / tick * tick;
}

#endif
