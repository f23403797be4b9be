/*
 * The tests of the allocator in a program without jemalloc (see the Makefile). The program has a mallocx of its own: the
 * library takes jemalloc only with all of its names.
 */

#define ALLOCATOR "malloc"
#include "tests/lib/core/allocator/test_allocator.c"

void *mallocx(size_t size, int flags);

void *mallocx(size_t size, int flags)
{
	(void)size;
	(void)flags;
	abort();
}
