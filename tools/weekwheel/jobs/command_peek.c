/* The command peek. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/fields.h"
#include "tools/weekwheel/jobs/jobs.h"

enum { READY = 1, DELAYED, BURIED, BODY };

static const struct option table[] = {
    JOBS_TUBE_OPTION("the tube of --key, --ready, --delayed, --buried\n(default 'default')"),
    JOBS_KEY_OPTION("the job with this key"),
    {READY, 'R', "ready", NULL, "the job that is delivered next"},
    {DELAYED, 'D', "delayed", NULL, "the job that is due next"},
    {BURIED, 'B', "buried", NULL, "the job that was buried first"},
    {BODY, 'b', "body", NULL, "write the body alone, as it is"},
    JOBS_OPTIONS,
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

struct peek_command {
	struct jobs jobs;
	uint64_t id;
	const char *which; /* "ready", ... or NULL */
	int chosen;        /* how often the job was named */
	int body;
	char *bytes;
	size_t size;
};

static int take_option(void *context, const struct options *options, int id)
{
	struct peek_command *peek = context;
	static const char *const names[] = {NULL, "ready", "delayed", "buried"};

	if (id == BODY) {
		peek->body = 1;
		return 0;
	}
	peek->chosen++;
	if (id == OPTIONS_OPERAND)
		return jobs_id(options, &peek->id);
	peek->which = names[id];
	return 0;
}

static int check(const struct peek_command *peek, const struct options *options)
{
	if (peek->chosen + (*peek->jobs.key != 0) != 1)
		return jobs_complain(options, "give one of: the id of a job, --key, --ready, --delayed, --buried");
	if (peek->body && peek->jobs.json)
		return jobs_complain(options, "--body writes bytes as they are; leave --json out");
	return 0;
}

static int find(struct peek_command *peek, struct reply *reply)
{
	struct client *client = &peek->jobs.client;

	if (peek->id)
		return client_ask(client, reply, "peek %" PRIu64, peek->id);
	if (peek->which)
		return client_ask(client, reply, "peek-%s", peek->which);
	return client_ask(client, reply, "peek-key %s", peek->jobs.key);
}

/* What could do something to a terminal is shown as '.'; into a file or a pipe go the bytes. */
static void show_body(const struct peek_command *peek)
{
	int terminal = isatty(STDOUT_FILENO);
	size_t i;

	for (i = 0; i < peek->size; i++) {
		unsigned char c = (unsigned char)peek->bytes[i];

		putchar(terminal && (c == 0x7f || (c < ' ' && c != '\n' && c != '\t')) ? '.' : c);
	}
	if (peek->size && peek->bytes[peek->size - 1] != '\n')
		putchar('\n');
}

static void show(const struct peek_command *peek, const struct reply *stats)
{
	if (peek->jobs.json) {
		putchar('{');
		fields_write_json(stdout, stats->body, stats->body_size);
		fputs(", \"body\": ", stdout);
		json_write_base64(stdout, peek->bytes, peek->size);
		puts("}");
		return;
	}
	fields_write_text(stdout, stats->body, stats->body_size);
	putchar('\n');
	show_body(peek);
}

static int run(struct peek_command *peek)
{
	struct client *client = &peek->jobs.client;
	struct reply reply;
	uint64_t id;

	if (jobs_open(&peek->jobs) || find(peek, &reply))
		return STATUS_FAILED;
	if (!reply_is(&reply, "FOUND")) {
		reply_refused(client, &reply, "peek");
		return STATUS_FAILED;
	}
	if (reply_number(client, &reply, 1, &id))
		return STATUS_FAILED;
	peek->size = reply.body_size;
	peek->bytes = memory_zeroed(peek->size + 1, 1);
	memcpy(peek->bytes, reply.body, peek->size);
	if (peek->body) {
		fwrite(peek->bytes, 1, peek->size, stdout);
		return STATUS_OK;
	}
	if (client_ask(client, &reply, "stats-job %" PRIu64, id))
		return STATUS_FAILED;
	if (!reply_is(&reply, "OK")) {
		reply_refused(client, &reply, "peek");
		return STATUS_FAILED;
	}
	show(peek, &reply);
	return STATUS_OK;
}

int command_peek(char **arguments)
{
	struct options options = {"weekwheel peek", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	struct peek_command peek = {.id = 0};
	int status = jobs_parse(&peek.jobs, &options, take_option, &peek, command_peek_help);

	if (status == JOBS_PARSED)
		status = check(&peek, &options) ? STATUS_USAGE : run(&peek);
	jobs_close(&peek.jobs);
	free(peek.bytes);
	return status;
}

void command_peek_help(FILE *out)
{
	fputs("Usage: weekwheel peek [OPTION]... ID\n"
	      "       weekwheel peek [OPTION]... --key KEY | --ready | --delayed | --buried\n"
	      "\n"
	      "Show a job and its body, without taking it. With --json the body is in base64.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Examples:\n"
	      "  weekwheel peek 17\n"
	      "  weekwheel peek --tube mail --buried --body >body\n",
	    out);
}
