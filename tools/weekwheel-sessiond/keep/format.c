/* Writing and reading the bytes of image and journal. */
#include "tools/weekwheel-sessiond/keep/format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Databases are below 64. */
#define NEW 0x80u

static const int times_of[] = {[KEEP_SET] = 3,
    [KEEP_TOUCH] = 2,
    [KEEP_ERASE] = 0,
    [KEEP_CLEAR] = 0,
    [KEEP_LAST] = 4,
    [KEEP_WAIT] = 4,
    [KEEP_DELIVERED] = 1,
    [KEEP_CLOCK] = 4,
    [KEEP_ENDED] = 3};

void keep_format_number(unsigned char *to, uint64_t number, int size)
{
	for (int i = 0; i < size; i++)
		to[i] = (unsigned char)(number >> 8 * i);
}

uint64_t keep_format_get(const unsigned char *from, int size)
{
	uint64_t number = 0;

	for (int i = 0; i < size; i++)
		number |= (uint64_t)from[i] << 8 * i;
	return number;
}

uint64_t keep_format_sum(uint64_t before, const void *bytes, size_t size)
{
	return XXH3_64bits_withSeed(bytes, size, before);
}

int keep_format_add(struct buffer *to, const struct keep_entry *entry)
{
	const uint64_t times[] = {entry->ttl, entry->deadline, entry->end, entry->expiry};
	size_t head = KEEP_ENTRY_HEAD + (size_t)times_of[entry->kind] * 8;
	unsigned char *at;

	if (buffer_reserve(to, head + entry->length + entry->size) != 0)
		return -1;
	at = (unsigned char *)to->data + to->size;
	at[0] = (unsigned char)entry->kind;
	at[1] = (unsigned char)(entry->database | (entry->is_new ? NEW : 0));
	keep_format_number(at + 2, entry->length, 2);
	keep_format_number(at + 4, entry->size, 4);
	for (int i = 0; i < times_of[entry->kind]; i++)
		keep_format_number(at + KEEP_ENTRY_HEAD + i * 8, times[i], 8);
	to->size += head;
	(void)buffer_append(to, entry->key, entry->length);
	return buffer_append(to, entry->value, entry->size);
}

size_t keep_format_read(const unsigned char *from, size_t size, struct keep_entry *entry)
{
	uint64_t times[4] = {0};
	size_t head = KEEP_ENTRY_HEAD;

	if (size < head || from[0] < KEEP_SET || from[0] > KEEP_ENDED)
		return 0;
	*entry = (struct keep_entry){.kind = (enum keep_kind)from[0],
	    .database = from[1] & ~NEW,
	    .is_new = (from[1] & NEW) != 0,
	    .length = (size_t)keep_format_get(from + 2, 2),
	    .size = (size_t)keep_format_get(from + 4, 4)};
	if (size < head + (size_t)times_of[entry->kind] * 8)
		return 0;
	for (int i = 0; i < times_of[entry->kind]; i++, head += 8)
		times[i] = keep_format_get(from + head, 8);
	entry->ttl = times[0];
	entry->deadline = times[1];
	entry->end = times[2];
	entry->expiry = times[3];
	if (size - head < entry->length + entry->size)
		return 0;
	entry->key = from + head;
	entry->value = from + head + entry->length;
	return head + entry->length + entry->size;
}
