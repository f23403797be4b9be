/* Growing buffers for received bytes and for answers. */
#include "tools/common/buffer.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/common/json.h"

/*
 * An empty buffer keeps up to BUFFER_KEPT bytes, so that a busy connection does not allocate for each answer. From
 * BUFFER_MAPPED bytes on it has pages of its own: they grow without a copy, and are the system's again when it is freed,
 * while an allocator would keep them for a time, beside those of its next size.
 *
 * Fresh pages cost more than the bytes that are copied into them. So SPARED_MOST bytes of such blocks are kept for the next
 * buffers of all threads. Nobody counts them. The size of a spare block stands in its first bytes.
 */
enum {
	BUFFER_LEAST = 512,
	BUFFER_KEPT = 4096,
	BUFFER_MAPPED = 32 << 10,
	PAGE = 4096,
	SPARES = 16,
	SPARED_MOST = 2 << 20
};

static _Atomic size_t all;
static _Atomic(size_t *) spares[SPARES];
static _Atomic size_t spared; /* bytes of all spares */

size_t buffer_all(void)
{
	return all;
}

void buffer_count(size_t bytes)
{
	all += bytes;
}

void buffer_count_out(size_t bytes)
{
	all -= bytes;
}

/* Returns the spare block of a place, or NULL. */
static size_t *take_spare(size_t place)
{
	size_t *block = spares[place] ? atomic_exchange(&spares[place], NULL) : NULL;

	if (block)
		spared -= *block;
	return block;
}

/* Keep the block as a spare one. Returns 1, or 0 if there is no room for it. */
static int spare(void *block, size_t size)
{
	if (atomic_fetch_add(&spared, size) + size <= SPARED_MOST) {
		*(size_t *)block = size;
		for (size_t i = 0; i < SPARES; i++) {
			size_t *none = NULL;
			if (!spares[i] && atomic_compare_exchange_strong(&spares[i], &none, block))
				return 1;
		}
	}
	spared -= size;
	return 0;
}

static void unmap(void *block, size_t size)
{
	if (!spare(block, size))
		(void)munmap(block, size);
}

/* Returns pages for at least *size bytes, which becomes how many they are, or MAP_FAILED. */
static void *map(size_t *size)
{
	for (size_t i = 0; i < SPARES; i++) {
		size_t *block = take_spare(i);
		/* A much larger one would be wasted. */
		if (block && *block >= *size && *block / 4 <= *size) {
			*size = *block;
			return block;
		}
		if (block)
			unmap(block, *block);
	}
	return mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Give the block another size, at least *to, which becomes what it is. Returns NULL without memory: then it is as before. */
static char *resize(char *data, size_t used, size_t from, size_t *to)
{
	char *block;

	if (*to < BUFFER_MAPPED)
		return realloc(data, *to);
	if (from >= BUFFER_MAPPED)
		block = mremap(data, from, *to, MREMAP_MAYMOVE);
	else
		block = map(to);
	if (block == MAP_FAILED)
		return NULL;
	if (from < BUFFER_MAPPED && used > 0)
		memcpy(block, data, used);
	if (from < BUFFER_MAPPED)
		free(data);
	return block;
}

static void close_gap(struct buffer *buffer)
{
	char *begin = buffer->data - buffer->dropped;

	memmove(begin, buffer->data, buffer->size);
	buffer->data = begin;
	buffer->capacity += buffer->dropped;
	buffer->dropped = 0;
}

int buffer_reserve(struct buffer *buffer, size_t more)
{
	size_t capacity = buffer->capacity;
	char *data;

	if (more > SIZE_MAX / 2 - buffer->size)
		return -1;
	if (buffer->size + more <= capacity)
		return 0;
	if (buffer->dropped > 0) {
		/* Who often moves much for little room grows instead. */
		int is_worth_it = buffer->dropped >= buffer->size / 2;
		close_gap(buffer);
		capacity = buffer->capacity;
		if (is_worth_it && buffer->size + more <= capacity)
			return 0;
	}
	if (capacity < BUFFER_LEAST)
		capacity = BUFFER_LEAST;
	else
		capacity += capacity / 2;
	/* Who asks for much at once knows how much will come. */
	while (capacity < buffer->size + more)
		capacity = more < BUFFER_MAPPED ? capacity + capacity / 2 : buffer->size + more;
	if (capacity >= BUFFER_MAPPED)
		capacity = (capacity + PAGE - 1) / PAGE * PAGE;
	data = resize(buffer->data, buffer->size, buffer->capacity, &capacity);
	if (!data)
		return -1;
	all += capacity - buffer->capacity;
	buffer->data = data;
	buffer->capacity = capacity;
	return 0;
}

int buffer_append(struct buffer *buffer, const void *data, size_t size)
{
	if (size == 0)
		return 0;
	if (buffer_reserve(buffer, size) != 0)
		return -1;
	memcpy(buffer->data + buffer->size, data, size);
	buffer->size += size;
	return 0;
}

int buffer_format(struct buffer *buffer, const char *format, ...)
{
	size_t room = buffer->capacity - buffer->size;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(room ? buffer->data + buffer->size : NULL, room, format, arguments);
	va_end(arguments);
	if (length < 0)
		return -1;
	if ((size_t)length >= room) {
		/* vsnprintf adds a NUL. */
		if (buffer_reserve(buffer, (size_t)length + 1) != 0)
			return -1;
		va_start(arguments, format);
		(void)vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, arguments);
		va_end(arguments);
	}
	buffer->size += (size_t)length;
	return 0;
}

int buffer_quote(struct buffer *buffer, const char *text, size_t size)
{
	if (buffer_reserve(buffer, JSON_QUOTED(size)) != 0)
		return -1;
	buffer->size += json_quote(buffer->data + buffer->size, text, size);
	return 0;
}

void buffer_drop(struct buffer *buffer, size_t size)
{
	buffer->size -= size;
	if (size == 0)
		return;
	buffer->data += size;
	buffer->capacity -= size;
	buffer->dropped += size;
	/* What stays is moved when it is no more than what went. */
	if (buffer->size == 0 && buffer->dropped + buffer->capacity > BUFFER_KEPT)
		buffer_free(buffer);
	else if (buffer->size <= buffer->dropped)
		close_gap(buffer);
}

void buffer_free(struct buffer *buffer)
{
	size_t takes = buffer_takes(buffer);

	all -= takes;
	if (takes >= BUFFER_MAPPED)
		unmap(buffer->data - buffer->dropped, takes);
	else if (buffer->data)
		free(buffer->data - buffer->dropped);
	*buffer = (struct buffer){0};
}
