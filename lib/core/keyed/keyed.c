/* A map's life: making, stopping, freeing. And its statistics. */

#include <stdatomic.h>

#include "lib/core/keyed/keyed_internal.h"

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

	if (!keyed || !driver || !config || !config->fn || config->shards > WW_DRIVER_SHARDS_MAX)
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
	if (error)
		allocator->free(allocator->user, made, sizeof *made);
	else
		*keyed = made;
	return error;
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
		taken = ww_keyed_drain_all(keyed, fn, context);
	if (count)
		*count = taken;
	return WW_OK;
}

int ww_keyed_destroy(struct ww_keyed *keyed)
{
	const struct ww_allocator *allocator;

	if (!keyed)
		return WW_OK;
	/* A child may be forked in a callback and end there. */
	if (!ww_driver_forked(keyed->driver) && (ww_group_inside(keyed->group) || ww_inside_of(keyed)))
		return WW_EBUSY;
	keyed->closed = 1;
	ww_group_detach(keyed->group);
	allocator = keyed->allocator;
	free_shards(keyed, keyed->shard_count);
	allocator->free(allocator->user, keyed, sizeof *keyed);
	return WW_OK;
}

/* ---- Statistics */

static void add_shard(struct ww_keyed_stats *stats, struct keyed_shard *shard)
{
	ww_source_lock(shard->source);
	stats->entries += table_count(&shard->table);
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
