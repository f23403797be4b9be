#ifndef LIB_BASE_MEMORY_H
#define LIB_BASE_MEMORY_H

/* Memory of an allocator. */

#include <stddef.h>
#include <string.h>

#include "weekwheel/allocator.h"

static inline void *memory_take(const struct ww_allocator *allocator, size_t size)
{
	return allocator->allocate(allocator->user, size);
}

static inline void *memory_take_zeroed(const struct ww_allocator *allocator, size_t size)
{
	void *block = memory_take(allocator, size);

	return block ? memset(block, 0, size) : NULL;
}

/* NULL is harmless. */
static inline void memory_give(const struct ww_allocator *allocator, void *block, size_t size)
{
	if (block)
		allocator->free(allocator->user, block, size);
}

#endif
