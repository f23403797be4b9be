/* Allocations of memory that fail by the plan of fail.h: those of the C library and of jemalloc. */
#include <errno.h>
#include <stdlib.h>

#include "tests/support/system/fail.h"

/* jemalloc's, of an arena. */
void *mallocx(size_t size, int flags);

void *malloc(size_t size)
{
	static __typeof__(&malloc) real;

	if (!real)
		real = SYSTEM_REAL(malloc);
	return fault_memory() ? NULL : real(size);
}

void *calloc(size_t count, size_t size)
{
	static __typeof__(&calloc) real;

	if (!real)
		real = SYSTEM_REAL(calloc);
	return fault_memory() ? NULL : real(count, size);
}

void *realloc(void *memory, size_t size)
{
	static __typeof__(&realloc) real;

	if (!real)
		real = SYSTEM_REAL(realloc);
	return size && fault_memory() ? NULL : real(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fault_memory() ? NULL : SYSTEM_REAL(aligned_alloc)(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	return fault_memory() ? ENOMEM : SYSTEM_REAL(posix_memalign)(memory, alignment, size);
}

void *mallocx(size_t size, int flags)
{
	return fault_memory() ? NULL : SYSTEM_REAL(mallocx)(size, flags);
}
