/*
 * A schedule as bytes: lines of a word and a value, an empty line, and the body of its jobs. Unknown words, from a
 * later version with the same format number, are ignored. A request has three more words: what it asks, and of which
 * schedule, as it has no key that says so.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/spread.h"
#include "lib/schedule/schedule_internal.h"

static const char head[] = "weekwheel-schedule ";
enum { VERSION = 1 };

static const char *const missed_names[] = {
    [WW_MISSED_ONCE] = "once", [WW_MISSED_ALL] = "all", [WW_MISSED_SKIP] = "skip"};
static const char *const overlap_names[] = {
    [WW_OVERLAP_ALLOW] = "allow", [WW_OVERLAP_SKIP] = "skip", [WW_OVERLAP_WAIT] = "wait"};
static const char *const request_names[] = {
    [SCHEDULE_NO_REQUEST] = "", [SCHEDULE_PUT] = "put", [SCHEDULE_ADD] = "add", [SCHEDULE_REMOVE] = "remove"};

int ww_schedule_key(const char *tube, const char *name, struct schedule_key *key)
{
	size_t tube_length = tube ? strnlen(tube, WW_TUBE_MAX + 1) : 0;
	size_t length = name ? strnlen(name, WW_SCHEDULE_NAME_MAX + 1) : 0;

	if (tube_length == 0 || length == 0 || length > WW_SCHEDULE_NAME_MAX ||
	    tube_length + length + 1 > WW_JOB_KEY_MAX)
		return WW_EINVAL;
	for (size_t i = 0; i < length; i++)
		if (iscntrl((unsigned char)name[i]))
			return WW_EINVAL;
	memcpy(key->bytes, tube, tube_length + 1);
	memcpy(key->bytes + tube_length + 1, name, length);
	key->length = tube_length + 1 + length;
	return WW_OK;
}

struct number {
	const char *word;
	size_t at;
	size_t size;
	size_t job; /* what has it in struct ww_job_spec, where it has the same size; or NOT_OF_JOB */
};

#define NOT_OF_JOB SIZE_MAX
#define NUMBER_AT(word, member, job)                                                                                   \
	{                                                                                                              \
		word, offsetof(struct schedule_record, member), sizeof((struct schedule_record *)0)->member, job       \
	}
#define NUMBER(word, member) NUMBER_AT(word, member, NOT_OF_JOB)
#define NUMBER_OF_JOB(word, member) NUMBER_AT(word, spec.member, offsetof(struct ww_job_spec, member))

static const struct number numbers[] = {
    NUMBER_OF_JOB("run", run),
    NUMBER_OF_JOB("backoff", backoff),
    NUMBER_OF_JOB("backoff-max", backoff_max),
    NUMBER_OF_JOB("priority", priority),
    NUMBER_OF_JOB("keep", keep),
    NUMBER_OF_JOB("attempts", attempts),
    NUMBER_OF_JOB("expire", expire),
    NUMBER_OF_JOB("expired", expired),
    NUMBER_OF_JOB("code", code),
    NUMBER("skip", spec.skip),
    NUMBER("spread", spec.spread),
    NUMBER("start", spec.start),
    NUMBER("end", spec.end),
    NUMBER("paused", spec.is_paused),
    NUMBER("anchor", anchor),
    NUMBER("next", next),
    NUMBER("last", last),
    NUMBER("made", made),
    NUMBER("skipped", skipped),
};

_Static_assert(offsetof(struct schedule_record, spec) == 0, "a place in the record is one in its spec");

enum { NUMBERS = sizeof numbers / sizeof *numbers };

static uint64_t get(const struct schedule_record *record, const struct number *number)
{
	const char *from = (const char *)record + number->at;
	uint64_t wide;
	uint32_t narrow;

	memcpy(number->size == sizeof wide ? (void *)&wide : &narrow, from, number->size);
	return number->size == sizeof wide ? wide : narrow;
}

