/*
 * Ends of lifetimes that are recalled for a while after their entries have expired: see ww_session_recall.
 *
 * Each shard has buckets of cells. A key's cell is in the bucket that its hash stands for. Cells are not removed when
 * their time is over, but taken by others. The number of buckets doubles when one has no cell left, up to a bound. Then
 * a cell gives way, or what is new: first one whose lifetime would still go on, and of several the one that is recalled
 * the shortest.
 */

#include <stdatomic.h>
#include <string.h>

#include "lib/core/session/session_internal.h"

#define CELLS 8u /* of a bucket */
#define CELLS_FIRST ((size_t)64)
#define CELLS_MOST ((size_t)8192)
/* With this, what a shard recalls takes no more than 4.5 MiB. */
#define KEY_MOST 512u

struct session_recalled {
	uint64_t hash;
	uint64_t end;   /* of the lifetime */
	uint64_t until; /* it is recalled */
	unsigned char *key;
	uint32_t length;
};

/* One block: a child that is forked meanwhile finds one that is whole. */
struct session_recalls {
	size_t cells;
	struct session_recalled cell[];
};

/* ---- Cells */

static size_t size_of(size_t cells)
{
	return sizeof(struct session_recalls) + cells * sizeof(struct session_recalled);
}

/* The low bits of a hash chose the shard. */
static struct session_recalled *bucket_of(struct session_recalls *recalls, uint64_t hash)
{
	return &recalls->cell[(uint32_t)(hash >> 32) * (uint64_t)CELLS & (recalls->cells - 1)];
}

static void empty(struct session_shard *shard, struct session_recalled *cell)
{
	const struct ww_allocator *allocator = shard->session->allocator;
	unsigned char *key = cell->key;

	/* First: a child that is forked meanwhile frees the keys that it finds. */
	cell->key = NULL;
	if (!key)
		return;
	atomic_signal_fence(memory_order_release);
	shard->recall_bytes -= cell->length + 1;
	allocator->free(allocator->user, key, cell->length + 1);
}

static struct session_recalled *find(const struct session_sought *sought)
{
	struct session_recalls *recalls = sought->shard->recalls;
	struct session_recalled *cell = recalls ? bucket_of(recalls, sought->hash) : NULL;

	for (unsigned i = 0; cell && i < CELLS; i++, cell++)
		if (cell->key && cell->hash == sought->hash && cell->length == sought->length &&
		    memcmp(cell->key, sought->key, sought->length) == 0)
			return cell;
	return NULL;
}

static int is_taken(const struct session_recalled *cell, uint64_t now)
{
	return cell->key && cell->until > now;
}

/* The first has less to say than the second. */
static int is_less(const struct session_recalled *a, const struct session_recalled *b, uint64_t now)
{
	if ((a->end > now) != (b->end > now))
		return a->end > now;
	return a->until < b->until;
}

/* A cell of the bucket that is free; otherwise the one that is to give way. */
static struct session_recalled *choose(struct session_recalled *bucket, uint64_t now)
{
	struct session_recalled *chosen = bucket;

	for (unsigned i = 0; i < CELLS; i++) {
		if (!is_taken(&bucket[i], now))
			return &bucket[i];
		if (is_less(&bucket[i], chosen, now))
			chosen = &bucket[i];
	}
	return chosen;
}

/* A bucket's cells go to two buckets, so each finds room. Returns 0 without memory, or at the bound. */
static int grow(struct session_shard *shard)
{
	const struct ww_allocator *allocator = shard->session->allocator;
	struct session_recalls *was = shard->recalls;
	size_t cells = was ? 2 * was->cells : CELLS_FIRST;
	struct session_recalls *more = cells > CELLS_MOST ? NULL : allocator->allocate(allocator->user, size_of(cells));

	if (!more)
		return 0;
	memset(more, 0, size_of(cells));
	more->cells = cells;
	for (size_t i = 0; was && i < was->cells; i++)
		if (was->cell[i].key)
			*choose(bucket_of(more, was->cell[i].hash), 0) = was->cell[i];
	/* A child that is forked meanwhile must not find it before its cells. */
	atomic_signal_fence(memory_order_release);
	shard->recalls = more;
	shard->recall_bytes += size_of(cells) - (was ? size_of(was->cells) : 0);
	if (was)
		allocator->free(allocator->user, was, size_of(was->cells));
	return 1;
}

