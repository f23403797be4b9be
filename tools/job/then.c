/* Reads and writes a job that another one has as its follow-up: an object in it, as a put takes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job/job.h"

/* ---- What both a put and a follow-up need */

static uint64_t bit_of(const char *name)
{
	const struct json_value value = {JSON_STRING, name, strlen(name)};
	int is_base64;

	return UINT64_C(1) << (field_find(job_fields, JOB_PUT, value, &is_base64) - job_fields);
}

int job_put_settle(struct job_request *job, uint64_t seen, const char *pair[2])
{
	/* Members that say the same in two ways. */
	static const char *const pairs[][2] = {
	    {"delay", "at"}, {"mode", "debounce"}, {"mode", "unique"}, {"debounce", "unique"}};

	if (seen & bit_of("at"))
		job->spec.flags |= WW_JOB_WALL | WW_JOB_AT;
	if (seen & bit_of("debounce"))
		job->spec.key_mode = WW_KEY_DEBOUNCE;
	if (seen & bit_of("unique"))
		job->spec.key_mode = WW_KEY_UNIQUE;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		if (seen & bit_of(pairs[i][0]) && seen & bit_of(pairs[i][1])) {
			memcpy(pair, pairs[i], sizeof pairs[i]);
			return -1;
		}
	return 0;
}

/* ---- Reading */

/* A chain of jobs while it is read. */
struct chain {
	struct job_request jobs[WW_JOB_CHAIN];
	size_t sizes[WW_JOB_CHAIN]; /* of their texts */
	int count;
	char *room; /* for what their strings stand for */
	char *problem;
};

static int refuse(const struct chain *chain, struct json_value name, const char *what)
{
	snprintf(chain->problem, JOB_PROBLEM, "%.*s of job %d in it %s", name.size < 60 ? (int)name.size : 60,
	    name.text, chain->count, what);
	return -1;
}

static int refuse_value(const struct chain *chain, const struct field *field, struct json_value name, int is_base64)
{
	char expected[FIELD_EXPECTED], what[FIELD_EXPECTED + 10];

	snprintf(what, sizeof what, "must be %s", field_expected(field, is_base64, FIELD_REQUEST, expected));
	return refuse(chain, name, what);
}

/* Take the members of one. *next becomes its own follow-up, if it has one. */
static int take_members(struct chain *chain, struct json_value object, struct json_value *next, uint64_t *seen)
{
	struct job_request *job = &chain->jobs[chain->count - 1];
	struct json_value name, value;
	size_t at = 0;
	int is_base64, more;

	while ((more = json_next(object.text, object.size, &at, &name, &value)) > 0) {
		const struct field *field = field_find(job_fields, JOB_PUT, name, &is_base64);

		if (!field)
			return refuse(chain, name, "is nothing that a put takes");
		if (*seen >> (field - job_fields) & 1)
			return refuse(chain, name, "is there twice");
		*seen |= UINT64_C(1) << (field - job_fields);
		if (field->kind == FIELD_JOB)
			*next = value;
		else if (field_take(field, job, value, is_base64, FIELD_REQUEST, &chain->room) != 0)
			return refuse_value(chain, field, name, is_base64);
	}
	if (object.kind != JSON_OTHER || more < 0)
		snprintf(chain->problem, JOB_PROBLEM, "job %d in it is no object of JSON", chain->count);
	return object.kind != JSON_OTHER || more < 0 ? -1 : 0;
}

static int take_one(struct chain *chain, struct json_value object, struct json_value *next)
{
	struct job_request *job = &chain->jobs[chain->count];
	const char *pair[2];
	uint64_t seen = 0;

	(void)ww_job_spec_default(&job->spec);
	chain->sizes[chain->count++] = object.size;
	if (take_members(chain, object, next, &seen) != 0)
		return -1;
	if (job_put_settle(job, seen, pair) != 0) {
		snprintf(
		    chain->problem, JOB_PROBLEM, "job %d in it has both %s and %s", chain->count, pair[0], pair[1]);
		return -1;
	}
	if (job->spec.key_mode != WW_KEY_REPLACE && !job->spec.key_length) {
		snprintf(chain->problem, JOB_PROBLEM, "job %d in it has a mode of its key, and no key", chain->count);
		return -1;
	}
	(void)ww_job_spread(&job->spec, job->spread);
	return 0;
}

