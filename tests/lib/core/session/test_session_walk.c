/* Walking and draining: each entry once, with its times, in short locks, next to other threads. */
/* tier: check */

#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/random.h"
#include "tests/lib/core/session/fixture.h"

enum { MANY = 3000 };

/* ---- What a walk has met */

struct met {
	struct rig *rig;
	unsigned times[MANY + 1]; /* by value */
	size_t calls;
	size_t stop_at; /* 0: never */
	int answer;     /* then */
};

static struct met met;

static void forget(struct rig *rig)
{
	met = (struct met){.rig = rig, .answer = -77};
}

/* The i-th key: of every length from 0 to 40, and then some numbers. */
static size_t key_of(uintptr_t i, char key[64])
{
	int length = snprintf(key, 64, "%040" PRIuPTR, i);

	return i <= 40 ? i : (size_t)length;
}

static int meet(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	uintptr_t value = (uintptr_t)found->value;
	char expected[64];

	ck_assert_ptr_eq(context, &met);
	ck_assert_uint_le(value, MANY);
	ck_assert_uint_eq(length, key_of(value, expected));
	ck_assert(memcmp(key, expected, length) == 0);
	met.times[value]++;
	met.calls++;
	return met.calls == met.stop_at ? met.answer : 0;
}

static void set_many(struct rig *rig, uintptr_t from, uintptr_t to)
{
	for (uintptr_t i = from; i < to; i++) {
		char key[64];
		size_t length = key_of(i, key);
		OK(ww_session_set(rig->map, key, length, (void *)i, (i + 1) * SEC, NULL));
	}
}

static void assert_met(uintptr_t from, uintptr_t to, size_t calls)
{
	for (uintptr_t i = from; i < to; i++)
		ck_assert_msg(met.times[i] == 1, "%u times: %u", (unsigned)i, met.times[i]);
	ck_assert_uint_eq(met.calls, calls);
}

/* ---- Walking */

START_TEST(test_each_once)
{
	struct rig rig;
	size_t count = 9;

	rig_plan(&rig);
	rig.of_map.shards = 5;
	rig_open(&rig);
	forget(&rig);
	OK(ww_session_walk(rig.map, meet, &met, &count));
	ck_assert_uint_eq(count, 0);
	set_many(&rig, 0, MANY);
	OK(ww_session_walk(rig.map, meet, &met, &count));
	assert_met(0, MANY, MANY);
	ck_assert_uint_eq(count, MANY);

	/* What has been deleted, and what has expired, told or not, is passed over. */
	for (uintptr_t i = 2000; i < MANY; i++) {
		char key[64];
		size_t length = key_of(i, key);
		ck_assert_int_eq(ww_session_delete(rig.map, key, length, NULL), 1);
	}
	pass(&rig, 500 * SEC);
	step(&rig, 500 * SEC);
	forget(&rig);
	OK(ww_session_walk(rig.map, meet, &met, NULL));
	assert_met(1000, 2000, 1000);
	rig_close(&rig);
}
END_TEST

static int times(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct ww_session_found *to = context;

	(void)length;
	to[*(const char *)key - 'a'] = *found;
	return 0;
}

/* A scan meets as many as a walk, in steps of at most 64; what interrupts it is met again. */
START_TEST(test_scan)
{
	struct rig rig;
	uint64_t cursor = 0;
	size_t steps = 0;

	rig_plan(&rig);
	rig.of_map.shards = 5;
	rig_open(&rig);
	set_many(&rig, 0, MANY);
	ww_clock_virtual_advance(rig.clock, 1000 * SEC);
	forget(&rig);
	met.stop_at = 700;
	do {
		size_t before = met.calls;
		int answer = ww_session_scan(rig.map, &cursor, meet, &met);

		ck_assert_int_eq(answer, met.calls == met.stop_at ? -77 : 0);
		if (answer) {
			for (uintptr_t i = 0; i <= MANY; i++)
				met.times[i] = met.times[i] == 1 ? 1 : 0;
			ck_assert_uint_ne(cursor, 0);
		}
		ck_assert_uint_le(met.calls - before, 64);
		steps++;
	} while (cursor);
	ck_assert_uint_ge(steps, (MANY - 1000) / 64);
	ck_assert_uint_eq(met.calls, MANY - 1000 + 1);
	for (uintptr_t i = 0; i < MANY; i++)
		ck_assert_uint_le(met.times[i], i < 1000 ? 0 : 2);
	/* A cursor from elsewhere does no harm. */
	for (cursor = 1; cursor; cursor <<= 1) {
		uint64_t at = cursor;

		met.stop_at = 0;
		OK(ww_session_scan(rig.map, &at, meet, &met));
	}
	rig_close(&rig);
}
END_TEST

