#ifndef TESTS_TOOLS_WEEKWHEELD_PROTOCOL_TRANSCRIPT_H
#define TESTS_TOOLS_WEEKWHEELD_PROTOCOL_TRANSCRIPT_H

/* What the parser makes of bytes that come in pieces, as text: the same for any pieces. */

#include <stddef.h>

/* Return a connection's next piece: of the bytes from `at` to before `size`, how many come now; at least 1. */
typedef size_t transcript_piece_fn(size_t at, size_t size, void *context);

/* Return the text, which the caller frees; NULL without memory. Aborts if the parser breaks its own contract. */
char *transcript(const char *data, size_t size, size_t body_max, transcript_piece_fn *piece, void *context);

/* All at once. */
size_t transcript_whole(size_t at, size_t size, void *context);

/* Byte for byte. */
size_t transcript_bytes(size_t at, size_t size, void *context);

#endif
