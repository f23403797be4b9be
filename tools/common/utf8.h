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

/*
 * Copy text[0 .. size-1] to out[0 .. room-1] for a reader, and end it with 0: '?' stands for a control character, one that
 * changes the direction of text, and each byte that is no UTF-8. What does not fit is left out. Return out.
 */
char *utf8_show(const char *text, size_t size, char *out, size_t room);

/*
 * Do the same in place with text[0 .. size-1], which has room for the 0, except that lines and tabs stay. It becomes no
 * longer. Return text.
 */
char *utf8_show_lines(char *text, size_t size);

/* Return how many characters a valid text has. */
size_t utf8_length(const char *text);

/* Write a code point to out, which has room for 4 bytes. Return the number of bytes. */
size_t utf8_put(char *out, int32_t code);

#endif
