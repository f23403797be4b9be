/*
 * Threads set, put, get, refresh, rename, look, take, delete and clear the same few keys while time passes and workers expire them.
 * Each value is counted: it must be handed over exactly once. ThreadSanitizer runs this test, too.
 */
/* tier: quick, threads, no-valgrind */

#include <stdatomic.h>

#include "tests/lib/core/session/fixture.h"

#define THREADS 4
#define OPS 50000
#define KEYS 24
#define KEY_MAX 40

/* A value that is set or loaded. */
struct counted {
	_Atomic int owners;
	_Atomic uint64_t latest; /* when it has surely expired, unless it was refreshed */
	int freed;               /* written by its owner alone: ThreadSanitizer would see a second owner */
};

static struct counted counted[THREADS][OPS];
static _Atomic int faults;
static _Atomic int threads_done;
static struct rig rig;

static void own(struct counted *value)
{
	if (atomic_fetch_add(&value->owners, 1))
		faults++;
	value->freed = 1;
}

static void gone(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	(void)key;
	(void)user;
	if (map != rig.map || length > 40 || why > WW_GONE_CLEARED)
		faults++;
	own(value);
	if (why == WW_GONE_EXPIRED && length == 3 && (uintptr_t)value / sizeof(struct counted) % 64 == 0)
		(void)sched_yield();
}

struct worker {
	pthread_t thread;
	unsigned number;
	unsigned op;
	uint64_t random;
	uint64_t ttl;
};

static struct counted *new_value(struct worker *worker)
{
	struct counted *value = &counted[worker->number][worker->op];

	value->latest = UINT64_MAX;
	return value;
}

static uint64_t now(void)
{
	uint64_t ns = 0;

	(void)ww_clock_now(rig.clock, &ns);
	return ns;
}

static void op_set(struct worker *worker, const char *key, size_t length)
{
	struct counted *value = new_value(worker);
	void *former = NULL;
	int want = (int)seed_below(&worker->random, 2);
	int answer = ww_session_set(rig.map, key, length, value, worker->ttl, want ? &former : NULL);

	if (answer != WW_OK && answer != WW_ECLOSED)
		faults++;
	if (answer != WW_OK)
		own(value);
	else
		value->latest = now() + worker->ttl;
	if (former)
		own(former);
}

/* Keys with an even number are never refreshed: their values expire at a known time. */
static void op_get(const char *key, size_t length, int even)
{
	uint64_t before = now();
	void *found = NULL;
	int answer = ww_session_get(rig.map, key, length, &found);

	if (answer == 1 && even && ((struct counted *)found)->latest <= before)
		faults++;
	if (answer < 0 && answer != WW_ECLOSED)
		faults++;
}

static void look(void *value, void *context)
{
	const struct counted *seen = value;

	(void)context;
	if (seen->owners || seen->freed)
		faults++;
}

static int load(const void *key, size_t length, void **value, uint64_t *ttl, void *context)
{
	struct worker *worker = context;

	(void)key;
	(void)length;
	if (worker->random % 64 == 0)
		(void)sched_yield();
	if (worker->random % 5 == 0)
		return -99;
	*value = new_value(worker);
	*ttl = worker->ttl;
	return WW_OK;
}

static void op_take(struct worker *worker, const char *key, size_t length)
{
	void *found = NULL;
	int answer = ww_session_take(rig.map, key, length, load, worker, &found);

	if (answer >= 0 ? found == NULL || answer > 1 : answer != WW_ECLOSED && answer != -99)
		faults++;
}

static void op_delete(struct worker *worker, const char *key, size_t length)
{
	void *found = NULL;
	int want = (int)seed_below(&worker->random, 2);
	int answer = ww_session_delete(rig.map, key, length, want ? &found : NULL);

	if (want && answer == 1)
		own(found);
}

/* Sets if absent, or with the version that was just there. */
static void op_put(struct worker *worker, const char *key, size_t length)
{
	struct ww_session_found found = {.version = WW_SESSION_ABSENT};
	struct ww_session_order order = {.ttl = worker->ttl};
	struct counted *value = new_value(worker);
	void *former = NULL;

	if (seed_below(&worker->random, 3))
		(void)ww_session_find(rig.map, key, length, &found);
	order.version = found.version;
	int answer = ww_session_put(rig.map, key, length, value, &order, &found, &former);
	if (answer != WW_OK && answer != WW_ESTALE && answer != WW_ECLOSED)
		faults++;
	if (answer != WW_OK)
		own(value);
	else
		value->latest = now() + worker->ttl;
	if (answer == WW_OK && (found.value != value || found.version == order.version))
		faults++;
	if (former)
		own(former);
}

/* A key of the number, in a buffer of KEY_MAX bytes. Returns its length. */
static size_t make_key(char *key, size_t number)
{
	size_t length = number % 3 ? 3 : KEY_MAX;

	(void)snprintf(key, KEY_MAX, "a long key, so that it is a block");
	(void)snprintf(key + length - 3, 3, "%02u", (unsigned)number);
	return length;
}

