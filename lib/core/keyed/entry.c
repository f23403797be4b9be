/* The life of an entry: made, filed, expired, run, taken out. */

#include <string.h>

#include "lib/core/keyed/keyed_internal.h"

/* ---- Records */

static int copy_key(struct keyed_shard *shard, struct keyed_entry *entry, const void *key, size_t length)
{
	const struct ww_allocator *allocator = shard->keyed->allocator;

	entry->length = (uint16_t)length;
	if (length > KEYED_INLINE) {
		entry->key.block = allocator->allocate(allocator->user, length);
		if (!entry->key.block)
			return WW_ENOMEM;
		shard->key_bytes += length;
		memcpy(entry->key.block, key, length);
	} else if (length)
		memcpy(entry->key.bytes, key, length);
	return WW_OK;
}

void ww_keyed_entry_free_key(struct keyed_shard *shard, const struct keyed_entry *entry)
{
	const struct ww_allocator *allocator = shard->keyed->allocator;

	if (entry->length <= KEYED_INLINE)
		return;
	shard->key_bytes -= entry->length;
	allocator->free(allocator->user, entry->key.block, entry->length);
}

struct keyed_entry *ww_keyed_entry_make(
    struct ww_keyed *keyed, struct keyed_shard *shard, uint64_t hash, const void *key, size_t length)
{
	struct keyed_entry *entry;
	uint32_t index;

	if (ww_source_prepare(shard->source))
		return NULL;
	/* More than one, so that there are fewer and fewer. */
	ww_keyed_entry_collect(shard, 2);
	index = ww_slab_take(&shard->slab);
	if (index == SLAB_NONE)
		return NULL;
	entry = slab_at(&shard->slab, index);
	if (copy_key(shard, entry, key, length)) {
		ww_slab_give(&shard->slab, index);
		return NULL;
	}
	if (ww_table_insert(&shard->table, hash, index)) {
		ww_keyed_entry_free_key(shard, entry);
		ww_slab_give(&shard->slab, index);
		return NULL;
	}
	entry->index = index & (SLAB_MAX - 1);
	entry->shard = (uint32_t)(shard - keyed->shards) & (WW_DRIVER_SHARDS_MAX - 1);
	entry->marks = 0;
	keyed_become(entry, KEYED_LOOSE);
	return entry;
}

void ww_keyed_entry_release(struct keyed_shard *shard, struct keyed_entry *entry, unsigned mark)
{
	entry->marks &= (uint8_t)~mark;
	if (entry->marks)
		return;
	keyed_become(entry, KEYED_UNUSED);
	ww_keyed_entry_free_key(shard, entry);
	ww_slab_give(&shard->slab, entry->index);
}

struct ww_keyed_entry ww_keyed_entry_view(const struct keyed_entry *entry)
{
	return (struct ww_keyed_entry){
	    .key = keyed_key(entry),
	    .length = entry->length,
	    .value = entry->value,
	    .version = entry->version,
	    .deadline = entry->deadline,
	};
}

/* ---- Into the wheel and out */

/* Let an entry of the map wait for nothing. */
static void unfile(struct keyed_shard *shard, struct keyed_entry *entry)
{
	if (entry->state == KEYED_PENDING)
		ww_source_cancel(shard->source, &entry->as.timer);
	else if (entry->state == KEYED_QUEUED && !ww_group_withdraw(shard->keyed->group, &entry->as.firing))
		entry->marks |= KEYED_WORKER;
	keyed_become(entry, KEYED_LOOSE);
}

void ww_keyed_entry_file(struct keyed_shard *shard, struct keyed_entry *entry, uint64_t deadline)
{
	entry->deadline = deadline;
	if (entry->state == KEYED_PENDING) {
		ww_source_move(shard->source, &entry->as.timer, deadline);
		return;
	}
	unfile(shard, entry);
	/* The worker that has its firing files it. */
	if (entry->marks)
		return;
	entry->as.timer = (struct ww_timer){0};
	keyed_become(entry, KEYED_PENDING);
	ww_source_schedule(shard->source, &entry->as.timer, deadline);
}

void ww_keyed_entry_take_out(struct keyed_shard *shard, struct keyed_entry *entry, uint64_t hash)
{
	unfile(shard, entry);
	(void)ww_table_remove(&shard->table, hash, entry->index);
	keyed_become(entry, KEYED_GONE);
}

