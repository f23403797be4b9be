/* Reads the objects of requests by the tables of fields, and says which member is wrong and what it should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/weekwheeld/v1/v1.h"

#define IN(name) FIELD_PLACE(struct v1_fields, name)

/* What requests have beside the fields of a job. */
static const struct field v1_members[] = {
    {"token", FIELD_ID, .in = IN(token), .where = V1_OF_END | V1_OF_REPORT, .least = 1,
        .says = "The token of the lease."},
    {"tubes", FIELD_TEXT, .where = V1_OF_RESERVE, .initial = "[\"default\"]",
        .says = "A list of 1 to 100 names of tubes."},
    {"wait", FIELD_SPAN, .in = IN(span), .where = V1_OF_RESERVE,
        .says = "How long to wait for a job, at most 20 seconds."},
    {"most", FIELD_COUNT, .in = IN(most), .where = V1_OF_RESERVE, .least = 1, .most = 100, .initial = "1",
        .says = "There are fewer if they take megabytes."},
    {"code", FIELD_COUNT, .in = IN(code), .where = V1_OF_RESERVE, .most = WW_JOB_CODE_MAX, .since = "0.2",
        .says = "Only jobs up to this code: those that the caller can do. Without it, all."},
    {"most", FIELD_COUNT, .in = IN(most), .where = V1_OF_KICK, .least = 1, .initial = "1",
        .says = "At a time 10000 are kicked at most."},
    {"running", FIELD_COUNT, .in = IN(limit.running), .where = V1_OF_LIMIT, .least = 1, .says = "Leases at once."},
    {"starts", FIELD_COUNT, .in = IN(limit.starts), .where = V1_OF_LIMIT, .least = 1, .says = "In each \"per\"."},
    {"per", FIELD_SPAN, .in = IN(limit.per), .where = V1_OF_LIMIT, .initial = "1",
        .says = "From 0.001 seconds to 7 days."},
    {"burst", FIELD_COUNT, .in = IN(limit.burst), .where = V1_OF_LIMIT, .least = 1, .most = WW_LIMIT_BURST_MAX,
        .initial = "1", .says = "How many may start at once after a rest."},
    {"weight", FIELD_COUNT, .in = IN(limit.weight), .where = V1_OF_LIMIT, .least = 1, .most = WW_LIMIT_WEIGHT_MAX,
        .initial = "1", .says = "Turns of the group where one of weight 1 gets one."},
    {"each", FIELD_TRUTH, .in = IN(each), .where = V1_OF_LIMIT,
        .says = "It is for each group that has none of its own."},
    {"span", FIELD_SPAN, .in = IN(span), .where = V1_OF_PAUSE},
    {"cron", FIELD_TEXT, .in = IN(plan.expression), .where = V1_OF_SCHEDULE, .least = 1,
        .says = "Five fields of cron, six with seconds, @daily and its kin, or \"@every 90m\"."},
    {"zone", FIELD_TEXT, .in = IN(plan.zone), .where = V1_OF_SCHEDULE, .least = 1, .initial = "\"UTC\"",
        .says = "Of the IANA database."},
    {"overlap", FIELD_WORD, .in = IN(plan.overlap), .where = V1_OF_SCHEDULE, .words = job_overlaps,
        .initial = "\"allow\"", .says = "What happens at a time if the former job has not ended."},
    {"spread", FIELD_SPAN, .in = IN(plan.spread), .where = V1_OF_SCHEDULE,
        .says = "Each job comes a part of this later, which its tube and name fix."},
    {"start", FIELD_TIME, .in = IN(plan.start), .where = V1_OF_SCHEDULE, .flags = FIELD_OR_NONE,
        .says = "No time before this."},
    {"end", FIELD_TIME, .in = IN(plan.end), .where = V1_OF_SCHEDULE, .flags = FIELD_OR_NONE,
        .says = "No time after this."},
    {"paused", FIELD_TRUTH, .in = IN(plan.is_paused), .where = V1_OF_SCHEDULE, .initial = "false"},
    {.name = NULL},
};

static const struct field *const tables[] = {job_fields, v1_members};

enum { TABLES = sizeof tables / sizeof *tables };

/* Those of the operation, as "a, b, c". */
static void names_of(unsigned of, char *text, size_t room)
{
	size_t length = 0;

	for (int i = 0; i < TABLES; i++)
		for (const struct field *field = tables[i]; field->name && length < room; field++) {
			int is_bytes = field->kind == FIELD_BYTES || field->kind == FIELD_BODY;

			if (field->where & of)
				length += (size_t)snprintf(text + length, room - length,
				    is_bytes ? "%s%s, %s_base64" : "%s%s", length ? ", " : "", field->name,
				    field->name);
		}
}

