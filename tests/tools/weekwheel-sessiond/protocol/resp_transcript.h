#ifndef TESTS_TOOLS_WEEKWHEEL_SESSIOND_PROTOCOL_RESP_TRANSCRIPT_H
#define TESTS_TOOLS_WEEKWHEEL_SESSIOND_PROTOCOL_RESP_TRANSCRIPT_H

/* What the parser of weekwheel-sessiond makes of bytes that come in pieces, as text. */

#include <stddef.h>

/* How many bytes come next, 1 to size - at. */
typedef size_t resp_piece_fn(size_t at, size_t size, void *context);

/* All at once. */
size_t resp_whole_piece(size_t at, size_t size, void *context);

/*
 * A line for each command: its arguments, each in brackets with what is no letter as hex; or the error, which is the last
 * line. What is left is told as "+ N". Each call of the parser gets the bytes in a block of their own. Free it; NULL: no
 * memory.
 */
char *resp_transcript(
    const char *data, size_t size, size_t bulk_max, int is_stranger, resp_piece_fn *piece, void *context);

#endif
