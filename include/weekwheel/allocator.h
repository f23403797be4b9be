#ifndef WEEKWHEEL_ALLOCATOR_H
#define WEEKWHEEL_ALLOCATOR_H

/*
 * Where weekwheel's memory comes from: a table of two functions, and arenas that report how much they use.
 *
 * The library asks for memory only where a header says so; timers are the caller's. A caller that passes no table gets
 * the default one. An arena is for an owner of many blocks: its memory is counted exactly and given back as a whole.
 *
 * The default table and the arenas use jemalloc (5 or later) if the process has it when the library is loaded, and
 * malloc otherwise. The library itself links nothing but the C library. A program takes jemalloc by linking it:
 *     cc program.c -lweekwheel -Wl,--no-as-needed -ljemalloc
 * LD_PRELOAD does the same for a program that links libweekwheel.so. The choice holds as long as the library is loaded.
 * A jemalloc that dlopen brings later is not used, nor is one whose names have a prefix.
 *
 * The default table aligns a block of 2 MiB to its size, and so do arenas on jemalloc: it can be one huge page. Session
 * maps ask the system for that. A table of the caller's should do the same if its maps are large.
 *
 * Errors: 0 or a negative WW_E*; on error nothing has changed.
 * Threads: a table and an arena may be used from any threads at once, except ww_arena_destroy.
 */

#include <stddef.h>

#include "weekwheel/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * allocate returns a block of at least size bytes, aligned to 64 bytes, or NULL. free takes back a block, with the size
 * that was requested for it; it is never called with NULL. user is passed through. The table must outlive all that was
 * made with it; it is not copied.
 */
struct ww_allocator {
	void *(*allocate)(void *user, size_t size);
	void (*free)(void *user, void *block, size_t size);
	void *user;
};

/*
 * Return the default table: jemalloc's if the process has jemalloc, malloc's otherwise.
 * Lifetime: the life of the process. Threads: any. O(1), allocates nothing, never NULL.
 */
WW_API const struct ww_allocator *ww_allocator_default(void);

/* Name the allocator behind the default table and the arenas: "jemalloc" or "malloc". Constant, never NULL. */
WW_API const char *ww_allocator_name(void);

struct ww_arena;

/*
 * Make an empty arena and store it in *arena.
 * Ownership: the caller's, until ww_arena_destroy.
 * Errors: WW_EINVAL: arena is NULL. WW_ENOMEM: no memory, or no more arenas.
 */
WW_API int ww_arena_create(struct ww_arena **arena);

/*
 * Give back every block of the arena, freed or not, and the arena itself. NULL is harmless.
 * No other thread may use the arena or a block of it during the call or after it. O(blocks) with malloc.
 */
WW_API void ww_arena_destroy(struct ww_arena *arena);

/*
 * Return the arena's table, to be passed wherever a struct ww_allocator is wanted; NULL for NULL.
 * Lifetime: the arena's.
 */
WW_API const struct ww_allocator *ww_arena_allocator(struct ww_arena *arena);

/*
 * Store in *bytes what the arena's live blocks take: the bytes actually set aside for them, rounding included, which is
 * at least the sum of the requested sizes. 0 when every block was freed. O(1).
 * Errors: WW_EINVAL: arena or bytes is NULL.
 */
WW_API int ww_arena_used(const struct ww_arena *arena, size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
