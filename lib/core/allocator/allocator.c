/*
 * The default table and the arenas: on jemalloc where the process has it, on malloc otherwise. The choice is made once,
 * when the library is loaded: no block is taken from one and given back to the other.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "weekwheel/allocator.h"

#define ALIGNMENT ((size_t)64)
/* A block of this size gets this alignment: it may become one huge page. */
#define HUGE_PAGE ((size_t)2 << 20)

struct ww_arena {
	struct ww_allocator table;
	atomic_size_t used;
	/* With jemalloc: the number of its arena, and flags of every call for a block of it. */
	unsigned index;
	int flags;
	/* With malloc, which has no arenas: a list of the blocks. */
	pthread_mutex_t lock;
	struct head *blocks;
};

static void count(struct ww_arena *arena, size_t bytes)
{
	atomic_fetch_add_explicit(&arena->used, bytes, memory_order_relaxed);
}

/* ---- jemalloc --------------------------------------------------------------------------------------------------- */

/*
 * The library neither links jemalloc nor needs its header. A weak name stays NULL unless the program or one of its
 * libraries brings it.
 */
extern void *mallocx(size_t size, int flags) __attribute__((weak));
extern void sdallocx(void *block, size_t size, int flags) __attribute__((weak));
extern size_t sallocx(const void *block, int flags) __attribute__((weak));
extern int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size) __attribute__((weak));

/*
 * The dynamic linker fills this table when it loads the library. It may bind a call by name later, at the first call,
 * when dlopen has brought another jemalloc. volatile keeps the compiler from replacing a call through the table by a
 * call by name.
 */
