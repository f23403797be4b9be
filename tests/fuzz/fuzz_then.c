/* Any bytes as a follow-up, as its JSON and as it is stored: what is read is written again, and read as the same. */
/* tier: quick */
#include <stdlib.h>
#include <string.h>

#include "tools/job/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *allocate(size_t size)
{
	void *block = malloc(size + !size);

	if (!block)
		abort();
	return block;
}

/* What has the default of its member, or more zeros than it needs, is written shorter. */
static void write_stored(const uint8_t *data, size_t size)
{
	struct ww_job_spec spec, again;
	size_t length = size;
	char *bytes = allocate(size);

	if (ww_job_then_read(&spec, data, size) == WW_OK) {
		/* Only a tube of the default name alone is written longer: as a number. */
		if (ww_job_then_write(bytes, &length, &spec) != WW_OK ||
		    ww_job_then_read(&again, bytes, length) != WW_OK)
			abort();
		if (strcmp(spec.tube, again.tube) != 0 || spec.due != again.due ||
		    spec.key_length != again.key_length || spec.then_length != again.then_length ||
		    spec.key_mode != again.key_mode || spec.code != again.code)
			abort();
	}
	free(bytes);
}

static size_t take(const char *text, size_t size, char *room)
{
	char problem[JOB_PROBLEM];
	const void *bytes;
	size_t length;
	char *at = room;

	if (job_then_take((struct json_value){JSON_OTHER, text, size}, &at, &bytes, &length, problem) != 0)
		return 0;
	if (length > size || at != room + length)
		abort();
	return length;
}

static void write_json(const char *text, size_t size)
{
	char *room = allocate(size + 1);
	size_t length = take(text, size, room);
	struct buffer out = {0};

	if (length && job_then_write(&out, room, length) == 0) {
		char *again = allocate(out.size + 1);

		/* A length of time, or a moment, may be longer than a request may say. */
		if (take(out.data, out.size, again) && memcmp(again, room, 1) != 0)
			abort();
		free(again);
	}
	buffer_free(&out);
	free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	write_stored(data, size);
	write_json((const char *)data, size);
	return 0;
}
