/*
 * The allocator of a build --without-jemalloc; otherwise lib/core/allocator/jemalloc.c takes its place.
 * malloc has no arenas, so that an arena here is a list of its blocks: each has a head, of the size of the alignment,
 * in front of what the caller gets.
 */

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "weekwheel/allocator.h"

#define ALIGNMENT ((size_t)64)

struct head {
	struct head *next;
	struct head **pprev;
	size_t bytes;
};

struct ww_arena {
	struct ww_allocator table;
	pthread_mutex_t lock;
	struct head *blocks;
	size_t used;
};

_Static_assert(sizeof(struct head) <= ALIGNMENT, "a head fits in front of a block without moving its alignment");

/* aligned_alloc wants whole multiples of the alignment. Answers 0 for a size that cannot be. */
static size_t round_up(size_t size)
{
	if (size == 0 || size > PTRDIFF_MAX - 2 * ALIGNMENT)
		return 0;
	return (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static void *default_allocate(void *user, size_t size)
{
	size_t bytes = round_up(size);

	(void)user;
	return bytes == 0 ? NULL : aligned_alloc(ALIGNMENT, bytes);
}

static void default_free(void *user, void *block, size_t size)
{
	(void)user;
	(void)size;
	free(block);
}

const struct ww_allocator *ww_allocator_default(void)
{
	static const struct ww_allocator table = {default_allocate, default_free, NULL};

	return &table;
}

const char *ww_allocator_name(void)
{
	return "malloc";
}

static void *arena_allocate(void *user, size_t size)
{
	struct ww_arena *arena = user;
	size_t bytes = round_up(size);
	struct head *head;

	if (bytes == 0)
		return NULL;
	bytes += ALIGNMENT;
	head = aligned_alloc(ALIGNMENT, bytes);
	if (head == NULL)
		return NULL;
	head->bytes = bytes;

	pthread_mutex_lock(&arena->lock);
	head->next = arena->blocks;
	head->pprev = &arena->blocks;
	if (head->next != NULL)
		head->next->pprev = &head->next;
	arena->blocks = head;
	arena->used += bytes;
	pthread_mutex_unlock(&arena->lock);

	return (char *)head + ALIGNMENT;
}

static void arena_free(void *user, void *block, size_t size)
{
	struct ww_arena *arena = user;
	struct head *head = (struct head *)(void *)((char *)block - ALIGNMENT);

	(void)size;
	pthread_mutex_lock(&arena->lock);
	*head->pprev = head->next;
	if (head->next != NULL)
		head->next->pprev = head->pprev;
	arena->used -= head->bytes;
	pthread_mutex_unlock(&arena->lock);

	free(head);
}

int ww_arena_create(struct ww_arena **arena)
{
	struct ww_arena *made;

	if (arena == NULL)
		return WW_EINVAL;
	made = default_allocate(NULL, sizeof *made);
	if (made == NULL)
		return WW_ENOMEM;
	if (pthread_mutex_init(&made->lock, NULL) != 0) {
		free(made);
		return WW_ENOMEM;
	}
	made->table.allocate = arena_allocate;
	made->table.free = arena_free;
	made->table.user = made;
	made->blocks = NULL;
	made->used = 0;
	*arena = made;
	return WW_OK;
}

void ww_arena_destroy(struct ww_arena *arena)
{
	struct head *head, *next;

	if (arena == NULL)
		return;
	for (head = arena->blocks; head != NULL; head = next) {
		next = head->next;
		free(head);
	}
	pthread_mutex_destroy(&arena->lock);
	free(arena);
}

const struct ww_allocator *ww_arena_allocator(struct ww_arena *arena)
{
	return arena == NULL ? NULL : &arena->table;
}

int ww_arena_used(const struct ww_arena *arena, size_t *bytes)
{
	struct ww_arena *locked = (struct ww_arena *)(uintptr_t)arena;

	if (arena == NULL || bytes == NULL)
		return WW_EINVAL;
	pthread_mutex_lock(&locked->lock);
	*bytes = locked->used;
	pthread_mutex_unlock(&locked->lock);
	return WW_OK;
}
