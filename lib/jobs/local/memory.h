#ifndef LIB_JOBS_LOCAL_MEMORY_H
#define LIB_JOBS_LOCAL_MEMORY_H

/* The memory of a store, counted in bytes: `bytes` of the statistics. */

#include <stddef.h>

struct jobs_local;

/* NULL: there is no memory. */
void *ww_jobs_allocate(struct jobs_local *jobs, size_t size);
/*
 * A larger block with the same bytes, then zeros; the former block, unless its size is 0, is given back. NULL: there is
 * no memory, and the former block is still there.
 */
void *ww_jobs_resize(struct jobs_local *jobs, void *block, size_t size, size_t larger);
/* Give back a block of that size, or NULL. */
void ww_jobs_give(struct jobs_local *jobs, void *block, size_t size);

#endif
