#ifndef TOOLS_COMMON_BASE64_H
#define TOOLS_COMMON_BASE64_H

/* Base64 with its padding (RFC 4648, section 4). */

#include <stddef.h>

/* How many characters the bytes become. */
#define BASE64_SIZE(bytes) (((bytes) + 2) / 3 * 4)

/* Write bytes to out, which has room for BASE64_SIZE(size). Return how many characters that were; no NUL follows. */
size_t base64_encode(char *out, const void *bytes, size_t size);

/* Read to out, which has room for three bytes of every four characters. Return how many that were, or -1. */
long base64_decode(void *out, const char *text, size_t size);

#endif
