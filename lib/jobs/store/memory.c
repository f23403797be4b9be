/*
 * The store in memory: each table is a skip list (Pugh 1990), and a log has what a write has changed.
 *
 *     level 2   head ----------------> c ------------------->
 *     level 1   head ------> b ------> c ------------------->
 *     level 0   head -> a -> b -> .. > c -> d -> e
 *
 * A change keeps the pair that it replaces or removes, and an abort puts it back.
 */
#include <string.h>

#include "lib/base/random.h"
#include "lib/jobs/store/store.h"

enum { LEVELS = 16, BRANCH = 4 };

struct node {
	struct store_bytes key;
	struct store_bytes value;
	size_t size; /* of the block: the node, its links, key and value */
	unsigned levels;
	struct node *next[];
};

/* An entry of the log. */
struct change {
	struct change *older;
	enum store_table table;
	struct node *was; /* unlinked; NULL: there was none */
	struct node *is;  /* linked; NULL: removed */
};

struct memory {
	const struct ww_allocator *allocator;
	struct node *head[STORE_TABLES];
	struct node *at[STORE_TABLES]; /* the pair that was read last by seek, before or next */
	struct change *changes;
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

static unsigned draw_levels(struct memory *memory)
{
	unsigned levels = 1;

	for (uint64_t bits = random_next(&memory->random); levels < LEVELS && bits % BRANCH == 0; bits /= BRANCH)
		levels++;
	return levels;
}

static struct node *make_node(struct memory *memory, unsigned levels, struct store_bytes key, struct store_bytes value)
{
	size_t head = sizeof(struct node) + levels * sizeof(struct node *);
	size_t size = head + key.size + value.size;
	struct node *node = allocate(memory, size);
	char *bytes;

	if (!node)
		return NULL;
	bytes = (char *)node + head;
	memset(node, 0, head);
	node->size = size;
	node->levels = levels;
	node->key = (struct store_bytes){bytes, key.size};
	node->value = (struct store_bytes){bytes + key.size, value.size};
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
	struct node *node = memory->head[table];

	for (unsigned level = LEVELS; level-- > 0;) {
		while (node->next[level] && store_compare(node->next[level]->key, key) < 0)
			node = node->next[level];
		path[level] = node;
	}
	return node->next[0];
}

static void link_node(const struct memory *memory, enum store_table table, struct node *node)
{
	struct node *path[LEVELS];

	(void)find_path(memory, table, node->key, path);
	for (unsigned level = 0; level < node->levels; level++) {
		node->next[level] = path[level]->next[level];
		path[level]->next[level] = node;
	}
}

static void unlink_node(const struct memory *memory, enum store_table table, const struct node *node)
{
	struct node *path[LEVELS];

	(void)find_path(memory, table, node->key, path);
	for (unsigned level = 0; level < node->levels; level++)
		path[level]->next[level] = node->next[level];
}

static struct node *find_node(const struct memory *memory, enum store_table table, struct store_bytes key)
{
	struct node *path[LEVELS];
	struct node *node = find_path(memory, table, key, path);

	return node && store_compare(node->key, key) == 0 ? node : NULL;
}

/* ---- The functions of store.h */

static int begin(void *self)
{
	(void)self;
	return WW_OK;
}

static void end_changes(struct memory *memory, int keep)
{
	struct change *older;

	for (struct change *change = memory->changes; change; change = older) {
		older = change->older;
		if (!keep && change->is)
			unlink_node(memory, change->table, change->is);
		if (!keep && change->was)
			link_node(memory, change->table, change->was);
		/* A pair that changed twice is `is` of the older change and `was` of the newer one. */
		struct node *dead = keep ? change->was : change->is;
		if (dead)
			give(memory, dead, dead->size);
		give(memory, change, sizeof *change);
	}
	memory->changes = NULL;
	memset(memory->at, 0, sizeof memory->at);
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
	const struct node *node = find_node(self, table, key);

	if (!node)
		return WW_ENOTFOUND;
	*value = node->value;
	return WW_OK;
}

static int change(struct memory *memory, enum store_table table, struct node *was, struct node *is)
{
	struct change *change = allocate(memory, sizeof *change);

	if (!change)
		return WW_ENOMEM;
	*change = (struct change){memory->changes, table, was, is};
	memory->changes = change;
	memory->at[table] = NULL;
	if (was)
		unlink_node(memory, table, was);
	if (is)
		link_node(memory, table, is);
	return WW_OK;
}

static int put(void *self, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	struct memory *memory = self;
	struct node *node = make_node(memory, draw_levels(memory), key, value);
	int error = node ? change(memory, table, find_node(memory, table, key), node) : WW_ENOMEM;

	if (error && node)
		give(memory, node, node->size);
	return error;
}

static int remove_pair(void *self, enum store_table table, struct store_bytes key)
{
	struct node *node = find_node(self, table, key);

	return node ? change(self, table, node, NULL) : WW_ENOTFOUND;
}

static int tell(struct memory *memory, enum store_table table, struct node *node, struct store_bytes *key,
    struct store_bytes *value)
{
	memory->at[table] = node;
	if (!node)
		return WW_ENOTFOUND;
	*key = node->key;
	*value = node->value;
	return WW_OK;
}

static int seek(
    void *self, enum store_table table, struct store_bytes from, struct store_bytes *key, struct store_bytes *value)
{
	struct node *path[LEVELS];

	return tell(self, table, find_path(self, table, from, path), key, value);
}

static int before(
    void *self, enum store_table table, struct store_bytes to, struct store_bytes *key, struct store_bytes *value)
{
	const struct memory *memory = self;
	struct node *path[LEVELS];

	(void)find_path(memory, table, to, path);
	return tell(self, table, path[0] == memory->head[table] ? NULL : path[0], key, value);
}

static int next(void *self, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	struct memory *memory = self;
	struct node *node = memory->at[table];

	return tell(memory, table, node ? node->next[0] : NULL, key, value);
}

static int sync_nothing(void *self)
{
	(void)self;
	return WW_OK;
}

static void tell_time(void *self, uint64_t elapsed, uint64_t wall)
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
	for (int i = 0; i < STORE_TABLES; i++)
		for (struct node *node = memory->head[i]; node; node = after) {
			after = node->next[0];
			give(memory, node, node->size);
		}
	memory->allocator->free(memory->allocator->user, memory, sizeof *memory);
	return WW_OK;
}

static const struct store_ops memory_ops = {begin, commit, abort_changes, rest, get, put, remove_pair, seek, before,
    next, sync_nothing, tell_time, disk, fault, close_store};

size_t ww_store_memory_bytes(const struct store *store)
{
	return ((const struct memory *)store->self)->bytes;
}

int ww_store_memory_each(const struct store *store, enum store_table table, store_pair_fn *pair, void *context)
{
	const struct memory *memory = store->self;
	int error = WW_OK;

	for (const struct node *node = memory->head[table]->next[0]; node && !error; node = node->next[0])
		error = pair(context, node->key, node->value);
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
		memory->head[i] = make_node(memory, LEVELS, (struct store_bytes){"", 0}, (struct store_bytes){"", 0});
		if (!memory->head[i]) {
			(void)close_store(memory);
			return WW_ENOMEM;
		}
	}
	*store = (struct store){&memory_ops, memory};
	return WW_OK;
}
