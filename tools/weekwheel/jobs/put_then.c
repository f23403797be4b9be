/* Takes the follow-up of a job from the command line or a file, and says what is wrong with it. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/job/job.h"
#include "tools/weekwheel/jobs/put.h"

static int is_json(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '{';
}

static int refuse(const struct put_options *put, const struct options *options, const char *problem)
{
	char excerpt[120];

	return options_fail(
	    options, "--then %s: %s", message_excerpt(excerpt, sizeof excerpt, put->then, strlen(put->then)), problem);
}

/* The server reads it as well, but only says that it is wrong. */
static int check(const struct put_options *put, const struct options *options, const char *json, size_t size)
{
	const struct json_value value = {JSON_OTHER, json, size};
	char *room = memory_zeroed(size + 1, 1);
	char *end = room;
	char problem[JOB_PROBLEM];
	const void *bytes;
	size_t length;
	int bad = job_then_take(value, &end, &bytes, &length, problem);

	free(room);
	return bad ? refuse(put, options, problem) : 0;
}

/* Headers of the job stand before it, and the head of a request is the beginning of the body. */
static void add(struct put_options *put, const char *json, size_t size)
{
	const size_t before = put->url ? 0 : put->head_length;

	put->head = memory_resize(put->head, put->head_length + size, 1);
	memmove(put->head + before + size, put->head + before, put->head_length - before);
	memcpy(put->head + before, json, size);
	put->head_length += size;
	jobs_add_number(put->words, sizeof put->words, "then", size);
}

int put_then_check(struct put_options *put, const struct options *options)
{
	char *bytes = NULL;
	size_t size;
	int wrong;

	if (!put->then)
		return 0;
	if (strstr(put->words, " every="))
		return options_fail(options, "--then is for a job that ends: leave it or --every out");
	if (is_json(put->then))
		size = strlen(put->then);
	else if (put_read_file(put->then, &bytes, &size) != 0)
		return OPTIONS_ERROR;
	wrong = check(put, options, bytes ? bytes : put->then, size);
	if (!wrong)
		add(put, bytes ? bytes : put->then, size);
	free(bytes);
	return wrong;
}
