/* A map's life: making, draining, stopping, freeing. And its statistics. */

#include <stdatomic.h>

#include "lib/core/keyed/keyed_internal.h"

/* Records that are looked at while the lock is held once. */
#define LOOK 512u

/* ---- Making */

static void free_keys(struct keyed_shard *shard)
{
	for (uint32_t i = 0; i < slab_end(&shard->slab); i++) {
		const struct keyed_entry *entry = slab_at(&shard->slab, i);
		if (entry->state != KEYED_UNUSED)
			ww_keyed_entry_free_key(shard, entry);
	}
}

/* Tables that were not made are all zero. */
static void free_shards(struct ww_keyed *keyed, uint32_t count)
{
	const struct ww_allocator *allocator = keyed->allocator;

	for (uint32_t i = 0; i < count; i++) {
		free_keys(&keyed->shards[i]);
		ww_slab_destroy(&keyed->shards[i].slab);
		ww_table_destroy(&keyed->shards[i].table);
	}
	allocator->free(allocator->user, keyed->shards, count * sizeof *keyed->shards);
}

static int create_shards(struct ww_keyed *keyed, uint32_t count)
{
	const struct ww_allocator *allocator = keyed->allocator;
	int error = WW_OK;

	keyed->shards = allocator->allocate(allocator->user, count * sizeof *keyed->shards);
	if (!keyed->shards)
		return WW_ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		keyed->shards[i] = (struct keyed_shard){.keyed = keyed, .version = i};
		ww_slab_init(&keyed->shards[i].slab, sizeof(struct keyed_entry), allocator);
	}
	for (uint32_t i = 0; !error && i < count; i++)
		error = ww_table_init(&keyed->shards[i].table, allocator);
	if (!error)
		error = ww_group_attach(
		    &keyed->group, keyed->driver, &ww_keyed_ops, keyed, keyed->shards, sizeof *keyed->shards, count);
	if (error) {
		free_shards(keyed, count);
		return error;
	}
	keyed->shard_count = count;
	for (uint32_t i = 0; i < count; i++)
		keyed->shards[i].source = ww_group_source(keyed->group, i);
	return WW_OK;
}

