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

uint64_t listing_read(const struct field *fields, void *to, const char *line, size_t size, struct buffer *room)
{
	const struct field *bytes = NULL;
	struct json_value name, value;
	size_t at = 0, length = 0;
	uint64_t seen = 0;
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
		seen |= (uint64_t)!bad << (field - fields);
		if (field->kind != FIELD_BODY)
			continue;
		bytes = field;
		if (!bad)
			memcpy(&length, (char *)to + field->out.length, sizeof length);
	}
	/* Not what the line says beside them. */
	if (bytes)
		memcpy((char *)to + bytes->out.length, &length, sizeof length);
	return seen;
}

uint64_t listing_bit(const char *name)
{
	int is_base64;

	return UINT64_C(1) << (field_find(
	                           job_fields, ~0u, (struct json_value){JSON_STRING, name, strlen(name)}, &is_base64) -
	                       job_fields);
}

/* On elapsed time, only a delayed job has times that follow from the time left. */
static uint64_t set_due(struct ww_job_info *info, uint64_t seen)
{
	const uint64_t due = listing_bit("due");
	const uint64_t expires = listing_bit("expires");

	if (info->flags & WW_JOB_WALL)
		return seen;
	/* The span between the two is the same on any clock. */
	info->expires -= info->due;
	info->due = wall_now() + info->left;
	info->expires += info->due;
	return info->state == WW_JOB_DELAYED && seen & listing_bit("left") ? seen | due : seen & ~(due | expires);
}

uint64_t listing_job(struct ww_job_info *info, const char *line, size_t size, struct buffer *room)
{
	return set_due(info, listing_read(job_fields, info, line, size, room));
}

/* Return the field's bit, or 0 if the value is not what it should be. */
static uint64_t take_stat(struct ww_job_info *info, const char *member, const struct yaml_field *said)
{
	const struct json_value name = {JSON_STRING, member, strlen(member)};
	struct json_value value = {JSON_NUMBER, said->value, said->value_size};
	char *none = NULL;
	int is_base64;
	const struct field *field = field_find(job_fields, ~0u, name, &is_base64);

	if (field->kind == FIELD_TEXT || field->kind == FIELD_WORD)
		value.kind = JSON_STRING;
	return field_take(field, info, value, 0, FIELD_LINE, &none) == 0 ? UINT64_C(1) << (field - job_fields) : 0;
}

uint64_t listing_stats(struct ww_job_info *info, const char *yaml, size_t size)
{
	/* Of beanstalkd, and of the table. */
	static const char *const names[][2] = {{"id", "id"}, {"tube", "tube"}, {"state", "state"}, {"pri", "priority"},
	    {"delay", "delay"}, {"time-left", "left"}, {"ttr", "run"}, {"reserves", "reserves"},
	    {"timeouts", "timeouts"}, {"releases", "releases"}, {"buries", "buries"}, {"kicks", "kicks"}};
	struct yaml_field said;
	uint64_t seen = 0;
	size_t at = 0;

	while (yaml_next(yaml, size, &at, &said)) {
		const struct json_value name = {JSON_STRING, said.name, said.name_size};

		if (json_is(name, "age")) {
			info->created = wall_now() - yaml_whole(yaml, size, "age") * WW_SECOND;
			seen |= listing_bit("created");
		}
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (json_is(name, names[i][0]))
				seen |= take_stat(info, names[i][1], &said);
	}
	return set_due(info, seen);
}

void listing_members(const struct field *fields, uint32_t where, const void *from, uint64_t seen)
{
	static struct field some[LISTING_FIELDS + 1];
	const struct field_moment now = {0};
	struct buffer out = {0};
	size_t count = 0;

	for (size_t i = 0; fields[i].name; i++)
		if (seen >> i & 1)
			some[count++] = fields[i];
	some[count].name = NULL;
	if (field_write(&out, some, where, from, FIELD_PLAIN, &now))
		memory_exhausted();
	fwrite(out.data, 1, out.size, stdout);
	buffer_free(&out);
}

void listing_write(const struct field *fields, uint32_t where, const void *from, uint64_t seen)
{
	putchar('{');
	listing_members(fields, where, from, seen);
	puts("}");
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