static void op_rename(struct worker *worker, size_t number, const char *key, size_t length)
{
	struct ww_session_order order = {.flags = seed_below(&worker->random, 2) ? WW_SESSION_REPLACE : 0};
	char to[KEY_MAX];
	size_t to_length = make_key(to, (number + 2 * seed_below(&worker->random, KEYS / 2)) % KEYS);
	void *former = NULL;
	int want = (int)seed_below(&worker->random, 2);
	int answer = ww_session_rename(rig.map, key, length, to, to_length, &order, NULL, want ? &former : NULL);

	if (answer != WW_OK && answer != WW_ESTALE && answer != WW_EINUSE && answer != WW_EINVAL &&
	    answer != WW_ECLOSED)
		faults++;
	if (former)
		own(former);
}

static void operate(struct worker *worker)
{
	char key[KEY_MAX];
	size_t number = (size_t)seed_below(&worker->random, KEYS);
	size_t length = make_key(key, number);
	struct ww_session_found found = {0};
	uint64_t ns;

	worker->ttl = 1 + seed_below(&worker->random, 20 * MS);
	switch (seed_below(&worker->random, 22)) {
	case 0:
	case 1:
	case 2:
	case 3:
		op_set(worker, key, length);
		break;
	case 4:
	case 5:
	case 6:
		op_get(key, length, number % 2 == 0);
		break;
	case 7:
	case 8:
		if (number % 2)
			(void)ww_session_refresh(rig.map, key, length, worker->random % 2 ? worker->ttl : 0, NULL);
		break;
	case 9:
	case 10:
		op_delete(worker, key, length);
		break;
	case 11:
		(void)ww_session_look(rig.map, key, length, look, NULL);
		break;
	case 12:
		(void)ww_session_time_left(rig.map, key, length, &ns);
		break;
	case 13:
		(void)ww_clock_virtual_advance(rig.clock, seed_below(&worker->random, 2 * MS));
		break;
	case 14:
	case 15:
		op_put(worker, key, length);
		break;
	case 16:
	case 17:
	case 18:
		op_rename(worker, number, key, length);
		break;
	case 19:
		if (ww_session_find(rig.map, key, length, &found) == 1)
			(void)ww_session_delete_if(rig.map, key, length, found.version, NULL);
		break;
	default:
		op_take(worker, key, length);
	}
	if (worker->op % 1000 == 999)
		(void)ww_session_clear(rig.map, NULL);
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	for (worker->op = 0; worker->op < OPS; worker->op++)
		operate(worker);
	threads_done++;
	return NULL;
}

static void race(size_t limit, uint32_t shards, size_t queue, int stop)
{
	uint64_t random = seed_of_run("test_session_threads");
	struct worker worker[THREADS] = {0};
	size_t sets = 0;

	rig_plan_threads(&rig, 3);
	rig.of_driver.queue = queue;
	rig.of_map.gone = gone;
	rig.of_map.limit = limit;
	if (limit)
		rig.of_map.flags |= WW_SESSION_ADMIT;
	rig.of_map.shards = shards;
	rig_open(&rig);
	faults = threads_done = 0;
	memset(counted, 0, sizeof counted);
	for (unsigned i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){.number = i, .random = seed_next(&random)};
		OK(pthread_create(&worker[i].thread, NULL, work, &worker[i]));
	}
	for (unsigned i = 0; threads_done < THREADS; i++) {
		ck_assert(ww_clock_virtual_advance(rig.clock, seed_below(&random, 3 * MS)) == WW_OK);
		if (stop && i == 200)
			OK(ww_driver_stop(rig.driver, NULL, NULL, NULL));
		(void)stats(&rig);
		(void)sched_yield();
	}
	for (unsigned i = 0; i < THREADS; i++)
		OK(pthread_join(worker[i].thread, NULL));
	if (!stop)
		pass(&rig, MS);
	struct ww_session_stats end = stats(&rig);
	printf("test_session_threads: %" PRIu64 " expired, %" PRIu64 " evicted, %" PRIu64 " loads, %" PRIu64
	       " shared\n",
	    end.expired, end.evicted, end.loads, end.loads_shared);
	rig_close(&rig);
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned k = 0; k < OPS; k++) {
			ck_assert(counted[i][k].owners == (counted[i][k].latest != 0));
			sets += counted[i][k].latest != 0;
		}
	ck_assert_int_eq(faults, 0);
	ck_assert_uint_gt(sets, THREADS);
}

START_TEST(every_value_is_handed_over_once)
{
	race(0, 1, 65536, 0);
}
END_TEST

START_TEST(every_value_is_handed_over_once_with_a_limit_and_a_short_queue)
{
	race(12, 3, 2, 0);
}
END_TEST

START_TEST(every_value_is_handed_over_once_when_the_driver_is_stopped_meanwhile)
{
	race(0, 2, 65536, 1);
}
END_TEST

TEST_MAIN("session/threads", every_value_is_handed_over_once,
    every_value_is_handed_over_once_with_a_limit_and_a_short_queue,
    every_value_is_handed_over_once_when_the_driver_is_stopped_meanwhile)