static int take_one(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	(void)meet(key, length, found, context);
	return 1;
}

static void draw(struct rig *rig, uint64_t times)
{
	forget(rig);
	for (uint64_t i = 0; i < times; i++)
		ck_assert_int_eq(ww_session_random(rig->map, random_mix(i + 1), take_one, &met), 1);
}

/* Also when the map had many others once, which have expired or gone. */
START_TEST(test_random)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.shards = 5;
	rig_open(&rig);
	ck_assert_int_eq(ww_session_random(rig.map, 7, take_one, &met), 0);
	ck_assert_int_eq(ww_session_random(rig.map, 7, NULL, &met), WW_EINVAL);
	ck_assert_int_eq(ww_session_random(NULL, 7, take_one, &met), WW_EINVAL);
	set_many(&rig, 0, MANY);
	draw(&rig, 100 * MANY);
	for (uintptr_t i = 0; i < MANY; i++)
		ck_assert_uint_ge(met.times[i], 1);
	/* First the driver has not removed them yet. */
	ww_clock_virtual_advance(rig.clock, (MANY - 4) * SEC);
	for (int is_removed = 0; is_removed < 2; is_removed++) {
		draw(&rig, 1000);
		for (uintptr_t i = 0; i < MANY - 4; i++)
			ck_assert_uint_eq(met.times[i], 0);
		for (uintptr_t i = MANY - 4; i < MANY; i++)
			ck_assert_uint_gt(met.times[i], is_removed ? 150 : 0);
		pass(&rig, 1);
	}
	pass(&rig, 4 * SEC);
	ck_assert_int_eq(ww_session_random(rig.map, 7, take_one, &met), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(test_times)
{
	struct ww_session_found found[3], same;
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.lifetime = 60 * SEC;
	rig.of_map.flags = WW_SESSION_RENEW;
	rig_open(&rig);
	OK(set(&rig, "a", 11, 5 * SEC));
	step(&rig, 3 * SEC + 7);
	OK(set(&rig, "b", 12, 0));
	OK(ww_session_put(rig.map, "c", 1, (void *)13,
	    &(struct ww_session_order){.ttl = 90 * SEC, .lifetime = WW_SESSION_NO_END}, NULL, NULL));
	OK(ww_session_walk(rig.map, times, found, NULL));
	ck_assert_uint_eq((uintptr_t)found[0].value, 11);
	ck_assert_uint_eq(found[0].ttl, 5 * SEC);
	ck_assert_uint_eq(found[0].left, 2 * SEC - 7);
	ck_assert_uint_eq(found[0].end_left, 57 * SEC - 7);
	ck_assert_uint_eq(found[1].left, 10 * SEC);
	ck_assert_uint_eq(found[1].end_left, 60 * SEC);
	ck_assert_uint_eq(found[2].left, 90 * SEC);
	ck_assert_uint_eq(found[2].end_left, WW_SESSION_NO_END);
	/* The walk did not renew. */
	ck_assert_uint_eq(left(&rig, "a"), 2 * SEC - 7);
	ck_assert_int_eq(ww_session_find(rig.map, "b", 1, &same), 1);
	ck_assert_uint_eq(same.version, found[1].version);
	rig_close(&rig);
}
END_TEST

START_TEST(test_no_use)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.limit = 2;
	rig_open(&rig);
	forget(&rig);
	set_many(&rig, 1, 3);
	OK(ww_session_walk(rig.map, meet, &met, NULL));
	set_many(&rig, 3, 4);
	assert_last_gone(1, "0", 1, WW_GONE_EVICTED);
	rig_close(&rig);
}
END_TEST

static int refused(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct rig *rig = context;
	struct ww_session *other;
	size_t count;

	(void)found;
	ck_assert_int_eq(ww_session_set(rig->map, key, length, NULL, 0, NULL), WW_EBUSY);
	ck_assert_int_eq(ww_session_get(rig->map, key, length, NULL), WW_EBUSY);
	ck_assert_int_eq(ww_session_walk(rig->map, refused, rig, &count), WW_EBUSY);
	ck_assert_int_eq(ww_session_drain(rig->map, refused, rig, &count), WW_EBUSY);
	ck_assert_int_eq(ww_session_clear(rig->map, &count), WW_EBUSY);
	ck_assert_int_eq(ww_session_destroy(rig->map), WW_EBUSY);
	ck_assert_int_eq(ww_session_create(&other, rig->driver, NULL), WW_EBUSY);
	return 0;
}

