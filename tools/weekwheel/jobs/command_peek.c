/* The command peek: shows a job and its body without reserving it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/weekwheel/jobs/fields.h"
#include "tools/weekwheel/jobs/jobs.h"

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
	return client_expect(&peek->jobs.client, reply, "FOUND", "peek", "%s", verb);
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