/* The bit of a field in v1_fields.seen: those of jobs from below, the others from above. */
static uint64_t bit_of(int table, const struct field *field)
{
	return table == 0 ? UINT64_C(1) << (field - job_fields) : UINT64_C(1) << 63 >> (field - v1_members);
}

/* What options of the command line and other queues call it. */
static const struct {
	const char *name, *here;
	unsigned of;
} elsewhere[] = {
    {"in", "delay", V1_OF_PUT | V1_OF_MOVE | V1_OF_RELEASE},
    {"pri", "priority", V1_OF_PUT | V1_OF_SCHEDULE | V1_OF_RELEASE},
    {"ttr", "run", V1_OF_PUT | V1_OF_SCHEDULE},
    {"timeout", "run", V1_OF_PUT | V1_OF_SCHEDULE},
    {"retries", "attempts", V1_OF_PUT | V1_OF_SCHEDULE},
    {"queue", "tube", V1_OF_PUT},
    {"data", "body", V1_OF_PUT | V1_OF_SCHEDULE},
    {"rate", "starts, and per says in what time", V1_OF_LIMIT},
    {"each_group", "each", V1_OF_LIMIT},
    {"expression", "cron", V1_OF_SCHEDULE},
    {"tz", "zone", V1_OF_SCHEDULE},
    {"timezone", "zone", V1_OF_SCHEDULE},
};

static int refuse_member(struct v1_request *request, struct json_value name)
{
	char text[64];
	char names[400];

	(void)json_decode(name, text, sizeof text);
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (strcmp(text, elsewhere[i].name) == 0 && elsewhere[i].of & request->operation->members)
			return v1_problem(
			    request, 422, text, NULL, "there is no such member here; it is %s", elsewhere[i].here);
	if (!(request->operation->members & V1_OF_OBJECT))
		return v1_problem(request, 422, text, "leave the body out", "this path takes no members");
	names_of(request->operation->members, names, sizeof names);
	return v1_problem(request, 422, text, NULL, "there is no such member here; there are %s", names);
}

int v1_has(const struct v1_fields *fields, const char *name)
{
	const struct json_value value = {JSON_STRING, name, strlen(name)};
	int is_base64;
	const struct field *field = field_find(job_fields, ~0u, value, &is_base64);

	return field && fields->seen & bit_of(0, field);
}

static int take_tubes(struct v1_request *request, struct json_value value, char **room)
{
	struct json_value name;
	size_t at = 0;
	int more;

	request->tube_count = 0;
	while ((more = json_element(value.text, value.size, &at, &name)) > 0) {
		char checked[WW_TUBE_MAX + 1];

		if (request->tube_count == V1_TUBES_MAX || name.kind != JSON_STRING ||
		    json_decode(name, *room, name.size + 1) != 0 ||
		    words_tube((struct span){*room, *room + strlen(*room)}, checked) != 0)
			return -1;
		request->tubes[request->tube_count++] = *room;
		*room += strlen(*room) + 1;
	}
	return value.kind != JSON_OTHER || more < 0 || request->tube_count == 0 ? -1 : 0;
}

/* What is wrong with the day, the clock or the zone of what looks like a time: 1; or 0. */
static int is_slip(struct json_value value, char text[FIELD_EXPECTED])
{
	struct duration_problem problem;
	char time[48];
	uint64_t ns;

	if (value.kind != JSON_STRING || json_decode(value, time, sizeof time) || !strchr("12", time[0]) ||
	    !strchr(time, ':') || time_parse(time, &ns, &problem) == 0)
		return 0;
	snprintf(text, FIELD_EXPECTED, "%s", problem.expected);
	return 1;
}

/* What is wrong with a follow-up, which is read once more. */
static int refuse_then(struct v1_request *request, const struct field *field, struct json_value value, char *room)
{
	char problem[JOB_PROBLEM];
	const void *bytes;
	size_t length;

	(void)job_then_take(value, &room, &bytes, &length, problem);
	return v1_problem(request, 422, field->name, NULL, "%s", problem);
}

static int refuse_value(struct v1_request *request, const struct field *field, struct json_value value, int is_base64)
{
	char text[FIELD_EXPECTED] = "a list of 1 to 100 names of tubes";
	char name[40];

	if (field->in.size > 0 && (field->kind != FIELD_TIME || !is_slip(value, text)))
		(void)field_expected(field, is_base64, FIELD_REQUEST, text);
	snprintf(name, sizeof name, is_base64 ? "%s_base64" : "%s", field->name);
	return v1_problem(request, 422, name, NULL, "this must be %s", text);
}

