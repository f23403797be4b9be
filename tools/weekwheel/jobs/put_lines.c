/*
 * Puts a job for each line of standard input. The lines of one read() are sent together, and their answers are read
 * before the next read(). A file goes in large parts, and what a person types goes line by line.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/jobs/put.h"

enum { CHUNK = 1 << 18, MESSAGES_MAX = 20 };

struct feed {
	struct put_options *put;
	char *bytes;
	size_t filled, room;
	int ended;
	uint64_t read, size; /* bytes of the input; size 0: not known */
	uint64_t lines, good, refused;
	uint64_t first, last; /* ids */
	int given_up;
};

/* Queue all complete lines. Return their number, and store their size in *used. */
static uint64_t send_lines(struct feed *feed, size_t *used)
{
	uint64_t count = 0;
	size_t at = 0;

	while (at < feed->filled) {
		const char *line = feed->bytes + at;
		const char *end = memchr(line, '\n', feed->filled - at);
		size_t length = end ? (size_t)(end - line) : feed->filled - at;

		if (!end && !feed->ended)
			break;
		at += length + (end != NULL);
		if (length && line[length - 1] == '\r')
			length--;
		put_send(feed->put, line, length);
		count++;
	}
	*used = at;
	return count;
}

/* Return whether the server may have taken a body for commands, or will refuse all that follows. */
static int out_of_step(const struct reply *reply)
{
	return reply_is(reply, "UNKNOWN_COMMAND") || reply_is(reply, "BAD_FORMAT") || reply_is(reply, "DRAINING") ||
	       reply_is(reply, "OUT_OF_MEMORY");
}

static void take_refusal(struct feed *feed, const struct reply *reply)
{
	char place[60];

	snprintf(place, sizeof place, "standard input:%" PRIu64, feed->lines);
	if (feed->refused++ < MESSAGES_MAX || out_of_step(reply))
		reply_refused(&feed->put->jobs.client, reply, place);
	if (out_of_step(reply))
		feed->given_up = 1;
}

static int take_answer(struct feed *feed)
{
	struct client *client = &feed->put->jobs.client;
	struct reply reply;
	uint64_t id;

	if (client_read(client, &reply))
		return -1;
	feed->lines++;
	if (!reply_is(&reply, "INSERTED")) {
		take_refusal(feed, &reply);
		return feed->given_up ? -1 : 0;
	}
	if (reply_number(client, &reply, 1, &id))
		return -1;
	if (!feed->good++)
		feed->first = id;
	feed->last = id;
	if (feed->put->jobs.json)
		printf("{\"line\": %" PRIu64 ", \"id\": \"%" PRIu64 "\"}\n", feed->lines, id);
	return 0;
}

static int read_more(struct feed *feed)
{
	ssize_t got;

	if (feed->filled == feed->room) {
		if (feed->room >= PUT_BODY_MAX)
			return message_error(
			    "standard input:%" PRIu64 ": the line is longer than any job can be", feed->lines + 1);
		feed->room = feed->room ? 2 * feed->room : CHUNK;
		feed->bytes = memory_resize(feed->bytes, feed->room, 1);
	}
	do
		got = read(STDIN_FILENO, feed->bytes + feed->filled, feed->room - feed->filled);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return message_error("standard input: %s", strerror(errno));
	feed->ended = got == 0;
	feed->filled += (size_t)got;
	feed->read += (uint64_t)got;
	return 0;
}

static int step(struct feed *feed)
{
	uint64_t count;
	size_t used;

	if (read_more(feed))
		return -1;
	count = send_lines(feed, &used);
	if (client_flush(&feed->put->jobs.client))
		return -1;
	for (; count > 0; count--)
		if (take_answer(feed))
			return -1;
	memmove(feed->bytes, feed->bytes + used, feed->filled - used);
	feed->filled -= used;
	progress_show(feed->size ? feed->read : feed->lines, feed->size);
	if (feed->put->jobs.json)
		fflush(stdout);
	return 0;
}

static void print_result(const struct feed *feed)
{
	progress_clear();
	if (feed->refused > MESSAGES_MAX)
		message_error("%" PRIu64 " more lines were refused", feed->refused - MESSAGES_MAX);
	if (feed->put->jobs.json)
		return;
	printf("%" PRIu64 " job%s put", feed->good, jobs_plural(feed->good));
	if (feed->good)
		printf(", ids %" PRIu64 " to %" PRIu64, feed->first, feed->last);
	if (feed->refused)
		printf(", %" PRIu64 " refused", feed->refused);
	putchar('\n');
}

int put_lines(struct put_options *put)
{
	struct feed feed = {.put = put};
	struct stat input;
	int failed = 0;

	if (fstat(STDIN_FILENO, &input) == 0 && S_ISREG(input.st_mode) && input.st_size > 0)
		feed.size = (uint64_t)input.st_size;
	progress_begin("putting");
	while (!feed.ended && !failed)
		failed = step(&feed) != 0;
	print_result(&feed);
	if (failed)
		message_error("stopped after line %" PRIu64
		              " of standard input; the lines after it may not have been put",
		    feed.lines);
	free(feed.bytes);
	return failed || feed.refused ? -1 : 0;
}