int ww_keyed_create(struct ww_keyed **keyed, struct ww_driver *driver, const struct ww_keyed_config *config)
{
	const struct ww_allocator *allocator;
	struct ww_keyed *made;
	int error;

	if (!keyed || !driver || !config || !config->fn)
		return WW_EINVAL;
	if (config->shards > WW_DRIVER_SHARDS_MAX || config->share > WW_DRIVER_SHARE_MAX)
		return WW_EINVAL;
	error = ww_driver_refuses(driver);
	if (error)
		return error;
	allocator = ww_driver_allocator(driver);
	made = allocator->allocate(allocator->user, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	*made = (struct ww_keyed){
	    .driver = driver,
	    .allocator = allocator,
	    .fn = config->fn,
	    .user = config->user,
	};
	error = ww_hash_secret_make(&made->secret) ? WW_ESYSTEM : WW_OK;
	if (!error)
		error = create_shards(made, config->shards ? config->shards : ww_driver_shards(driver));
	if (!error)
		ww_group_share(made->group, config->share);
	if (error)
		allocator->free(allocator->user, made, sizeof *made);
	else
		*keyed = made;
	return error;
}

/* ---- Draining: all entries at once */

struct batch {
	struct keyed_entry *entry[SOURCE_BATCH];
	uint32_t count;
};

/* The lock is held. Take entries up to this version out of the map, from record `index` on. Returns the next index. */
static uint32_t collect(
    struct ww_keyed *keyed, struct keyed_shard *shard, uint32_t index, uint64_t version, struct batch *batch)
{
	uint32_t end = slab_end(&shard->slab);

	if (end - index > LOOK)
		end = index + LOOK;
	batch->count = 0;
	for (; index < end && batch->count < SOURCE_BATCH; index++) {
		struct keyed_entry *entry = slab_at(&shard->slab, index);
		if (!keyed_hold(entry) || !keyed_in_map(entry) || entry->version > version)
			continue;
		ww_keyed_entry_take_out(shard, entry, keyed_hash(keyed, entry));
		entry->marks |= KEYED_DRAIN;
		batch->entry[batch->count++] = entry;
	}
	shard->drained += batch->count;
	return index;
}

static void hand_over(struct ww_keyed *keyed, const struct batch *batch, ww_keyed_fn *fn, void *context)
{
	struct inside here;

	ww_inside_enter(&here, keyed);
	for (uint32_t i = 0; fn && i < batch->count; i++) {
		struct ww_keyed_entry view = ww_keyed_entry_view(batch->entry[i]);
		fn(keyed, &view, context);
	}
	ww_inside_leave(&here);
}

static size_t drain_shard(
    struct ww_keyed *keyed, struct keyed_shard *shard, uint64_t version, ww_keyed_fn *fn, void *context)
{
	struct batch batch;
	uint32_t index = 0;
	size_t total = 0;

	ww_source_lock(shard->source);
	while (index < slab_end(&shard->slab)) {
		index = collect(keyed, shard, index, version, &batch);
		ww_source_unlock(shard->source);
		hand_over(keyed, &batch, fn, context);
		total += batch.count;
		ww_source_lock(shard->source);
		for (uint32_t i = 0; i < batch.count; i++)
			ww_keyed_entry_release(shard, batch.entry[i], KEYED_DRAIN);
	}
	ww_source_unlock(shard->source);
	return total;
}

/* Hand over every entry that is in the map now, and return their number. No lock is held. */
static size_t drain_all(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context)
{
	uint64_t version[WW_DRIVER_SHARDS_MAX];
	size_t total = 0;
	int cancel;

	/* fn does not get entries that it sets itself: they have later versions. */
	for (uint32_t i = 0; i < keyed->shard_count; i++) {
		ww_source_lock(keyed->shards[i].source);
		version[i] = keyed->shards[i].version;
		ww_source_unlock(keyed->shards[i].source);
	}
	/* If the thread were cancelled in fn, the entries taken out of the map would be handed to nobody. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (uint32_t i = 0; i < keyed->shard_count; i++)
		total += drain_shard(keyed, &keyed->shards[i], version[i], fn, context);
	(void)pthread_setcancelstate(cancel, &cancel);
	return total;
}

int ww_keyed_drain(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context, size_t *count)
{
	size_t drained;
	int error;

	if (!keyed)
		return WW_EINVAL;
	error = ww_driver_refuses(keyed->driver);
	if (error || keyed->closed)
		return WW_ECLOSED;
	drained = drain_all(keyed, fn, context);
	if (count)
		*count = drained;
	return WW_OK;
}

/* ---- Stopping */

int ww_keyed_stop(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context, size_t *count)
{
	size_t taken = 0;

	if (!keyed)
		return WW_EINVAL;
	if (ww_driver_forked(keyed->driver))
		return WW_ECLOSED;
	/* A set reads `closed` under the shard's lock. Once the drain has had that lock, nothing enters the shard. */
	if (!atomic_exchange(&keyed->closed, 1))
		taken = drain_all(keyed, fn, context);
	if (count)
		*count = taken;
	return WW_OK;
}

static void free_keyed(void *argument)
{
	struct ww_keyed *keyed = argument;
	const struct ww_allocator *allocator = keyed->allocator;

	ww_group_detach(keyed->group);
	free_shards(keyed, keyed->shard_count);
	allocator->free(allocator->user, keyed, sizeof *keyed);
}

int ww_keyed_destroy(struct ww_keyed *keyed)
{
	int forked;

	if (!keyed)
		return WW_OK;
	/* A child may be forked in a callback and end there. */
	forked = ww_driver_forked(keyed->driver);
	if (!forked && ww_inside_of(keyed))
		return WW_EBUSY;
	keyed->closed = 1;
	if (forked || !ww_group_inside(keyed->group))
		free_keyed(keyed);
	else if (!atomic_exchange(&keyed->doomed, 1)) {
		ww_group_leave(keyed->group);
		ww_group_afterwards(keyed->group, free_keyed, keyed);
	}
	return WW_OK;
}

/* ---- Statistics */

static void add_shard(struct ww_keyed_stats *stats, struct keyed_shard *shard)
{
	ww_source_lock(shard->source);
	ww_keyed_entry_collect(shard, SIZE_MAX);
	stats->entries += table_count(&shard->table) + shard->left - shard->fired;
	stats->set += shard->set;
	stats->fired += shard->fired;
	stats->replaced += shard->replaced;
	stats->moved += shard->moved;
	stats->removed += shard->removed;
	stats->drained += shard->drained;
	stats->dropped += shard->dropped;
	stats->bytes += sizeof *shard + ww_slab_bytes(&shard->slab) + ww_table_bytes(&shard->table) + shard->key_bytes;
	ww_source_unlock(shard->source);
}

int ww_keyed_stats(struct ww_keyed *keyed, struct ww_keyed_stats *stats)
{
	if (!keyed || !stats)
		return WW_EINVAL;
	if (ww_driver_forked(keyed->driver))
		return WW_ECLOSED;
	*stats = (struct ww_keyed_stats){.bytes = sizeof *keyed + ww_group_bytes(keyed->group)};
	for (uint32_t i = 0; i < keyed->shard_count; i++)
		add_shard(stats, &keyed->shards[i]);
	return WW_OK;
}
