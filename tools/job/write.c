/* Writes the members of objects by their tables. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "tools/common/base64.h"
#include "tools/common/duration.h"
#include "tools/common/percent.h"
#include "tools/common/utf8.h"
#include "tools/job/job.h"
#include "weekwheel/driver.h"

/* A member while it is written. */
struct writing {
	struct buffer *out;
	const struct field *field;
	const void *from; /* the struct */
	const char *at;   /* its member */
	enum field_form form;
	const struct field_moment *now;
};

int field_write_time(struct buffer *out, const char *name, uint64_t unix_ns, int is_exact)
{
	time_t seconds = (time_t)(unix_ns / WW_SECOND);
	unsigned ns = (unsigned)(unix_ns % WW_SECOND);
	struct tm utc;
	char text[32];

	if (!unix_ns || !gmtime_r(&seconds, &utc) || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
		return buffer_format(out, "\"%s\":null", name);
	if (is_exact)
		return buffer_format(out, "\"%s\":\"%s.%09uZ\"", name, text, ns);
	return buffer_format(out, "\"%s\":\"%s.%03uZ\"", name, text, ns / (unsigned)WW_MILLISECOND);
}

/* NUL is no control character that programs expect in a text. */
static int is_text(const char *bytes, size_t size)
{
	const char *at = bytes;
	const char *end = bytes + size;

	while (at < end) {
		/* Most of a body of megabytes. */
		for (; at < end && (signed char)*at > 0; at++)
			;
		if (at < end && (*at == 0 || utf8_take(&at, end) < 0))
			return 0;
	}
	return 1;
}

static int write_base64(struct buffer *out, const char *name, const char *behind, const void *bytes, size_t size)
{
	if (buffer_format(out, "\"%s%s\":\"", name, behind) != 0 || buffer_reserve(out, BASE64_SIZE(size) + 1) != 0)
		return -1;
	out->size += base64_encode(out->data + out->size, bytes, size);
	return buffer_append(out, "\"", 1);
}

int field_write_bytes(struct buffer *out, const char *name, const void *bytes, size_t size)
{
	if (size > 0 && !is_text(bytes, size))
		return write_base64(out, name, "_base64", bytes, size);
	return buffer_format(out, "\"%s\":", name) | buffer_quote(out, bytes ? bytes : "", size);
}

int field_write_seconds(struct buffer *out, const char *name, uint64_t ns)
{
	char text[DURATION_TEXT];

	return buffer_format(out, "\"%s\":%s", name, duration_seconds(text, ns));
}

/* ---- Values */

static uint64_t number_at(const struct writing *writing)
{
	uint64_t large;
	uint32_t small;

	if (writing->field->out.size == sizeof small) {
		memcpy(&small, writing->at, sizeof small);
		return small;
	}
	memcpy(&large, writing->at, sizeof large);
	return large;
}

/* The bytes of an array, or those that a pointer has. */
static const char *bytes_at(const struct writing *writing)
{
	const char *bytes = writing->at;

	if (writing->field->out.size == sizeof bytes)
		memcpy(&bytes, writing->at, sizeof bytes);
	return bytes;
}

static size_t length_at(const struct writing *writing)
{
	size_t length;

	if (writing->field->out.length == 0)
		return strlen(bytes_at(writing));
	memcpy(&length, (const char *)writing->from + writing->field->out.length, sizeof length);
	return length;
}

static uint64_t as_unix(uint64_t elapsed, const struct field_moment *now)
{
	if (elapsed < now->elapsed && now->elapsed - elapsed > now->wall)
		return 0;
	return now->wall + elapsed - now->elapsed;
}

static int write_time(const struct writing *writing, uint64_t unix_ns)
{
	return field_write_time(writing->out, writing->field->name, unix_ns, writing->now && writing->now->is_exact);
}

/* On either clock, as a line has it. */
static int write_line_time(const struct writing *writing)
{
	char text[DURATION_TEXT];

	if (number_at(writing) == 0 && writing->field->flags & FIELD_OR_NONE)
		return buffer_format(writing->out, "\"%s\":null", writing->field->name);
	return buffer_format(
	    writing->out, "\"%s\":\"%s\"", writing->field->name, duration_seconds(text, number_at(writing)));
}

static int write_due(const struct writing *writing)
{
	const struct ww_job_info *info = writing->from;

	return write_time(
	    writing, info->flags & WW_JOB_WALL ? number_at(writing) : as_unix(number_at(writing), writing->now));
}

static int write_bytes(const struct writing *writing)
{
	const char *name = writing->field->name;
	size_t length = length_at(writing);
	const char *bytes = bytes_at(writing);
	char encoded[3 * WW_JOB_KEY_MAX + 1];

	if (length == 0)
		return buffer_format(writing->out, "\"%s\":null", name);
	if (writing->form != FIELD_LINE)
		return field_write_bytes(writing->out, name, bytes, length);
	(void)percent_encode(bytes, length, encoded, sizeof encoded);
	return buffer_format(writing->out, "\"%s\":\"%s\"", name, encoded);
}

static int write_body(const struct writing *writing)
{
	const char *bytes = bytes_at(writing);
	size_t length = bytes ? length_at(writing) : 0;

	if (writing->form == FIELD_LINE)
		return write_base64(writing->out, writing->field->name, "", bytes, length);
	return field_write_bytes(writing->out, writing->field->name, bytes, length);
}

static int write_headers(const struct writing *writing)
{
	const char *headers = bytes_at(writing);
	size_t length = length_at(writing);
	struct buffer *out = writing->out;
	struct ww_job_header header;
	size_t at = 0;
	int bad = buffer_format(out, "\"%s\":{", writing->field->name);

	for (int i = 0; ww_job_headers_next(headers, length, &at, &header); i++)
		bad |= buffer_append(out, ",", i > 0) | buffer_quote(out, header.name, header.name_length) |
		       buffer_append(out, ":", 1) | buffer_quote(out, header.value, header.value_length);
	return bad | buffer_append(out, "}", 1);
}

static int write_job(const struct writing *writing)
{
	return buffer_format(writing->out, "\"%s\":", writing->field->name) |
	       job_then_write(writing->out, bytes_at(writing), length_at(writing));
}

static int write_text(const struct writing *writing)
{
	const char *text = bytes_at(writing);

	return buffer_format(writing->out, "\"%s\":", writing->field->name) |
	       buffer_quote(writing->out, text, strlen(text));
}

/* A store may have a number that has no word. */
static const char *word_at(const struct writing *writing)
{
	const char *const *words = writing->field->words;
	uint64_t number = number_at(writing);

	for (uint64_t i = 0; words[i]; i++)
		if (i == number)
			return words[i];
	return *words;
}

static int write_value(const struct writing *writing)
{
	const char *name = writing->field->name;
	struct buffer *out = writing->out;

	switch (writing->field->kind) {
	case FIELD_ID:
		return buffer_format(out, writing->form == FIELD_LINE ? "\"%s\":%" PRIu64 : "\"%s\":\"%" PRIu64 "\"",
		    name, number_at(writing));
	case FIELD_SPAN:
		return field_write_seconds(out, name, number_at(writing));
	case FIELD_TIME:
		return writing->form == FIELD_LINE ? write_line_time(writing) : write_time(writing, number_at(writing));
	case FIELD_ENDS:
		return write_time(writing, as_unix(number_at(writing), writing->now));
	case FIELD_DUE:
		return writing->form == FIELD_LINE ? write_line_time(writing) : write_due(writing);
	case FIELD_TEXT:
		return write_text(writing);
	case FIELD_BYTES:
		return write_bytes(writing);
	case FIELD_BODY:
		return write_body(writing);
	case FIELD_HEADERS:
		return write_headers(writing);
	case FIELD_JOB:
		return write_job(writing);
	case FIELD_CLOCK:
		return buffer_format(out, "\"%s\":\"%s\"", name, number_at(writing) & WW_JOB_WALL ? "wall" : "elapsed");
	case FIELD_WORD:
		return buffer_format(out, "\"%s\":\"%s\"", name, word_at(writing));
	case FIELD_TRUTH:
		return buffer_format(out, "\"%s\":%s", name, number_at(writing) ? "true" : "false");
	default:
		return buffer_format(out, "\"%s\":%" PRIu64, name, number_at(writing));
	}
}

/* ---- Objects */

static int is_left_out(const struct writing *writing)
{
	const struct field *field = writing->field;
	uint32_t flags = writing->form == FIELD_LINE ? FIELD_OPTIONAL : FIELD_OPTIONAL | FIELD_MISSING;

	/* A copy needs it all the same: the times of a period follow from it. */
	if (field->kind == FIELD_DUE && !(field->flags & FIELD_OPTIONAL) && writing->form != FIELD_LINE)
		return ((const struct ww_job_info *)writing->from)->state == WW_JOB_BURIED && !writing->now->is_exact;
	if (!(field->flags & flags))
		return 0;
	return field->kind == FIELD_BYTES || field->kind == FIELD_HEADERS || field->kind == FIELD_JOB
	           ? length_at(writing) == 0
	           : number_at(writing) == 0;
}

int field_write(struct buffer *out, const struct field *fields, uint32_t where, const void *from, enum field_form form,
    const struct field_moment *now)
{
	struct writing writing = {out, fields, from, NULL, form, now};
	size_t begun = out->size;
	int bad = 0;

	for (; writing.field->name && !bad; writing.field++) {
		const struct field *field = writing.field;

		writing.at = (const char *)from + field->out.at;
		if (field->out.size == 0 || (field->where && !(field->where & where)) || is_left_out(&writing))
			continue;
		if (out->size > begun)
			bad = buffer_append(out, ",", 1);
		bad |= write_value(&writing);
	}
	return bad;
}
