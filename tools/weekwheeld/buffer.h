#ifndef TOOLS_WEEKWHEELD_BUFFER_H
#define TOOLS_WEEKWHEELD_BUFFER_H

/* Bytes that grow at their end and are dropped from their beginning. All zeros is an empty one. */

#include <stddef.h>

struct buffer {
	char *data;
	size_t size;
	size_t capacity;
};

/* Make room for `more` bytes after those that are there. Returns 0, or -1 without memory; then nothing has changed. */
int buffer_reserve(struct buffer *buffer, size_t more);

int buffer_append(struct buffer *buffer, const void *data, size_t size);

int buffer_format(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Drop the first `size` bytes; memory that is much more than the rest needs goes back. */
void buffer_drop(struct buffer *buffer, size_t size);

/* Free what it has, and empty it. */
void buffer_free(struct buffer *buffer);

#endif
