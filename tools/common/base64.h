#ifndef TOOLS_COMMON_BASE64_H
#define TOOLS_COMMON_BASE64_H

/* Base64 with its padding (RFC 4648, section 4). */

#include <stddef.h>

/* The number of characters for this many bytes. */
#define BASE64_SIZE(bytes) (((bytes) + 2) / 3 * 4)

/* Encode bytes to out, which has room for BASE64_SIZE(size). Return the number of characters. No NUL follows. */
size_t base64_encode(char *out, const void *bytes, size_t size);

/* Decode to out, which has room for three bytes for every four characters. Return the number of bytes, or -1. */
long base64_decode(void *out, const char *text, size_t size);

#endif
