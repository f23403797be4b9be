/*
 * Arrays in binary form:
 *
 *     | dimensions: 1 | has NULL: 0 | type | count | first index: 1 |  | size | element |  | size | element | ...
 *
 * Each number of the head has four bytes. An empty array has no dimension.
 */
#include "lib/postgres/array.h"

#include <string.h>

#include "lib/base/memory.h"
#include "lib/jobs/store/store.h"

enum { HEAD = 20, EMPTY = 12 };

static unsigned char *add(struct array *array, size_t size)
{
	size_t at = array->size ? array->size : HEAD;

	if (at + size > array->room) {
		size_t room = 2 * (at + size) + 64;
		unsigned char *more = memory_take(array->allocator, room);
		if (!more)
			return NULL;
		if (array->size)
			memcpy(more, array->bytes, array->size);
		memory_give(array->allocator, array->bytes, array->room);
		array->bytes = more;
		array->room = room;
	}
	array->size = at + size;
	return array->bytes + at;
}

int ww_postgres_array_bytes(struct array *array, const void *bytes, size_t size)
{
	unsigned char *to = add(array, 4 + size);

	if (!to)
		return WW_ENOMEM;
	store_write32(to, (uint32_t)size);
	if (size)
		memcpy(to + 4, bytes, size);
	array->count++;
	return WW_OK;
}

int ww_postgres_array_number(struct array *array, uint64_t number)
{
	size_t size = array->element == LINK_INT2 ? 2 : 8;
	unsigned char bytes[8];

	store_write64(bytes, number);
	return ww_postgres_array_bytes(array, bytes + 8 - size, size);
}

int ww_postgres_array_argument(struct array *array, struct link_argument *argument)
{
	static const struct {
		enum link_type element;
		enum link_type whole;
	} types[] = {
	    {LINK_INT2, LINK_INT2S}, {LINK_INT8, LINK_INT8S}, {LINK_XID8, LINK_XID8S}, {LINK_BYTEA, LINK_BYTEAS}};
	unsigned char *head = array->bytes;

	if (!array->size && !add(array, 0))
		return WW_ENOMEM;
	head = array->bytes;
	store_write32(head, array->count != 0);
	store_write32(head + 4, 0);
	store_write32(head + 8, (uint32_t)array->element);
	store_write32(head + 12, array->count);
	store_write32(head + 16, 1);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i].element == array->element)
			argument->type = types[i].whole;
	argument->bytes = head;
	argument->size = array->count ? array->size : EMPTY;
	return WW_OK;
}

void ww_postgres_array_clear(struct array *array)
{
	array->size = 0;
	array->count = 0;
}

void ww_postgres_array_free(struct array *array)
{
	memory_give(array->allocator, array->bytes, array->room);
	array->bytes = NULL;
	array->room = 0;
	ww_postgres_array_clear(array);
}

int ww_postgres_array_each(const void *bytes, size_t size, int (*fn)(void *context, uint64_t number), void *context)
{
	const unsigned char *at = bytes;
	const unsigned char *end = at + size;
	int error = WW_OK;

	if (!size)
		return WW_OK;
	if (size < EMPTY || store_read32(at + 8) != LINK_INT8)
		return WW_ECORRUPT;
	for (at += HEAD; at < end && !error; at += 12)
		error = end - at < 12 || store_read32(at) != 8 ? WW_ECORRUPT : fn(context, store_read64(at + 4));
	return error;
}

int ww_postgres_array_each_bytes(
    const void *bytes, size_t size, int (*fn)(void *context, const void *bytes, size_t size), void *context)
{
	const unsigned char *at = bytes;
	const unsigned char *end = at + size;
	int error = WW_OK;

	if (!size)
		return WW_OK;
	if (size < EMPTY || store_read32(at + 8) != LINK_BYTEA)
		return WW_ECORRUPT;
	for (at += size < HEAD ? EMPTY : HEAD; at < end && !error; at += 4 + size) {
		if (end - at < 4 || store_read32(at) > (size_t)(end - at) - 4)
			return WW_ECORRUPT;
		size = store_read32(at);
		error = fn(context, at + 4, size);
	}
	return error;
}
