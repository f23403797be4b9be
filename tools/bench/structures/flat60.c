/*
 * The ring of heartbeats: 60 slots of a tick each, every slot a set of keys, and a map that finds a key's place.
 *
 *     key --map--> entry <--> entry <--> slot 17      the hand empties a slot a tick; who is in it, was silent
 *
 * A heartbeat looks its key up, takes it out of its old slot's set and puts it into the one a timeout ahead. There are
 * no rounds and no deadlines, so a delay cannot be longer than one turn. A key is the number of a connection. The map
 * is uthash; and so that a key leaves its set without a search, an entry of the map is its link in the set as well.
 */
#include <stdlib.h>

#include "tools/bench/structure.h"
#include "tools/common/memory.h"

#define uthash_fatal(text) memory_exhausted()
#include <uthash.h>

enum { SLOTS = 60 };

struct flat_connection {
	uint64_t key;
};

struct link {
	struct link *next, *previous;
};

struct flat_entry {
	struct link link; /* in its slot's set, or next in the free ones; first, so that a link is its entry */
	uint64_t key;
	struct object *object;
	UT_hash_handle hh;
};

struct flat_ring {
	struct sink *sink;
	struct flat_entry *map, *entry;
	struct link *free;
	uint64_t now;
	struct link slot[SLOTS]; /* rings through the sets of which these are the ends */
};

static uint64_t key_of(struct object *object)
{
	return ((struct flat_connection *)(void *)object)->key;
}

static void link_into(struct link *set, struct link *link)
{
	link->next = set->next;
	link->previous = set;
	set->next->previous = link;
	set->next = link;
}

static void unlink_from_set(struct link *link)
{
	link->previous->next = link->next;
	link->next->previous = link->previous;
}

static struct link *slot_in(struct flat_ring *ring, uint64_t delay)
{
	return &ring->slot[(ring->now + delay) % SLOTS];
}

static struct flat_entry *find(const struct flat_ring *ring, struct object *object)
{
	uint64_t key = key_of(object);
	struct flat_entry *found;

	HASH_FIND(hh, ring->map, &key, sizeof key, found);
	return found;
}

static void map_add(struct flat_ring *ring, struct flat_entry *entry)
{
	HASH_ADD(hh, ring->map, key, sizeof entry->key, entry);
}

static void map_delete(struct flat_ring *ring, struct flat_entry *entry)
{
	HASH_DEL(ring->map, entry);
	entry->link.next = ring->free;
	ring->free = &entry->link;
}

/*
 * The map grows to its full size here: all keys are added and deleted again. The last entry, with a key that nobody
 * has, stays for good, because uthash gives its table back when it becomes empty.
 */
static void map_create(struct flat_ring *ring, uint64_t n)
{
	ring->entry = memory_aligned(n + 1, sizeof *ring->entry);
	for (uint64_t i = 0; i <= n; i++) {
		ring->entry[i].key = i;
		map_add(ring, &ring->entry[i]);
	}
	for (uint64_t i = n; i-- > 0;)
		map_delete(ring, &ring->entry[i]);
}

static void *flat60_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct flat_ring *ring = memory_zeroed(1, sizeof *ring);

	ring->sink = sink;
	for (int i = 0; i < SLOTS; i++)
		ring->slot[i].next = ring->slot[i].previous = &ring->slot[i];
	map_create(ring, n);
	for (uint64_t i = 0; i < n; i++)
		((struct flat_connection *)(void *)&objects[i])->key = i;
	return ring;
}

static void flat60_destroy(void *state)
{
	struct flat_ring *ring = state;

	HASH_CLEAR(hh, ring->map);
	free(ring->entry);
	free(ring);
}

static void flat60_schedule(void *state, struct object *object, uint64_t delay)
{
	struct flat_ring *ring = state;
	struct flat_entry *entry = (struct flat_entry *)ring->free;

	ring->free = entry->link.next;
	entry->key = key_of(object);
	entry->object = object;
	map_add(ring, entry);
	link_into(slot_in(ring, delay), &entry->link);
}

static void flat60_cancel(void *state, struct object *object)
{
	struct flat_entry *entry = find(state, object);

	unlink_from_set(&entry->link);
	map_delete(state, entry);
}

static void flat60_touch(void *state, struct object *object, uint64_t delay)
{
	struct flat_entry *entry = find(state, object);

	unlink_from_set(&entry->link);
	link_into(slot_in(state, delay), &entry->link);
}

static void expire_all(struct flat_ring *ring, struct link *slot)
{
	while (slot->next != slot) {
		struct flat_entry *entry = (struct flat_entry *)slot->next;

		unlink_from_set(&entry->link);
		sink_report(ring->sink, entry->object);
		map_delete(ring, entry);
	}
}

static void flat60_advance(void *state, uint64_t now)
{
	struct flat_ring *ring = state;

	while (ring->now < now) {
		ring->now++;
		expire_all(ring, slot_in(ring, 0));
	}
}

static size_t flat60_fixed_bytes(uint64_t horizon)
{
	(void)horizon;
	return sizeof(struct flat_ring);
}

const struct structure structure_flat60 = {
    .name = "flat60",
    .summary = "a ring of 60 slots and a map from keys",
    .longest = SLOTS,
    .create = flat60_create,
    .destroy = flat60_destroy,
    .schedule = flat60_schedule,
    .cancel = flat60_cancel,
    .touch = flat60_touch,
    .advance = flat60_advance,
    .node_bytes = sizeof(struct flat_connection),
    /* With a bucket a key, which is what the map has at a million; it has less, down to a quarter, at others. */
    .own_bytes = sizeof(struct flat_entry) + sizeof(UT_hash_bucket),
    .fixed_bytes = flat60_fixed_bytes,
};
