#ifndef TOOLS_COMMON_PERCENT_H
#define TOOLS_COMMON_PERCENT_H

/* Percent-encoding (RFC 3986), as keys and reasons have it in a command. */

#include <stddef.h>

/* Return 1 if a byte stands for itself: a letter, a digit, or one of - . _ ~ */
int percent_is_plain(char c);

/*
 * Encode bytes to out[0 .. room-1], as many as fit, and end them with 0. Return how many characters that were. A dash
 * alone is encoded, too, since it would mean "none".
 */
size_t percent_encode(const void *bytes, size_t size, char *out, size_t room);

/* Return the byte at *at, which is below end, and move *at behind it. A % without two digits stands for itself. */
char percent_take(const char **at, const char *end);

#endif
