#ifndef TOOLS_COMMON_PERCENT_H
#define TOOLS_COMMON_PERCENT_H

/* Percent-encoding (RFC 3986), in which commands write keys and reasons. */

#include <stddef.h>

/* Return 1 for a byte that stands for itself: a letter, a digit, or one of - . _ ~ */
int percent_is_plain(char c);

/*
 * Encode as many bytes as fit to out[0 .. room-1], and end them with 0. Return the number of characters. A dash alone is
 * encoded, too, because it would mean "none".
 */
size_t percent_encode(const void *bytes, size_t size, char *out, size_t room);

/* Return the byte at *at, which is below end, and move *at past it. A % without two digits stands for itself. */
char percent_take(const char **at, const char *end);

#endif
