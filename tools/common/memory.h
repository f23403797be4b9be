#ifndef TOOLS_COMMON_MEMORY_H
#define TOOLS_COMMON_MEMORY_H

/*
 * Memory for a program that cannot go on without it: every function returns memory, or ends the program with a message
 * and status 1. Nothing in the tools has to test for NULL.
 */

#include <stddef.h>

/* Return `count` objects of `size` bytes, zeroed; free() gives them back. */
void *memory_zeroed(size_t count, size_t size);

/* Return the array resized to `count` objects of `size` bytes. */
void *memory_resize(void *array, size_t count, size_t size);

/* Return the array, made larger where needed so that it holds `count` + 1 objects; *capacity follows. */
void *memory_grow(void *array, size_t *capacity, size_t count, size_t size);

/* Return `count` zeroed objects of `size` bytes that begin at a cache line; free() gives them back. */
void *memory_aligned(size_t count, size_t size);

/* Say that memory has run out, and exit. */
_Noreturn void memory_exhausted(void);

#endif
