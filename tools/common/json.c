/* Reads flat objects of JSON, and writes strings. */
#include "tools/common/json.h"

#include <string.h>

#include "tools/common/number.h"
#include "tools/common/utf8.h"

struct cursor {
	const char *at, *end;
};

static void skip_blanks(struct cursor *cursor)
{
	while (cursor->at < cursor->end && memchr(" \t\r\n", *cursor->at, 4))
		cursor->at++;
}

static int take(struct cursor *cursor, char c)
{
	skip_blanks(cursor);
	if (cursor->at == cursor->end || *cursor->at != c)
		return 0;
	cursor->at++;
	return 1;
}

/* Skip a string whose first quote has been taken. Return 0 if it has no end. */
static int take_string(struct cursor *cursor, struct json_value *value)
{
	value->kind = JSON_STRING;
	value->text = cursor->at;
	while (cursor->at < cursor->end && *cursor->at != '"')
		cursor->at += *cursor->at == '\\' && cursor->at + 1 < cursor->end ? 2 : 1;
	if (cursor->at >= cursor->end)
		return 0;
	value->size = (size_t)(cursor->at++ - value->text);
	return 1;
}

/* Skip an array or an object to its closing bracket. Brackets of different kinds may end each other. */
static int take_nested(struct cursor *cursor)
{
	struct json_value string;
	int depth = 0;

	while (cursor->at < cursor->end) {
		char c = *cursor->at++;

		if (c == '"' && !take_string(cursor, &string))
			return 0;
		depth += (c == '[' || c == '{') - (c == ']' || c == '}');
		if (depth == 0)
			return 1;
	}
	return 0;
}

static int take_value(struct cursor *cursor, struct json_value *value)
{
	skip_blanks(cursor);
	value->text = cursor->at;
	value->kind = JSON_OTHER;
	if (cursor->at == cursor->end)
		return 0;
	if (take(cursor, '"'))
		return take_string(cursor, value);
	if (*cursor->at == '[' || *cursor->at == '{') {
		if (!take_nested(cursor))
			return 0;
	} else {
		while (cursor->at < cursor->end && !strchr(",]} \t\r\n", *cursor->at))
			cursor->at++;
		if (cursor->at > value->text && strchr("-0123456789", *value->text))
			value->kind = JSON_NUMBER;
	}
	value->size = (size_t)(cursor->at - value->text);
	if (value->size == 4 && memcmp(value->text, "null", 4) == 0)
		value->kind = JSON_NULL;
	return value->size > 0;
}

int json_next(const char *text, size_t size, size_t *at, struct json_value *name, struct json_value *value)
{
	struct cursor cursor = {text + *at, text + size};
	int is_first = *at == 0;

	if (is_first && !take(&cursor, '{'))
		return -1;
	if (take(&cursor, '}')) {
		skip_blanks(&cursor);
		return cursor.at == cursor.end ? 0 : -1;
	}
	if (!is_first && !take(&cursor, ','))
		return -1;
	if (!take(&cursor, '"') || !take_string(&cursor, name) || !take(&cursor, ':') || !take_value(&cursor, value))
		return -1;
	*at = (size_t)(cursor.at - text);
	return 1;
}

int json_element(const char *text, size_t size, size_t *at, struct json_value *value)
{
	struct cursor cursor = {text + *at, text + size};
	int is_first = *at == 0;

	if (is_first && !take(&cursor, '['))
		return -1;
	if (take(&cursor, ']')) {
		skip_blanks(&cursor);
		return cursor.at == cursor.end ? 0 : -1;
	}
	if ((!is_first && !take(&cursor, ',')) || !take_value(&cursor, value))
		return -1;
	*at = (size_t)(cursor.at - text);
	return 1;
}

int json_is(struct json_value value, const char *string)
{
	return value.kind == JSON_STRING && value.size == strlen(string) && memcmp(value.text, string, value.size) == 0;
}

struct json_value json_member(const char *text, size_t size, const char *name)
{
	struct json_value key, value;
	size_t at = 0;

	while (json_next(text, size, &at, &key, &value) > 0)
		if (json_is(key, name))
			return value;
	return (struct json_value){JSON_NONE, "", 0};
}

uint64_t json_whole(const char *text, size_t size, const char *name)
{
	struct json_value value = json_member(text, size, name);

	return value.kind == JSON_NUMBER || value.kind == JSON_STRING ? number_leading(value.text, value.size) : 0;
}