static int set(struct schedule_record *record, const struct number *number, const char *text)
{
	char *end;
	uint64_t wide = strtoull(text, &end, 10);
	uint32_t narrow = (uint32_t)wide;

	if (!isdigit((unsigned char)*text) || *end ||
	    (number->size == sizeof narrow && wide > INT32_MAX && wide != narrow))
		return WW_ECORRUPT;
	memcpy((char *)record + number->at, number->size == sizeof wide ? (const void *)&wide : &narrow, number->size);
	return WW_OK;
}

void ww_schedule_to_job(const struct ww_schedule_spec *schedule, struct ww_job_spec *job)
{
	for (int i = 0; i < NUMBERS; i++)
		if (numbers[i].job != NOT_OF_JOB)
			memcpy((char *)job + numbers[i].job, (const char *)schedule + numbers[i].at, numbers[i].size);
}

void ww_schedule_of_job(struct ww_schedule_spec *schedule, const struct ww_job_spec *job)
{
	for (int i = 0; i < NUMBERS; i++)
		if (numbers[i].job != NOT_OF_JOB)
			memcpy((char *)schedule + numbers[i].at, (const char *)job + numbers[i].job, numbers[i].size);
}

int ww_schedule_is_in_range(const struct ww_schedule_spec *spec)
{
	const struct schedule_record record = {.spec = *spec};

	for (int i = 0; i < NUMBERS; i++)
		if (get(&record, &numbers[i]) > WW_DRIVER_TIME_MAX)
			return 0;
	return 1;
}

/* A group is any bytes, so it is written in hexadecimal digits. */
static size_t write_group(const struct ww_schedule_spec *spec, char *text)
{
	size_t at = (size_t)sprintf(text, "group ");

	for (size_t i = 0; i < spec->group_length; i++)
		at += (size_t)sprintf(text + at, "%02x", ((const unsigned char *)spec->group)[i]);
	text[at++] = '\n';
	return at;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int take_group(struct schedule_record *record, const char *value)
{
	size_t length = strlen(value);

	if (length == 0 || length % 2 || length / 2 > sizeof record->group || record->spec.group_length)
		return WW_ECORRUPT;
	for (size_t i = 0; i < length / 2; i++) {
		int high = digit(value[2 * i]), low = digit(value[2 * i + 1]);

		if (high < 0 || low < 0)
			return WW_ECORRUPT;
		record->group[i] = (unsigned char)(high << 4 | low);
	}
	record->spec.group = record->group;
	record->spec.group_length = length / 2;
	return WW_OK;
}

size_t ww_schedule_write(const struct schedule_record *record, char *text)
{
	const struct ww_schedule_spec *spec = &record->spec;
	size_t at = 0;

	at += (size_t)sprintf(text, "%s%d\ncron %s\nzone %s\nmissed %s\noverlap %s\n", head, VERSION, spec->expression,
	    spec->zone, missed_names[spec->missed], overlap_names[spec->overlap]);
	for (int i = 0; i < NUMBERS; i++)
		if (get(record, &numbers[i]))
			at += (size_t)sprintf(text + at, "%s %" PRIu64 "\n", numbers[i].word, get(record, &numbers[i]));
	if (spec->group_length)
		at += write_group(spec, text + at);
	text[at++] = '\n';
	return at;
}

static int find(const char *const *names, int count, const char *value)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], value) == 0)
			return i;
	return -1;
}

static int take_text(char *text, size_t room, const char *value)
{
	return (size_t)snprintf(text, room, "%s", value) < room ? WW_OK : WW_ECORRUPT;
}

