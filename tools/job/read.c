/* Reads the members of objects by their tables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/common/base64.h"
#include "tools/common/duration.h"
#include "tools/common/number.h"
#include "tools/common/percent.h"
#include "tools/job/job.h"
#include "weekwheel/driver.h"

static const char behind[] = "_base64";

enum { BEHIND = sizeof behind - 1 };

static int is_bytes(const struct field *field)
{
	return field->kind == FIELD_BYTES || field->kind == FIELD_BODY;
}

/* Most names differ in their first byte or their length. */
static int is_named(const struct field *field, struct json_value name)
{
	return *field->name == *name.text && strlen(field->name) == name.size &&
	       memcmp(field->name, name.text, name.size) == 0;
}

const struct field *field_find(const struct field *fields, uint32_t where, struct json_value name, int *is_base64)
{
	*is_base64 = name.size > BEHIND && memcmp(name.text + name.size - BEHIND, behind, BEHIND) == 0;
	if (*is_base64)
		name.size -= BEHIND;
	if (name.size == 0)
		return NULL;
	for (; fields->name; fields++)
		if ((!fields->where || fields->where & where) && is_named(fields, name) &&
		    (!*is_base64 || is_bytes(fields)))
			return fields;
	return NULL;
}

/* A value while it is read. */
struct reading {
	const struct field *field;
	struct field_place place;
	char *to; /* the struct */
	struct json_value value;
	int is_base64;
	enum field_form form;
	char **room;
};

static int in_range(const struct field *field, uint64_t number)
{
	if (number < field->least)
		return number == 0 && field->flags & FIELD_OR_NONE;
	return field->most == 0 || number <= field->most;
}

int field_store(const struct field_place *place, void *to, uint64_t number)
{
	uint32_t small = (uint32_t)number;

	if (place->size == sizeof small && number > UINT32_MAX)
		return -1;
	if (place->size == sizeof small)
		memcpy((char *)to + place->at, &small, sizeof small);
	else
		memcpy((char *)to + place->at, &number, sizeof number);
	return 0;
}

static int store(const struct reading *reading, uint64_t number)
{
	return in_range(reading->field, number) ? field_store(&reading->place, reading->to, number) : -1;
}

/* Some libraries write 100000 as 1e+05, and 1024 as 1024.0. The number may lie in the room. */
static struct json_value plain(struct json_value value, char room[NUMBER_PLAIN])
{
	size_t length = value.kind == JSON_NUMBER ? number_plain(room, value.text, value.size) : 0;

	if (length)
		value = (struct json_value){JSON_NUMBER, room, length};
	return value;
}

static int take_number(const struct reading *reading, enum json_kind kind)
{
	char room[NUMBER_PLAIN];
	struct json_value value = plain(reading->value, room);
	uint64_t number;

	if (value.kind != kind || number_whole(value.text, value.size, 0, UINT64_MAX, &number) != 0)
		return -1;
	return store(reading, number);
}

/* An id is a string; in lines and in what 0.1 wrote, a number. */
static int take_id(const struct reading *reading)
{
	int is_number = reading->form == FIELD_LINE || reading->form == FIELD_OLD;

	return take_number(reading, is_number ? JSON_NUMBER : JSON_STRING);
}

static int copy_text(struct json_value value, char *text, size_t room)
{
	return value.kind != JSON_STRING || json_decode(value, text, room) != 0 ? -1 : 0;
}

static int take_span(const struct reading *reading)
{
	char room[NUMBER_PLAIN];
	struct json_value value = plain(reading->value, room);
	uint64_t most = reading->form == FIELD_REQUEST ? DURATION_MAX : WW_DRIVER_TIME_MAX;
	struct duration_problem problem;
	char text[32];
	uint64_t ns;

	if (value.kind == JSON_NUMBER ? number_seconds(value.text, value.size, most / WW_SECOND, &ns) || ns > most
	                              : reading->form != FIELD_REQUEST || copy_text(value, text, sizeof text) ||
	                                    duration_parse(text, &ns, &problem))
		return -1;
	return store(reading, ns);
}

/* A time without its zone would be that of the reader's zone, which the writer does not know. */
static int has_zone(const char *text)
{
	const char *clock = strchr(text, ':');

	return *text == '@' || (clock && (strpbrk(clock, "Zz+-") != NULL));
}

/* What field_write_time writes, which may be later than people may say. */
static int parse_written(const char *text, uint64_t *ns)
{
	struct tm tm = {0};
	const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	uint32_t fraction = 0;
	time_t seconds;

	if (at && *at == '.') {
		at++;
		(void)number_fraction(&at, at + strlen(at), &fraction);
	}
	seconds = at && strcmp(at, "Z") == 0 ? timegm(&tm) : -1;
	if (seconds < 0 || seconds >= (time_t)(2 * WW_DRIVER_TIME_MAX / WW_SECOND))
		return -1;
	*ns = (uint64_t)seconds * WW_SECOND + fraction;
	return 0;
}

