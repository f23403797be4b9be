/* The locks of keys. */
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/data/data_internal.h"

/* In `several`. */
#define A_TIME (UINT64_C(1) << 32)

/* A client that chooses its keys can only make them share a lock. */
static unsigned stripe_of(const void *key, size_t length)
{
	const unsigned char *bytes = key;
	uint64_t hash = length;
	uint64_t word;

	for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
		memcpy(&word, bytes, sizeof word);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, bytes, length);
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return (unsigned)(hash >> 56) % DATA_STRIPES;
}

void data_stripes_add(struct data_stripes *stripes, const void *key, size_t length)
{
	unsigned stripe = stripe_of(key, length);

	stripes->bits[stripe / 64] |= UINT64_C(1) << stripe % 64;
}

void data_stripes_all(struct data_stripes *stripes)
{
	memset(stripes, 0xff, sizeof *stripes);
}

/* In ascending order. */
static void each_stripe(struct data *data, const struct data_stripes *stripes, int (*act)(pthread_mutex_t *lock))
{
	for (unsigned word = 0; word < DATA_STRIPES / 64; word++)
		for (uint64_t bits = stripes->bits[word]; bits; bits &= bits - 1)
			(void)act(&data->stripe[word * 64 + (unsigned)__builtin_ctzll(bits)].lock);
}

/* The key's stripe is held. */
static void erase_evicted(struct data *data, const struct data_evicted *key)
{
	struct data_key sought = {key->database, key->key, key->length};

	if (!data_is_there(data, &sought))
		data->keep->erase(data->keep->context, key->database, key->key, key->length);
}

static void settle_evicted(struct data *data)
{
	struct data_evicted *next;

	for (struct data_evicted *key = data_evicted_take(); key; key = next) {
		pthread_mutex_t *lock = &data->stripe[stripe_of(key->key, key->length)].lock;
		next = key->next;
		pthread_mutex_lock(lock);
		erase_evicted(data, key);
		pthread_mutex_unlock(lock);
		free(key);
	}
}

void data_lock(struct data *data, const struct data_stripes *stripes)
{
	data->several += A_TIME + 1;
	each_stripe(data, stripes, pthread_mutex_lock);
}

void data_unlock(struct data *data, const struct data_stripes *stripes)
{
	each_stripe(data, stripes, pthread_mutex_unlock);
	data->several--;
	settle_evicted(data);
}

void data_pass(struct data *data)
{
	for (size_t i = 0; i < DATA_STRIPES; i++) {
		pthread_mutex_lock(&data->stripe[i].lock);
		pthread_mutex_unlock(&data->stripe[i].lock);
	}
}

unsigned data_lock_key(struct data *data, const void *key, size_t length)
{
	unsigned stripe = stripe_of(key, length);

	pthread_mutex_lock(&data->stripe[stripe].lock);
	return stripe;
}

void data_unlock_key(struct data *data, unsigned stripe)
{
	pthread_mutex_unlock(&data->stripe[stripe].lock);
	settle_evicted(data);
}

void data_read_begin(struct data *data, const void *key, size_t length, struct data_reading *reading)
{
	reading->seen = data->several;
	reading->stripe = (uint32_t)reading->seen ? (int)data_lock_key(data, key, length) : -1;
}

int data_read_end(struct data *data, const struct data_reading *reading)
{
	if (reading->stripe < 0)
		return data->several != reading->seen;
	data_unlock_key(data, (unsigned)reading->stripe);
	return 0;
}

/* A thread that evicts calls gone while it holds stripes. */
void data_settle_gone(struct data *data)
{
	uint64_t since = data_now(data);

	data_pass(data);
	data_settle_expired(data, since);
}