static int interrupt(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	(void)key;
	(void)length;
	(void)found;
	(void)context;
	return 5;
}

START_TEST(test_answers)
{
	struct rig rig;
	uint64_t cursor = 0;
	size_t count = 9;

	rig_start(&rig);
	ck_assert_int_eq(ww_session_walk(NULL, meet, &met, &count), WW_EINVAL);
	ck_assert_int_eq(ww_session_walk(rig.map, NULL, &met, &count), WW_EINVAL);
	ck_assert_int_eq(ww_session_scan(NULL, &cursor, meet, &met), WW_EINVAL);
	ck_assert_int_eq(ww_session_scan(rig.map, NULL, meet, &met), WW_EINVAL);
	ck_assert_int_eq(ww_session_scan(rig.map, &cursor, NULL, &met), WW_EINVAL);
	ck_assert_int_eq(ww_session_drain(NULL, meet, &met, &count), WW_EINVAL);
	ck_assert_int_eq(ww_session_drain(rig.map, NULL, &met, &count), WW_EINVAL);
	ck_assert_uint_eq(count, 9);
	set_many(&rig, 0, 300);
	ck_assert_int_eq(ww_session_scan(rig.map, &cursor, interrupt, NULL), 5);
	ck_assert_uint_ne(cursor, 0);
	OK(ww_session_walk(rig.map, refused, &rig, NULL));
	forget(&rig);
	met.stop_at = 100;
	ck_assert_int_eq(ww_session_walk(rig.map, meet, &met, &count), -77);
	ck_assert_uint_eq(met.calls, 100);
	ck_assert_uint_eq(count, 100);
	forget(&rig);
	met.stop_at = 300;
	met.answer = 4;
	ck_assert_int_eq(ww_session_walk(rig.map, meet, &met, &count), 4);
	ck_assert_uint_eq(get(&rig, "00"), 2);
	rig_close(&rig);
}
END_TEST

/* Moves the clock: the entries of one lock are told at one time. */
static int tick(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct rig *rig = context;
	uint64_t now = (uint64_t)(uintptr_t)found->value * SEC + SEC - found->left;
	static uint64_t last;
	static unsigned of_one_lock;

	(void)key;
	(void)length;
	of_one_lock = met.calls++ && now == last ? of_one_lock + 1 : 1;
	last = now;
	ck_assert_uint_le(of_one_lock, 64);
	step(rig, 1);
	return 0;
}

START_TEST(test_short_locks)
{
	struct rig rig;

	rig_start(&rig);
	forget(&rig);
	set_many(&rig, 1, MANY);
	OK(ww_session_walk(rig.map, tick, &rig, NULL));
	ck_assert_uint_eq(met.calls, MANY - 1);
	rig_close(&rig);
}
END_TEST

static struct rig *closing;

