#ifndef TOOLS_COMMON_BUFFER_H
#define TOOLS_COMMON_BUFFER_H

/* A buffer grows at its end and shrinks from its beginning. All zeros is an empty buffer. */

#include <stddef.h>

struct buffer {
	char *data;
	size_t size;
	size_t capacity; /* from data on */
	size_t dropped;  /* bytes before data that were dropped, and whose memory is not used yet */
};

/* Return how many bytes of memory it has. */
static inline size_t buffer_takes(const struct buffer *buffer)
{
	return buffer->dropped + buffer->capacity;
}

/* Return how many bytes all buffers take, whichever thread has them. */
size_t buffer_all(void);

/* Count memory that is not a buffer's as if it were, until it is counted out. */
void buffer_count(size_t bytes);
void buffer_count_out(size_t bytes);

/* Make room for `more` bytes at the end. Returns 0, or -1 without memory: then nothing has changed, here and below. */
int buffer_reserve(struct buffer *buffer, size_t more);

int buffer_append(struct buffer *buffer, const void *data, size_t size);

int buffer_format(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Append a string of JSON with its quotes. */
int buffer_quote(struct buffer *buffer, const char *text, size_t size);

/* Drop the first `size` bytes: O(size), however many stay. An empty buffer gives much memory back. */
void buffer_drop(struct buffer *buffer, size_t size);

/* Free the memory; the buffer is empty then. */
void buffer_free(struct buffer *buffer);

#endif
