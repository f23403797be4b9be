/* Encodes bytes in base64, and decodes it. */
#include "tools/common/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encode(char *out, const void *bytes, size_t size)
{
	const unsigned char *from = bytes;
	char *at = out;
	size_t i;

	for (i = 0; i < size; i += 3) {
		unsigned b = i + 1 < size ? from[i + 1] : 0;
		unsigned c = i + 2 < size ? from[i + 2] : 0;
		unsigned word = (unsigned)from[i] << 16 | b << 8 | c;

		*at++ = digits[word >> 18];
		*at++ = digits[word >> 12 & 63];
		*at++ = i + 1 < size ? digits[word >> 6 & 63] : '=';
		*at++ = i + 2 < size ? digits[word & 63] : '=';
	}
	return (size_t)(at - out);
}

long base64_decode(void *out, const char *text, size_t size)
{
	const char *end = text + size;
	unsigned char *to = out;
	unsigned long word = 0;
	long length = 0;
	size_t i;

	if (size % 4)
		return -1;
	while (size && end - (text + size) < 2 && text[size - 1] == '=')
		size--;
	for (i = 0; i < size; i++) {
		const char *digit = memchr(digits, text[i], sizeof digits - 1);

		if (!digit)
			return -1;
		word = (word << 6 | (unsigned long)(digit - digits)) & 0xffffff;
		if (i % 4)
			to[length++] = (unsigned char)(word >> (i % 4 == 1 ? 4 : i % 4 == 2 ? 2 : 0));
	}
	return length;
}
