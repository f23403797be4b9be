/*
 * Threads that want the same: one sets the key that is absent, one has the version, and a key that is renamed has one
 * name. ThreadSanitizer runs this test, too.
 */
/* tier: long, threads, no-valgrind */

#include <stdatomic.h>

#include "lib/core/driver/source.h"
#include "tests/lib/core/session/fixture.h"

#define THREADS 4
#define ROUNDS 3000
#define STEPS 5000
#define KEYS 16
#define TOKENS 9

static struct rig rig;
static pthread_barrier_t begin;
static _Atomic int winners;
static _Atomic int deleted;
static _Atomic int faults;
static unsigned run_seed;

static void start(uint32_t shards)
{
	rig_plan_threads(&rig, 2);
	rig.of_map.shards = shards;
	rig.of_map.lifetime = 7000 * SEC;
	rig_open(&rig);
	faults = winners = deleted = 0;
}

static void run_threads(void *(*work)(void *))
{
	uint64_t random = seed_of_run("test_session_races");
	pthread_t thread[THREADS];

	run_seed = (unsigned)seed_next(&random) | 1;
	OK(pthread_barrier_init(&begin, NULL, THREADS));
	for (uintptr_t i = 0; i < THREADS; i++)
		OK(pthread_create(&thread[i], NULL, work, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		OK(pthread_join(thread[i], NULL));
	OK(pthread_barrier_destroy(&begin));
	ck_assert_int_eq(faults, 0);
}

/* In each round all threads set a key that is absent. Those who lose are told who won. */
static void *set_if_absent(void *who)
{
	static const struct ww_session_order order = {.version = WW_SESSION_ABSENT};
	struct ww_session_found found;
	void *there;

	for (int i = 0; i < ROUNDS; i++) {
		(void)pthread_barrier_wait(&begin);
		int answer = ww_session_put(rig.map, &i, sizeof i, who, &order, &found, NULL);
		if (answer != WW_OK && answer != WW_ESTALE)
			faults++;
		if ((answer == WW_OK) != (found.value == who))
			faults++;
		winners += answer == WW_OK;
		if (ww_session_get(rig.map, &i, sizeof i, &there) != 1 || there != found.value)
			faults++;
	}
	return NULL;
}

START_TEST(one_of_the_threads_sets_what_is_absent)
{
	start(3);
	run_threads(set_if_absent);
	ck_assert_int_eq(winners, ROUNDS);
	ck_assert_uint_eq(gone_calls(), 0);
	rig_close(&rig);
}
END_TEST

/* All count in one value. */
static void *count_up(void *who)
{
	struct ww_session_order order = {0};
	struct ww_session_found found;
	void *former;

	(void)who;
	if (ww_session_find(rig.map, "n", 1, &found) != 1)
		faults++;
	for (int i = 0; i < STEPS;) {
		order.version = found.version;
		order.flags = i % 2 ? WW_SESSION_KEEP_END : 0;
		/* If another thread was faster, the answer says where it is now. */
		i += ww_session_put(rig.map, "n", 1, (char *)found.value + 1, &order, &found, &former) == WW_OK;
		if (i % 100 == 0)
			(void)ww_clock_virtual_advance(rig.clock, MS);
		if (i % 64 == 0 && ww_session_refresh(rig.map, "n", 1, 0, NULL) != 1)
			faults++;
	}
	return NULL;
}

START_TEST(a_count_by_version_loses_nothing)
{
	start(1);
	OK(set(&rig, "n", 1, 5000 * SEC));
	run_threads(count_up);
	ck_assert_uint_eq(get(&rig, "n"), 1 + THREADS * STEPS);
	rig_close(&rig);
}
END_TEST

/* A number in memory that its last holder frees: AddressSanitizer and ThreadSanitizer see a use after that. */
struct held {
	_Atomic int holders;
	int number;
};

struct seen {
	struct held *held;
	uint64_t version;
};

static void let_go(struct held *held)
{
	if (held && atomic_fetch_sub(&held->holders, 1) == 1)
		free(held);
}

static void held_gone(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	let_go(value);
	(void)map, (void)key, (void)length, (void)why, (void)user;
}

static int hold(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct seen *seen = context;

	*seen = (struct seen){found->value, found->version};
	seen->held->holders++;
	(void)key, (void)length;
	return 0;
}

static void *count_up_held(void *who)
{
	struct ww_session_order order = {.flags = WW_SESSION_KEEP_END};
	struct seen seen;

	for (int i = 0; i < STEPS;) {
		struct held *next = malloc(sizeof *next);
		if (!next || ww_session_inspect(rig.map, "n", 1, hold, &seen) != 1) {
			faults++;
			free(next);
			break;
		}
		*next = (struct held){1, seen.held->number + 1};
		let_go(seen.held);
		order.version = seen.version;
		if (ww_session_put(rig.map, "n", 1, next, &order, NULL, NULL) == WW_OK)
			i++;
		else
			free(next);
	}
	return who;
}

START_TEST(a_count_in_values_that_are_freed_reads_none_that_was)
{
	struct held *first = malloc(sizeof *first);
	struct seen seen;

	ck_assert_ptr_nonnull(first);
	*first = (struct held){1, 0};
	rig_plan_threads(&rig, 2);
	rig.of_map.gone = held_gone;
	rig.of_map.lifetime = 7000 * SEC;
	rig_open(&rig);
	faults = 0;
	OK(ww_session_set(rig.map, "n", 1, first, 0, NULL));
	run_threads(count_up_held);
	ck_assert_int_eq(ww_session_inspect(rig.map, "n", 1, hold, &seen), 1);
	ck_assert_int_eq(seen.held->number, THREADS * STEPS);
	let_go(seen.held);
	rig_close(&rig);
}
END_TEST

/* Tokens go from key to key. */
static void *move_tokens(void *who)
{
	uint64_t random = (uintptr_t)who * run_seed;
	struct ww_session_found found;

	for (int i = 0; i < STEPS; i++) {
		uint32_t from = (uint32_t)seed_below(&random, KEYS);
		uint32_t to = (uint32_t)seed_below(&random, KEYS);
		int answer = ww_session_rename(rig.map, &from, sizeof from, &to, sizeof to, NULL, NULL, NULL);
		if (answer != WW_OK && answer != (from == to ? WW_EINVAL : WW_ESTALE) && answer != WW_EINUSE)
			faults++;
		winners += answer == WW_OK;
		if (ww_session_find(rig.map, &to, sizeof to, &found) < 0 || gone_calls())
			faults++;
	}
	return NULL;
}

START_TEST(renamed_entries_are_neither_lost_nor_doubled)
{
	for (uint32_t shards = 1; shards < 9; shards += 7) {
		unsigned seen = 0;
		void *value;
		start(shards);
		for (uint32_t i = 0; i < TOKENS; i++)
			OK(ww_session_set(rig.map, &i, sizeof i, (void *)(uintptr_t)(1u << i), 1000 * SEC, NULL));
		run_threads(move_tokens);
		for (uint32_t i = 0; i < KEYS; i++)
			if (ww_session_get(rig.map, &i, sizeof i, &value) == 1) {
				ck_assert_uint_eq(seen & (unsigned)(uintptr_t)value, 0);
				seen |= (unsigned)(uintptr_t)value;
			}
		ck_assert_uint_eq(seen, (1u << TOKENS) - 1);
		ck_assert_uint_eq(stats(&rig).entries, TOKENS);
		ck_assert_int_gt(winners, 0);
		rig_close(&rig);
	}
}
END_TEST

/*
 * In each round one thread sets key 0 and renames it along a chain, and the others delete or look up what they find.
 * Some rounds let it expire meanwhile. Whoever takes the value out is the only one.
 */
static void *rename_against_others(void *who)
{
	uint64_t random = (uintptr_t)who * run_seed;
	uint32_t key;
	uint32_t to;
	void *value;

	for (int i = 0; i < ROUNDS; i++) {
		if (pthread_barrier_wait(&begin) == PTHREAD_BARRIER_SERIAL_THREAD) {
			key = 0;
			if (ww_session_set(rig.map, &key, sizeof key, (void *)(uintptr_t)(i + 1), 5 * MS, NULL))
				faults++;
		}
		(void)pthread_barrier_wait(&begin);
		for (key = 0; key < 6; key++) {
			to = key + 1;
			if ((uintptr_t)who == 1)
				(void)ww_session_rename(rig.map, &key, sizeof key, &to, sizeof to, NULL, NULL, NULL);
			else if ((uintptr_t)who == 2)
				(void)ww_clock_virtual_advance(rig.clock, seed_below(&random, 2) * MS);
			else if (seed_below(&random, 16) == 0 &&
			         ww_session_delete(rig.map, &key, sizeof key, &value) == 1) {
				deleted++;
				if (value != (void *)(uintptr_t)(i + 1))
					faults++;
			} else if (ww_session_get(rig.map, &key, sizeof key, &value) == 1 &&
			           value != (void *)(uintptr_t)(i + 1))
				faults++;
		}
		if (pthread_barrier_wait(&begin) == PTHREAD_BARRIER_SERIAL_THREAD) {
			(void)ww_clock_virtual_advance(rig.clock, 10 * MS);
			if (ww_driver_settle(rig.driver))
				faults++;
		}
	}
	return NULL;
}

START_TEST(a_renamed_entry_is_deleted_or_expires_once)
{
	start(5);
	run_threads(rename_against_others);
	pass(&rig, SEC);
	ck_assert_uint_eq(stats(&rig).entries, 0);
	ck_assert_uint_eq((size_t)deleted + gone_calls(), ROUNDS);
	ck_assert_int_gt(deleted, 0);
	ck_assert_uint_gt(gone_calls(), 0);
	rig_close(&rig);
}
END_TEST

/* Values are handed over once, and to nobody but who asks for their key. The tables grow and shrink meanwhile. */
static _Atomic uint64_t were_set;
static _Atomic uint64_t were_deleted;

static void *use_many(void *who)
{
	enum { MANY = 40 };
	uint64_t random = (uintptr_t)who * run_seed;
	uint32_t key[MANY];
	struct ww_session_item items[MANY];
	size_t found;

	for (int i = 0; i < STEPS / 5; i++) {
		uint64_t which = seed_below(&random, 4);
		size_t count = seed_below(&random, MANY + 1);
		for (size_t k = 0; k < count; k++) {
			key[k] = (uint32_t)seed_below(&random, 100 * KEYS);
			items[k] = (struct ww_session_item){&key[k], sizeof key[k], NULL, -1};
		}
		if (which == 0) {
			for (size_t k = 0; k < count; k++)
				if (ww_session_set(rig.map, &key[k], sizeof key[k], (void *)(key[k] + 1ul), 0, NULL))
					faults++;
			were_set += count;
			(void)ww_clock_virtual_advance(rig.clock, 100 * MS);
			continue;
		}
		int answer = which == 1   ? ww_session_get_many(rig.map, items, count, &found)
		             : which == 2 ? ww_session_refresh_many(rig.map, items, count, 0, &found)
		                          : ww_session_delete_many(rig.map, items, count, &found);
		if (answer)
			faults++;
		for (size_t k = 0; k < count; k++) {
			if (items[k].value != (items[k].result ? (void *)(key[k] + 1ul) : NULL))
				faults++;
			found -= items[k].result == 1;
			were_deleted += which == 3 && items[k].result == 1;
		}
		if (found)
			faults++;
	}
	return NULL;
}

START_TEST(many_keys_in_a_call_from_many_threads)
{
	start(3);
	were_set = were_deleted = 0;
	run_threads(use_many);
	ck_assert_uint_gt(were_deleted, 0);
	rig_close(&rig);
	ck_assert_uint_eq(were_set, were_deleted + gone_calls());
}
END_TEST

/*
 * In the moment before a call has its lock, another gets it: time passes, and that one refreshes the only entry. From then on
 * it has all of its TTL left, whatever time the first had seen before. rules.mk puts these between the map and its locks.
 */
void __real_ww_source_lock(struct timer_source *source);
void __real_ww_source_lock_two(struct timer_source *one, struct timer_source *other);
void __wrap_ww_source_lock(struct timer_source *source);
void __wrap_ww_source_lock_two(struct timer_source *one, struct timer_source *other);

static _Thread_local int overtaken_at; /* the lock before which it happens; 0: none */

static void be_overtaken(void)
{
	if (overtaken_at == 0 || --overtaken_at > 0)
		return;
	(void)ww_clock_virtual_advance(rig.clock, MS);
	ck_assert_int_eq(ww_session_refresh(rig.map, "a", 1, 0, NULL), 1);
}

void __wrap_ww_source_lock(struct timer_source *source)
{
	be_overtaken();
	__real_ww_source_lock(source);
}

void __wrap_ww_source_lock_two(struct timer_source *one, struct timer_source *other)
{
	be_overtaken();
	__real_ww_source_lock_two(one, other);
}

static int call_refresh(void)
{
	return ww_session_refresh(rig.map, "a", 1, 0, NULL) != 1;
}

static int call_refresh_many(void)
{
	struct ww_session_item item = {"a", 1, NULL, 0};

	return ww_session_refresh_many(rig.map, &item, 1, 0, NULL);
}

static int call_set(void)
{
	return ww_session_set(rig.map, "a", 1, NULL, 10 * SEC, NULL);
}

static int call_put(void)
{
	static const struct ww_session_order order = {.ttl = 10 * SEC};

	return ww_session_put(rig.map, "a", 1, NULL, &order, NULL, NULL);
}

static int call_rename(void)
{
	static const struct ww_session_order order = {.ttl = 10 * SEC};

	return ww_session_rename(rig.map, "a", 1, "b", 1, &order, NULL, NULL);
}

START_TEST(no_call_shortens_what_another_has_refreshed)
{
	static int (*const calls[])(void) = {call_refresh, call_refresh_many, call_set, call_put, call_rename};
	struct ww_session_found found;

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		int locks = 1;
		/* A call may lock more than once. */
		for (;; locks++) {
			start(1);
			OK(set(&rig, "a", 1, 10 * SEC));
			overtaken_at = locks;
			OK(calls[i]());
			int was_overtaken = overtaken_at == 0;
			overtaken_at = 0;
			ck_assert_int_eq(ww_session_find(rig.map, calls[i] == call_rename ? "b" : "a", 1, &found), 1);
			ck_assert_uint_eq(found.left, 10 * SEC);
			rig_close(&rig);
			if (!was_overtaken)
				break;
		}
		ck_assert_int_gt(locks, 1);
	}
}
END_TEST

TEST_MAIN("session/races", one_of_the_threads_sets_what_is_absent, a_count_by_version_loses_nothing,
    a_count_in_values_that_are_freed_reads_none_that_was, renamed_entries_are_neither_lost_nor_doubled,
    a_renamed_entry_is_deleted_or_expires_once, many_keys_in_a_call_from_many_threads,
    no_call_shortens_what_another_has_refreshed)
