#ifndef TESTS_TOOLS_WEEKWHEELD_PROTOCOL_TRANSCRIPT_H
#define TESTS_TOOLS_WEEKWHEELD_PROTOCOL_TRANSCRIPT_H

/* The parser's commands as text, from bytes that come in pieces. The pieces must make no difference. */

#include <stddef.h>

/* Return the length of the next piece, at least 1, of the bytes at `at` up to `size`. */
typedef size_t transcript_piece_fn(size_t at, size_t size, void *context);

/* Return the text, which the caller frees; NULL without memory. Aborts if the parser breaks its own contract. */
char *transcript(const char *data, size_t size, size_t body_max, transcript_piece_fn *piece, void *context);

/* All bytes at once. */
size_t transcript_whole(size_t at, size_t size, void *context);

/* One byte at a time. */
size_t transcript_bytes(size_t at, size_t size, void *context);

#endif
