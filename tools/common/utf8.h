#ifndef TOOLS_COMMON_UTF8_H
#define TOOLS_COMMON_UTF8_H

/* UTF-8, one character at a time (RFC 3629). */

#include <stddef.h>
#include <stdint.h>

/*
 * Return the code point at *at, which is below end, and move *at past it. For an invalid one return -1 and move by one
 * byte. Overlong forms, surrogates and all beyond U+10FFFF are invalid.
 */
int32_t utf8_take(const char **at, const char *end);

/* Write a code point to out, which has room for 4 bytes. Return the number of bytes. */
size_t utf8_put(char *out, int32_t code);

#endif
