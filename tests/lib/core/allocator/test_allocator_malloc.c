/*
 * The tests of the allocator in a program without jemalloc (see the Makefile). The program has its own mallocx: the
 * library takes jemalloc only if all of its functions are there.
 */
/* tier: check */

#define ALLOCATOR "malloc"
#include "tests/lib/core/allocator/test_allocator.c"

void *mallocx(size_t size, int flags);

void *mallocx(size_t size, int flags)
{
	(void)size;
	(void)flags;
	abort();
}
