/* Shows the schedules of a server: as a table, one with all that it has, or as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/base64.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/utf8.h"
#include "tools/job/job.h"
#include "tools/weekwheel/calendar/schedule.h"
#include "tools/weekwheel/calendar/zone.h"
#include "tools/weekwheel/jobs/listing.h"
#include "tools/weekwheel/jobs/tubes.h"
#include "weekwheel/schedule.h"

enum { SHOWN_BODY = 60 };

static const char *tube_of(const struct schedule_command *command)
{
	return command->jobs.tube ? command->jobs.tube : "default";
}

static const struct table_column columns[] = {
    {"NAME", 0}, {"TUBE", 0}, {"CRON", 0}, {"ZONE", 0}, {"NEXT", 0}, {"LAST", 0}, {"MADE", 1}, {"SKIPPED", 1}};

static uint64_t time_of(const char *line, size_t size, const char *name)
{
	struct duration_problem problem;
	char text[DURATION_TEXT];
	uint64_t ns;

	json_text(line, size, name, text, sizeof text);
	return duration_parse(text, &ns, &problem) ? 0 : ns;
}

static void add_cell(struct text_table *rows, const char *line, size_t size, const char *name)
{
	char text[CLIENT_LINE];
	char key[JOBS_KEY_TEXT];

	json_text(line, size, name, text, sizeof text);
	table_cell(rows, "%s", strcmp(name, "name") == 0 ? jobs_key_show(text, key, sizeof key) : text);
}

static void add_row(struct text_table *rows, const char *line, size_t size)
{
	static const char *const names[] = {"name", "tube", "cron", "zone"};
	uint64_t next = time_of(line, size, "next"), last = time_of(line, size, "last");
	char text[ZONE_TIME_TEXT], zone[CLIENT_LINE];

	for (int i = 0; i < 4; i++)
		add_cell(rows, line, size, names[i]);
	json_text(line, size, "zone", zone, sizeof zone);
	if (next)
		table_cell(rows, "%s", zone_clock(text, next, zone));
	else
		table_cell(rows, memmem(line, size, "\"paused\":true", 13) ? "paused" : "ended");
	if (last)
		table_cell(rows, "%s", zone_clock(text, last, zone));
	else
		table_cell(rows, "-");
	table_cell(rows, "%" PRIu64, json_whole(line, size, "made"));
	table_cell(rows, "%" PRIu64, json_whole(line, size, "skipped"));
}

typedef void time_fn(uint64_t ns, int32_t offset, size_t number);

/* Call fn for each of "times":[["1806112800",3600],...]. Return how many there are. */
static size_t each_time(const char *line, size_t size, time_fn *fn)
{
	const char *at = memmem(line, size, "\"times\":[", 9);
	const char *end = line + size;
	size_t count = 0;

	if (!at)
		return 0;
	for (at += 9; at < end && (*at == '[' || *at == ','); at++) {
		char *rest;
		uint64_t seconds;
		long offset;

		if (*at == ',')
			continue;
		seconds = strtoull(at + 2, &rest, 10);
		rest = memchr(rest, ',', (size_t)(end - rest));
		if (!rest)
			break;
		offset = strtol(rest + 1, &rest, 10);
		fn(seconds * DURATION_SECOND, (int32_t)offset, count++);
		at = rest;
	}
	return count;
}

/* ---- As JSON */

static void write_time(uint64_t ns, int32_t offset, size_t number)
{
	char text[ZONE_TIME_TEXT];

	fputs(number ? "," : ",\"times\":[", stdout);
	printf("\"%s\"", zone_exact(text, ns, offset));
}

static void write_members(const struct field *fields, uint32_t where, const char *line, size_t size)
{
	static struct ww_schedule_info info;
	struct buffer room = {0};
	uint64_t seen = listing_read(fields, &info, line, size, &room);

	listing_members(fields, where, &info, seen);
	buffer_free(&room);
}

/* As /v1 has it. */
static void write_object(uint32_t where, const char *line, size_t size)
{
	putchar('{');
	write_members(job_schedule_fields, where, line, size);
	putchar(',');
	write_members(job_schedule_times, where, line, size);
	if (each_time(line, size, write_time))
		putchar(']');
	puts("}");
}

/* ---- As a table, or a page */

/* Show a page of lines. Return from where the list goes on, or 0. */
static uint64_t show_page(const struct schedule_command *command, const struct reply *reply, struct text_table *rows)
{
	const char *at = reply->body;
	const char *end = at + reply->body_size;
	uint64_t next = 0;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t size = (size_t)((stop ? stop : end) - at);

		if (size > 8 && memcmp(at, "{\"next\":", 8) == 0)
			next = json_whole(at, size, "next");
		else if (command->jobs.json)
			write_object(JOB_SHOWN, at, size);
		else
			add_row(rows, at, size);
		at += size + 1;
	}
	return next;
}

