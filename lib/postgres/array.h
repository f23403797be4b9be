#ifndef LIB_POSTGRES_ARRAY_H
#define LIB_POSTGRES_ARRAY_H

/* One-dimensional arrays in PostgreSQL's binary form: bigint[], smallint[], xid8[], bytea[]. */

#include <stddef.h>
#include <stdint.h>

#include "lib/postgres/link.h"

struct ww_allocator;

struct array {
	const struct ww_allocator *allocator;
	enum link_type element; /* LINK_INT2, LINK_INT8, LINK_XID8 or LINK_BYTEA */
	unsigned char *bytes;
	size_t size;
	size_t room;
	uint32_t count;
};

/* Add an element. WW_ENOMEM. */
int ww_postgres_array_number(struct array *array, uint64_t number);
int ww_postgres_array_bytes(struct array *array, const void *bytes, size_t size);
/* The array as an argument, valid until it changes. WW_ENOMEM. */
int ww_postgres_array_argument(struct array *array, struct link_argument *argument);
/* Make it empty; it keeps its memory. */
void ww_postgres_array_clear(struct array *array);
void ww_postgres_array_free(struct array *array);
/*
 * Call fn for each element of a bigint[]; its first error ends the call and is returned. WW_ECORRUPT: the array is
 * malformed.
 */
int ww_postgres_array_each(const void *bytes, size_t size, int (*fn)(void *context, uint64_t number), void *context);
/* The same for a bytea[] without NULLs. The bytes are those of the array. */
int ww_postgres_array_each_bytes(
    const void *bytes, size_t size, int (*fn)(void *context, const void *bytes, size_t size), void *context);

#endif
