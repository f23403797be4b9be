/* Stripes: a key has one, several are taken in one order, and a reader sees whether somebody took several meanwhile. */
/* tier: quick, threads */
#include <pthread.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/data/data.h"

static struct data *data;

static void open_data(void)
{
	const struct data_config config = {.databases = 1, .is_virtual = 1};

	ck_assert_int_eq(data_open(&data, &config), WW_OK);
}

static int count(const struct data_stripes *stripes)
{
	int bits = 0;

	for (size_t i = 0; i < DATA_STRIPES / 64; i++)
		bits += __builtin_popcountll(stripes->bits[i]);
	return bits;
}

START_TEST(keys_spread_over_all_stripes)
{
	struct data_stripes some = {{0}}, all = {{0}};
	char name[32];

	data_stripes_add(&some, "session:1", 9);
	data_stripes_add(&some, "session:1", 9);
	ck_assert_int_eq(count(&some), 1);
	/* Names that differ in one place, short or beyond the hash's words, or in their length alone. */
	for (int i = 0; i < 4000; i++)
		data_stripes_add(&all, name, (size_t)snprintf(name, sizeof name, "%*d", 4 + i % 3 * 10, i));
	ck_assert_int_eq(count(&all), DATA_STRIPES);
	memset(name, 0, sizeof name);
	memset(&some, 0, sizeof some);
	for (size_t length = 0; length <= 16; length++)
		data_stripes_add(&some, name, length);
	ck_assert_int_gt(count(&some), 10);
	data_stripes_all(&some);
	ck_assert_int_eq(count(&some), DATA_STRIPES);
}
END_TEST

START_TEST(a_reader_reads_again_if_somebody_took_several)
{
	struct data_stripes several = {{0}};
	struct data_reading reading;

	open_data();
	data_stripes_add(&several, "a", 1);
	data_stripes_add(&several, "b", 1);
	data_read_begin(data, "a", 1, &reading);
	ck_assert_int_eq(reading.stripe, -1);
	ck_assert_int_eq(data_read_end(data, &reading), 0);
	/* A writer of one key changes nothing that a reader could see in part. */
	data_read_begin(data, "a", 1, &reading);
	data_unlock_key(data, data_lock_key(data, "a", 1));
	ck_assert_int_eq(data_read_end(data, &reading), 0);
	data_read_begin(data, "a", 1, &reading);
	data_lock(data, &several);
	data_unlock(data, &several);
	ck_assert_int_eq(data_read_end(data, &reading), 1);
	/* While somebody holds several, a reader takes the stripe of its key, and what it reads is whole. */
	data_lock(data, &several);
	data_read_begin(data, "c", 1, &reading);
	ck_assert_int_ge(reading.stripe, 0);
	ck_assert_int_eq(data_read_end(data, &reading), 0);
	data_unlock(data, &several);
	data_close(data);
}
END_TEST

/* ---- What a set evicts is journaled when its stripe can be had */

static int erased;
static int is_locked; /* this thread holds stripes */

static void erase(void *context, unsigned database, const void *key, size_t length)
{
	const struct data_key gone = {database, key, length};

	(void)context;
	ck_assert_int_eq(is_locked, 0);
	ck_assert_int_eq(data_is_there(data, &gone), 0);
	erased++;
}

static int takes(void *context, size_t count, size_t bytes)
{
	(void)context;
	(void)count;
	(void)bytes;
	return 1;
}

static void ignore_set(void *context, const struct data_record *record)
{
	(void)context;
	(void)record;
}

START_TEST(what_was_evicted_is_erased_when_the_stripes_are_free)
{
	static const struct data_keep keep = {.takes = takes, .set = ignore_set, .erase = erase};
	static char value[100000];
	const struct data_config config = {
	    .databases = 1, .is_virtual = 1, .memory = 1000000, .policy = DATA_ALLKEYS_LRU};
	char name[16];

	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	data_set_keep(data, &keep);
	for (int i = 0; i < 60; i++) {
		const struct data_key key = {0, name, (size_t)snprintf(name, sizeof name, "%d", i)};
		struct data_stripes some = {{0}};
		unsigned stripe = 0;
		is_locked = 1;
		/* Of all 256, the thread sanitizer would lose count. */
		data_stripes_add(&some, name, key.length);
		data_stripes_add(&some, "another", 7);
		data_stripes_add(&some, "third", 5);
		if (i % 2)
			data_lock(data, &some);
		else
			stripe = data_lock_key(data, name, key.length);
		ck_assert_int_eq(data_set(data, &key, value, sizeof value, &(struct data_times){.ttl = DATA_NEVER}), 0);
		is_locked = 0;
		if (i % 2)
			data_unlock(data, &some);
		else
			data_unlock_key(data, stripe);
		/* Each that is not there was erased by now, whichever way the stripes were given back. */
		ck_assert_uint_eq(data_count(data, 0) + (uint64_t)erased, (uint64_t)i + 1);
	}
	ck_assert_int_gt(erased, 40);
	data_close(data);
}
END_TEST

/* ---- Threads that take several, in any order of their keys */

enum { THREADS = 4, ROUNDS = 2000, KEYS = 8 };

static char names[KEYS][4];
static int held[KEYS];
static unsigned long sum;

static void *take_several(void *argument)
{
	unsigned random = *(unsigned *)argument;

	for (int i = 0; i < ROUNDS; i++) {
		struct data_stripes stripes = {{0}};
		unsigned first = (random = random * 1103515245 + 12345) >> 16 & 7, second = random >> 20 & 7;
		data_stripes_add(&stripes, names[first], strlen(names[first]));
		data_stripes_add(&stripes, names[second], strlen(names[second]));
		data_lock(data, &stripes);
		held[first]++;
		held[second]++;
		__atomic_add_fetch(&sum, 2, __ATOMIC_RELAXED);
		data_unlock(data, &stripes);
	}
	return NULL;
}

static void *take_one(void *argument)
{
	unsigned number = *(unsigned *)argument;

	for (int i = 0; i < ROUNDS; i++) {
		const char *name = names[(number + (unsigned)i) % KEYS];
		unsigned stripe = data_lock_key(data, name, strlen(name));
		held[(number + (unsigned)i) % KEYS]++;
		__atomic_add_fetch(&sum, 1, __ATOMIC_RELAXED);
		data_unlock_key(data, stripe);
		data_pass(data);
	}
	return NULL;
}

START_TEST(threads_exclude_each_other_and_never_wait_in_a_circle)
{
	pthread_t threads[THREADS];
	unsigned numbers[THREADS];
	unsigned long all = 0;

	open_data();
	for (int i = 0; i < KEYS; i++)
		(void)snprintf(names[i], sizeof names[i], "k%d", i);
	for (unsigned i = 0; i < THREADS; i++) {
		numbers[i] = i + 1;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, i % 2 ? take_one : take_several, &numbers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < KEYS; i++)
		all += (unsigned long)held[i];
	ck_assert_uint_eq(all, sum);
	data_close(data);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/data_stripes", keys_spread_over_all_stripes,
    a_reader_reads_again_if_somebody_took_several, what_was_evicted_is_erased_when_the_stripes_are_free,
    threads_exclude_each_other_and_never_wait_in_a_circle)
