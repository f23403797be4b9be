/* Decodes and encodes characters of UTF-8. */
#include "tools/common/utf8.h"

#include <string.h>

int32_t utf8_take(const char **at, const char *end)
{
	static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *text = (const unsigned char *)*at;
	const int lead = *text;
	const int length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0;
	int32_t code = length == 1 ? lead : lead & 0x7f >> length;
	int i;

	++*at;
	if (length == 0 || length - 1 > end - *at)
		return -1;
	for (i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return -1;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return -1;
	*at += length - 1;
	return code;
}

static int is_shown(int32_t code)
{
	return code >= ' ' && (code < 0x7f || code > 0x9f) && code != 0xfeff && (code < 0x200b || code > 0x200f) &&
	       (code < 0x2028 || code > 0x202e) && (code < 0x2060 || code > 0x206f);
}

/* out may be text. */
static char *show(const char *text, size_t size, char *out, size_t room, const char *kept)
{
	const char *end = text + size;
	size_t at = 0;

	while (text < end) {
		int32_t code = utf8_take(&text, end);
		char bytes[4];
		int stays = is_shown(code) || (code > 0 && code < ' ' && strchr(kept, code));
		size_t length = utf8_put(bytes, stays ? code : '?');

		if (at + length >= room)
			break;
		memcpy(out + at, bytes, length);
		at += length;
	}
	out[at] = 0;
	return out;
}

char *utf8_show(const char *text, size_t size, char *out, size_t room)
{
	return show(text, size, out, room, "");
}

char *utf8_show_lines(char *text, size_t size)
{
	return show(text, size, text, size + 1, "\n\t");
}

size_t utf8_length(const char *text)
{
	size_t length = 0;

	for (; *text; text++)
		length += ((unsigned char)*text & 0xc0) != 0x80;
	return length;
}

size_t utf8_put(char *out, int32_t code)
{
	static const int lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	const int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	int i;

	for (i = length - 1; i > 0; i--, code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3f));
	out[0] = (char)(lead[length] | code);
	return (size_t)length;
}