int schedule_list(struct schedule_command *command)
{
	struct text_table rows;
	struct reply reply;
	uint64_t next = 0;
	size_t count = 0;
	int failed;

	table_begin(&rows, columns, sizeof columns / sizeof *columns);
	do {
		char words[WW_TUBE_MAX + 60] = "";

		jobs_add(words, sizeof words, "tube", command->jobs.tube);
		if (next)
			jobs_add_number(words, sizeof words, "after", next);
		failed = client_expect(&command->jobs.client, &reply, "OK", "schedule", "list-schedules%s", words);
		count += failed ? 0 : reply.body_size;
		next = failed ? 0 : show_page(command, &reply, &rows);
	} while (next);
	/* An empty list of a tube may be a wrong name. */
	if (!failed && !count)
		failed = client_expect(&command->jobs.client, &reply, "USING", "schedule", "use default") ||
		         tubes_known(&command->jobs);
	if (!failed && !command->jobs.json)
		table_write(&rows, stdout);
	table_free(&rows);
	return failed ? -1 : 0;
}

static void show_time(uint64_t ns, int32_t offset, size_t number)
{
	char text[ZONE_TIME_TEXT];

	(void)number;
	printf("  %s\n", zone_time(text, ns, offset));
}

/* The beginning of the body, as a reader sees it on one line. */
static void show_body(const char *line, size_t size)
{
	struct json_value body = json_member(line, size, "body");
	char *bytes = memory_zeroed(body.size + 1, 1);
	long length = body.kind == JSON_STRING ? base64_decode(bytes, body.text, body.size) : 0;
	char shown[SHOWN_BODY + 1];

	if (length > 0)
		printf("%-9s %s%s\n", "body",
		    utf8_show(bytes, length < SHOWN_BODY ? (size_t)length : SHOWN_BODY, shown, sizeof shown),
		    length > SHOWN_BODY ? " ... (--body writes all)" : "");
	free(bytes);
}

/* What was not asked for is left out. */
static const struct shown_field {
	const char *name;
	enum { AS_TEXT, AS_KEY, AS_SPAN, AS_TIME, AS_BYTES } as;
	int always;
} shown_fields[] = {{"name", AS_KEY, 1}, {"tube", AS_TEXT, 1}, {"cron", AS_TEXT, 1}, {"zone", AS_TEXT, 1},
    {"missed", AS_TEXT, 1}, {"skip", AS_SPAN, 0}, {"overlap", AS_TEXT, 1}, {"spread", AS_SPAN, 1},
    {"start", AS_TIME, 0}, {"end", AS_TIME, 0}, {"run", AS_SPAN, 1}, {"priority", AS_TEXT, 1}, {"attempts", AS_TEXT, 1},
    {"backoff", AS_SPAN, 0}, {"keep", AS_SPAN, 0}, {"group", AS_KEY, 0}, {"made", AS_TEXT, 1}, {"skipped", AS_TEXT, 1},
    {"last", AS_TIME, 0}, {"length", AS_BYTES, 1}};

static void show_field(const struct shown_field *field, const char *line, size_t size, const char *zone)
{
	char text[CLIENT_LINE], key[JOBS_KEY_TEXT], span[DURATION_TEXT], time[ZONE_TIME_TEXT];
	const char *value = json_text(line, size, field->name, text, sizeof text);
	uint64_t ns = time_of(line, size, field->name);

	if (field->as == AS_SPAN)
		value = ns || field->always ? duration_format(span, ns) : "";
	else if (field->as == AS_TIME)
		value = ns ? zone_clock(time, ns, zone) : "";
	else if (field->as == AS_KEY)
		value = jobs_key_show(text, key, sizeof key);
	if (*value || field->always)
		printf("%-9s %s%s\n", field->name, value, field->as == AS_BYTES ? " bytes" : "");
}

static void show_fields(const char *line, size_t size)
{
	char zone[CLIENT_LINE];

	json_text(line, size, "zone", zone, sizeof zone);
	for (size_t i = 0; i < sizeof shown_fields / sizeof *shown_fields; i++)
		show_field(&shown_fields[i], line, size, zone);
	show_body(line, size);
	if (memmem(line, size, "\"paused\":true", 13))
		puts("paused    yes");
	puts("next");
	(void)each_time(line, size, show_time);
}

int schedule_refuse_name(const struct schedule_command *command, const struct reply *reply)
{
	if (!reply_is(reply, "NOT_FOUND"))
		return reply_refused(&command->jobs.client, reply, command->name);
	return message_error(
	    "there is no schedule '%s' in the tube %s\n'weekwheel schedule list' shows all; --tube TUBE names another tube.",
	    command->name, tube_of(command));
}

static int write_body(const struct reply *reply)
{
	struct json_value body = json_member(reply->body, reply->body_size, "body");
	char *bytes = memory_zeroed(body.size + 1, 1);
	long size = body.kind == JSON_STRING ? base64_decode(bytes, body.text, body.size) : 0;

	if (size > 0)
		fwrite(bytes, 1, (size_t)size, stdout);
	free(bytes);
	return size < 0 ? message_error("schedule: the server's body is not base64; has it another version?") : 0;
}

int schedule_show(struct schedule_command *command, const char *name)
{
	struct reply reply;

	if (client_ask(
	        &command->jobs.client, &reply, "list-schedules tube=%s name=%s body=yes", tube_of(command), name))
		return -1;
	if (!reply_is(&reply, "OK"))
		return schedule_refuse_name(command, &reply);
	if (command->shows_body)
		return write_body(&reply);
	if (command->jobs.json)
		write_object(JOB_BODY, reply.body, reply.body_size);
	else
		show_fields(reply.body, reply.body_size);
	return 0;
}
