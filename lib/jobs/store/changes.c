/* Writes and reads the changes in a record of the journal. */

#include "lib/jobs/store/changes.h"

#include "lib/base/memory.h"

static unsigned char *room_for(struct changes *changes, const struct ww_allocator *allocator, size_t size)
{
	unsigned char *bytes = changes->bytes;
	size_t room = size > 2 * changes->room ? size : 2 * changes->room;

	if (size <= changes->room)
		return bytes;
	bytes = memory_take(allocator, room);
	if (!bytes)
		return NULL;
	if (changes->size)
		memcpy(bytes, changes->bytes, changes->size);
	memory_give(allocator, changes->bytes, changes->room);
	changes->bytes = bytes;
	changes->room = room;
	return bytes;
}

int ww_changes_add(struct changes *changes, const struct ww_allocator *allocator, enum store_table table,
    struct store_bytes key, int there, struct store_bytes value, struct store_bytes *kept)
{
	struct changes_head change = {(uint32_t)value.size, (uint16_t)key.size, (uint16_t)table};
	size_t size = changes->size + sizeof change + key.size + 1 + value.size;
	unsigned char *to = room_for(changes, allocator, size);

	if (!to)
		return WW_ENOMEM;
	to += changes->size;
	memcpy(to, &change, sizeof change);
	to += sizeof change;
	if (key.size)
		memcpy(to, key.data, key.size);
	to += key.size;
	*to = (unsigned char)there;
	if (value.size)
		memcpy(to + 1, value.data, value.size);
	*kept = (struct store_bytes){to, 1 + value.size};
	changes->size = size;
	return WW_OK;
}

int ww_changes_each(const unsigned char *bytes, size_t size, changes_fn *fn, void *context)
{
	int error = WW_OK;

	while (size && !error) {
		struct changes_head change;
		size_t whole;
		if (size < sizeof change)
			return WW_ECORRUPT;
		memcpy(&change, bytes, sizeof change);
		whole = sizeof change + change.key_size + 1u + change.value_size;
		if (size < whole || change.table >= STORE_TABLES || change.key_size > STORE_KEY_MAX)
			return WW_ECORRUPT;
		error = fn(context, (enum store_table)change.table,
		    (struct store_bytes){bytes + sizeof change, change.key_size},
		    (struct store_bytes){bytes + sizeof change + change.key_size, 1u + change.value_size});
		bytes += whole;
		size -= whole;
	}
	return error;
}
