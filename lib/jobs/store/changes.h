#ifndef LIB_JOBS_STORE_CHANGES_H
#define LIB_JOBS_STORE_CHANGES_H

/* The content of a journal's record: changes of pairs. */

#include "lib/jobs/store/store.h"

/* A change. After it come the key, a byte that is CHANGES_REMOVED or CHANGES_THERE, and the value. */
struct changes_head {
	uint32_t value_size;
	uint16_t key_size;
	uint16_t table;
};

enum { CHANGES_REMOVED, CHANGES_THERE };

/* A record in the making. */
struct changes {
	unsigned char *bytes;
	size_t size;
	size_t room;
};

/*
 * Add a change; removed: an empty value and CHANGES_REMOVED. *kept, until the next one is added, is the byte and the
 * value. WW_ENOMEM.
 */
int ww_changes_add(struct changes *changes, const struct ww_allocator *allocator, enum store_table table,
    struct store_bytes key, int there, struct store_bytes value, struct store_bytes *kept);

/* `kept` is the byte and the value. */
typedef int changes_fn(void *context, enum store_table table, struct store_bytes key, struct store_bytes kept);

/* Call fn for each change until it returns an error. WW_ECORRUPT: these are no changes. */
int ww_changes_each(const unsigned char *bytes, size_t size, changes_fn *fn, void *context);

#endif
