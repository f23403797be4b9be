/* The memory of a store of jobs: how much it takes is counted. */
#include "lib/jobs/local/memory.h"

#include <string.h>

#include "lib/jobs/local/local.h"

void *ww_jobs_allocate(struct jobs_local *jobs, size_t size)
{
	void *block = jobs->allocator->allocate(jobs->allocator->user, size);

	if (block)
		jobs->bytes += size;
	return block;
}

void ww_jobs_give(struct jobs_local *jobs, void *block, size_t size)
{
	if (!block)
		return;
	jobs->bytes -= size;
	jobs->allocator->free(jobs->allocator->user, block, size);
}

void *ww_jobs_resize(struct jobs_local *jobs, void *block, size_t size, size_t larger)
{
	char *more = ww_jobs_allocate(jobs, larger);

	if (!more)
		return NULL;
	memset(more, 0, larger);
	if (size)
		memcpy(more, block, size);
	ww_jobs_give(jobs, block, size);
	return more;
}
