/* Writes the report of an expiry: see letter.h. */
#include "tools/service/outbox/letter.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tools/common/base64.h"
#include "tools/common/json.h"
#include "tools/common/utf8.h"

enum { PIECE = 3072 };

/* Two servers that began in the same millisecond have the same ids. */
const char *letter_id(const struct outbox_item *item, char text[LETTER_ID])
{
	XXH64_hash_t hash = XXH3_64bits_withSeed(item->key, item->length, (XXH64_hash_t)item->deadline_ms);

	(void)snprintf(text, LETTER_ID, "%016" PRIx64 "-%016" PRIx64, item->id, (uint64_t)(hash + item->database));
	return text;
}

static int is_text(const char *bytes, size_t size)
{
	const char *end = bytes + size;

	while (bytes < end)
		if (utf8_take(&bytes, end) < 0)
			return 0;
	return 1;
}

/* In pieces, each of whole characters: a long value needs no more room than it takes. */
static int append_text(struct buffer *out, const char *text, size_t size)
{
	char quoted[JSON_QUOTED(PIECE)];
	int bad = buffer_append(out, "\"", 1);

	while (size > 0 && !bad) {
		size_t piece = size < PIECE ? size : PIECE;

		while (piece < size && ((unsigned char)text[piece] & 0xc0) == 0x80)
			piece--;
		bad = buffer_append(out, quoted + 1, json_quote(quoted, text, piece) - 2);
		text += piece;
		size -= piece;
	}
	return bad || buffer_append(out, "\"", 1) ? -1 : 0;
}

static int append_bytes(struct buffer *out, const char *bytes, size_t size)
{
	if (buffer_reserve(out, BASE64_SIZE(size) + 2) != 0)
		return -1;
	out->data[out->size++] = '"';
	out->size += base64_encode(out->data + out->size, bytes, size);
	out->data[out->size++] = '"';
	return 0;
}

/* Write ,"NAME":"TEXT", or ,"NAME_base64":"...". */
static int append_member(struct buffer *out, const char *name, const char *bytes, size_t size)
{
	if (is_text(bytes, size))
		return buffer_format(out, ",\"%s\":", name) || append_text(out, bytes, size) ? -1 : 0;
	return buffer_format(out, ",\"%s_base64\":", name) || append_bytes(out, bytes, size) ? -1 : 0;
}

static int append_time(struct buffer *out, int64_t ms, const struct letter_form *form)
{
	time_t seconds;
	char text[40];
	struct tm at;

	if (ms == OUTBOX_NEVER)
		return buffer_format(out, ",\"deadline\":null");
	ms = form->wall_ms(form->context, ms);
	seconds = (time_t)(ms / 1000);
	(void)gmtime_r(&seconds, &at);
	(void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &at);
	return buffer_format(out, ",\"deadline\":\"%s.%03dZ\"", text, (int)(ms % 1000));
}

int letter_write(struct buffer *out, const struct outbox_item *item, const struct letter_form *form)
{
	char id[LETTER_ID];

	if (buffer_format(out, "{\"id\":\"%s\",\"database\":%u", letter_id(item, id), item->database) ||
	    append_member(out, "key", item->key, item->length))
		return -1;
	if (item->value ? append_member(out, "value", item->value, item->size)
	                : buffer_format(out, ",\"value\":null,\"value_size\":%zu", item->size))
		return -1;
	if (buffer_format(out, ",\"why\":\"%s\"", item->why == WW_GONE_EVICTED ? "evicted" : "expired") ||
	    append_time(out, item->deadline_ms, form) || buffer_append(out, "}", 1))
		return -1;
	return 0;
}
