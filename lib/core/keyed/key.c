/* The calls on one key: set, move, remove, get. */

#include <string.h>

#include "lib/core/keyed/keyed_internal.h"

/* A key to find, and its shard. */
struct keyed_sought {
	const void *key;
	size_t length;
	uint64_t hash;
	struct keyed_shard *shard;
};

static int is_sought(const void *context, uint32_t index)
{
	const struct keyed_sought *sought = context;
	const struct keyed_entry *entry = slab_at(&sought->shard->slab, index);

	if (entry->length != sought->length)
		return 0;
	return sought->length == 0 || memcmp(keyed_key(entry), sought->key, sought->length) == 0;
}

/* Lock the key's shard. On error nothing is locked. */
static int lock_shard(struct ww_keyed *keyed, struct keyed_sought *sought)
{
	int error;

	if (!keyed || (!sought->key && sought->length) || sought->length > WW_KEYED_LENGTH_MAX)
		return WW_EINVAL;
	error = ww_driver_refuses(keyed->driver);
	if (error)
		return error;
	sought->hash = ww_hash_bytes(&keyed->secret, sought->key, sought->length);
	sought->shard = &keyed->shards[(sought->hash & UINT32_MAX) * keyed->shard_count >> 32];
	ww_source_lock(sought->shard->source);
	if (!keyed->closed)
		return WW_OK;
	ww_source_unlock(sought->shard->source);
	return WW_ECLOSED;
}

/* The shard is locked: its entry with the key, or NULL. */
static struct keyed_entry *find(const struct keyed_sought *sought)
{
	uint32_t index = table_find(&sought->shard->table, sought->hash, is_sought, sought);
	struct keyed_entry *entry;

	if (index == TABLE_NONE)
		return NULL;
	entry = slab_at(&sought->shard->slab, index);
	if (keyed_hold(entry))
		return entry;
	ww_keyed_entry_leave(sought->shard, entry, sought->hash);
	return NULL;
}

/* Lock the key's shard and find its entry of this version. On error nothing is locked. */
static int lock_entry(struct ww_keyed *keyed, struct keyed_sought *sought, uint64_t version, struct keyed_entry **entry)
{
	int error = lock_shard(keyed, sought);

	if (error)
		return error;
	*entry = find(sought);
	if (*entry && (version == WW_KEYED_ANY || version == (*entry)->version))
		return WW_OK;
	ww_source_unlock(sought->shard->source);
	return WW_ESTALE;
}

int ww_keyed_set_at(struct ww_keyed *keyed, const void *key, size_t length, void *value, uint64_t deadline,
    uint64_t *version, void **former)
{
	struct keyed_sought sought = {.key = key, .length = length};
	struct keyed_entry *entry;
	int found;
	int error = lock_shard(keyed, &sought);

	if (error)
		return error;
	entry = find(&sought);
	found = entry != NULL;
	if (deadline > WW_DRIVER_TIME_MAX)
		error = WW_EOVERFLOW;
	else if (!found) {
		entry = ww_keyed_entry_make(keyed, sought.shard, sought.hash, key, length);
		error = entry ? WW_OK : WW_ENOMEM;
	}
	if (error) {
		ww_source_unlock(sought.shard->source);
		return error;
	}
	sought.shard->set++;
	sought.shard->replaced += (uint64_t)found;
	sought.shard->version += keyed->shard_count;
	if (former)
		*former = found ? entry->value : NULL;
	/* Stored now, as the callback may run before this returns. */
	if (version)
		*version = sought.shard->version;
	entry->value = value;
	entry->version = sought.shard->version;
	ww_keyed_entry_file(sought.shard, entry, deadline);
	ww_source_unlock(sought.shard->source);
	return found;
}

int ww_keyed_set(struct ww_keyed *keyed, const void *key, size_t length, void *value, uint64_t delay, uint64_t *version,
    void **former)
{
	uint64_t deadline = UINT64_MAX;

	/* An overflow leaves a deadline that ww_keyed_set_at refuses, after the errors that come first. */
	if (keyed)
		(void)driver_deadline(keyed->driver, delay, &deadline);
	return ww_keyed_set_at(keyed, key, length, value, deadline, version, former);
}

int ww_keyed_move(struct ww_keyed *keyed, const void *key, size_t length, uint64_t version, uint64_t delay)
{
	struct keyed_sought sought = {.key = key, .length = length};
	struct keyed_entry *entry;
	uint64_t deadline;
	int error = lock_entry(keyed, &sought, version, &entry);

	if (error)
		return error;
	error = driver_deadline(keyed->driver, delay, &deadline);
	if (!error) {
		sought.shard->moved++;
		ww_keyed_entry_file(sought.shard, entry, deadline);
	}
	ww_source_unlock(sought.shard->source);
	return error;
}

int ww_keyed_remove(struct ww_keyed *keyed, const void *key, size_t length, uint64_t version, void **value)
{
	struct keyed_sought sought = {.key = key, .length = length};
	struct keyed_entry *entry;
	int error = lock_entry(keyed, &sought, version, &entry);

	if (error)
		return error;
	if (value)
		*value = entry->value;
	sought.shard->removed++;
	ww_keyed_entry_take_out(sought.shard, entry, sought.hash);
	ww_keyed_entry_release(sought.shard, entry, 0);
	ww_source_unlock(sought.shard->source);
	return WW_OK;
}

int ww_keyed_get(
    struct ww_keyed *keyed, const void *key, size_t length, void **value, uint64_t *time_left, uint64_t *version)
{
	struct keyed_sought sought = {.key = key, .length = length};
	struct keyed_entry *entry;
	int error = lock_entry(keyed, &sought, WW_KEYED_ANY, &entry);

	if (error)
		return error == WW_ESTALE ? 0 : error;
	uint64_t now = time_left ? ww_driver_time(keyed->driver) : 0;
	if (value)
		*value = entry->value;
	if (time_left)
		*time_left = entry->deadline > now ? entry->deadline - now : 0;
	if (version)
		*version = entry->version;
	ww_source_unlock(sought.shard->source);
	return 1;
}