static int take_time(const struct reading *reading)
{
	struct json_value value = reading->value;
	struct duration_problem problem;
	char text[48];
	uint64_t ns = 0;
	int bad;

	if (value.kind == JSON_NULL && reading->field->flags & FIELD_OR_NONE)
		return store(reading, 0);
	if (reading->form == FIELD_LINE || reading->form == FIELD_OLD)
		bad = value.kind != (reading->form == FIELD_OLD ? JSON_NUMBER : JSON_STRING) ||
		      number_seconds(value.text, value.size, 2 * WW_DRIVER_TIME_MAX / WW_SECOND - 1, &ns);
	else if (copy_text(value, text, sizeof text))
		bad = 1;
	else if (reading->form == FIELD_REQUEST)
		bad = !has_zone(text) || time_parse(text, &ns, &problem);
	else
		bad = parse_written(text, &ns);
	return bad ? -1 : store(reading, ns);
}

/* ---- Texts and bytes: into an array of the struct, or into the room, to which the struct gets a pointer */

static int is_pointer(const struct reading *reading)
{
	return reading->place.size == sizeof(char *);
}

static void point(const struct reading *reading, const char *bytes, size_t size)
{
	memcpy(reading->to + reading->place.at, &bytes, sizeof bytes);
	*reading->room += size;
}

static int take_text(const struct reading *reading)
{
	const struct field *field = reading->field;
	struct json_value value = reading->value;
	char *text = is_pointer(reading) ? *reading->room : reading->to + reading->place.at;
	size_t length;
	int cut;

	if (value.kind != JSON_STRING)
		return -1;
	cut = json_decode(value, text, is_pointer(reading) ? value.size + 1 : reading->place.size);
	length = strlen(text);
	if (cut < 0 || (cut && !(field->flags & FIELD_CUT)) || length < field->least ||
	    (field->most && length > field->most))
		return -1;
	if (is_pointer(reading))
		point(reading, text, length + 1);
	return 0;
}

static long decode_percent(char *out, struct json_value value)
{
	const char *at = value.text;
	const char *end = at + value.size;
	char *to = out;

	while (at < end)
		*to++ = percent_take(&at, end);
	return to - out;
}

/* No form is longer than its text. */
static long decode(const struct reading *reading, char *out)
{
	struct json_value value = reading->value;

	if (value.kind == JSON_NULL && reading->field->kind == FIELD_BYTES && reading->form != FIELD_REQUEST)
		return 0;
	if (value.kind != JSON_STRING)
		return -1;
	if (reading->is_base64 || reading->form == FIELD_OLD ||
	    (reading->form == FIELD_LINE && reading->field->kind == FIELD_BODY))
		return base64_decode(out, value.text, value.size);
	if (reading->form == FIELD_LINE)
		return decode_percent(out, value);
	return json_decode(value, out, value.size + 1) ? -1 : (long)strlen(out);
}

static int take_bytes(const struct reading *reading)
{
	long length = decode(reading, *reading->room);
	size_t size = length < 0 ? 0 : (size_t)length;

	if (length < 0 || (reading->value.kind != JSON_NULL && !in_range(reading->field, size)))
		return -1;
	if (reading->place.length)
		memcpy(reading->to + reading->place.length, &size, sizeof size);
	else /* its end is a NUL, for which the quotes leave room */
		(*reading->room)[size++] = 0;
	if (is_pointer(reading))
		point(reading, *reading->room, size);
	else
		memcpy(reading->to + reading->place.at, *reading->room, size);
	return 0;
}

/* Each text of it is shorter than the object. */
static int add_header(char *headers, size_t *length, struct json_value name, struct json_value value)
{
	char texts[2][WW_JOB_HEADERS_MAX];
	struct ww_job_header header = {texts[0], 0, texts[1], 0};

	if (copy_text(name, texts[0], sizeof texts[0]) || copy_text(value, texts[1], sizeof texts[1]))
		return -1;
	header.name_length = strlen(texts[0]);
	header.value_length = strlen(texts[1]);
	return ww_job_headers_add(headers, length, &header);
}

static int take_headers(const struct reading *reading)
{
	struct json_value object = reading->value;
	struct json_value name, value;
	char *headers = *reading->room;
	size_t length = 0;
	size_t at = 0;
	int more;

	while ((more = json_next(object.text, object.size, &at, &name, &value)) > 0)
		if (add_header(headers, &length, name, value) != 0)
			return -1;
	if (object.kind != JSON_OTHER || more < 0)
		return -1;
	memcpy(reading->to + reading->place.length, &length, sizeof length);
	point(reading, headers, length);
	return 0;
}

static int take_job(const struct reading *reading)
{
	char problem[JOB_PROBLEM];
	const void *bytes;
	size_t length;

	if (job_then_take(reading->value, reading->room, &bytes, &length, problem) != 0)
		return -1;
	memcpy(reading->to + reading->place.length, &length, sizeof length);
	memcpy(reading->to + reading->place.at, &bytes, sizeof bytes);
	return 0;
}

/* ---- Words */

static int take_word(const struct reading *reading)
{
	for (uint64_t i = reading->field->least; reading->field->words[i]; i++)
		if (json_is(reading->value, reading->field->words[i]))
			return store(reading, i);
	return -1;
}