/* Take "u" and four digits. Return their unit of UTF-16, or take nothing and return -1. */
static int32_t take_unit(const char **at, const char *end)
{
	int32_t unit = 0;
	int i;

	if (end - *at < 5 || **at != 'u')
		return -1;
	for (i = 1; i < 5; i++) {
		int digit = number_hex((*at)[i]);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	*at += 5;
	return unit;
}

/* Take the rest of an escape. Return its code point, or -1 for an invalid one. */
static int32_t take_escape(const char **at, const char *end)
{
	static const char from[] = "bfnrt\"\\/", to[] = "\b\f\n\r\t\"\\/";
	const char *known = *at < end ? memchr(from, **at, sizeof from - 1) : NULL;
	int32_t high, low;
	const char *next;

	if (known) {
		++*at;
		return to[known - from];
	}
	high = take_unit(at, end);
	if (high < 0xd800 || high > 0xdfff)
		return high == 0 ? -1 : high;
	/* Two surrogates are one character. One alone is invalid. */
	next = *at + 1;
	low = high < 0xdc00 && *at < end && **at == '\\' ? take_unit(&next, end) : -1;
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	*at = next;
	return 0x10000 + (high - 0xd800) * 0x400 + low - 0xdc00;
}

int json_decode(struct json_value value, char *out, size_t room)
{
	const char *at = value.text;
	const char *end = at + value.size;
	size_t length = 0;
	int result = 0;

	while (at < end) {
		int is_escape = *at == '\\';
		int is_control = (unsigned char)*at < ' ';
		int32_t code = is_escape ? (at++, take_escape(&at, end)) : utf8_take(&at, end);
		char bytes[4];
		size_t size;

		if (code < 0 || is_control) {
			code = 0xfffd;
			result = -1;
		}
		size = utf8_put(bytes, code);
		if (length + size >= room) {
			result = result ? result : 1;
			break;
		}
		memcpy(out + length, bytes, size);
		length += size;
	}
	out[length] = 0;
	return result;
}

const char *json_text(const char *text, size_t size, const char *name, char *out, size_t room)
{
	struct json_value value = json_member(text, size, name);

	if (value.kind != JSON_STRING && value.kind != JSON_NUMBER)
		value.size = 0;
	(void)json_decode(value, out, room);
	return out;
}

size_t json_array(struct json_value array, uint64_t *numbers, size_t count)
{
	struct cursor cursor = {array.text, array.text + array.size};
	struct json_value value;
	size_t found = 0;

	if (!take(&cursor, '['))
		return 0;
	while (found < count && take_value(&cursor, &value) && value.kind == JSON_NUMBER) {
		numbers[found++] = number_leading(value.text, value.size);
		if (!take(&cursor, ','))
			break;
	}
	return found;
}

enum { QUOTED_ONE = 6 };

static int is_plain(char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static size_t escape(char *out, unsigned code)
{
	static const char digits[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = 'u';
	for (int i = 0; i < 4; i++)
		out[2 + i] = digits[code >> (12 - 4 * i) & 15];
	return QUOTED_ONE;
}

/* Write the character at *at to out, and move *at past it. Return its length in out. */
static size_t quote_one(char *out, const char **at, const char *end)
{
	const char *from = *at;
	int32_t code = utf8_take(at, end);

	if (code == '"' || code == '\\') {
		out[0] = '\\';
		out[1] = (char)code;
		return 2;
	}
	if (code < ' ' || code == 0x7f)
		return escape(out, code < 0 ? 0xfffdU : (unsigned)code);
	memcpy(out, from, (size_t)(*at - from));
	return (size_t)(*at - from);
}

size_t json_quote(char *out, const char *text, size_t size)
{
	const char *end = text + size;
	size_t length = 0;

	out[length++] = '"';
	while (text < end) {
		/* Bodies have megabytes. */
		for (; text < end && is_plain(*text); text++)
			out[length++] = *text;
		if (text < end)
			length += quote_one(out + length, &text, end);
	}
	out[length++] = '"';
	return length;
}

void json_write_string(FILE *out, const char *text, size_t size)
{
	const char *end = text + size;
	char bytes[QUOTED_ONE];

	fputc('"', out);
	while (text < end)
		fwrite(bytes, 1, quote_one(bytes, &text, end), out);
	fputc('"', out);
}
