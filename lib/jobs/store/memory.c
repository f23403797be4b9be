/*
 * The store in memory: each table is a skip list (Pugh 1990), and a log has the changes of a write.
 *
 *     level 2   head ----------------> c ------------------->
 *     level 1   head ------> b ------> c ------------------->
 *     level 0   head -> a -> b -> .. > c -> d -> e
 *
 * A change keeps the pair that it replaces or removes, and an abort puts it back. Ids, and most due times, grow: a key
 * after all others is not searched for, but goes after the last node of each level.
 */
#include <string.h>

#include "lib/base/random.h"
#include "lib/jobs/store/store.h"

enum { LEVELS = 16, BRANCH = 4 };

struct node {
	uint64_t prefix; /* the first bytes of the key as a number: most comparisons end here */
	uint32_t value_size;
	uint16_t key_size;
	uint8_t levels;
	struct node *next[]; /* then key and value */
};

/* A table. */
struct list {
	struct node *head;
	struct node *last[LEVELS]; /* of each level */
	struct node *at;           /* the pair that was read last by seek, before or next */
	unsigned levels;           /* that have nodes, at least 1 */
};

/* An entry of the log. */
struct change {
	enum store_table table;
	struct node *was; /* unlinked; NULL: there was none */
	struct node *is;  /* linked; NULL: removed */
};

struct memory {
	const struct ww_allocator *allocator;
	struct list list[STORE_TABLES];
	struct change *changes; /* of the write under way */
	size_t count;
	size_t room;
	uint64_t random;
	size_t bytes;
};

static void *allocate(struct memory *memory, size_t size)
{
	void *block = memory->allocator->allocate(memory->allocator->user, size);

	if (block)
		memory->bytes += size;
	return block;
}

static void give(struct memory *memory, void *block, size_t size)
{
	if (!block)
		return;
	memory->bytes -= size;
	memory->allocator->free(memory->allocator->user, block, size);
}

/* ---- Nodes */

static uint64_t prefix_of(struct store_bytes key)
{
	unsigned char bytes[8] = {0};

	if (key.size >= sizeof bytes)
		return store_read64(key.data);
	if (key.size)
		memcpy(bytes, key.data, key.size);
	return store_read64(bytes);
}

static struct store_bytes key_of(const struct node *node)
{
	return (struct store_bytes){node->next + node->levels, node->key_size};
}

static struct store_bytes value_of(const struct node *node)
{
	return (struct store_bytes){(const char *)(node->next + node->levels) + node->key_size, node->value_size};
}

static size_t size_of(const struct node *node)
{
	return sizeof *node + node->levels * sizeof(struct node *) + node->key_size + node->value_size;
}

/* Below 0: the node's key is less. */
static int compare(const struct node *node, uint64_t prefix, struct store_bytes key)
{
	if (node->prefix != prefix)
		return node->prefix < prefix ? -1 : 1;
	return store_compare(key_of(node), key);
}

static unsigned draw_levels(struct memory *memory)
{
	unsigned levels = 1;

	for (uint64_t bits = random_next(&memory->random); levels < LEVELS && bits % BRANCH == 0; bits /= BRANCH)
		levels++;
	return levels;
}

static struct node *make_node(struct memory *memory, unsigned levels, struct store_bytes key, struct store_bytes value)
{
	struct node shape = {.prefix = prefix_of(key),
	    .value_size = (uint32_t)value.size,
	    .key_size = (uint16_t)key.size,
	    .levels = (uint8_t)levels};
	struct node *node = allocate(memory, size_of(&shape));
	char *bytes;

	if (!node)
		return NULL;
	*node = shape;
	memset(node->next, 0, levels * sizeof(struct node *));
	bytes = (char *)(node->next + levels);
	if (key.size)
		memcpy(bytes, key.data, key.size);
	if (value.size)
		memcpy(bytes + key.size, value.data, value.size);
	return node;
}

