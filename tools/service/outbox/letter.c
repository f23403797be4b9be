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

/* Ids of two servers that began in the same millisecond are equal: add their own. */
const char *letter_id(const struct outbox_item *item, const struct letter_form *form, char text[LETTER_ID])
{
	XXH128_hash_t hash = {.high64 = item->id};

	if (form->is_shared)
		hash = XXH3_128bits_withSeed(item->key, item->length, (XXH64_hash_t)item->deadline_ms);
	else
		hash.low64 = XXH3_64bits_withSeed(item->key, item->length, (XXH64_hash_t)item->deadline_ms);
	(void)snprintf(text, LETTER_ID, "%016" PRIx64 "-%016" PRIx64, (uint64_t)hash.high64,
	    (uint64_t)(hash.low64 + item->database));
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

static int append_time(struct buffer *out, const char *name, int64_t ms, const struct letter_form *form)
{
	if (ms == OUTBOX_NEVER)
		return buffer_format(out, ",\"%s\":null", name);
	return letter_add_time(out, name, form->wall_ms(form->context, ms));
}

int letter_add_time(struct buffer *out, const char *name, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	char text[40];
	struct tm at;

	(void)gmtime_r(&seconds, &at);
	(void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &at);
	return buffer_format(out, ",\"%s\":\"%s.%03dZ\"", name, text, (int)(ms % 1000));
}

static int append_value(struct buffer *out, const struct outbox_item *item, const struct letter_form *form)
{
	if (item->is_type)
		return buffer_format(out, ",\"value\":null") ||
		       (item->value && append_member(out, "type", item->value, item->size));
	if (item->value)
		return append_member(out, "value", item->value, item->size) ||
		       (item->early_ms && append_time(out, "value_as_of", item->deadline_ms - item->early_ms, form));
	if (item->size == OUTBOX_UNKNOWN)
		return buffer_format(out, ",\"value\":null");
	return buffer_format(out, ",\"value\":null,\"value_size\":%zu", item->size);
}

static const char *why_of(const struct outbox_item *item)
{
	return item->why == WW_GONE_EVICTED ? "evicted" : item->why == OUTBOX_GONE ? "gone" : "expired";
}

int letter_write(struct buffer *out, const struct outbox_item *item, const struct letter_form *form)
{
	char id[LETTER_ID];

	if (buffer_format(out, "{\"id\":\"%s\",\"database\":%u", letter_id(item, form, id), item->database) ||
	    append_member(out, "key", item->key, item->length) || append_value(out, item, form))
		return -1;
	if (buffer_format(out, ",\"why\":\"%s\"", why_of(item)) ||
	    append_time(out, "deadline", item->deadline_ms, form) || buffer_append(out, "}", 1))
		return -1;
	return 0;
}
