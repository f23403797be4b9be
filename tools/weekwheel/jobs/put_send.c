/* Sends what the command put asks for: composes the command, reads the body, and reports the answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/listing.h"
#include "tools/weekwheel/jobs/put.h"

/* Return whether the job needs weekwheeld: beanstalkd has whole seconds, and neither keys nor periods. */
static int is_own(const struct put_options *put)
{
	return *put->jobs.key || *put->words || put->has_at || put->delay % DURATION_SECOND ||
	       put->delay > UINT32_MAX * DURATION_SECOND || put->run % DURATION_SECOND;
}

/* Fill put->before and put->behind. */
static void compose(struct put_options *put)
{
	const char *verb = !is_own(put) ? "put" : put->has_at ? "put-at" : "put-key";
	char due[DURATION_TEXT], run[DURATION_TEXT];

	snprintf(put->before, sizeof put->before, "%s %" PRIu64 " %s %s", verb, put->priority,
	    duration_seconds(due, put->has_at ? put->at : put->delay), duration_seconds(run, put->run));
	if (!is_own(put))
		return;
	snprintf(put->behind, sizeof put->behind, " %s%s", *put->jobs.key ? put->jobs.key : "-", put->words);
	if (put->version)
		jobs_add_number(put->behind, sizeof put->behind, "version", put->version);
	if (put->mode > WW_KEY_REPLACE && put->mode < WW_KEY_DEBOUNCE)
		jobs_add(put->behind, sizeof put->behind, "mode", job_modes[put->mode]);
}

struct content {
	char *bytes;
	size_t size;
};

static int read_stream(FILE *file, struct content *content)
{
	size_t room = 0;
	size_t got;

	do {
		if (content->size == room) {
			room = room ? 2 * room : 65536;
			content->bytes = memory_resize(content->bytes, room, 1);
		}
		got = fread(content->bytes + content->size, 1, room - content->size, file);
		content->size += got;
		if (content->size > PUT_BODY_MAX) {
			errno = EFBIG;
			return -1;
		}
	} while (got);
	return ferror(file) ? -1 : 0;
}

static int read_file(const char *name, struct content *content)
{
	int standard = strcmp(name, "-") == 0;
	FILE *file = standard ? stdin : fopen(name, "rb");
	int failed = !file || read_stream(file, content);

	if (failed)
		message_error("%s: %s", standard ? "standard input" : name, strerror(errno));
	if (file && !standard)
		fclose(file);
	return failed ? -1 : 0;
}

int put_read_file(const char *name, char **bytes, size_t *size)
{
	struct content content = {NULL, 0};
	int failed = read_file(name, &content);

	*bytes = content.bytes;
	*size = content.size;
	return failed;
}

/* What the server may have done, and how to say it. */
static const struct result {
	const char *word, *name, *text;
} results[] = {{"INSERTED", "new", ""}, {"REPLACED", "replaced", "replaced, "},
    {"KEPT", "kept", "is kept as it is; nothing was put"},
    {"ENDED", "ended", "has ended, and its key is not free yet; nothing was put"}};

enum { RESULTS = sizeof results / sizeof *results };

static const struct result *find_result(const struct reply *reply)
{
	for (int i = 0; i < RESULTS; i++)
		if (reply_is(reply, results[i].word))
			return &results[i];
	return NULL;
}

/* due: 0 if it is not known. */
static void print_json(
    const struct put_options *put, const struct result *result, uint64_t id, uint64_t version, uint64_t due)
{
	printf("{\"id\": \"%" PRIu64 "\", \"result\": \"%s\"", id, result->name);
	if (version)
		printf(", \"version\": %" PRIu64, version);
	if (result < &results[2] && due) {
		fputs(", ", stdout);
		jobs_write_time(stdout, "due", due);
		printf(", \"clock\": \"%s\"", put->has_at ? "wall" : "elapsed");
	}
	puts("}");
}

/* When a debounced job is due depends on the first put, and when a spread one is on its key: the server knows that. */
static uint64_t due_there(struct put_options *put, uint64_t id, uint64_t now)
{
	struct buffer room = {0};
	struct ww_job_info job = {.state = WW_JOB_READY};
	struct reply reply;

	if (client_ask(&put->jobs.client, &reply, "list-delayed id=%" PRIu64, id) || !reply_is(&reply, "OK") ||
	    json_whole(reply.body, reply.body_size, "id") != id)
		return 0;
	(void)listing_job(&job, reply.body, reply.body_size, &room);
	buffer_free(&room);
	return job.state == WW_JOB_DELAYED ? now + job.left : now;
}

static void say(struct put_options *put, const struct result *result, uint64_t id, uint64_t version)
{
	uint64_t now = wall_now();
	uint64_t due = put->has_at ? put->at : now + put->delay;

	int is_spread = strstr(put->words, " spread=") != NULL;

	if (put->jobs.json && put->mode == WW_KEY_DEBOUNCE)
		due = 0;
	else if (result < &results[2] && (is_spread || (put->mode == WW_KEY_DEBOUNCE && result == &results[1])))
		due = due_there(put, id, now);
	if (put->jobs.json) {
		print_json(put, result, id, version, due);
		return;
	}
	printf("%" PRIu64 " %s", id, result->text);
	if (result >= &results[2])
		putchar('\n');
	else if (!due)
		puts(put->mode == WW_KEY_DEBOUNCE ? "debounced" : "put");
	else
		jobs_print_due(due, due > now ? due - now : 0);
}

void put_send(struct put_options *put, const void *body, size_t size)
{
	struct client *client = &put->jobs.client;

	client_line(client, "%s %zu%s", put->before, put->head_length + size, put->behind);
	client_bytes(client, put->head, put->head_length);
	client_body(client, body, size);
}

static int put_one(struct put_options *put, const void *body, size_t size)
{
	struct client *client = &put->jobs.client;
	struct reply reply;
	const struct result *result;
	uint64_t id;
	uint64_t version = 0;

	put_send(put, body, size);
	if (client_flush(client) || client_read(client, &reply))
		return -1;
	result = find_result(&reply);
	if (!result)
		return reply_refused(client, &reply, "put");
	if (reply_number(client, &reply, 1, &id) || (put->mode && reply_number(client, &reply, 2, &version)))
		return -1;
	say(put, result, id, version);
	return 0;
}

/* A server that does not know the verb would take the body for commands, and execute them. */
static int check_server(struct put_options *put)
{
	int own = is_own(put) ? jobs_has_own_verbs(&put->jobs) : 1;

	if (own == 0)
		message_error(
		    "%s: this server has no keys, wall times, periods, backoffs or fractions of a second; it may be "
		    "beanstalkd: leave these options out, or use weekwheeld",
		    put->jobs.server);
	return own == 1 ? 0 : -1;
}

int put_run(void *context)
{
	struct put_options *put = context;
	struct content content = {NULL, 0};
	int failed;

	compose(put);
	if (put->has_at)
		jobs_warn_of_past(put->at);
	failed = (put->file && read_file(put->file, &content)) || jobs_use_tube(&put->jobs) || check_server(put);
	if (!failed && put->lines)
		failed = put_lines(put);
	else if (!failed && put->body)
		failed = put_one(put, put->body, strlen(put->body));
	else if (!failed)
		failed = put_one(put, content.bytes, content.size);
	free(content.bytes);
	free(put->head);
	return failed;
}
