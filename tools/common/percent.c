/* Encodes bytes in percent-encoding, and decodes it. */
#include "tools/common/percent.h"

#include "tools/common/number.h"

int percent_is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
	       c == '_' || c == '~';
}

size_t percent_encode(const void *bytes, size_t size, char *out, size_t room)
{
	static const char digits[] = "0123456789ABCDEF";
	const unsigned char *from = bytes;
	size_t length = 0;
	size_t i;

	for (i = 0; i < size && length + 3 < room; i++) {
		if (percent_is_plain((char)from[i]) && !(size == 1 && from[i] == '-')) {
			out[length++] = (char)from[i];
			continue;
		}
		out[length++] = '%';
		out[length++] = digits[from[i] >> 4];
		out[length++] = digits[from[i] & 15];
	}
	out[length] = 0;
	return length;
}

char percent_take(const char **at, const char *end)
{
	const char *from = (*at)++;

	if (*from != '%' || end - from < 3 || number_hex(from[1]) < 0 || number_hex(from[2]) < 0)
		return *from;
	*at += 2;
	return (char)(number_hex(from[1]) * 16 + number_hex(from[2]));
}
