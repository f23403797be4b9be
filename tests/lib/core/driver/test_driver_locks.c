/* How many locks a fire takes. The library's calls that lock come to this program's, which count them. */
/* tier: check, threads, forks */

#include <dlfcn.h>

#include "lib/core/clock/clock_internal.h"
#include "tests/lib/core/driver/fixture.h"
#include "weekwheel/keyed.h"
#include "weekwheel/session.h"

#define TIMERS 10000
#define KEY_MOST 40

static _Atomic uint64_t locks;
static _Atomic uint32_t calls;
/* The alarm of a virtual clock needs a lock, which that of a real one does not: it does not count. */
static _Atomic(pthread_mutex_t *) uncounted;

#if !SANITIZED
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*_Atomic real)(pthread_mutex_t *);

	if (!real)
		real = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT, "pthread_mutex_lock");
	locks += mutex != uncounted;
	return real(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	static int (*_Atomic real)(pthread_mutex_t *);

	if (!real)
		real = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT, "pthread_mutex_trylock");
	int error = real(mutex);
	/* An allocator uses this, too. */
	locks += !error && mutex == &driver->queue.lock;
	return error;
}
#endif

static void count(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	(void)of;
	(void)firing;
	(void)user;
	calls++;
}

static void count_entry(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	(void)keyed;
	(void)entry;
	(void)user;
	calls++;
}

static void count_gone(
    struct ww_session *session, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	(void)session;
	(void)key;
	(void)length;
	(void)value;
	(void)user;
	ck_assert_int_eq(why, WW_GONE_EXPIRED);
	calls++;
}

/*
 * Let all expire, in a hundred ticks. The only worker is held until they have: it would take two more locks each time
 * that it falls asleep and is woken, and how often depends on the machine. So do the looks of a thread that settles.
 */
static void go_and_count(void)
{
	struct gate gate;
	uint64_t taken;

	gate_init(&gate);
	(void)after(0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	locks = 0;
	advance((TIMERS / 100 + 1) * TICK);
	UNTIL(driver->queue.lanes.length == TIMERS);
	gate_open(&gate, 1);
	UNTIL(calls == TIMERS);
	taken = locks;
	settle();
	ck_assert_uint_eq(calls, TIMERS);
	ck_assert_uint_le(taken, TIMERS * 12 / 10);
}

/* The i-th key; every other one is longer than what its record keeps. */
static size_t key_of(uint64_t i, char *key)
{
	int length = snprintf(key, KEY_MOST, i % 2 ? "%" PRIu64 : "%030" PRIu64, i);

	return (size_t)length;
}

START_TEST(a_fire_takes_little_more_than_the_lock_of_the_queue)
{
	begin(0, 1);
	for (uint64_t i = 0; i < TIMERS; i++)
		(void)after((i / 100 + 2) * TICK, count, NULL);
	go_and_count();
	end();
}
END_TEST

static int worker_is_asleep(void)
{
	pthread_mutex_lock(&driver->queue.lock);
	int asleep = driver->queue.asleep != NULL;
	pthread_mutex_unlock(&driver->queue.lock);
	return asleep;
}

/* The caller's source, the agenda and the source in a pass, the queue for the push, and again in the worker. */
START_TEST(a_fire_for_which_all_sleep_takes_five_locks)
{
	begin(0, 1);
	UNTIL(worker_is_asleep());
	uncounted = &virtual_clock->lock;
	locks = 0;
	for (uint32_t i = 0; i < TIMERS / 10; i++) {
		(void)after(0, count, NULL);
		advance(TICK);
		UNTIL(calls == i + 1);
		/* From here on they only fall asleep. */
		UNTIL(driver->armed == WW_NEVER);
	}
	ck_assert_uint_le(locks, TIMERS / 10 * 5);
	end();
}
END_TEST

START_TEST(a_fire_of_a_keyed_entry_does_so_too)
{
	struct ww_keyed_stats stats;
	struct ww_keyed *keyed;
	char key[KEY_MOST];

	begin(0, 1);
	/* A batch of one shard takes a lock: with one for each of many processors, a tick of 100 would be many batches. */
	OK(ww_keyed_create(&keyed, driver, &(struct ww_keyed_config){.fn = count_entry, .shards = 4}));
	for (uint64_t i = 0; i < TIMERS; i++) {
		size_t length = key_of(i, key);
		ck_assert_int_eq(ww_keyed_set(keyed, key, length, NULL, (i / 100 + 2) * TICK, NULL, NULL), 0);
	}
	go_and_count();
	OK(ww_keyed_stats(keyed, &stats));
	ck_assert_uint_eq(stats.entries, 0);
	ck_assert_uint_eq(stats.fired, TIMERS);
	OK(ww_keyed_destroy(keyed));
	end();
}
END_TEST

START_TEST(a_fire_of_a_session_does_so_too)
{
	struct ww_session_config config;
	struct ww_session_stats stats;
	struct ww_session *session;
	char key[KEY_MOST];

	begin(0, 1);
	OK(ww_session_config_default(&config));
	config.gone = count_gone;
	config.shards = 4;
	OK(ww_session_create(&session, driver, &config));
	for (uint64_t i = 0; i < TIMERS; i++) {
		size_t length = key_of(i, key);
		ck_assert_int_eq(ww_session_set(session, key, length, NULL, (i / 100 + 2) * TICK, NULL), 0);
	}
	go_and_count();
	OK(ww_session_stats(session, &stats));
	ck_assert_uint_eq(stats.entries, 0);
	ck_assert_uint_eq(stats.expired, TIMERS);
	OK(ww_session_destroy(session));
	end();
}
END_TEST

TEST_MAIN("driver/locks", a_fire_takes_little_more_than_the_lock_of_the_queue,
    a_fire_for_which_all_sleep_takes_five_locks, a_fire_of_a_keyed_entry_does_so_too, a_fire_of_a_session_does_so_too)
