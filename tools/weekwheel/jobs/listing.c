/* Asks for pages of jobs and takes them apart. See listing.h. */
#include "tools/weekwheel/jobs/listing.h"

#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/weekwheel/jobs/yaml.h"
#include "weekwheel/driver.h"

int listing_states(struct listing *listing, const struct options *options)
{
	const char *at = options->value;

	listing->states = options->value;
	for (;;) {
		size_t length = strcspn(at, ",");
		int state = WW_JOB_DELAYED;

		while (job_states[state] &&
		       (strlen(job_states[state]) != length || memcmp(job_states[state], at, length) != 0))
			state++;
		if (!job_states[state])
			return options_bad_value(options, "state",
			    "delayed, ready, reserved, buried or ended, or several with commas between");
		if (!at[length])
			return 0;
		at += length + 1;
	}
}

void listing_read(const struct field *fields, void *to, const char *line, size_t size, struct buffer *room)
{
	const struct field *bytes = NULL;
	struct json_value name, value;
	size_t at = 0, length = 0;
	char *free;
	int is_base64, bad;

	buffer_drop(room, room->size);
	if (buffer_reserve(room, size + 1))
		memory_exhausted();
	free = room->data;
	while (json_next(line, size, &at, &name, &value) > 0) {
		const struct field *field = field_find(fields, ~0u, name, &is_base64);

		if (!field || field->out.size == 0)
			continue;
		bad = field_take(field, to, value, is_base64, FIELD_LINE, &free);
		if (field->kind != FIELD_BODY)
			continue;
		bytes = field;
		if (!bad)
			memcpy(&length, (char *)to + field->out.length, sizeof length);
	}
	/* Not what the line says beside them. */
	if (bytes)
		memcpy((char *)to + bytes->out.length, &length, sizeof length);
}

void listing_job(struct ww_job_info *info, const char *line, size_t size, struct buffer *room)
{
	*info = (struct ww_job_info){.state = WW_JOB_READY};
	listing_read(job_fields, info, line, size, room);
	if (!(info->flags & WW_JOB_WALL))
		info->due = time_now() + info->left;
}

static uint64_t seconds_of(const char *yaml, size_t size, const char *name)
{
	return yaml_whole(yaml, size, name) * WW_SECOND;
}

void listing_stats(struct ww_job_info *info, const char *yaml, size_t size)
{
	char text[20];

	*info = (struct ww_job_info){.id = yaml_whole(yaml, size, "id"),
	    .state = WW_JOB_READY,
	    .priority = (uint32_t)yaml_whole(yaml, size, "pri"),
	    .created = time_now() - seconds_of(yaml, size, "age"),
	    .delay = seconds_of(yaml, size, "delay"),
	    .left = seconds_of(yaml, size, "time-left"),
	    .run = seconds_of(yaml, size, "ttr"),
	    .reserves = (uint32_t)yaml_whole(yaml, size, "reserves"),
	    .timeouts = (uint32_t)yaml_whole(yaml, size, "timeouts"),
	    .releases = (uint32_t)yaml_whole(yaml, size, "releases"),
	    .buries = (uint32_t)yaml_whole(yaml, size, "buries"),
	    .kicks = (uint32_t)yaml_whole(yaml, size, "kicks")};
	info->due = time_now() + info->left;
	yaml_text(yaml, size, "tube", info->tube, sizeof info->tube);
	yaml_text(yaml, size, "state", text, sizeof text);
	for (int state = WW_JOB_DELAYED; state <= WW_JOB_BURIED; state++)
		if (strcmp(text, job_states[state]) == 0)
			info->state = (enum ww_job_state)state;
}

void listing_write(const struct field *fields, uint32_t where, const void *from)
{
	const struct field_moment now = {0};
	struct buffer out = {0};

	if (buffer_append(&out, "{", 1) | field_write(&out, fields, where, from, FIELD_PLAIN, &now) |
	    buffer_append(&out, "}\n", 2))
		memory_exhausted();
	fwrite(out.data, 1, out.size, stdout);
	buffer_free(&out);
}

uint32_t listing_attempts(const struct ww_job_info *info)
{
	return info->tries + (info->state == WW_JOB_RESERVED);
}

static int ask(const struct listing *listing, struct client *client, uint64_t limit, struct reply *reply)
{
	char filter[2 * JOBS_KEY_TEXT] = "";

	jobs_add(filter, sizeof filter, "tube", listing->tube);
	jobs_add(filter, sizeof filter, "state", listing->states);
	jobs_add(filter, sizeof filter, "prefix", listing->prefix);
	if (listing->id)
		jobs_add_number(filter, sizeof filter, "id", listing->id);
	if (listing->next)
		jobs_add_number(filter, sizeof filter, "after", listing->next);
	jobs_add_number(filter, sizeof filter, "limit", limit < LISTING_PAGE ? limit : LISTING_PAGE);
	return client_expect(
	    client, reply, "OK", "list", "%s%s", listing->verb ? listing->verb : "list-delayed", filter);
}

int listing_page(struct listing *listing, struct client *client, uint64_t limit, listing_fn *fn, void *context)
{
	uint64_t previous = listing->next;
	struct reply reply;
	size_t at = 0;

	if (ask(listing, client, limit, &reply))
		return -1;
	listing->next = 0;
	while (at < reply.body_size) {
		const char *line = reply.body + at;
		const char *end = memchr(line, '\n', reply.body_size - at);
		size_t size = end ? (size_t)(end - line) : reply.body_size - at;

		at += size + (end != NULL);
		if (size && line[size - 1] == '\r')
			size--;
		if (size && json_member(line, size, "id").kind == JSON_NUMBER)
			fn(context, line, size);
		else if (size)
			listing->next = json_whole(line, size, "next");
	}
	/* A page that led back would never end. Jobs have growing numbers, and the runs of a history falling ones. */
	if (listing->verb ? previous && listing->next >= previous : listing->next <= previous)
		listing->next = 0;
	return 0;
}
