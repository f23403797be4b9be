/* Reads entries, and counts them. */
#include <sys/random.h>

#include "tools/weekwheel-sessiond/data/data_internal.h"

struct looking {
	struct data_entry *entry;
	ww_look_fn *fn;
	void *context;
};

void data_entry_times(struct data_entry *entry, const struct ww_session_found *found)
{
	entry->version = found->version;
	entry->deadline = found->deadline >= DATA_FOREVER ? DATA_NEVER : found->deadline;
	entry->ttl = found->ttl >= WW_SESSION_TTL_MAX ? DATA_NEVER : found->ttl;
	entry->end =
	    found->end_left == WW_SESSION_NO_END ? DATA_NEVER : found->deadline - found->left + found->end_left;
}

void data_entry_fill(struct data_entry *entry, const struct ww_session_found *found)
{
	const struct value *value = found->value;

	data_entry_times(entry, found);
	entry->disk = value_disk(value);
	entry->size = value->size;
}

static int look(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct looking *looking = context;

	(void)key;
	(void)length;
	if (looking->entry)
		data_entry_fill(looking->entry, found);
	if (looking->fn)
		looking->fn(found->value, looking->context);
	return 0;
}

int data_read(struct data *data, const struct data_key *key, ww_look_fn *fn, void *context)
{
	return ww_session_look(data_map(data, key->database), key->bytes, key->length, fn, context);
}

int data_inspect(struct data *data, const struct data_key *key, struct data_entry *entry, ww_look_fn *fn, void *context)
{
	struct looking looking = {entry, fn, context};

	entry->version = 0;
	return ww_session_inspect(data_map(data, key->database), key->bytes, key->length, look, &looking);
}

int data_is_there(struct data *data, const struct data_key *key)
{
	uint64_t left;

	return ww_session_time_left(data_map(data, key->database), key->bytes, key->length, &left) == 1;
}

int data_is_taken(struct data *data, const struct data_key *key)
{
	uint64_t end;

	return data_is_there(data, key) ||
	       (ww_session_ended(data_map(data, key->database), key->bytes, key->length, &end) == 1 &&
	           end <= data_now(data));
}

void data_remember(struct data *data, const struct data_key *key, uint64_t end, uint64_t until)
{
	(void)ww_session_remember(data_map(data, key->database), key->bytes, key->length, end, until);
}

int data_recalled(struct data *data, unsigned database, uint64_t *cursor, ww_recalled_fn *fn, void *context)
{
	struct ww_session *session = data->config.stays_ended ? data_map(data, database) : NULL;

	return session ? ww_session_recalled(session, cursor, fn, context) : WW_OK;
}

uint64_t data_stays_ended_ms(const struct data *data)
{
	return data->config.stays_ended / WW_MILLISECOND;
}

uint64_t data_recalls_dropped(struct data *data)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < data->config.databases; i++) {
		uint64_t count = 0;
		if (data_map(data, i))
			(void)ww_session_recalls_dropped(data_map(data, i), &count);
		all += count;
	}
	return all;
}

static void add_stats(struct data *data, unsigned database, struct ww_session_stats *all)
{
	struct ww_session_stats stats;

	if (ww_session_stats(data_map(data, database), &stats) != WW_OK)
		return;
	all->entries += stats.entries;
	all->hits += stats.hits;
	all->misses += stats.misses;
	all->expired += stats.expired;
	all->evicted += stats.evicted;
	all->weight += stats.weight;
	all->bytes += stats.bytes;
}

uint64_t data_count(struct data *data, unsigned database)
{
	struct ww_session_stats stats = {0};

	add_stats(data, database, &stats);
	return stats.entries;
}

uint64_t data_random(const struct data *data)
{
	uint64_t random;

	return getrandom(&random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random ? random : data_now(data);
}

uint64_t data_cursor(struct data *data, unsigned database)
{
	uint64_t a_shard = data_count(data, database) / data->shards + 1;
	uint64_t random = data_random(data);

	return (random % data->shards << 32 | (random >> 32) % a_shard) + 1;
}

void data_stats(struct data *data, struct ww_session_stats *stats)
{
	*stats = (struct ww_session_stats){0};
	for (unsigned i = 0; i < data->config.databases; i++)
		add_stats(data, i, stats);
}
