/* The one file that knows jemalloc. lib/core/allocator/malloc.c takes its place in a build --without-jemalloc. */

#include <jemalloc/jemalloc.h>
#include <stdatomic.h>
#include <stdio.h>

#include "weekwheel/allocator.h"

/* 64 bytes, as allocator.h promises. MALLOCX_ALIGN(64) would need ffs(), which is not C11. */
#define ALIGNED MALLOCX_LG_ALIGN(6)

struct ww_arena {
	struct ww_allocator table;
	int flags; /* for every call that concerns a block of this arena */
	unsigned index;
	atomic_size_t used;
};

static void *default_allocate(void *user, size_t size)
{
	(void)user;
	/* jemalloc leaves a size of 0 undefined. */
	return size == 0 ? NULL : mallocx(size, ALIGNED);
}

static void default_free(void *user, void *block, size_t size)
{
	(void)user;
	sdallocx(block, size, ALIGNED);
}

const struct ww_allocator *ww_allocator_default(void)
{
	static const struct ww_allocator table = {default_allocate, default_free, NULL};

	return &table;
}

const char *ww_allocator_name(void)
{
	return "jemalloc";
}

static void *arena_allocate(void *user, size_t size)
{
	struct ww_arena *arena = user;
	void *block;

	if (size == 0)
		return NULL;
	block = mallocx(size, arena->flags);
	if (block != NULL)
		atomic_fetch_add_explicit(&arena->used, sallocx(block, arena->flags), memory_order_relaxed);
	return block;
}

static void arena_free(void *user, void *block, size_t size)
{
	struct ww_arena *arena = user;

	atomic_fetch_sub_explicit(&arena->used, sallocx(block, arena->flags), memory_order_relaxed);
	sdallocx(block, size, arena->flags);
}

int ww_arena_create(struct ww_arena **arena)
{
	struct ww_arena *made;
	unsigned index;
	size_t index_size = sizeof index;

	if (arena == NULL)
		return WW_EINVAL;
	made = mallocx(sizeof *made, ALIGNED);
	if (made == NULL)
		return WW_ENOMEM;
	if (mallctl("arenas.create", &index, &index_size, NULL, 0) != 0) {
		sdallocx(made, sizeof *made, ALIGNED);
		return WW_ENOMEM;
	}
	made->table.allocate = arena_allocate;
	made->table.free = arena_free;
	made->table.user = made;
	/* A thread's cache would keep freed blocks of the arena beyond its end. */
	made->flags = ALIGNED | MALLOCX_ARENA(index) | MALLOCX_TCACHE_NONE;
	made->index = index;
	atomic_init(&made->used, 0);
	*arena = made;
	return WW_OK;
}

void ww_arena_destroy(struct ww_arena *arena)
{
	char name[sizeof("arena.4294967295.destroy")];

	if (arena == NULL)
		return;
	snprintf(name, sizeof name, "arena.%u.destroy", arena->index);
	/* Fails only for an index that is no arena's, or one that is a thread's own: this is neither. */
	(void)mallctl(name, NULL, NULL, NULL, 0);
	sdallocx(arena, sizeof *arena, ALIGNED);
}

const struct ww_allocator *ww_arena_allocator(struct ww_arena *arena)
{
	return arena == NULL ? NULL : &arena->table;
}

int ww_arena_used(const struct ww_arena *arena, size_t *bytes)
{
	if (arena == NULL || bytes == NULL)
		return WW_EINVAL;
	*bytes = atomic_load_explicit(&arena->used, memory_order_relaxed);
	return WW_OK;
}