static void gone_while_destroyed(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	note(map, key, length, value, why, user);
	if (!closing)
		return;
	ck_assert_int_eq(ww_session_walk(map, meet, &met, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_session_drain(map, meet, &met, NULL), WW_ECLOSED);
}

START_TEST(test_stopped)
{
	struct rig rig;
	size_t count;
	int status;

	rig_plan(&rig);
	rig.of_map.gone = gone_while_destroyed;
	rig_open(&rig);
	forget(&rig);
	set_many(&rig, 1, 200);
	OK(ww_driver_stop(rig.driver, NULL, NULL, NULL));
	OK(ww_session_walk(rig.map, meet, &met, &count));
	assert_met(1, 200, 199);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(ww_session_walk(rig.map, meet, &met, NULL) == WW_ECLOSED &&
		              ww_session_drain(rig.map, meet, &met, NULL) == WW_ECLOSED
		          ? 0
		          : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	forget(&rig);
	met.stop_at = 150;
	ck_assert_int_eq(ww_session_drain(rig.map, meet, &met, &count), -77);
	ck_assert_uint_eq(count, 150);
	closing = &rig;
	rig_close(&rig);
	closing = NULL;
	ck_assert_uint_eq(gone_calls(), 49);
}
END_TEST

/* ---- Draining */

/* Puts what it gets into another map, and again into this one, where no further drain finds it behind itself. */
static int move(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct rig *other = context;
	const struct ww_session_order order = {.ttl = found->left};

	met.calls++;
	OK(ww_session_put(other->map, key, length, found->value, &order, NULL, NULL));
	ck_assert_int_eq(ww_session_get(met.rig->map, key, length, NULL), 0);
	ck_assert_int_eq(ww_session_destroy(met.rig->map), WW_EBUSY);
	return 0;
}

START_TEST(test_drain)
{
	struct rig rig, other;
	size_t count = 9;

	rig_start(&other);
	rig_start(&rig);
	forget(&rig);
	set_many(&rig, 0, MANY);
	step(&rig, 1000 * SEC);
	OK(ww_session_drain(rig.map, move, &other, &count));
	ck_assert_uint_eq(count, MANY - 1000);
	ck_assert_uint_eq(gone_calls(), 0);
	/* What had expired is still for gone. */
	pass(&rig, MS);
	ck_assert_uint_eq(gone_calls(), 1000);
	ck_assert_uint_eq(stats(&rig).entries, 0);
	forget(&other);
	OK(ww_session_walk(other.map, meet, &met, NULL));
	assert_met(1000, MANY, MANY - 1000);
	ck_assert_uint_eq(left(&other, "0000000000000000000000000000000000002000"), 1001 * SEC);

	/* Its records are free for others. */
	struct ww_session_stats before = stats(&rig);
	set_many(&rig, 0, MANY);
	ck_assert_uint_eq(stats(&rig).entries, MANY);
	ck_assert_uint_le(stats(&rig).bytes, before.bytes + (size_t)200 * MANY);
	rig_close(&rig);
	rig_close(&other);
}
END_TEST

START_TEST(test_drain_stops)
{
	struct rig rig;
	size_t count;

	rig_start(&rig);
	set_many(&rig, 0, 500);
	forget(&rig);
	met.stop_at = 200;
	ck_assert_int_eq(ww_session_drain(rig.map, meet, &met, &count), -77);
	ck_assert_uint_eq(count, 200);
	ck_assert_uint_eq(stats(&rig).entries, 300);
	met.stop_at = 0;
	OK(ww_session_drain(rig.map, meet, &met, &count));
	assert_met(0, 500, 500);
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 0);
}
END_TEST

/* ---- Next to other threads: even numbers stay, odd ones come and go */

static atomic_int done;

static void *change(void *context)
{
	struct rig *rig = context;
	uint64_t state = 7;

	while (!done) {
		uintptr_t i = seed_below(&state, MANY);
		char key[64];
		size_t length = key_of(i, key);
		if (i % 2 == 0)
			ck_assert_int_eq(ww_session_refresh(rig->map, key, length, (i + 2) * SEC, NULL), 1);
		else if (seed_below(&state, 2))
			OK(ww_session_set(rig->map, key, length, (void *)i, (i + 1) * SEC, NULL));
		else
			ck_assert_int_ge(ww_session_delete(rig->map, key, length, NULL), 0);
	}
	return NULL;
}

START_TEST(test_others)
{
	struct rig rig;
	pthread_t thread[2];

	rig_plan_threads(&rig, 2);
	rig.of_map.shards = 3;
	rig_open(&rig);
	set_many(&rig, 0, MANY);
	done = 0;
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, change, &rig), 0);
	for (int round = 0; round < 30; round++) {
		forget(&rig);
		OK(ww_session_walk(rig.map, meet, &met, NULL));
		for (uintptr_t i = 0; i < MANY; i += 2)
			ck_assert_uint_eq(met.times[i], 1);
	}
	done = 1;
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	rig_close(&rig);
}
END_TEST

static atomic_uint handed[MANY];

static int hand(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	(void)key;
	(void)length;
	(void)context;
	atomic_fetch_add(&handed[(uintptr_t)found->value], 1);
	return 0;
}

static void *drain_all(void *context)
{
	struct rig *rig = context;

	OK(ww_session_drain(rig->map, hand, NULL, NULL));
	return NULL;
}

START_TEST(test_two_drains)
{
	struct rig rig;
	pthread_t thread[2];

	rig_plan_threads(&rig, 1);
	rig.of_map.shards = 2;
	rig_open(&rig);
	set_many(&rig, 0, MANY);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, drain_all, &rig), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	for (uintptr_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(handed[i], 1);
	ck_assert_uint_eq(gone_calls(), 0);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/walk", test_each_once, test_scan, test_random, test_times, test_no_use, test_answers,
    test_short_locks, test_stopped, test_drain, test_drain_stops, test_others, test_two_drains)