void ww_keyed_entry_leave(struct keyed_shard *shard, struct keyed_entry *entry, uint64_t hash)
{
	(void)ww_table_remove(&shard->table, hash, entry->index);
	keyed_become(entry, KEYED_GONE);
	shard->left++;
}

void ww_keyed_entry_collect(struct keyed_shard *shard, size_t most)
{
	struct keyed_entry *entry;

	for (; most && (entry = slab_returned(&shard->ended)); most--) {
		if (entry->state == KEYED_BEGUN)
			ww_keyed_entry_leave(shard, entry, keyed_hash(shard->keyed, entry));
		ww_keyed_entry_release(shard, entry, KEYED_WORKER);
	}
}

/* ---- What the driver calls */

static struct firing *expire(void *shard, struct ww_timer *timer)
{
	struct keyed_entry *entry = (struct keyed_entry *)(void *)timer;

	(void)shard;
	keyed_become(entry, KEYED_QUICK);
	return &entry->as.firing;
}

static struct firing *drop(void *shard, struct ww_timer *timer)
{
	keyed_become((struct keyed_entry *)(void *)timer, KEYED_LOOSE);
	((struct keyed_shard *)shard)->dropped++;
	return NULL;
}

/* A worker has come with the entry's firing. Returns whether its callback begins. */
static int begin(struct ww_keyed *keyed, struct keyed_shard *shard, struct keyed_entry *entry)
{
	int stopped = keyed->closed || ww_driver_refuses(keyed->driver);
	int untouched = entry->state == KEYED_QUEUED;

	if (entry->state == KEYED_GONE) {
		ww_keyed_entry_release(shard, entry, KEYED_WORKER);
		return 0;
	}
	keyed_become(entry, KEYED_LOOSE);
	entry->marks = 0;
	/* After a stop the entry stays in the map, where a drain takes it. */
	if (stopped)
		return 0;
	if (!untouched) {
		ww_keyed_entry_file(shard, entry, entry->deadline);
		return 0;
	}
	ww_keyed_entry_take_out(shard, entry, keyed_hash(keyed, entry));
	entry->marks = KEYED_WORKER;
	shard->left++;
	shard->fired++;
	return 1;
}

static int begin_locked(struct ww_keyed *keyed, struct keyed_shard *shard, struct keyed_entry *entry)
{
	int begun;

	ww_source_lock(shard->source);
	(void)keyed_hold(entry);
	begun = begin(keyed, shard, entry);
	ww_source_unlock(shard->source);
	return begun;
}

/* Begin the callback of an entry that nobody has held. Returns 0 if somebody has, or all is stopped. */
static int begin_quickly(struct ww_keyed *keyed, struct keyed_shard *shard, struct keyed_entry *entry)
{
	uint8_t state = KEYED_QUICK;

	if (entry->state != state || keyed->closed || ww_driver_refuses(keyed->driver) ||
	    !atomic_compare_exchange_strong(&entry->state, &state, KEYED_BEGUN))
		return 0;
	shard->fired++;
	return 1;
}

/* The callback has ended. Records are collected in batches, which takes a small share of a lock for each. */
static void end_call(struct keyed_shard *shard, struct keyed_entry *entry)
{
	int due = slab_returns_due(&shard->ended, entry->length);

	slab_return(&shard->ended, entry);
	if (!due)
		return;
	ww_source_lock(shard->source);
	ww_keyed_entry_collect(shard, SIZE_MAX);
	ww_source_unlock(shard->source);
}

static void run(void *owner, struct firing *firing)
{
	struct ww_keyed *keyed = owner;
	struct keyed_entry *entry = (struct keyed_entry *)(void *)firing;
	struct keyed_shard *shard = &keyed->shards[entry->shard];
	struct ww_keyed_entry view;

	if (!begin_quickly(keyed, shard, entry) && !begin_locked(keyed, shard, entry))
		return;
	view = ww_keyed_entry_view(entry);
	keyed->fn(keyed, &view, keyed->user);
	end_call(shard, entry);
}

const struct group_ops ww_keyed_ops = {.expire = expire, .drop = drop, .run = run};
