/*
 * Reads events as CSV: time,event,key,timeout. A header line may come first, lines that begin with '#' are comments, and
 * a key can stand in quotes, within which "" is one quote.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/input/format.h"

static const char HEADER[] = "time,event,key,timeout";

enum { TIME, KIND, KEY, TIMEOUT, FIELDS };

struct record {
	struct input_line field[FIELDS];
	int count;
	int key_is_quoted; /* and still holds its doubled quotes */
};

/* Cut a quoted field off the front of *rest. Return -1 if the quotes do not end, or more than a comma follows. */
static int cut_quoted(struct input_line *rest, struct input_line *field)
{
	size_t i = 1;

	while (i < rest->size) {
		if (rest->text[i] != '"') {
			i++;
		} else if (i + 1 < rest->size && rest->text[i + 1] == '"') {
			i += 2;
		} else {
			field->text = rest->text + 1;
			field->size = i - 1;
			rest->text += i + 1;
			rest->size -= i + 1;
			*rest = line_trim(*rest);
			return rest->size > 0 && rest->text[0] != ',' ? -1 : 0;
		}
	}
	return -1;
}

static void cut_plain(struct input_line *rest, struct input_line *field)
{
	const char *comma = memchr(rest->text, ',', rest->size);

	field->text = rest->text;
	field->size = comma ? (size_t)(comma - rest->text) : rest->size;
	rest->text += field->size;
	rest->size -= field->size;
	*field = line_trim(*field);
}

static int split(struct input_line line, struct record *record, struct line_problem *problem)
{
	for (record->count = 0; record->count < FIELDS; line.text++, line.size--) {
		struct input_line *field = &record->field[record->count++];

		line = line_trim(line);
		if (line.size == 0 || line.text[0] != '"') {
			cut_plain(&line, field);
		} else if (record->count - 1 != KEY) {
			return line_problem_set(problem, "field %d is quoted; only the key can be", record->count);
		} else if (cut_quoted(&line, field)) {
			return line_problem_set(
			    problem, "the quoted key has no end; expected \"...\" with inner quotes doubled");
		} else {
			record->key_is_quoted = 1;
		}
		if (line.size == 0)
			return 0;
	}
	return line_problem_set(problem, "more than %d fields; expected %s (quote a key with a comma)", FIELDS, HEADER);
}

static int read_kind(struct input_line text, enum event_kind *kind, struct line_problem *problem)
{
	char excerpt[40];

	for (*kind = EVENT_SET; *kind <= EVENT_CANCEL; ++*kind)
		if (line_equals(text, event_kind_name(*kind)))
			return 0;
	message_excerpt(excerpt, sizeof excerpt, text.text, text.size);
	return line_problem_set(problem, "the event is %s; expected set, refresh or cancel", excerpt);
}

static uint32_t intern(struct events *events, const struct record *record)
{
	struct input_line key = record->field[KEY];
	size_t size = 0;
	char *plain;
	uint32_t id;

	if (!record->key_is_quoted || !memchr(key.text, '"', key.size))
		return keys_intern(events->keys, key.text, key.size);
	plain = memory_resize(NULL, key.size, 1);
	for (size_t i = 0; i < key.size; i++) {
		plain[size++] = key.text[i];
		i += key.text[i] == '"';
	}
	id = keys_intern(events->keys, plain, size);
	free(plain);
	return id;
}

static int read_due(const struct record *record, struct moment time, struct moment *due, struct line_problem *problem)
{
	struct moment timeout = {0, 0};

	if (record->count <= TIMEOUT || record->field[TIMEOUT].size == 0)
		return line_problem_set(problem, "no timeout; expected %s, where only a cancel needs none", HEADER);
	if (line_number(record->field[TIMEOUT], "timeout", &timeout, problem))
		return -1;
	if (moment_add(time, timeout, due))
		return line_problem_set(problem, "time + timeout is beyond 9223372036854775807 seconds");
	return 0;
}

static enum line_result read_record(const struct record *record, struct events *events, struct line_problem *problem)
{
	struct moment time = {0, 0};
	struct moment due = {0, 0};
	enum event_kind kind = EVENT_SET;

	if (record->count <= KEY)
		return line_problem_set(problem, "%d of %d fields; expected %s", record->count, FIELDS, HEADER);
	if (line_number(record->field[TIME], "time", &time, problem) || read_kind(record->field[KIND], &kind, problem))
		return LINE_UNREADABLE;
	if (record->field[KEY].size == 0)
		return line_problem_set(problem, "the key is empty; expected %s", HEADER);
	if (kind != EVENT_CANCEL && read_due(record, time, &due, problem))
		return LINE_UNREADABLE;
	events_add(events, kind, intern(events, record), time, kind == EVENT_CANCEL ? time : due);
	return LINE_EVENTS;
}

static enum line_result csv_read(
    struct format_context *context, struct input_line line, struct events *events, struct line_problem *problem)
{
	struct record record = {.count = 0};

	(void)context;
	line = line_trim(line);
	if (line.size == 0)
		return LINE_BLANK;
	if (line.text[0] == '#' || line_equals(line, HEADER))
		return LINE_COMMENT;
	if (split(line, &record, problem))
		return LINE_UNREADABLE;
	return read_record(&record, events, problem);
}

const struct format format_csv = {"csv", "CSV of events", ".csv", 1, csv_read};
