/* Reads a job from a line of JSON, and says what is wrong with it; and writes one. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/base64.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/weekwheel/store/line.h"

static const char *const missed[] = {"once", "all", "skip"};

/* A line while its members are read. */
struct reading {
	struct job_line *line;
	uint64_t due;
	unsigned seen; /* members of the table, a bit each */
	void *field;   /* of the spec, for the member */
};

typedef int take_fn(struct reading *reading, struct json_value value);

static int take_whole(struct json_value value, uint64_t most, uint64_t *number)
{
	return value.kind == JSON_NUMBER ? number_whole(value.text, value.size, 0, most, number) : -1;
}

static int take_seconds(struct json_value value, uint64_t *ns)
{
	if (value.kind != JSON_NUMBER)
		return -1;
	return number_seconds(value.text, value.size, 2 * WW_DRIVER_TIME_MAX / WW_SECOND - 1, ns);
}

/* The value's place in a list of words, or -1. */
static int take_word(struct json_value value, const char *const *words, int count)
{

	for (int i = 0; i < count; i++)
		if (json_is(value, words[i]))
			return i;
	return -1;
}

static long take_base64(struct json_value value, unsigned char *out)
{
	return value.kind == JSON_STRING ? base64_decode(out, value.text, value.size) : -1;
}

/* ---- Members */

static int take_tube(struct reading *reading, struct json_value value)
{
	char *tube = reading->line->tube;

	return value.kind != JSON_STRING || json_decode(value, tube, sizeof reading->line->tube) || !*tube ? -1 : 0;
}

static int take_key(struct reading *reading, struct json_value value)
{
	struct job_line *line = reading->line;
	long length = 0;

	if (value.kind != JSON_NULL) {
		if (value.size > (WW_JOB_KEY_MAX + 2) / 3 * 4)
			return -1;
		length = take_base64(value, line->key);
	}
	if (length < 0 || length > WW_JOB_KEY_MAX)
		return -1;
	line->spec.key_length = (size_t)length;
	return 0;
}

static int take_group(struct reading *reading, struct json_value value)
{
	struct job_line *line = reading->line;
	long length = value.size > (WW_JOB_GROUP_MAX + 2) / 3 * 4 ? -1 : take_base64(value, line->group);

	if (length < 1 || length > WW_JOB_GROUP_MAX)
		return -1;
	line->spec.group_length = (size_t)length;
	return 0;
}

static int take_body(struct reading *reading, struct json_value value)
{
	struct job_line *line = reading->line;
	long length;

	if (value.size / 4 * 3 > line->room) {
		line->room = value.size;
		line->body = memory_resize(line->body, line->room, 1);
	}
	length = take_base64(value, line->body);
	if (length < 0)
		return -1;
	line->spec.body_length = (size_t)length;
	return 0;
}

static int take_error(struct reading *reading, struct json_value value)
{
	/* Export may have made three bytes of each byte that was no UTF-8, so a long text is cut and not refused. */
	if (value.kind != JSON_STRING || value.size > 8 * WW_JOB_ERROR_MAX)
		return -1;
	return json_decode(value, reading->line->error, sizeof reading->line->error) < 0 ? -1 : 0;
}

static int take_state(struct reading *reading, struct json_value value)
{
	static const char *const words[] = {"waiting", "buried", "ended"};
	int word = take_word(value, words, 3);

	reading->line->is_buried = word == 1;
	reading->line->is_ended = word == 2;
	return word < 0 ? -1 : 0;
}

static int take_clock(struct reading *reading, struct json_value value)
{
	static const char *const words[] = {"elapsed", "wall"};
	int word = take_word(value, words, 2);

	if (word == 1)
		reading->line->spec.flags |= WW_JOB_WALL;
	return word < 0 ? -1 : 0;
}

static int take_missed(struct reading *reading, struct json_value value)
{
	int word = take_word(value, missed, 3);

	if (word >= 0)
		reading->line->spec.missed = (enum ww_missed)word;
	return word < 0 ? -1 : 0;
}

static int take_due(struct reading *reading, struct json_value value)
{
	return take_seconds(value, &reading->due);
}

static int take_span(struct reading *reading, struct json_value value)
{
	uint64_t *ns = reading->field;

	return take_seconds(value, ns) || *ns > WW_DRIVER_TIME_MAX ? -1 : 0;
}

static int take_run(struct reading *reading, struct json_value value)
{
	return take_span(reading, value) || reading->line->spec.run < WW_SECOND ? -1 : 0;
}

static int take_period(struct reading *reading, struct json_value value)
{
	const uint64_t *period = &reading->line->spec.period;

	return take_span(reading, value) || (*period && *period < WW_MILLISECOND) ? -1 : 0;
}

