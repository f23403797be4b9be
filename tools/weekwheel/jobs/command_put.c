/* The command put. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/put.h"

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

static void say_json(const struct put *put, uint64_t id, int replaced, uint64_t due)
{
	char text[DURATION_TEXT];

	printf("{\"id\": %" PRIu64 ", \"replaced\": %s, \"due\": \"%s\", \"clock\": \"%s\"}\n", id,
	    replaced ? "true" : "false", duration_seconds(text, due), put->has_at ? "wall" : "elapsed");
}

static void say(const struct put *put, uint64_t id, int replaced)
{
	char when[DURATION_TEXT], left[DURATION_TEXT];
	uint64_t now = time_now();
	uint64_t due = put->has_at ? put->at : now + put->delay;

	if (put->jobs.json) {
		say_json(put, id, replaced, due);
		return;
	}
	printf("%" PRIu64 " %s", id, replaced ? "replaced, " : "");
	if (put->has_at ? due <= now : put->delay == 0)
		puts("due now");
	else
		printf("due %s, in %s\n", time_format(when, due),
		    duration_format(left, put->has_at ? due - now : put->delay));
}

void put_send(struct put *put, const void *body, size_t size)
{
	struct client *client = &put->jobs.client;

	client_line(client, "%s %zu%s", put->before, put->head_length + size, put->behind);
	client_bytes(client, put->head, put->head_length);
	client_body(client, body, size);
}

static int put_one(struct put *put, const struct content *content)
{
	struct client *client = &put->jobs.client;
	struct reply reply;
	uint64_t id;

	put_send(put, content->bytes, content->size);
	if (client_flush(client) || client_read(client, &reply))
		return STATUS_FAILED;
	if (!reply_is(&reply, "INSERTED") && !reply_is(&reply, "REPLACED")) {
		reply_refused(client, &reply, "put");
		return STATUS_FAILED;
	}
	if (reply_number(client, &reply, 1, &id))
		return STATUS_FAILED;
	say(put, id, reply_is(&reply, "REPLACED"));
	return STATUS_OK;
}

/* A server that does not know the verb would take the body for commands, and do them. */
static int check_server(struct put *put)
{
	int own = put_is_own(put) ? jobs_has_own_verbs(&put->jobs) : 1;

	if (own == 0)
		message_error(
		    "%s: this server has no keys, wall times, periods, backoffs or fractions of a second; it may be "
		    "beanstalkd: leave these options out, or use weekwheeld",
		    put->jobs.server);
	return own == 1 ? 0 : -1;
}

static int run(struct put *put)
{
	struct content content = {NULL, 0};
	int status = STATUS_FAILED;

	put_compose(put);
	if (put->body) {
		content.size = strlen(put->body);
		content.bytes = memory_zeroed(content.size + 1, 1);
		memcpy(content.bytes, put->body, content.size);
	}
	if ((!put->file || read_file(put->file, &content) == 0) && jobs_open(&put->jobs) == 0 && check_server(put) == 0)
		status = put->lines ? put_lines(put) : put_one(put, &content);
	jobs_close(&put->jobs);
	free(content.bytes);
	free(put->head);
	return status;
}

int command_put(char **arguments)
{
	struct put put;

	switch (put_parse(&put, arguments)) {
	case PUT_RUN:
		return run(&put);
	case PUT_HELP:
		put_help(stdout);
		return STATUS_OK;
	default:
		return STATUS_USAGE;
	}
}

void command_put_help(FILE *out)
{
	put_help(out);
}
