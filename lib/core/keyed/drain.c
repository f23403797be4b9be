/* Draining a map: all its entries at once. */

#include "lib/core/keyed/keyed_internal.h"

/* Records that are looked at while the lock is held once. */
#define LOOK 512u

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
		if (!keyed_in_map(entry) || entry->version > version)
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

size_t ww_keyed_drain_all(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context)
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
	drained = ww_keyed_drain_all(keyed, fn, context);
	if (count)
		*count = drained;
	return WW_OK;
}
