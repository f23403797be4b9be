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
#include "tools/weekwheel/jobs/fields.h"
#include "tools/weekwheel/jobs/listing.h"

enum { READY = 1, DELAYED, BURIED };

struct peek_command {
	struct jobs jobs;
	uint64_t id;
	const char *which; /* "ready", ... or NULL */
	int chosen;        /* how many times a job was named */
	int body;
	char *bytes;
	size_t size;
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

/* On a terminal, '.' replaces bytes that could control it. Files and pipes get the bytes unchanged. */
static void show_body(const struct peek_command *peek)
{
	int terminal = isatty(STDOUT_FILENO);

	for (size_t i = 0; i < peek->size; i++) {
		unsigned char c = (unsigned char)peek->bytes[i];

		putchar(terminal && (c == 0x7f || (c < ' ' && c != '\n' && c != '\t')) ? '.' : c);
	}
	if (peek->size && peek->bytes[peek->size - 1] != '\n')
		putchar('\n');
}

/* ---- What weekwheeld's own verb tells besides */

static void write_field(const char *name, const char *value)
{
	printf("%-24s %s\n", name, *value ? value : "-");
}

static void write_span(const char *line, size_t size, const char *name)
{
	char seconds[40], text[DURATION_TEXT];
	struct duration_problem problem;
	uint64_t ns;

	if (duration_parse(json_text(line, size, name, seconds, sizeof seconds), &ns, &problem) == 0 && ns)
		write_field(name, duration_format(text, ns));
}

static void write_due(const char *line, size_t size)
{
	char text[DURATION_TEXT];
	uint64_t due = listing_due(line, size);

	write_field("due", due ? time_format_zone(text, due) : "");
}

static void write_more(const char *line, size_t size)
{
	char text[CLIENT_LINE], shown[CLIENT_LINE];
	uint64_t limit = json_whole(line, size, "attempts");

	json_text(line, size, "key", text, sizeof text);
	write_field("key", jobs_key_show(text, shown, sizeof shown));
	json_text(line, size, "group", text, sizeof text);
	if (*text)
		write_field("group", jobs_key_show(text, shown, sizeof shown));
	printf("%-24s %" PRIu64 "\n", "version", json_whole(line, size, "version"));
	write_due(line, size);
	write_span(line, size, "every");
	write_span(line, size, "backoff");
	write_span(line, size, "keep");
	write_span(line, size, "unique");
	write_span(line, size, "debounced");
	printf("%-24s %" PRIu64, "attempts", listing_attempts(line, size));
	printf(limit ? " of %" PRIu64 "\n" : "\n", limit);
	json_text(line, size, "error", text, sizeof text);
	write_field("error", utf8_show(text, strlen(text), shown, sizeof shown));
}

/* Members as the verb has them, and none that the statistics have. */
static void write_more_json(const char *line, size_t size)
{
	static const char *const names[] = {"key", "group", "version", "due", "clock", "every", "backoff", "keep",
	    "unique", "debounced", "attempts", "tries", "error"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct json_value value = json_member(line, size, names[i]);
		const char *quote = value.kind == JSON_STRING ? "\"" : "";

		if (value.kind != JSON_NONE)
			printf(", \"%s\": %s%.*s%s", names[i], quote, (int)value.size, value.text, quote);
	}
}

static void show(const struct peek_command *peek, const struct reply *more)
{
	int has_more = reply_is(more, "OK") && json_whole(more->body, more->body_size, "id");

	if (peek->jobs.json) {
		if (has_more)
			write_more_json(more->body, more->body_size);
		fputs(", \"body\": ", stdout);
		json_write_base64(stdout, peek->bytes, peek->size);
		puts("}");
		return;
	}
	if (has_more)
		write_more(more->body, more->body_size);
	putchar('\n');
	show_body(peek);
}

static int run(void *context)
{
	struct peek_command *peek = context;
	struct client *client = &peek->jobs.client;
	struct reply reply;
	uint64_t id;

	if (find(peek, &reply) || reply_number(client, &reply, 1, &id))
		return -1;
	peek->size = reply.body_size;
	peek->bytes = memory_zeroed(peek->size + 1, 1);
	memcpy(peek->bytes, reply.body, peek->size);
	if (peek->body) {
		fwrite(peek->bytes, 1, peek->size, stdout);
		return 0;
	}
	if (client_expect(client, &reply, "OK", "peek", "stats-job %" PRIu64, id))
		return -1;
	if (peek->jobs.json) {
		putchar('{');
		fields_write_json(stdout, reply.body, reply.body_size);
	} else {
		fields_write_text(stdout, reply.body, reply.body_size);
	}
	if (client_ask(client, &reply, "list-delayed id=%" PRIu64, id))
		return -1;
	show(peek, &reply);
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
             "Show a job and its body, without reserving it. With --json the body is in base64.\n",
    .examples = "Examples:\n"
                "  weekwheel peek 17\n"
                "  weekwheel peek --tube mail --buried --body >body\n",
};
