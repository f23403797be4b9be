#ifndef LIB_JOBS_LOCAL_MEMORY_H
#define LIB_JOBS_LOCAL_MEMORY_H

/* The memory of a store, counted. */

#include <stddef.h>

struct jobs_local;

void *ww_jobs_allocate(struct jobs_local *jobs, size_t size);
/* A larger block with the same bytes, then zeros. NULL: there is no memory, and the former block is still there. */
void *ww_jobs_resize(struct jobs_local *jobs, void *block, size_t size, size_t larger);
void ww_jobs_give(struct jobs_local *jobs, void *block, size_t size);

#endif