static int take(struct schedule_record *record, const char *word, const char *value)
{
	int found;

	if (strcmp(word, "tube") == 0)
		return take_text(record->tube, sizeof record->tube, value);
	if (strcmp(word, "name") == 0)
		return take_text(record->name, sizeof record->name, value);
	if (strcmp(word, "request") == 0) {
		found = find(request_names, 4, value);
		record->request = (enum schedule_request)(found < 0 ? 0 : found);
		record->spec.if_absent = record->request == SCHEDULE_ADD;
		return found <= 0 ? WW_ECORRUPT : WW_OK;
	}
	if (strcmp(word, "cron") == 0 || strcmp(word, "zone") == 0) {
		snprintf(*word == 'c' ? record->expression : record->zone, WW_CALENDAR_MAX + 1, "%s", value);
		return WW_OK;
	}
	if (strcmp(word, "missed") == 0) {
		found = find(missed_names, 3, value);
		record->spec.missed = (enum ww_missed)(found < 0 ? 0 : found);
		return found < 0 ? WW_ECORRUPT : WW_OK;
	}
	if (strcmp(word, "overlap") == 0) {
		found = find(overlap_names, 3, value);
		record->spec.overlap = (enum ww_overlap)(found < 0 ? 0 : found);
		return found < 0 ? WW_ECORRUPT : WW_OK;
	}
	if (strcmp(word, "group") == 0)
		return take_group(record, value);
	for (int i = 0; i < NUMBERS; i++)
		if (strcmp(word, numbers[i].word) == 0)
			return set(record, &numbers[i], value);
	return WW_OK;
}

/* Read a line of text[0 .. size-1]. Returns its length with its end, 1 for the empty one, or 0 without an end. */
static size_t take_line(struct schedule_record *record, const char *text, size_t size, int *error)
{
	const char *stop = memchr(text, '\n', size);
	char line[WW_SCHEDULE_RECORD_MAX];
	size_t length;
	char *blank;

	if (!stop || (size_t)(stop - text) >= sizeof line)
		return 0;
	length = (size_t)(stop - text);
	memcpy(line, text, length);
	line[length] = 0;
	blank = strchr(line, ' ');
	if (length && !blank)
		return 0;
	if (length) {
		*blank = 0;
		*error = take(record, line, blank + 1);
	}
	return length + 1;
}

static int read_key(struct schedule_record *record, const char *key, size_t length)
{
	const char *end = memchr(key, 0, length);
	size_t tube_length = end ? (size_t)(end - key) : 0;
	size_t name_length = length - tube_length - 1;

	if (!length)
		return *record->tube && *record->name && record->request ? WW_OK : WW_ECORRUPT;
	record->request = SCHEDULE_NO_REQUEST;
	if (tube_length == 0 || tube_length > WW_TUBE_MAX || name_length == 0 || name_length > WW_SCHEDULE_NAME_MAX)
		return WW_ECORRUPT;
	memcpy(record->tube, key, tube_length + 1);
	memcpy(record->name, end + 1, name_length);
	record->name[name_length] = 0;
	return WW_OK;
}

int ww_schedule_read(
    const void *body, size_t length, const void *key, size_t key_length, struct schedule_record *record)
{
	const char *text = body;
	size_t at = 0;
	size_t taken;
	int error = WW_OK;

	memset(record, 0, sizeof *record);
	if (!text || length < sizeof head + 1 || memcmp(text, head, sizeof head - 1) != 0)
		return WW_ECORRUPT;
	if (text[sizeof head - 1] != '0' + VERSION || text[sizeof head] != '\n')
		return WW_EVERSION;
	at = sizeof head + 1;
	do {
		taken = at < length ? take_line(record, text + at, length - at, &error) : 0;
		at += taken;
	} while (taken > 1 && !error);
	if (!taken || error || read_key(record, key, key_length))
		return WW_ECORRUPT;
	record->spec.tube = record->tube;
	record->spec.name = record->name;
	record->spec.expression = record->expression;
	record->spec.zone = record->zone;
	record->spec.body = text + at;
	record->spec.body_length = length - at;
	return WW_OK;
}

uint64_t ww_schedule_delay(const struct ww_schedule_spec *spec)
{
	return spread_part(spec->spread, WW_SECOND, spec->tube, spec->name, strlen(spec->name));
}
