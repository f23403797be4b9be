#ifndef TESTS_SUPPORT_MEMORY_H
#define TESTS_SUPPORT_MEMORY_H

/* An allocator that counts, and that fails when told to. */

#include <stdint.h>
#include <stdlib.h>

#include "weekwheel/allocator.h"

struct test_memory {
	struct ww_allocator table;
	size_t calls;     /* number of allocations requested */
	size_t fail_at;   /* the call that fails, counted from 1; 0: none */
	size_t blocks;    /* live blocks */
	size_t bytes;     /* their requested sizes */
	size_t last_size; /* the last requested size */
};

static inline void *test_memory_allocate(void *user, size_t size)
{
	struct test_memory *memory = user;
	void *block;

	memory->calls++;
	memory->last_size = size;
	if (memory->calls == memory->fail_at) {
		return NULL;
	}
	block = aligned_alloc(64, (size + 63) & ~(size_t)63);
	if (block != NULL) {
		memory->blocks++;
		memory->bytes += size;
	}
	return block;
}

static inline void test_memory_free(void *user, void *block, size_t size)
{
	struct test_memory *memory = user;

	memory->blocks--;
	memory->bytes -= size;
	free(block);
}

static inline void test_memory_init(struct test_memory *memory, size_t fail_at)
{
	*memory = (struct test_memory){{test_memory_allocate, test_memory_free, memory}, 0, fail_at, 0, 0, 0};
}

#endif
