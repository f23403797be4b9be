/* Copies a job's fields between the structs of the library, and finds one by the name of its option. */
#include <string.h>

#include "tools/job/job.h"

_Static_assert(offsetof(struct job_request, spec) == 0, "a place in a request is one in its spec");
_Static_assert(
    offsetof(struct ww_schedule_info, spec) == 0, "a place in what is shown of a schedule is one in its spec");

enum { OPTION_MAX = 20 };

/* Options and words of the protocol have dashes where members of JSON have underscores. */
const struct field *job_option(const char *name, size_t size, uint32_t where)
{
	char member[OPTION_MAX];
	int is_base64;

	if (size > sizeof member)
		return NULL;
	for (size_t i = 0; i < size; i++)
		member[i] = name[i] == '-' ? '_' : name[i];
	return field_find(job_fields, where, (struct json_value){JSON_STRING, member, size}, &is_base64);
}

/* A number that a put says and a list shows. A delay is no such one: another member shows what is left of it. */
static int is_kept(const struct field *field)
{
	return field->in.size == field->out.size && field->where & JOB_PUT && field->where & JOB_SHOWN &&
	       !(field->where & JOB_MOVE) &&
	       (field->kind == FIELD_SPAN || field->kind == FIELD_COUNT || field->kind == FIELD_WORD);
}

void job_spec_from_info(struct ww_job_spec *spec, const struct ww_job_info *info)
{
	for (const struct field *field = job_fields; field->name; field++)
		if (is_kept(field))
			memcpy((char *)spec + field->in.at, (const char *)info + field->out.at, field->in.size);
}

void job_info_from_spec(struct ww_job_info *info, const struct ww_job_spec *spec)
{
	for (const struct field *field = job_fields; field->name; field++)
		if (is_kept(field))
			memcpy((char *)info + field->out.at, (const char *)spec + field->in.at, field->in.size);
}

static const struct field *schedule_field(const char *name)
{
	const struct field *field = job_schedule_fields;

	while (field->name && strcmp(field->name, name) != 0)
		field++;
	return field->name ? field : NULL;
}

void job_schedule_from_spec(struct ww_schedule_spec *schedule, const struct ww_job_spec *spec)
{
	for (const struct field *field = job_fields; field->name; field++) {
		const struct field *its = field->where & JOB_SCHEDULE ? schedule_field(field->name) : NULL;

		if (!its)
			continue;
		memcpy((char *)schedule + its->out.at, (const char *)spec + field->in.at, field->in.size);
		if (field->in.length)
			memcpy(
			    (char *)schedule + its->out.length, (const char *)spec + field->in.length, sizeof(size_t));
	}
}
