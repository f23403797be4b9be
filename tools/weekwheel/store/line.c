/* Reads a job or a limit from a line of JSON, and says what is wrong with it; and writes one. */
#include "tools/weekwheel/store/line.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/job/job.h"
#include "weekwheel/driver.h"

enum { JOB = JOB_SHOWN | JOB_BODY };

int line_write(struct buffer *out, const struct ww_job_info *info, int64_t shift)
{
	const struct field_moment now = {
	    .wall = shift > 0 ? (uint64_t)shift : 0, .elapsed = shift < 0 ? (uint64_t)-shift : 0, .is_exact = 1};

	return buffer_append(out, "{", 1) | field_write(out, job_fields, JOB, info, FIELD_PLAIN, &now) |
	       buffer_append(out, "}\n", 2);
}

int line_write_limit(struct buffer *out, const struct ww_limit_info *info)
{
	const char *whose = info->ref.group_length ? "group" : info->ref.each ? "each" : "tube";

	return buffer_format(out, "{\"limit\":\"%s\",", whose) |
	       field_write(out, job_limit_fields, 0, info, FIELD_PLAIN, NULL) | buffer_append(out, "}\n", 2);
}

/* ---- Reading */

static const char behind[] = "_base64";

enum { BEHIND = sizeof behind - 1 };

/* What no line of 0.1 has. */
static enum field_form form_of(const char *text, size_t size)
{
	struct json_value name, value;
	size_t at = 0;

	while (json_next(text, size, &at, &name, &value) > 0) {
		if (value.kind == JSON_STRING && (json_is(name, "id") || json_is(name, "due")))
			return FIELD_PLAIN;
		if (json_is(name, "every") || json_is(name, "each") ||
		    (name.size > BEHIND && memcmp(name.text + name.size - BEHIND, behind, BEHIND) == 0))
			return FIELD_PLAIN;
	}
	return FIELD_OLD;
}

/* A line while its members are read. */
struct line_reading {
	struct job_line *line;
	const struct field *fields;
	void *to;
	enum field_form form;
	char *room;
	size_t body_length; /* of the bytes, whatever the line says of them */
	uint64_t seen;      /* fields of the table, a bit each */
};

static int refuse(struct line_reading *reading, struct json_value name, const char *why)
{
	char excerpt[60];

	message_excerpt(excerpt, sizeof excerpt, name.text, name.size);
	snprintf(reading->line->problem, LINE_PROBLEM, "%s %s", excerpt, why);
	return -1;
}

static int refuse_value(struct line_reading *reading, const struct field *field, int is_base64, struct json_value name,
    struct json_value value)
{
	char expected[FIELD_EXPECTED], excerpt[60], why[LINE_PROBLEM - 61];

	message_excerpt(excerpt, sizeof excerpt, value.text, value.size);
	snprintf(
	    why, sizeof why, "is %s; expected %s", excerpt, field_expected(field, is_base64, reading->form, expected));
	return refuse(reading, name, why);
}

static int take_member(struct line_reading *reading, struct json_value name, struct json_value value)
{
	/* What 0.1 called otherwise. A job that waits may be delayed or ready. */
	const int is_period = reading->form == FIELD_OLD && json_is(name, "period");
	const int is_waiting = reading->form == FIELD_OLD && json_is(name, "state") && json_is(value, "waiting");
	const struct json_value every = {JSON_STRING, "every", 5};
	int is_base64;
	const struct field *field = field_find(reading->fields, JOB, is_period ? every : name, &is_base64);
	uint64_t bit;

	if (field && field->kind == FIELD_DUE && value.kind == JSON_NULL)
		return 0;
	if (!field)
		return refuse(reading, name, "is nothing that a job or a limit has; see weekwheel-store(1)");
	bit = UINT64_C(1) << (field - reading->fields);
	if (reading->seen & bit)
		return refuse(reading, name, "is there twice");
	reading->seen |= bit;
	if (!is_waiting && field_take(field, reading->to, value, is_base64, reading->form, &reading->room) != 0)
		return refuse_value(reading, field, is_base64, name, value);
	if (field->kind == FIELD_BODY)
		reading->body_length = reading->line->info.body_length;
	return 0;
}

static int has(const struct line_reading *reading, const char *name)
{
	int is_base64;
	const struct field *field =
	    field_find(reading->fields, JOB, (struct json_value){JSON_STRING, name, strlen(name)}, &is_base64);

	return field && (reading->seen >> (field - reading->fields) & 1) != 0;
}