static int take_count(struct reading *reading, struct json_value value)
{
	uint64_t number;

	if (take_whole(value, UINT32_MAX, &number))
		return -1;
	*(uint32_t *)reading->field = (uint32_t)number;
	return 0;
}

/* A job that is put gets a new value: check only that this is a number. */
static int take_nothing(struct reading *reading, struct json_value value)
{
	uint64_t ns;

	(void)reading;
	return take_seconds(value, &ns) && take_whole(value, UINT64_MAX, &ns) ? -1 : 0;
}

static const char number_expected[] = "a number";
static const char span_expected[] = "seconds, 0 to 4611686018";
static const char count_expected[] = "a whole number, 0 to 4294967295";

#define FIELD(name) offsetof(struct ww_job_spec, name)

static const struct {
	const char *name;
	take_fn *take;
	const char *expected;
	size_t field;
} members[] = {
    {"id", take_nothing, number_expected, 0},
    {"tube", take_tube, "a name of 1 to 200 bytes in UTF-8", 0},
    {"key", take_key, "1 to 200 bytes in base64, or null", 0},
    {"group", take_group, "1 to 200 bytes in base64", 0},
    {"state", take_state, "\"waiting\", \"buried\" or \"ended\"", 0},
    {"clock", take_clock, "\"elapsed\" or \"wall\"", 0},
    {"due", take_due, "seconds since 1970", 0},
    {"left", take_span, span_expected, FIELD(due)},
    {"period", take_period, "0, or seconds from 0.001 to 4611686018", FIELD(period)},
    {"missed", take_missed, "\"once\", \"all\" or \"skip\"", 0},
    {"skip", take_span, span_expected, FIELD(skip)},
    {"priority", take_count, count_expected, FIELD(priority)},
    {"run", take_run, "seconds from 1 to 4611686018", FIELD(run)},
    {"attempts", take_count, count_expected, FIELD(attempts)},
    {"backoff", take_span, span_expected, FIELD(backoff)},
    {"backoff_max", take_span, span_expected, FIELD(backoff_max)},
    {"unique", take_span, span_expected, FIELD(key_span)},
    {"keep", take_span, span_expected, FIELD(keep)},
    {"delay", take_nothing, number_expected, 0},
    {"created", take_nothing, number_expected, 0},
    {"version", take_nothing, number_expected, 0},
    {"reserves", take_nothing, number_expected, 0},
    {"timeouts", take_nothing, number_expected, 0},
    {"releases", take_nothing, number_expected, 0},
    {"buries", take_nothing, number_expected, 0},
    {"kicks", take_nothing, number_expected, 0},
    {"error", take_error, "a text in UTF-8 of up to 255 bytes", 0},
    {"body", take_body, "the body in base64", 0},
};

enum { MEMBERS = sizeof members / sizeof *members };

static unsigned bit_of(const char *name)
{
	int i;

	for (i = 0; i < MEMBERS && strcmp(members[i].name, name) != 0; i++)
		continue;
	return 1u << i;
}

static int take_member(struct reading *reading, struct json_value name, struct json_value value)
{
	char *problem = reading->line->problem;
	char excerpt[60];
	int i;

	for (i = 0; i < MEMBERS && !json_is(name, members[i].name); i++)
		continue;
	if (i == MEMBERS) {
		message_excerpt(excerpt, sizeof excerpt, name.text, name.size);
		snprintf(problem, LINE_PROBLEM, "%s is nothing that a job has; see weekwheel-store(1)", excerpt);
		return -1;
	}
	if (reading->seen & 1u << i) {
		snprintf(problem, LINE_PROBLEM, "'%s' is there twice", members[i].name);
		return -1;
	}
	reading->seen |= 1u << i;
	reading->field = (char *)&reading->line->spec + members[i].field;
	if (members[i].take(reading, value) == 0)
		return 0;
	message_excerpt(excerpt, sizeof excerpt, value.text, value.size);
	snprintf(problem, LINE_PROBLEM, "'%s' is %s; expected %s", members[i].name, excerpt, members[i].expected);
	return -1;
}

static void begin(struct reading *reading, struct job_line *line)
{
	*reading = (struct reading){.line = line};
	(void)ww_job_spec_default(&line->spec);
	snprintf(line->tube, sizeof line->tube, "%s", WW_TUBE_DEFAULT);
	line->is_buried = 0;
	line->is_ended = 0;
	line->error[0] = 0;
}