static const volatile struct {
	void *(*mallocx)(size_t size, int flags);
	void (*sdallocx)(void *block, size_t size, int flags);
	size_t (*sallocx)(const void *block, int flags);
	int (*mallctl)(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
} jemalloc = {mallocx, sdallocx, sallocx, mallctl};

/* MALLOCX_LG_ALIGN(6), MALLOCX_TCACHE_NONE and MALLOCX_ARENA(index) of jemalloc's header, which are part of its ABI. */
#define ALIGNED 6
#define ALIGNED_HUGE 21
#define NO_CACHE (1 << 8)
#define IN_ARENA(index) ((int)(((index) + 1) << 20))

/* jemalloc 3 has some of the names, and a program may have a mallocx of its own. */
static int has_jemalloc(void)
{
	return jemalloc.mallocx != NULL && jemalloc.sdallocx != NULL && jemalloc.sallocx != NULL &&
	       jemalloc.mallctl != NULL;
}

static int flags_of(const struct ww_arena *arena, size_t size)
{
	int flags = size == HUGE_PAGE ? ALIGNED_HUGE : ALIGNED;

	return arena == NULL ? flags : flags | arena->flags;
}

/* user is the arena, or NULL for the default table. */
static void *jemalloc_allocate(void *user, size_t size)
{
	struct ww_arena *arena = user;
	int flags = flags_of(arena, size);
	/* jemalloc leaves a size of 0 undefined. */
	void *block = size == 0 ? NULL : jemalloc.mallocx(size, flags);

	if (arena != NULL && block != NULL)
		count(arena, jemalloc.sallocx(block, flags));
	return block;
}

static void jemalloc_free(void *user, void *block, size_t size)
{
	struct ww_arena *arena = user;
	int flags = flags_of(arena, size);

	if (arena != NULL)
		count(arena, -jemalloc.sallocx(block, flags));
	jemalloc.sdallocx(block, size, flags);
}

/* ---- malloc ----------------------------------------------------------------------------------------------------- */

/* In front of each block of an arena. */
struct head {
	struct head *next;
	struct head **pprev;
};

_Static_assert(sizeof(struct head) <= ALIGNMENT, "a head fits in front of a block without moving its alignment");

/* aligned_alloc wants whole multiples of the alignment. */
static size_t round_up(size_t size)
{
	return (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static void *malloc_allocate(void *user, size_t size)
{
	(void)user;
	if (size == 0 || size > PTRDIFF_MAX - 2 * ALIGNMENT)
		return NULL;
	return aligned_alloc(size == HUGE_PAGE ? HUGE_PAGE : ALIGNMENT, round_up(size));
}

static void malloc_free(void *user, void *block, size_t size)
{
	(void)user;
	(void)size;
	free(block);
}

static void *malloc_arena_allocate(void *user, size_t size)
{
	struct ww_arena *arena = user;
	struct head *head = size == 0 || size > PTRDIFF_MAX ? NULL : malloc_allocate(NULL, ALIGNMENT + size);

	if (head == NULL)
		return NULL;
	count(arena, ALIGNMENT + round_up(size));
	pthread_mutex_lock(&arena->lock);
	head->next = arena->blocks;
	head->pprev = &arena->blocks;
	if (head->next != NULL)
		head->next->pprev = &head->next;
	arena->blocks = head;
	pthread_mutex_unlock(&arena->lock);
	return (char *)head + ALIGNMENT;
}

static void malloc_arena_free(void *user, void *block, size_t size)
{
	struct ww_arena *arena = user;
	struct head *head = (struct head *)(void *)((char *)block - ALIGNMENT);

	count(arena, -(ALIGNMENT + round_up(size)));
	pthread_mutex_lock(&arena->lock);
	*head->pprev = head->next;
	if (head->next != NULL)
		head->next->pprev = head->pprev;
	pthread_mutex_unlock(&arena->lock);
	free(head);
}

/* ---- Either ----------------------------------------------------------------------------------------------------- */

const struct ww_allocator *ww_allocator_default(void)
{
	static const struct ww_allocator on_jemalloc = {jemalloc_allocate, jemalloc_free, NULL};
	static const struct ww_allocator on_malloc = {malloc_allocate, malloc_free, NULL};

	return has_jemalloc() ? &on_jemalloc : &on_malloc;
}

const char *ww_allocator_name(void)
{
	return has_jemalloc() ? "jemalloc" : "malloc";
}

int ww_arena_create(struct ww_arena **arena)
{
	const struct ww_allocator *memory = ww_allocator_default();
	struct ww_arena *made;
	unsigned index = 0;
	size_t size = sizeof index;
	int error;

	if (arena == NULL)
		return WW_EINVAL;
	made = memory->allocate(NULL, sizeof *made);
	if (made == NULL)
		return WW_ENOMEM;
	atomic_init(&made->used, 0);
	if (has_jemalloc()) {
		made->table = (struct ww_allocator){jemalloc_allocate, jemalloc_free, made};
		error = jemalloc.mallctl("arenas.create", &index, &size, NULL, 0);
		made->index = index;
		/* A thread's cache would keep freed blocks of the arena beyond its end. */
		made->flags = NO_CACHE | IN_ARENA(index);
	} else {
		made->table = (struct ww_allocator){malloc_arena_allocate, malloc_arena_free, made};
		error = pthread_mutex_init(&made->lock, NULL);
		made->blocks = NULL;
	}
	if (error != 0) {
		memory->free(NULL, made, sizeof *made);
		return WW_ENOMEM;
	}
	*arena = made;
	return WW_OK;
}

void ww_arena_destroy(struct ww_arena *arena)
{
	char name[sizeof "arena.4294967295.destroy"];

	if (arena == NULL)
		return;
	if (has_jemalloc()) {
		snprintf(name, sizeof name, "arena.%u.destroy", arena->index);
		/* Fails only for an index that is no arena's, or one that is a thread's own: this is neither. */
		(void)jemalloc.mallctl(name, NULL, NULL, NULL, 0);
	} else {
		for (struct head *head = arena->blocks, *next; head != NULL; head = next) {
			next = head->next;
			free(head);
		}
		pthread_mutex_destroy(&arena->lock);
	}
	ww_allocator_default()->free(NULL, arena, sizeof *arena);
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