static int read_member(
    struct v1_request *request, struct v1_fields *fields, struct json_value name, struct json_value value)
{
	char *room = request->decoded.data + request->decoded.size;
	const struct field *field = NULL;
	int is_base64 = 0;
	int table = -1;
	uint64_t bit;
	int bad;

	while (!field && ++table < TABLES)
		field = field_find(tables[table], request->operation->members, name, &is_base64);
	if (!field)
		return refuse_member(request, name);
	bit = bit_of(table, field);
	if (fields->seen & bit)
		return v1_problem(request, 422, field->name, NULL, "it is given twice");
	fields->seen |= bit;
	bad = field->in.size == 0 ? take_tubes(request, value, &room)
	                          : field_take(field, fields, value, is_base64, FIELD_REQUEST, &room);
	if (bad && field->kind == FIELD_JOB)
		return refuse_then(request, field, value, room);
	request->decoded.size = (size_t)(room - request->decoded.data);
	return bad ? refuse_value(request, field, value, is_base64) : 0;
}

/* What some members mean beside their values. */
static int finish(struct v1_request *request, struct v1_fields *fields)
{
	const struct ww_job_spec *spec = &fields->job.spec;
	const char *pair[2];
	char checked[WW_TUBE_MAX + 1];

	if (words_tube((struct span){spec->tube, spec->tube + strlen(spec->tube)}, checked) != 0)
		return v1_problem(request, 422, "tube", NULL,
		    "this must be 1 to 200 of A-Z a-z 0-9 - + / ; . $ _ ( ), and no - at its beginning");
	if (job_put_settle(&fields->job, fields->seen, pair) != 0)
		return v1_problem(request, 422, pair[1], NULL, "give either %s or %s", pair[0], pair[1]);
	return 0;
}

static int read_object(struct v1_request *request, struct v1_fields *fields, const char *text, size_t size)
{
	struct json_value name;
	struct json_value value;
	size_t at = 0;
	int more;

	(void)ww_job_spec_default(&fields->job.spec);
	(void)ww_jobs_limit_default(&fields->limit);
	fields->code = WW_JOB_CODE_MAX;
	while ((more = json_next(text, size, &at, &name, &value)) > 0)
		if (read_member(request, fields, name, value) != 0)
			return -1;
	if (more < 0)
		return v1_problem(request, 400, NULL, "send an object of JSON",
		    "the body is not an object of JSON: see byte %zu", (size_t)(text - request->in.data) + at);
	return finish(request, fields);
}

/* Count the objects of the list, or fail. */
static int count_objects(struct v1_request *request, size_t *count)
{
	struct json_value value;
	size_t at = 0;
	int more;

	*count = 0;
	while ((more = json_element(request->in.data, request->in.size, &at, &value)) > 0)
		++*count;
	if (more < 0)
		return v1_problem(request, 400, NULL, "send a list of objects of JSON",
		    "the body is not a list of JSON: see byte %zu", at);
	if (*count == 0 || *count > V1_PUTS_MAX)
		return v1_problem(request, 422, NULL, "send several requests",
		    "the list has %zu jobs; it may have 1 to %d", *count, V1_PUTS_MAX);
	return 0;
}

static int read_list(struct v1_request *request)
{
	struct json_value value;
	size_t at = 0;

	for (size_t i = 0; i < request->count; i++) {
		(void)json_element(request->in.data, request->in.size, &at, &value);
		request->at = i + 1;
		if (read_object(request, &request->fields[i], value.text, value.size) != 0)
			return -1;
	}
	request->at = 0;
	return 0;
}

int v1_is_list(const struct buffer *in)
{
	size_t at = 0;

	while (at < in->size && strchr(" \t\r\n", in->data[at]))
		at++;
	return at < in->size && in->data[at] == '[';
}

int v1_read(struct v1_request *request, int is_list_allowed)
{
	request->count = 1;
	request->is_many = is_list_allowed && v1_is_list(&request->in);
	if (request->is_many && count_objects(request, &request->count) != 0)
		return -1;
	request->fields = calloc(request->count, sizeof *request->fields);
	/* What a string stands for is no longer than the string with its quotes. */
	if (!request->fields || buffer_reserve(&request->decoded, request->in.size + 1) != 0)
		return v1_failed(request, WW_ENOMEM);
	if (request->is_many)
		return read_list(request);
	/*
	 * An operation that needs no member needs no object. A job could do without as well, but hardly anybody would
	 * mean that.
	 */
	if (request->in.size == 0 && request->operation->members & V1_OF_PUT)
		return v1_problem(request, 400, NULL, "send an object of JSON; {} is a job of which nothing is said",
		    "the request has no body");
	if (request->in.size == 0)
		return read_object(request, request->fields, "{}", 2);
	return read_object(request, request->fields, request->in.data, request->in.size);
}