static int finish(const struct reading *reading)
{
	struct job_line *line = reading->line;

	if (!(reading->seen & bit_of("body"))) {
		snprintf(line->problem, LINE_PROBLEM, "expected a 'body', in base64");
		return -1;
	}
	if (line->spec.key_span)
		line->spec.key_mode = WW_KEY_UNIQUE;
	if (line->is_ended && !line->spec.key_span) {
		snprintf(line->problem, LINE_PROBLEM, "expected seconds as 'unique' of a job that has ended");
		return -1;
	}
	if (line->spec.key_span && (!line->spec.key_length || line->spec.period)) {
		snprintf(line->problem, LINE_PROBLEM, "expected a 'key' and no 'period' beside 'unique'");
		return -1;
	}
	line->spec.tube = line->tube;
	line->spec.key = line->key;
	line->spec.group = line->group;
	line->spec.body = line->body;
	if (reading->seen & bit_of("due")) {
		line->spec.due = reading->due;
		line->spec.flags |= WW_JOB_AT;
	}
	return 0;
}

int line_read(struct job_line *line, const char *text, size_t size)
{
	struct reading reading;
	struct json_value name, value;
	size_t at = 0;
	int more;

	begin(&reading, line);
	while ((more = json_next(text, size, &at, &name, &value)) > 0)
		if (take_member(&reading, name, value))
			return -1;
	if (more == 0)
		return finish(&reading);
	snprintf(line->problem, LINE_PROBLEM, "at byte %zu: expected an object of JSON, {\"tube\": ..., \"body\": ...}",
	    at + 1);
	return -1;
}

void line_free(struct job_line *line)
{
	free(line->body);
	memset(line, 0, sizeof *line);
}

/* ---- Writing */

static void write_seconds(FILE *out, const char *name, uint64_t ns)
{
	char text[DURATION_TEXT];

	fprintf(out, ", \"%s\": %s", name, duration_seconds(text, ns));
}

static void write_count(FILE *out, const char *name, uint64_t count)
{
	fprintf(out, ", \"%s\": %" PRIu64, name, count);
}

static void write_which(FILE *out, const struct ww_job_info *info)
{
	fprintf(out, "{\"id\": %" PRIu64 ", \"tube\": ", info->id);
	json_write_string(out, info->tube, strlen(info->tube));
	fputs(", \"key\": ", out);
	if (info->key_length)
		json_write_base64(out, info->key, info->key_length);
	else
		fputs("null", out);
	if (info->group_length) {
		fputs(", \"group\": ", out);
		json_write_base64(out, info->group, info->group_length);
	}
	fprintf(out, ", \"state\": \"%s\"",
	    info->state == WW_JOB_BURIED  ? "buried"
	    : info->state == WW_JOB_ENDED ? "ended"
	                                  : "waiting");
}

static void write_when(FILE *out, const struct ww_job_info *info, int64_t shift)
{
	int is_wall = (info->flags & WW_JOB_WALL) != 0;

	fprintf(out, ", \"clock\": \"%s\"", is_wall ? "wall" : "elapsed");
	write_seconds(out, "due", is_wall ? info->due : info->due + (uint64_t)shift);
	/* For a reserved job info->left is the time of its lease. */
	write_seconds(out, "left", info->state == WW_JOB_DELAYED || info->state == WW_JOB_ENDED ? info->left : 0);
	write_seconds(out, "period", info->period);
	fprintf(out, ", \"missed\": \"%s\"", missed[info->missed <= WW_MISSED_SKIP ? info->missed : 0]);
	write_seconds(out, "skip", info->skip);
}

void line_write(FILE *out, const struct ww_job_info *info, int64_t shift)
{
	write_which(out, info);
	write_when(out, info, shift);
	write_count(out, "priority", info->priority);
	write_seconds(out, "run", info->run);
	write_count(out, "attempts", info->attempts);
	write_seconds(out, "backoff", info->backoff);
	write_seconds(out, "backoff_max", info->backoff_max);
	if (info->hold)
		write_seconds(out, "unique", info->hold);
	if (info->keep)
		write_seconds(out, "keep", info->keep);
	write_seconds(out, "delay", info->delay);
	write_seconds(out, "created", info->created);
	write_count(out, "version", info->version);
	write_count(out, "reserves", info->reserves);
	write_count(out, "timeouts", info->timeouts);
	write_count(out, "releases", info->releases);
	write_count(out, "buries", info->buries);
	write_count(out, "kicks", info->kicks);
	fputs(", \"error\": ", out);
	json_write_string(out, info->error, strlen(info->error));
	fputs(", \"body\": ", out);
	json_write_base64(out, info->body, info->body_length);
	fputs("}\n", out);
}