/* Find the last node of each level whose key is less. Returns the node after it at level 0. */
static struct node *find_path(
    const struct memory *memory, enum store_table table, struct store_bytes key, struct node **path)
{
	const struct list *list = &memory->list[table];
	uint64_t prefix = prefix_of(key);
	struct node *node = list->head;
	const struct node *not_less = NULL;

	if (list->last[0] != list->head && compare(list->last[0], prefix, key) < 0) {
		memcpy(path, list->last, sizeof list->last);
		return NULL;
	}
	for (unsigned level = list->levels; level < LEVELS; level++)
		path[level] = list->head;
	for (unsigned level = list->levels; level-- > 0;) {
		struct node *next = node->next[level];
		while (next != not_less && next && compare(next, prefix, key) < 0) {
			node = next;
			next = node->next[level];
		}
		not_less = next;
		path[level] = node;
	}
	return node->next[0];
}

static void link_node(struct list *list, struct node *const *path, struct node *node)
{
	for (unsigned level = 0; level < node->levels; level++) {
		node->next[level] = path[level]->next[level];
		path[level]->next[level] = node;
		if (!node->next[level])
			list->last[level] = node;
	}
	if (node->levels > list->levels)
		list->levels = node->levels;
}

static void unlink_node(struct list *list, struct node *const *path, const struct node *node)
{
	for (unsigned level = 0; level < node->levels; level++) {
		path[level]->next[level] = node->next[level];
		if (!node->next[level])
			list->last[level] = path[level];
	}
}

/* The path of the key, and the node that has it or NULL. */
static struct node *find_node(
    const struct memory *memory, enum store_table table, struct store_bytes key, struct node **path)
{
	struct node *node = find_path(memory, table, key, path);

	return node && store_compare(key_of(node), key) == 0 ? node : NULL;
}

/* ---- The functions of store.h */

static int begin(void *self)
{
	(void)self;
	return WW_OK;
}

static void take_back(struct memory *memory, const struct change *change)
{
	struct list *list = &memory->list[change->table];
	struct node *path[LEVELS];

	(void)find_path(memory, change->table, key_of(change->is ? change->is : change->was), path);
	if (change->is)
		unlink_node(list, path, change->is);
	if (change->was)
		link_node(list, path, change->was);
}

static void end_changes(struct memory *memory, int keep)
{
	while (memory->count) {
		const struct change *change = &memory->changes[--memory->count];
		/* A pair that changed twice is `is` of the older change and `was` of the newer one. */
		struct node *dead = keep ? change->was : change->is;
		if (!keep)
			take_back(memory, change);
		if (dead)
			give(memory, dead, size_of(dead));
	}
	for (int i = 0; i < STORE_TABLES; i++)
		memory->list[i].at = NULL;
}

static int commit(void *self)
{
	end_changes(self, 1);
	return WW_OK;
}

static void abort_changes(void *self)
{
	end_changes(self, 0);
}

static void rest(void *self)
{
	(void)self;
}

static int get(void *self, enum store_table table, struct store_bytes key, struct store_bytes *value)
{
	struct node *path[LEVELS];
	const struct node *node = find_node(self, table, key, path);

	if (!node)
		return WW_ENOTFOUND;
	*value = value_of(node);
	return WW_OK;
}

static int room(void *self, size_t size)
{
	(void)self;
	(void)size;
	return WW_OK;
}

static int room_for_change(struct memory *memory)
{
	size_t room = memory->room ? 2 * memory->room : 64;
	struct change *more;

	if (memory->count < memory->room)
		return WW_OK;
	more = allocate(memory, room * sizeof *more);
	if (!more)
		return WW_ENOMEM;
	if (memory->count)
		memcpy(more, memory->changes, memory->count * sizeof *more);
	give(memory, memory->changes, memory->room * sizeof *more);
	memory->changes = more;
	memory->room = room;
	return WW_OK;
}

static void change(
    struct memory *memory, enum store_table table, struct node *const *path, struct node *was, struct node *is)
{
	struct list *list = &memory->list[table];

	memory->changes[memory->count++] = (struct change){table, was, is};
	list->at = NULL;
	if (was)
		unlink_node(list, path, was);
	if (is)
		link_node(list, path, is);
}

static int put(void *self, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	struct memory *memory = self;
	struct node *path[LEVELS];
	struct node *node;

	if (room_for_change(memory))
		return WW_ENOMEM;
	node = make_node(memory, draw_levels(memory), key, value);
	if (!node)
		return WW_ENOMEM;
	change(memory, table, path, find_node(memory, table, key, path), node);
	return WW_OK;
}

