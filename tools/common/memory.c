/* Allocates memory, or ends the program. */
#include "tools/common/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"

enum { CACHE_LINE = 64 };

_Noreturn void memory_exhausted(void)
{
	message_error("out of memory; give it less to do: a smaller file, or fewer timers");
	exit(EXIT_FAILURE);
}

static size_t memory_bytes(size_t count, size_t size)
{
	if (count > SIZE_MAX / size - CACHE_LINE)
		memory_exhausted();
	return count * size;
}

void *memory_zeroed(size_t count, size_t size)
{
	void *array = calloc(count ? count : 1, size);

	if (!array)
		memory_exhausted();
	return array;
}

void *memory_resize(void *array, size_t count, size_t size)
{
	array = realloc(array, memory_bytes(count ? count : 1, size));
	if (!array)
		memory_exhausted();
	return array;
}

void *memory_grow(void *array, size_t *capacity, size_t count, size_t size)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity + *capacity / 2 + 64;
	return memory_resize(array, *capacity, size);
}

void *memory_aligned(size_t count, size_t size)
{
	size_t bytes = memory_bytes(count ? count : 1, size);
	void *array;

	bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	array = aligned_alloc(CACHE_LINE, bytes);
	if (!array)
		memory_exhausted();
	return memset(array, 0, bytes);
}
