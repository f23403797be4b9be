#ifndef TESTS_LIB_CORE_SESSION_ORACLE_H
#define TESTS_LIB_CORE_SESSION_ORACLE_H

/*
 * What a session map should have: an array with a place for each key, searched from end to end, and the owner of each
 * value. test_session_oracle.c operates on both.
 */

#include "tests/lib/core/session/fixture.h"

#define KEYS 150
#define OPS 1000000u
#define NO_END WW_SESSION_NO_END

/* The state of a value. */
enum where {
	NOWHERE,
	IN_MAP, /* in the map, expired or not */
	QUEUED, /* expired, and gone will be told in a dispatch */
	OWNED   /* owned by the caller or by gone, for good */
};

struct place {
	int used;
	uintptr_t value;
	uint64_t deadline;
	uint64_t ttl;
	uint64_t use; /* when it was last used, counted in operations */
	uint64_t end; /* of its lifetime, or NO_END */
	uint64_t version;
};

struct oracle {
	struct rig rig;
	uint64_t random;
	uint64_t now;
	uint64_t uses;
	size_t in_map;
	size_t queued;
	uint64_t latest; /* that the clock has been */
	int disorder;    /* a wheel may be ahead of the clock, or have what is due in the order of the calls */
	uint64_t stale;  /* calls that answered WW_ESTALE */
	int exact;       /* the queue is never full: an expired entry leaves in its tick */
	uintptr_t values;
	unsigned char *where; /* of each value */
	unsigned short *key_of;
	unsigned char *seen; /* of each version */
	size_t versions;
	struct place place[KEYS];
	size_t heard; /* of the calls of gone */
};

static struct oracle o;

static inline uint64_t below(uint64_t n)
{
	return seed_below(&o.random, n);
}

/* Keys of many lengths. The number is at the end: long keys share their beginning. */
static inline size_t key_bytes(size_t key, unsigned char *bytes)
{
	static const size_t lengths[] = {0, 1, 2, 8, 15, 16, 17, 24, 300};
	size_t length = key == 0 ? 0 : lengths[1 + key % 8];

	memset(bytes, 0, length);
	if (length)
		bytes[length - 1] = (unsigned char)key;
	return length;
}

/* ---- The calls of gone that the oracle expects ------------------------------------------------------------------- */

/* The next call of gone is for this value, which now has an owner. */
static inline void hears(size_t key, uintptr_t value, enum ww_gone why)
{
	unsigned char bytes[512];
	const struct gone_call *it = &gone_log[o.heard++];

	ck_assert(o.heard <= gone_count);
	ck_assert(it->value == value);
	ck_assert(it->why == why);
	ck_assert(it->length == key_bytes(key, bytes));
	ck_assert(memcmp(it->key, bytes, it->length < 16 ? it->length : 16) == 0);
	ck_assert(o.where[value] == IN_MAP || o.where[value] == QUEUED);
	o.queued -= o.where[value] == QUEUED;
	o.where[value] = OWNED;
}

static inline void hears_no_more(void)
{
	ck_assert(o.heard == gone_count);
	o.heard = gone_count = 0;
}

/* ---- The oracle -------------------------------------------------------------------------------------------------- */

static inline int lives(const struct place *place)
{
	return place->used && place->deadline > o.now;
}

static inline void leave(struct place *place)
{
	place->used = 0;
	o.in_map--;
}

static inline int renews(void)
{
	return (o.rig.of_map.flags & WW_SESSION_RENEW) != 0;
}

/* As the map keeps it. */
static inline uint64_t in_us(uint64_t ttl)
{
	return (ttl + 999) / 1000 * 1000;
}

/* With jitter only the map knows the deadline, which must lie in its range. The end of the lifetime was set. */
static inline void arrive_at_deadline(size_t key, uint64_t ttl)
{
	struct place *place = &o.place[key];
	const struct ww_session_config *config = &o.rig.of_map;
	unsigned char bytes[512];
	uint64_t most = ttl / 1000 * config->jitter;
	uint64_t ns = 0;

	if (most > config->jitter_max)
		most = config->jitter_max;
	uint64_t all = place->end > o.now ? place->end - o.now : 0;

	ck_assert(ww_session_time_left(o.rig.map, bytes, key_bytes(key, bytes), &ns) == (all != 0));
	ck_assert(ns >= (ttl < all ? ttl : all) && ns <= (ttl + most < all ? ttl + most : all));
	place->deadline = all ? o.now + ns : place->end;
	place->ttl = in_us(ttl);
}

static inline uint64_t tick_of(const struct place *place)
{
	uint64_t tick = o.rig.of_driver.tick_ns;

	return (place->deadline + tick - 1) / tick;
}

/* Expired entries leave at the driver's tick. */
static inline void leave_in_tick(void)
{
	uint64_t tick = o.rig.of_driver.tick_ns;

	/* Until the clock comes to where it was, the driver need not look at a wheel that has nothing due. */
	o.disorder = o.disorder && o.now < o.latest;
	for (size_t i = 0; i < KEYS; i++) {
		struct place *place = &o.place[i];
		if (!place->used || tick_of(place) > o.now / tick)
			continue;
		o.where[place->value] = QUEUED;
		o.queued++;
		leave(place);
	}
}

#endif
