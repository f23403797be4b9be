/* K: the time it takes to find an entry by its key and, for a session, to refresh it. */
#include <stdlib.h>
#include <uthash.h>

#include "lib/base/random.h"
#include "lib/base/time.h"
#include "tools/bench/layers.h"
#include "tools/common/memory.h"
#include "weekwheel/weekwheel.h"

#ifdef HAVE_KHASH
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <htslib/khash.h>
#pragma GCC diagnostic pop
#endif

/* Lookups of a pass: just enough for the caches to forget. */
#define LOOKUPS UINT64_C(2000000)
#define IN_A_CALL 16

/* The hits of the lookups. Without it the compiler could leave them out. */
static volatile uint64_t found;

/* ---- The session map, as an application uses it: default driver, default TTL */

/* Refresh sessions in random order. Returns how many were found. */
static uint64_t refresh(struct ww_session *session, uint64_t n, uint64_t seed)
{
	unsigned char key[16];
	uint64_t state = seed, hits = 0;

	for (uint64_t i = 0; i < LOOKUPS; i++) {
		layer_key(random_below(&state, n), seed, key);
		hits += ww_session_refresh(session, key, sizeof key, 0, NULL) == 1;
	}
	return hits;
}

/* The same, this many in a call. */
static uint64_t refresh_many(struct ww_session *session, uint64_t n, uint64_t seed)
{
	unsigned char keys[IN_A_CALL][16];
	struct ww_session_item items[IN_A_CALL];
	uint64_t state = seed, hits = 0;
	size_t live;

	for (uint64_t i = 0; i < LOOKUPS; i += IN_A_CALL) {
		for (size_t k = 0; k < IN_A_CALL; k++) {
			layer_key(random_below(&state, n), seed, keys[k]);
			items[k] = (struct ww_session_item){.key = keys[k], .length = sizeof keys[k]};
		}
		layer_check(ww_session_refresh_many(session, items, IN_A_CALL, 0, &live), "many sessions");
		hits += live;
	}
	return hits;
}

static struct layer_sample measure(
    uint64_t n, uint64_t seed, uint64_t (*lookups)(struct ww_session *session, uint64_t n, uint64_t seed))
{
	struct ww_driver *driver;
	struct ww_session *session;
	struct ww_session_stats before, after;
	unsigned char key[16];
	uint64_t hits, begin;

	layer_check(ww_driver_create(&driver, NULL), "the driver");
	layer_check(ww_session_create(&session, driver, NULL), "the session map");
	layer_check(ww_session_stats(session, &before), "the session map");
	for (uint64_t i = 0; i < n; i++) {
		layer_key(i, seed, key);
		layer_check(ww_session_set(session, key, sizeof key, &session, 0, NULL), "a session");
	}
	begin = time_now(CLOCK_MONOTONIC);
	hits = lookups(session, n, seed);
	double ns = (double)(time_now(CLOCK_MONOTONIC) - begin) / (double)LOOKUPS;
	layer_check(hits == LOOKUPS ? 0 : WW_ESTALE, "a session was lost");
	layer_check(ww_session_stats(session, &after), "the session map");
	layer_check(ww_session_destroy(session), "the session map");
	layer_check(ww_driver_destroy(driver), "the driver");
	return (struct layer_sample){ns, (double)(after.bytes - before.bytes) / (double)n};
}

struct layer_sample layer_session(uint64_t n, uint64_t seed)
{
	return measure(n, seed, refresh);
}

struct layer_sample layer_session_many(uint64_t n, uint64_t seed)
{
	return measure(n, seed, refresh_many);
}

/* ---- uthash */

struct named {
	unsigned char key[16];
	void *value;
	UT_hash_handle hh;
};

struct layer_sample layer_uthash(uint64_t n, uint64_t seed)
{
	struct named *table = NULL;
	struct named *all = memory_zeroed(n, sizeof *all);
	unsigned char key[16];
	uint64_t state = seed, hits = 0, begin;

	for (uint64_t i = 0; i < n; i++) {
		layer_key(i, seed, all[i].key);
		HASH_ADD(hh, table, key, sizeof all[i].key, &all[i]);
	}
	begin = time_now(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < LOOKUPS; i++) {
		struct named *hit;
		layer_key(random_below(&state, n), seed, key);
		HASH_FIND(hh, table, key, sizeof key, hit);
		hits += hit != NULL;
	}
	double ns = (double)(time_now(CLOCK_MONOTONIC) - begin) / (double)LOOKUPS;
	found = hits;
	HASH_CLEAR(hh, table);
	free(all);
	return (struct layer_sample){ns, 0};
}

/* ---- khash: open addressing, keys and values in arrays */

#ifdef HAVE_KHASH
/*
 * Two words, as they were written. A processor holds up a copy of all 16 bytes until the writes have left it, and
 * khash's lookups would not overlap.
 */
typedef struct {
	uint64_t words[2];
} named_key;

/* The keys look random: any half of one is a hash. The session map must hash, and has no such advantage. */
#define khash_of(key) ((khint_t)(key).words[0])
#define khash_same(one, other) ((one).words[0] == (other).words[0] && (one).words[1] == (other).words[1])
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-function"
KHASH_INIT(names, named_key, void *, 1, khash_of, khash_same)
#pragma GCC diagnostic pop

struct layer_sample layer_khash(uint64_t n, uint64_t seed)
{
	khash_t(names) *table = kh_init(names);
	named_key key;
	uint64_t state = seed, hits = 0, begin;
	int added;

	for (uint64_t i = 0; i < n; i++) {
		layer_key(i, seed, (unsigned char *)key.words);
		khint_t at = kh_put(names, table, key, &added);
		kh_val(table, at) = &key;
	}
	begin = time_now(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < LOOKUPS; i++) {
		layer_key(random_below(&state, n), seed, (unsigned char *)key.words);
		khint_t at = kh_get(names, table, key);
		hits += at != kh_end(table) && kh_val(table, at) != NULL;
	}
	double ns = (double)(time_now(CLOCK_MONOTONIC) - begin) / (double)LOOKUPS;
	found = hits;
	kh_destroy(names, table);
	return (struct layer_sample){ns, 0};
}
#endif