static int remove_pair(void *self, enum store_table table, struct store_bytes key)
{
	struct memory *memory = self;
	struct node *path[LEVELS];
	struct node *node = find_node(memory, table, key, path);

	if (!node)
		return WW_ENOTFOUND;
	if (room_for_change(memory))
		return WW_ENOMEM;
	change(memory, table, path, node, NULL);
	return WW_OK;
}

static int hand_out(struct memory *memory, enum store_table table, struct node *node, struct store_bytes *key,
    struct store_bytes *value)
{
	memory->list[table].at = node;
	if (!node)
		return WW_ENOTFOUND;
	*key = key_of(node);
	*value = value_of(node);
	return WW_OK;
}

static int seek(
    void *self, enum store_table table, struct store_bytes from, struct store_bytes *key, struct store_bytes *value)
{
	struct node *path[LEVELS];

	return hand_out(self, table, find_path(self, table, from, path), key, value);
}

static int before(
    void *self, enum store_table table, struct store_bytes to, struct store_bytes *key, struct store_bytes *value)
{
	const struct memory *memory = self;
	struct node *path[LEVELS];

	(void)find_path(memory, table, to, path);
	return hand_out(self, table, path[0] == memory->list[table].head ? NULL : path[0], key, value);
}

static int next(void *self, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	struct memory *memory = self;
	struct node *node = memory->list[table].at;

	return hand_out(memory, table, node ? node->next[0] : NULL, key, value);
}

static int sync_nothing(void *self)
{
	(void)self;
	return WW_OK;
}

static void set_time(void *self, uint64_t elapsed, uint64_t wall)
{
	(void)self;
	(void)elapsed;
	(void)wall;
}

static uint64_t disk(void *self)
{
	(void)self;
	return 0;
}

static int fault(void *self, char text[WW_FAULT_MAX])
{
	(void)self;
	if (text)
		text[0] = 0;
	return WW_OK;
}

static int close_store(void *self)
{
	struct memory *memory = self;
	struct node *after;

	end_changes(memory, 1);
	give(memory, memory->changes, memory->room * sizeof *memory->changes);
	for (int i = 0; i < STORE_TABLES; i++)
		for (struct node *node = memory->list[i].head; node; node = after) {
			after = node->next[0];
			give(memory, node, size_of(node));
		}
	memory->allocator->free(memory->allocator->user, memory, sizeof *memory);
	return WW_OK;
}

static const struct store_ops memory_ops = {begin, commit, abort_changes, rest, get, room, put, remove_pair, seek,
    before, next, sync_nothing, set_time, disk, fault, close_store, NULL, NULL, NULL, NULL, NULL};

size_t ww_store_memory_bytes(const struct store *store)
{
	return ((const struct memory *)store->self)->bytes;
}

int ww_store_memory_each(const struct store *store, enum store_table table, store_pair_fn *pair, void *context)
{
	const struct memory *memory = store->self;
	int error = WW_OK;

	for (const struct node *node = memory->list[table].head->next[0]; node && !error; node = node->next[0])
		error = pair(context, key_of(node), value_of(node));
	return error;
}

int ww_store_memory_open(struct store *store, const struct ww_jobs_config *config)
{
	const struct ww_allocator *allocator = config->allocator;
	struct memory *memory = allocator->allocate(allocator->user, sizeof *memory);

	if (!memory)
		return WW_ENOMEM;
	memset(memory, 0, sizeof *memory);
	memory->allocator = allocator;
	memory->random = 1;
	for (int i = 0; i < STORE_TABLES; i++) {
		struct list *list = &memory->list[i];
		list->head = make_node(memory, LEVELS, (struct store_bytes){"", 0}, (struct store_bytes){"", 0});
		if (!list->head) {
			(void)close_store(memory);
			return WW_ENOMEM;
		}
		for (int level = 0; level < LEVELS; level++)
			list->last[level] = list->head;
		list->levels = 1;
	}
	*store = (struct store){&memory_ops, memory};
	return WW_OK;
}
