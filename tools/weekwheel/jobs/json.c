/* JSON, as much of it as the protocol needs. */
#include "tools/weekwheel/jobs/json.h"

#include <stdlib.h>
#include <string.h>

struct cursor {
	const char *at, *end;
};

static void skip_blanks(struct cursor *cursor)
{
	while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) && *cursor->at)
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

/* Skip an array or an object to its closing bracket; whether brackets fit each other does not matter here. */
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

struct json_value json_member(const char *text, size_t size, const char *name)
{
	const struct json_value none = {JSON_NONE, "", 0};
	struct cursor cursor = {text, text + size};
	struct json_value key, value;

	if (!take(&cursor, '{'))
		return none;
	do {
		if (!take(&cursor, '"') || !take_string(&cursor, &key) || !take(&cursor, ':') ||
		    !take_value(&cursor, &value))
			return none;
		if (key.size == strlen(name) && memcmp(key.text, name, key.size) == 0)
			return value;
	} while (take(&cursor, ','));
	return none;
}

static uint64_t whole(struct json_value value)
{
	uint64_t number = 0;
	size_t i;

	for (i = 0; i < value.size && value.text[i] >= '0' && value.text[i] <= '9'; i++) {
		if (number > (UINT64_MAX - 9) / 10)
			return UINT64_MAX;
		number = number * 10 + (uint64_t)(value.text[i] - '0');
	}
	return number;
}

uint64_t json_whole(const char *text, size_t size, const char *name)
{
	struct json_value value = json_member(text, size, name);

	return value.kind == JSON_NUMBER || value.kind == JSON_STRING ? whole(value) : 0;
}

/* Write a code point of up to 16 bits as UTF-8. Returns how many bytes that took. */
static size_t put_utf8(char *out, unsigned code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	out[0] = (char)(0xe0 | code >> 12);
	out[1] = (char)(0x80 | (code >> 6 & 0x3f));
	out[2] = (char)(0x80 | (code & 0x3f));
	return 3;
}

/* What stands behind a backslash at *at, which is moved behind it. */
static unsigned unescape(const char **at, const char *end)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	char c = *(*at)++;
	const char *known = strchr(from, c);
	char digits[5] = "";

	if (c == 'u' && end - *at >= 4) {
		memcpy(digits, *at, 4);
		*at += 4;
		return (unsigned)strtoul(digits, NULL, 16) & 0xffff;
	}
	return (unsigned char)(known && c ? to[known - from] : c);
}

const char *json_text(const char *text, size_t size, const char *name, char *out, size_t room)
{
	struct json_value value = json_member(text, size, name);
	const char *at = value.text;
	const char *end = at + value.size;
	size_t length = 0;

	if (value.kind != JSON_STRING && value.kind != JSON_NUMBER)
		end = at;
	while (at < end && length + 4 <= room) {
		if (*at == '\\' && end - at >= 2) {
			at++;
			length += put_utf8(out + length, unescape(&at, end));
		} else {
			out[length++] = *at++;
		}
	}
	out[length] = 0;
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
		numbers[found++] = whole(value);
		if (!take(&cursor, ','))
			break;
	}
	return found;
}

/* The length of the UTF-8 sequence at text, or 0 if there is none. */
static size_t utf8_length(const unsigned char *text, size_t size)
{
	size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	size_t i;

	if (length == 0 || length > size || text[0] > 0xf4)
		return 0;
	for (i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	/* Forms that are too long, surrogates, and what is beyond the last code point. */
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

void json_write_string(FILE *out, const char *text, size_t size)
{
	size_t i = 0;

	fputc('"', out);
	while (i < size) {
		const unsigned char *at = (const unsigned char *)text + i;
		size_t length = utf8_length(at, size - i);

		if (length == 0)
			fputs("\\ufffd", out);
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at < ' ' || *at == 0x7f)
			fprintf(out, "\\u%04x", *at);
		else
			fwrite(at, 1, length, out);
		i += length ? length : 1;
	}
	fputc('"', out);
}

void json_write_base64(FILE *out, const void *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *from = bytes;
	size_t i;

	fputc('"', out);
	for (i = 0; i < size; i += 3) {
		unsigned b = i + 1 < size ? from[i + 1] : 0;
		unsigned c = i + 2 < size ? from[i + 2] : 0;
		unsigned word = (unsigned)from[i] << 16 | b << 8 | c;

		fputc(digits[word >> 18], out);
		fputc(digits[word >> 12 & 63], out);
		fputc(i + 1 < size ? digits[word >> 6 & 63] : '=', out);
		fputc(i + 2 < size ? digits[word & 63] : '=', out);
	}
	fputc('"', out);
}
