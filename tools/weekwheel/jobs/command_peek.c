/* The command peek: shows a job and its body without reserving it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/utf8.h"
#include "tools/weekwheel/jobs/listing.h"
#include "tools/weekwheel/jobs/yaml.h"

enum { READY = 1, DELAYED, BURIED };

struct peek_command {
	struct jobs jobs;
	uint64_t id;
	const char *which; /* "ready", ... or NULL */
	int chosen;        /* how many times a job was named */
	int body;
	char *bytes;
	size_t size;
	char headers[WW_JOB_HEADERS_MAX];
	size_t headers_size;
};

static const struct option table[] = {
    JOBS_TUBE_OPTION("the tube of --key, --ready, --delayed, --buried\n(default 'default')"),
    JOBS_KEY_OPTION("the job with this key"),
    {READY, 'R', "ready", NULL, "the job that is delivered next"},
    {DELAYED, 'D', "delayed", NULL, "the job that is due next"},
    {BURIED, 'B', "buried", NULL, "the job that was buried first"},
    {JOBS_FLAG(struct peek_command, body), 'b', "body", NULL, "write only the body, unchanged"},
    JOBS_OPTIONS,
};

static int take_option(void *context, struct options *options, int id)
{
	struct peek_command *peek = context;
	static const char *const names[] = {NULL, "ready", "delayed", "buried"};

	peek->chosen++;
	if (id == OPTIONS_OPERAND)
		return jobs_id(options, &peek->id);
	peek->which = names[id];
	return 0;
}

static int check(void *context, const struct options *options)
{
	const struct peek_command *peek = context;

	if (peek->chosen + (*peek->jobs.key != 0) != 1)
		return options_fail(options, "give one of: the id of a job, --key, --ready, --delayed, --buried");
	if (peek->body && peek->jobs.json)
		return options_fail(options, "--body writes the bytes unchanged; leave --json out");
	return 0;
}

static int find(struct peek_command *peek, struct reply *reply)
{
	char verb[JOBS_KEY_TEXT + 20];

	if (peek->id)
		snprintf(verb, sizeof verb, "peek %" PRIu64, peek->id);
	else if (peek->which)
		snprintf(verb, sizeof verb, "peek-%s", peek->which);
	else
		snprintf(verb, sizeof verb, "peek-key %s", peek->jobs.key);
	if (client_ask(&peek->jobs.client, reply, "%s", verb))
		return -1;
	if (reply_is(reply, "NOT_FOUND"))
		return message_error("peek: there is no such job (NOT_FOUND)");
	return reply_is(reply, "FOUND") ? 0 : reply_refused(&peek->jobs.client, reply, "peek");
}

/* What a terminal would obey is not shown there. Files and pipes get the bytes unchanged. */
static void show_body(struct peek_command *peek)
{
	if (isatty(STDOUT_FILENO))
		peek->size = strlen(utf8_show_lines(peek->bytes, peek->size));
	fwrite(peek->bytes, 1, peek->size, stdout);
	if (peek->size && peek->bytes[peek->size - 1] != '\n')
		putchar('\n');
}

/* ---- What weekwheeld's own verb tells besides */

static void write_field(const char *name, const char *value)
{
	printf("%-24s %s\n", name, *value ? value : "-");
}

static void write_span(const char *name, uint64_t ns)
{
	char text[DURATION_TEXT];

	if (ns)
		write_field(name, duration_format(text, ns));
}

static void write_headers(const struct ww_job_info *job)
{
	struct ww_job_header header;
	size_t at = 0;

	while (ww_job_headers_next(job->headers, job->headers_length, &at, &header))
		printf("%-24s %.*s: %.*s\n", "header", (int)header.name_length, header.name, (int)header.value_length,
		    header.value);
}

static void write_then(const struct ww_job_info *job)
{
	struct buffer out = {0};

	if (job_then_write(&out, job->then, job->then_length))
		memory_exhausted();
	printf("%-24s %.*s\n", "then", (int)out.size, out.data);
	buffer_free(&out);
}

static void write_more(const struct ww_job_info *job, uint64_t seen)
{
	char text[DURATION_TEXT], shown[CLIENT_LINE];

	write_field("key", utf8_show((const char *)job->key, job->key_length, shown, sizeof shown));
	if (job->group_length)
		write_field("group", utf8_show((const char *)job->group, job->group_length, shown, sizeof shown));
	write_headers(job);
	if (job->then_length)
		write_then(job);
	printf("%-24s %" PRIu64 "\n", "version", job->version);
	write_field("due", seen & listing_bit("due") ? time_format_zone(text, job->due) : "");
	write_span("every", job->period);
	write_span("backoff", job->backoff);
	write_span("keep", job->keep);
	write_span("unique", job->hold);
	write_span("debounced", job->debounce);
	printf("%-24s %" PRIu32, "attempts", listing_attempts(job));
	printf(job->attempts ? " of %" PRIu32 "\n" : "\n", job->attempts);
	write_field("error", utf8_show(job->error, strlen(job->error), shown, sizeof shown));
}

static int run(void *context)
{
	struct peek_command *peek = context;
	struct client *client = &peek->jobs.client;
	struct buffer room = {0};
	struct ww_job_info job = {.state = WW_JOB_READY};
	struct reply reply;
	uint64_t id, seen;

	if ((!peek->body && client_take_headers(client)) || find(peek, &reply) || reply_number(client, &reply, 1, &id))
		return -1;
	peek->headers_size = reply.headers_size;
	if (reply.headers_size)
		memcpy(peek->headers, reply.headers, reply.headers_size);
	peek->size = reply.body_size;
	peek->bytes = memory_zeroed(peek->size + 1, 1);
	memcpy(peek->bytes, reply.body, peek->size);
	if (peek->body) {
		fwrite(peek->bytes, 1, peek->size, stdout);
		return 0;
	}
	if (client_expect(client, &reply, "OK", "peek", "stats-job %" PRIu64, id))
		return -1;
	seen = listing_stats(&job, reply.body, reply.body_size);
	if (!peek->jobs.json)
		yaml_write_text(stdout, reply.body, reply.body_size);
	/* A follow-up comes with the body alone. */
	if (client_ask(client, &reply, "list-delayed id=%" PRIu64 " body=yes", id))
		return -1;
	if (reply_is(&reply, "OK") && json_whole(reply.body, reply.body_size, "id") == id) {
		seen |= listing_job(&job, reply.body, reply.body_size, &room);
		job.headers = peek->headers;
		job.headers_length = peek->headers_size;
		seen |= listing_bit("headers");
		if (!peek->jobs.json)
			write_more(&job, seen);
	}
	job.body = peek->bytes;
	job.body_length = peek->size;
	seen |= listing_bit("length") | listing_bit("body");
	if (peek->jobs.json) {
		listing_write(job_fields, JOB_SHOWN | JOB_BODY, &job, seen);
	} else {
		putchar('\n');
		show_body(peek);
	}
	buffer_free(&room);
	return 0;
}

const struct jobs_command command_peek = {
    .name = "weekwheel peek",
    JOBS_TABLE(table),
    .context = &(struct peek_command){.id = 0},
    .server = JOBS_USING_TUBE,
    .needs = {"read", "the job's tube"},
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel peek [OPTION]... ID\n"
             "       weekwheel peek [OPTION]... --key KEY | --ready | --delayed | --buried\n"
             "\n"
             "Show a job and its body, without reserving it.\n",
    .examples = "Examples:\n"
                "  weekwheel peek 17\n"
                "  weekwheel peek --tube mail --buried --body >body\n",
};
