#ifndef TOOLS_COMMON_MEMORY_H
#define TOOLS_COMMON_MEMORY_H

/*
 * Memory for programs that cannot go on without it. Every function returns memory, or ends the program with a message and
 * status 1. No caller tests for NULL.
 */

#include <stddef.h>

/* Return `count` zeroed objects of `size` bytes, for free(). */
void *memory_zeroed(size_t count, size_t size);

/* Return the array resized to `count` objects of `size` bytes. */
void *memory_resize(void *array, size_t count, size_t size);

/* Return the array, enlarged if needed, with room for `count` + 1 objects. *capacity is the room it has. */
void *memory_grow(void *array, size_t *capacity, size_t count, size_t size);

/* Return `count` zeroed objects of `size` bytes that begin at a cache line, for free(). */
void *memory_aligned(size_t count, size_t size);

/* Exit with a message that memory has run out. */
_Noreturn void memory_exhausted(void);

#endif
