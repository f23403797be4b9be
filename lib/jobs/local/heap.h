#ifndef LIB_JOBS_LOCAL_HEAP_H
#define LIB_JOBS_LOCAL_HEAP_H

/*
 * Ready jobs, the least (priority, id) first: a heap. An entry knows its place there, so it can leave from anywhere.
 *
 * Complexity: O(log n). Only making room allocates, and only that can fail.
 */

#include <stdint.h>

struct entry;
struct jobs_local;

/* The place of an entry that is in no heap. */
#define NO_PLACE UINT32_MAX

/* All 0: empty. */
struct ready_heap {
	struct entry **at; /* the first of all is at[0] */
	uint32_t count;
	uint32_t room;
};

/* Whether `one` is delivered before `other`. */
int ww_jobs_heap_is_less(const struct entry *one, const struct entry *other);
/* Make room for one more. The caller gives the memory back. */
int ww_jobs_heap_reserve(struct jobs_local *jobs, struct ready_heap *heap);
/* There is room, and the entry is in no heap. */
void ww_jobs_heap_add(struct ready_heap *heap, struct entry *entry);
/* The entry is in this heap. */
void ww_jobs_heap_remove(struct ready_heap *heap, struct entry *entry);

#endif