/* Where a key's end goes that has no cell. The caller looks whether it is taken. NULL: there is no memory. */
static struct session_recalled *make_room(const struct session_sought *sought)
{
	struct session_shard *shard = sought->shard;
	struct session_recalled *cell =
	    shard->recalls ? choose(bucket_of(shard->recalls, sought->hash), sought->now) : NULL;

	if (cell && !is_taken(cell, sought->now))
		return cell;
	return grow(shard) ? make_room(sought) : cell;
}

/* ---- What the other files call: the shard's lock is held */

void ww_session_recall_keep(const struct session_sought *sought, uint64_t end, uint64_t until)
{
	struct session_shard *shard = sought->shard;
	const struct ww_allocator *allocator = shard->session->allocator;
	const struct session_recalled made = {sought->hash, end, until, NULL, (uint32_t)sought->length};
	const struct session_recalled *lost;
	struct session_recalled *cell = find(sought);
	unsigned char *key;

	if (cell)
		empty(shard, cell);
	else if (sought->length <= KEY_MOST)
		cell = make_room(sought);
	if (cell && is_taken(cell, sought->now) && is_less(&made, cell, sought->now))
		cell = NULL;
	key = cell ? allocator->allocate(allocator->user, sought->length + 1) : NULL;
	lost = key ? cell : &made;
	shard->recalls_dropped += lost->end <= sought->now && (!key || is_taken(cell, sought->now));
	if (!key)
		return;
	empty(shard, cell);
	memcpy(key, sought->key, sought->length);
	shard->recall_bytes += sought->length + 1;
	*cell = made;
	/* Last: a child that is forked meanwhile frees keys by length. */
	atomic_signal_fence(memory_order_release);
	cell->key = key;
}

void ww_session_recall_expired(struct session_shard *shard, struct session_entry *entry, uint64_t deadline)
{
	struct ww_session *session = shard->session;
	uint64_t end = session->recall && session->at_end ? *entry_end(session, entry) : END_NONE;
	struct session_sought sought;

	if (end == END_NONE)
		return;
	sought = session_seek(session, entry_key(entry), entry->length, deadline);
	ww_session_recall_keep(&sought, end, deadline + session->recall);
}

uint64_t ww_session_recall_end(const struct session_sought *sought, struct session_entry *expired)
{
	const struct ww_session *session = sought->shard->session;
	const struct session_recalled *cell;

	if (!session->recall || !session->at_end)
		return END_NONE;
	/* It waits for the driver. */
	if (expired)
		return entry_deadline(sought->shard, expired) + session->recall > sought->now
		           ? *entry_end(session, expired)
		           : END_NONE;
	cell = find(sought);
	return cell && cell->until > sought->now ? cell->end : END_NONE;
}

void ww_session_recall_forget(const struct session_sought *sought)
{
	struct session_recalled *cell = find(sought);

	if (cell)
		empty(sought->shard, cell);
}

void ww_session_recall_forget_all(struct session_shard *shard)
{
	for (size_t i = 0; shard->recalls && i < shard->recalls->cells; i++)
		empty(shard, &shard->recalls->cell[i]);
}

void ww_session_recall_free(struct session_shard *shard)
{
	const struct ww_allocator *allocator = shard->session->allocator;
	struct session_recalls *recalls = shard->recalls;

	ww_session_recall_forget_all(shard);
	/* In this order a child of the process frees it at most once. */
	shard->recalls = NULL;
	atomic_signal_fence(memory_order_release);
	if (recalls)
		allocator->free(allocator->user, recalls, size_of(recalls->cells));
}

int ww_session_recall_visit(struct session_shard *shard, size_t *next, ww_recalled_fn *fn, void *context, int *answer)
{
	uint64_t now = ww_driver_time(shard->session->driver);
	const struct session_recalls *recalls = shard->recalls;

	/* Any number may come as a cursor. */
	*next -= *next % CELLS;
	if (!recalls || *next >= recalls->cells)
		return 0;
	for (unsigned i = 0; i < CELLS; i++) {
		const struct session_recalled *cell = &recalls->cell[*next + i];
		if (!*answer && cell->key && cell->until > now)
			*answer = fn(cell->key, cell->length, cell->end, cell->until, context);
	}
	if (!*answer)
		*next += CELLS;
	return 1;
}