static int take_all(struct chain *chain, struct json_value object)
{
	struct json_value next;

	for (; object.kind != JSON_NONE; object = next) {
		next = (struct json_value){JSON_NONE, NULL, 0};
		if (chain->count == WW_JOB_CHAIN) {
			snprintf(chain->problem, JOB_PROBLEM, "more than %d jobs in a row are too many", WW_JOB_CHAIN);
			return -1;
		}
		if (take_one(chain, object, &next) != 0)
			return -1;
	}
	return 0;
}

/* Write the last one first, in turn to either place, so that the first one is written to `out`. */
static int write_all(struct chain *chain, char *out, char *other, size_t *length)
{
	for (int i = chain->count - 1; i >= 0; i--) {
		struct ww_job_spec *spec = &chain->jobs[i].spec;

		*length = chain->sizes[i];
		/* No member takes more bytes than its text. */
		if (ww_job_then_write(i % 2 ? other : out, length, spec) != WW_OK) {
			snprintf(chain->problem, JOB_PROBLEM, "job %d in it is too long", i + 1);
			return -1;
		}
		if (i > 0) {
			chain->jobs[i - 1].spec.then = i % 2 ? other : out;
			chain->jobs[i - 1].spec.then_length = *length;
		}
	}
	return 0;
}

int job_then_take(struct json_value value, char **room, const void **bytes, size_t *length, char problem[JOB_PROBLEM])
{
	struct chain *chain = calloc(1, sizeof *chain);
	char *decoded = malloc(value.size + 1);
	char *other = malloc(value.size + 1);
	int bad = -1;

	snprintf(problem, JOB_PROBLEM, "there is no memory for it");
	if (chain && decoded && other) {
		chain->room = decoded;
		chain->problem = problem;
		bad = take_all(chain, value) || write_all(chain, *room, other, length) ? -1 : 0;
	}
	if (!bad) {
		*bytes = *room;
		*room += *length;
	}
	free(other);
	free(decoded);
	free(chain);
	return bad;
}

/* ---- Writing */

static int is_number_said(const struct field *field, const struct ww_job_spec *spec, const struct ww_job_spec *initial)
{
	const void *one = (const char *)spec + field->in.at;
	const void *other = (const char *)initial + field->in.at;

	return memcmp(one, other, field->in.size) != 0;
}

/* Whether a put has to say it. */
static int is_said(const struct field *field, const struct ww_job_spec *spec, const struct ww_job_spec *initial)
{
	size_t length;

	if (!(field->where & JOB_PUT) || field->in.at >= sizeof *spec)
		return 0;
	if (field->in.length) {
		memcpy(&length, (const char *)spec + field->in.length, sizeof length);
		return length > 0;
	}
	if (field->kind == FIELD_TEXT)
		return strcmp(spec->tube, initial->tube) != 0;
	if (strcmp(field->name, "at") == 0)
		return (spec->flags & WW_JOB_AT) != 0;
	if (strcmp(field->name, "delay") == 0)
		return !(spec->flags & WW_JOB_AT) && spec->due > 0;
	if (strcmp(field->name, "debounce") == 0)
		return spec->key_mode == WW_KEY_DEBOUNCE;
	if (strcmp(field->name, "unique") == 0)
		return spec->key_mode == WW_KEY_UNIQUE;
	return (strcmp(field->name, "mode") != 0 || spec->key_mode < WW_KEY_DEBOUNCE) &&
	       is_number_said(field, spec, initial);
}

int job_then_write(struct buffer *out, const void *bytes, size_t length)
{
	const struct field_moment now = {.is_exact = 1};
	struct field said[64];
	struct ww_job_spec spec, initial;
	size_t count = 0;

	if (ww_job_then_read(&spec, bytes, length) != WW_OK)
		return -1;
	(void)ww_job_spec_default(&initial);
	for (const struct field *field = job_fields; field->name; field++) {
		if (!is_said(field, &spec, &initial))
			continue;
		said[count] = *field;
		said[count].out = field->in;
		said[count].where = said[count].flags = 0;
		count++;
	}
	said[count].name = NULL;
	return buffer_append(out, "{", 1) | field_write(out, said, 0, &spec, FIELD_PLAIN, &now) |
	       buffer_append(out, "}", 1);
}
