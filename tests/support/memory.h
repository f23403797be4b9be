#ifndef TESTS_SUPPORT_MEMORY_H
#define TESTS_SUPPORT_MEMORY_H

/* An allocator, also for many threads, that counts, and that fails when told to. */

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "weekwheel/allocator.h"

struct test_memory {
	struct ww_allocator table;
	atomic_size_t calls;     /* number of allocations requested */
	atomic_size_t fail_at;   /* the call that fails, counted from 1; 0: none */
	atomic_int exhausted;    /* every call fails */
	atomic_size_t blocks;    /* live blocks */
	atomic_size_t bytes;     /* their requested sizes */
	atomic_size_t last_size; /* the last requested size */
};

static inline void *test_memory_allocate(void *user, size_t size)
{
	struct test_memory *memory = user;
	size_t call = ++memory->calls;
	void *block;

	memory->last_size = size;
	if (memory->exhausted || call == memory->fail_at) {
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
	*memory = (struct test_memory){.table = {test_memory_allocate, test_memory_free, memory}, .fail_at = fail_at};
}

#endif