static int read_members(struct line_reading *reading, const char *text, size_t size)
{
	struct job_line *line = reading->line;
	struct json_value name, value;
	size_t at = 0;
	int more;

	/* What a text stands for is no longer than itself. */
	buffer_drop(&line->room, line->room.size);
	if (buffer_reserve(&line->room, size + 1)) {
		snprintf(line->problem, LINE_PROBLEM, "there is no memory for it");
		return -1;
	}
	reading->room = line->room.data;
	reading->form = form_of(text, size);
	while ((more = json_next(text, size, &at, &name, &value)) > 0)
		if (!(reading->fields == job_limit_fields && json_is(name, "limit")) &&
		    take_member(reading, name, value))
			return -1;
	if (more == 0)
		return 0;
	snprintf(line->problem, LINE_PROBLEM, "at byte %zu: expected an object of JSON, {\"tube\": ..., \"body\": ...}",
	    at + 1);
	return -1;
}

static void begin(struct job_line *line)
{
	struct ww_job_spec *spec = &line->spec;

	(void)ww_job_spec_default(spec);
	line->info = (struct ww_job_info){.body = ""};
	job_info_from_spec(&line->info, spec);
	snprintf(line->info.tube, sizeof line->info.tube, "%s", WW_TUBE_DEFAULT);
}

static void fill(struct ww_job_spec *spec, const struct ww_job_info *info, int has_due)
{
	*spec = (struct ww_job_spec){.tube = info->tube,
	    .key = info->key,
	    .key_length = info->key_length,
	    .group = info->group,
	    .group_length = info->group_length,
	    .body = info->body,
	    .body_length = info->body_length,
	    .headers = info->headers,
	    .headers_length = info->headers_length,
	    .then = info->then,
	    .then_length = info->then_length,
	    .due = has_due                       ? info->due
	           : info->state == WW_JOB_ENDED ? 0
	                                         : info->left,
	    .flags = (info->state == WW_JOB_ENDED ? 0 : info->flags) | (has_due ? WW_JOB_AT : 0),
	    .key_mode = info->hold ? WW_KEY_UNIQUE : WW_KEY_REPLACE};
	job_spec_from_info(spec, info);
}

int line_read(struct job_line *line, const char *text, size_t size)
{
	struct line_reading reading = {.line = line, .fields = job_fields, .to = &line->info};
	const struct ww_job_info *info = &line->info;
	const char *problem = NULL;

	begin(line);
	if (read_members(&reading, text, size))
		return -1;
	line->info.body_length = reading.body_length;
	if (!has(&reading, "body"))
		problem = "expected a 'body'";
	else if (info->state == WW_JOB_ENDED && !info->hold)
		problem = "expected seconds as 'unique' of a job that has ended";
	else if (info->hold && (!info->key_length || info->period))
		problem = "expected a 'key' and no 'every' beside 'unique'";
	else if (info->version >> 53)
		problem = "expected a 'version' below 2^53";
	if (problem)
		snprintf(line->problem, LINE_PROBLEM, "%s", problem);
	fill(&line->spec, info, has(&reading, "due"));
	return problem ? -1 : 0;
}

/* ---- Limits */

int line_is_limit(const char *text, size_t size)
{
	struct json_value name;
	struct json_value value;
	size_t at = 0;

	return json_next(text, size, &at, &name, &value) > 0 && json_is(name, "limit");
}

int line_read_limit(struct job_line *line, const char *text, size_t size)
{
	struct line_reading reading = {.line = line, .fields = job_limit_fields, .to = &line->limit};
	struct json_value whose = json_member(text, size, "limit");
	const struct ww_limit *limit = &line->limit.limit;
	const char *problem = NULL;

	line->limit = (struct ww_limit_info){.ref.tube = NULL};
	(void)ww_jobs_limit_default(&line->limit.limit);
	if (read_members(&reading, text, size))
		return -1;
	line->limit.ref.each = json_is(whose, "each");
	if (!json_is(whose, "group"))
		line->limit.ref.group_length = 0;
	if (!line->limit.ref.each && !json_is(whose, "tube") && !json_is(whose, "group"))
		problem = "expected \"tube\", \"each\" or \"group\" as 'limit'";
	else if (!line->limit.ref.tube)
		problem = "expected the name of a tube as 'tube' of a limit";
	else if (json_is(whose, "group") && !line->limit.ref.group_length)
		problem = "expected 1 to 200 bytes as 'group' of a limit";
	else if (limit->weight > 1 && !line->limit.ref.group_length)
		problem = "expected 'weight' in the limit of a group alone";
	else if (limit->per < WW_MILLISECOND || limit->per > WW_LIMIT_PER_MAX || limit->starts > limit->per / 1000)
		problem = "expected a limit of at most a million starts a second, and 'per' from 0.001 to 604800";
	if (problem)
		snprintf(line->problem, LINE_PROBLEM, "%s", problem);
	return problem ? -1 : 0;
}
