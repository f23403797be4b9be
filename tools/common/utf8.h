#ifndef TOOLS_COMMON_UTF8_H
#define TOOLS_COMMON_UTF8_H

/* UTF-8, one character at a time (RFC 3629). */

#include <stddef.h>
#include <stdint.h>

/*
 * Return the code point at *at, which is below end, and move *at behind it. Return -1 and move by one byte if there is
 * none: overlong forms, surrogates and what is beyond U+10FFFF are none.
 */
int32_t utf8_take(const char **at, const char *end);

/* Write a code point to out, which has room for 4 bytes. Return how many it took. */
size_t utf8_put(char *out, int32_t code);

#endif