static int take_truth(const struct reading *reading)
{
	struct json_value value = reading->value;
	int is_true = value.size == 4 && memcmp(value.text, "true", 4) == 0;
	int is_false = value.size == 5 && memcmp(value.text, "false", 5) == 0;

	return value.kind == JSON_OTHER && (is_true || is_false) ? store(reading, (uint64_t)is_true) : -1;
}

static int take_clock(const struct reading *reading)
{
	int is_wall = json_is(reading->value, "wall");

	return is_wall || json_is(reading->value, "elapsed") ? store(reading, is_wall ? WW_JOB_WALL : 0) : -1;
}

int field_take(
    const struct field *field, void *to, struct json_value value, int is_base64, enum field_form form, char **room)
{
	const struct reading reading = {
	    field, form == FIELD_REQUEST ? field->in : field->out, to, value, is_base64, form, room};

	switch (field->kind) {
	case FIELD_ID:
		return take_id(&reading);
	case FIELD_SPAN:
		return take_span(&reading);
	case FIELD_TIME:
	case FIELD_ENDS:
	case FIELD_DUE:
		return take_time(&reading);
	case FIELD_TEXT:
		return take_text(&reading);
	case FIELD_BYTES:
	case FIELD_BODY:
		return take_bytes(&reading);
	case FIELD_HEADERS:
		return take_headers(&reading);
	case FIELD_JOB:
		return take_job(&reading);
	case FIELD_WORD:
		return take_word(&reading);
	case FIELD_TRUTH:
		return take_truth(&reading);
	case FIELD_CLOCK:
		return take_clock(&reading);
	default:
		return take_number(&reading, JSON_NUMBER);
	}
}

/* ---- What is expected */

static void expect_word(const struct field *field, char text[FIELD_EXPECTED])
{
	size_t length = 0;

	for (uint64_t i = field->least; field->words[i] && length < FIELD_EXPECTED; i++)
		length += (size_t)snprintf(text + length, FIELD_EXPECTED - length, "%s\"%s\"",
		    i == field->least     ? ""
		    : field->words[i + 1] ? ", "
		                          : " or ",
		    field->words[i]);
}

static void expect_span(const struct field *field, enum field_form form, char text[FIELD_EXPECTED])
{
	char least[DURATION_TEXT];
	const char *as_text = form == FIELD_REQUEST ? ", or a text such as \"90s\" or \"1.5h\"" : "";

	snprintf(text, FIELD_EXPECTED, "seconds%s%s%s",
	    !field->least                  ? ""
	    : field->flags & FIELD_OR_NONE ? ", 0 or at least "
	                                   : ", at least ",
	    field->least ? duration_seconds(least, field->least) : "", as_text);
}

static void expect_count(const struct field *field, char text[FIELD_EXPECTED])
{
	if (field->most)
		snprintf(text, FIELD_EXPECTED, "a whole number, %" PRIu64 " to %" PRIu64, field->least, field->most);
	else
		snprintf(text, FIELD_EXPECTED, "a whole number from %" PRIu64 " on", field->least);
}

static void expect_bytes(const struct field *field, const char *what, char text[FIELD_EXPECTED])
{
	if (field->most)
		snprintf(
		    text, FIELD_EXPECTED, "%s of %" PRIu64 " to %" PRIu64 " bytes", what, field->least, field->most);
	else
		snprintf(text, FIELD_EXPECTED, "%s", what);
}

const char *field_expected(const struct field *field, int is_base64, enum field_form form, char text[FIELD_EXPECTED])
{
	switch (field->kind) {
	case FIELD_ID:
		snprintf(text, FIELD_EXPECTED, "a whole number%s", form == FIELD_OLD ? "" : " as a string");
		break;
	case FIELD_SPAN:
		expect_span(field, form, text);
		break;
	case FIELD_TIME:
	case FIELD_ENDS:
	case FIELD_DUE:
		snprintf(text, FIELD_EXPECTED, "%s",
		    form == FIELD_OLD ? "seconds since 1970"
		                      : "a time with its zone, such as \"2026-12-01T09:00:00Z\"");
		break;
	case FIELD_TEXT:
		expect_bytes(field, "a text", text);
		break;
	case FIELD_BYTES:
	case FIELD_BODY:
		expect_bytes(field, is_base64 || form == FIELD_OLD ? "base64" : "a text", text);
		break;
	case FIELD_HEADERS:
		snprintf(text, FIELD_EXPECTED,
		    "an object of at most %d names of RFC 9110 and values of visible ASCII, %d bytes in all",
		    WW_JOB_HEADERS, WW_JOB_HEADERS_MAX);
		break;
	case FIELD_JOB:
		snprintf(text, FIELD_EXPECTED, "an object with the members of a job that is put");
		break;
	case FIELD_WORD:
		expect_word(field, text);
		break;
	case FIELD_TRUTH:
		snprintf(text, FIELD_EXPECTED, "true or false");
		break;
	case FIELD_CLOCK:
		snprintf(text, FIELD_EXPECTED, "\"elapsed\" or \"wall\"");
		break;
	default:
		expect_count(field, text);
	}
	return text;
}
