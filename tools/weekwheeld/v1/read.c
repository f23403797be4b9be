/* Reads the objects of requests, and says which member is wrong and what it should be. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/base64.h"
#include "tools/common/duration.h"
#include "tools/common/number.h"
#include "tools/weekwheeld/v1/v1.h"

/* An object while its members are read. */
struct v1_object {
	struct v1_request *request;
	struct v1_fields *fields;
	void *field; /* for the member, or its first byte */
};

typedef int take_fn(struct v1_object *object, struct json_value value);

/* ---- Kinds of values */

/* Copy a string to where it stays until the request has ended. Returns NULL if it is none. */
static const char *copy_string(struct v1_request *request, struct json_value value)
{
	struct buffer *decoded = &request->decoded;
	char *copy = decoded->data + decoded->size;

	if (value.kind != JSON_STRING || json_decode(value, copy, value.size + 1) != 0)
		return NULL;
	decoded->size += strlen(copy) + 1;
	return copy;
}

static long copy_base64(struct v1_request *request, struct json_value value, const char **copy)
{
	struct buffer *decoded = &request->decoded;
	long length = -1;

	*copy = decoded->data + decoded->size;
	if (value.kind == JSON_STRING)
		length = base64_decode(decoded->data + decoded->size, value.text, value.size);
	if (length >= 0)
		decoded->size += (size_t)length;
	return length;
}

static int take_text(struct json_value value, char *out, size_t room)
{
	return value.kind != JSON_STRING || json_decode(value, out, room) != 0 ? -1 : 0;
}

/* Seconds as a number, or a length of time as people write it. */
static int take_span(struct v1_object *object, struct json_value value)
{
	uint64_t *ns = object->field;
	struct duration_problem problem;
	char text[32];

	if (value.kind == JSON_NUMBER)
		return number_seconds(value.text, value.size, DURATION_MAX / WW_SECOND, ns);
	return take_text(value, text, sizeof text) || duration_parse(text, ns, &problem) ? -1 : 0;
}

static int take_whole(struct json_value value, uint64_t most, uint64_t *number)
{
	return value.kind == JSON_NUMBER ? number_whole(value.text, value.size, 0, most, number) : -1;
}

static int take_count(struct v1_object *object, struct json_value value)
{
	uint64_t number;

	if (take_whole(value, UINT32_MAX, &number))
		return -1;
	*(uint32_t *)object->field = (uint32_t)number;
	return 0;
}

/* ---- Members */

/* The names that the protocol allows: all other clients have to be able to say them. */
static int take_tube(struct v1_object *object, struct json_value value)
{
	const char *tube = copy_string(object->request, value);

	return tube ? words_tube((struct span){tube, tube + strlen(tube)}, object->fields->tube) : -1;
}

static int take_tubes(struct v1_object *object, struct json_value value)
{
	struct v1_request *request = object->request;
	struct json_value name;
	size_t at = 0;
	int more;

	request->tube_count = 0;
	while ((more = json_element(value.text, value.size, &at, &name)) > 0) {
		const char *tube = request->tube_count < V1_TUBES_MAX ? copy_string(request, name) : NULL;
		char checked[WW_TUBE_MAX + 1];

		if (!tube || words_tube((struct span){tube, tube + strlen(tube)}, checked) != 0)
			return -1;
		request->tubes[request->tube_count++] = tube;
	}
	return value.kind != JSON_OTHER || more < 0 || request->tube_count == 0 ? -1 : 0;
}

static int set_key(struct v1_fields *fields, const char *key, size_t length)
{
	if (!key || length == 0 || length > WW_JOB_KEY_MAX)
		return -1;
	memcpy(fields->key, key, length);
	fields->spec.key_length = length;
	return 0;
}

static int take_key(struct v1_object *object, struct json_value value)
{
	const char *key = copy_string(object->request, value);

	return set_key(object->fields, key, key ? strlen(key) : 0);
}

static int take_key_base64(struct v1_object *object, struct json_value value)
{
	const char *key;
	long length = copy_base64(object->request, value, &key);

	return set_key(object->fields, key, length < 0 ? 0 : (size_t)length);
}

static int set_group(struct v1_fields *fields, const char *group, size_t length)
{
	if (!group || length == 0 || length > WW_JOB_GROUP_MAX)
		return -1;
	fields->spec.group = group;
	fields->spec.group_length = length;
	return 0;
}

static int take_group(struct v1_object *object, struct json_value value)
{
	const char *group = copy_string(object->request, value);

	return set_group(object->fields, group, group ? strlen(group) : 0);
}

static int take_group_base64(struct v1_object *object, struct json_value value)
{
	const char *group;
	long length = copy_base64(object->request, value, &group);

	return set_group(object->fields, group, length < 0 ? 0 : (size_t)length);
}

static int take_truth(struct v1_object *object, struct json_value value)
{
	int *is_true = object->field;

	*is_true = value.size == 4 && memcmp(value.text, "true", 4) == 0;
	return value.kind == JSON_OTHER && (*is_true || (value.size == 5 && memcmp(value.text, "false", 5) == 0)) ? 0
	                                                                                                          : -1;
}

static int take_number(struct v1_object *object, struct json_value value)
{
	uint64_t *number = object->field;

	return take_whole(value, UINT64_MAX, number) || *number == 0 ? -1 : 0;
}

static int take_body(struct v1_object *object, struct json_value value)
{
	const char *body = copy_string(object->request, value);

	object->fields->spec.body = body;
	object->fields->spec.body_length = body ? strlen(body) : 0;
	return body ? 0 : -1;
}

static int take_body_base64(struct v1_object *object, struct json_value value)
{
	const char *body;
	long length = copy_base64(object->request, value, &body);

	object->fields->spec.body = body;
	object->fields->spec.body_length = length < 0 ? 0 : (size_t)length;
	return length < 0 ? -1 : 0;
}

/* A time without its zone would be that of the server's zone, which the client does not know. */
static int has_zone(const char *text)
{
	const char *clock = strchr(text, ':');

	return *text == '@' || (clock && (strpbrk(clock, "Zz+-") != NULL));
}

static int take_at(struct v1_object *object, struct json_value value)
{
	struct duration_problem problem;
	char text[48];

	if (take_text(value, text, sizeof text) || !has_zone(text) ||
	    time_parse(text, &object->fields->spec.due, &problem))
		return -1;
	object->fields->spec.flags |= WW_JOB_WALL | WW_JOB_AT;
	return 0;
}

static int take_run(struct v1_object *object, struct json_value value)
{
	return take_span(object, value) || object->fields->spec.run < WW_SECOND ? -1 : 0;
}

static int take_every(struct v1_object *object, struct json_value value)
{
	const uint64_t *period = &object->fields->spec.period;

	return take_span(object, value) || (*period && *period < WW_MILLISECOND) ? -1 : 0;
}

static int take_missed(struct v1_object *object, struct json_value value)
{
	static const char *const words[] = {
	    [WW_MISSED_ONCE] = "once", [WW_MISSED_ALL] = "all", [WW_MISSED_SKIP] = "skip"};

	for (int i = 0; i < 3; i++) {
		if (!json_is(value, words[i]))
			continue;
		object->fields->spec.missed = (enum ww_missed)i;
		return 0;
	}
	return -1;
}

/* The modes that have no span. */
static int take_mode(struct v1_object *object, struct json_value value)
{
	static const char *const words[] = {[WW_KEY_REPLACE] = "replace",
	    [WW_KEY_IF_ABSENT] = "if-absent",
	    [WW_KEY_KEEP_EARLIER] = "keep-earlier",
	    [WW_KEY_KEEP_LATER] = "keep-later"};

	for (int i = 0; i <= WW_KEY_KEEP_LATER; i++) {
		if (!json_is(value, words[i]))
			continue;
		object->fields->spec.key_mode = (enum ww_key_mode)i;
		return 0;
	}
	return -1;
}

static int take_mode_span(struct v1_object *object, struct json_value value, enum ww_key_mode mode)
{
	struct ww_job_spec *spec = &object->fields->spec;

	spec->key_mode = mode;
	return take_span(object, value) || spec->key_span < WW_MILLISECOND ? -1 : 0;
}

static int take_debounce(struct v1_object *object, struct json_value value)
{
	return take_mode_span(object, value, WW_KEY_DEBOUNCE);
}

static int take_unique(struct v1_object *object, struct json_value value)
{
	return take_mode_span(object, value, WW_KEY_UNIQUE);
}

static int take_token(struct v1_object *object, struct json_value value)
{
	return value.kind != JSON_STRING || number_whole(value.text, value.size, 1, UINT64_MAX, &object->fields->token)
	           ? -1
	           : 0;
}

/* A long reason is cut, as the store does. */
static int take_error(struct v1_object *object, struct json_value value)
{
	char *error = object->fields->error;

	return value.kind != JSON_STRING || json_decode(value, error, sizeof object->fields->error) < 0 ? -1 : 0;
}

static int take_most(struct v1_object *object, struct json_value value)
{
	return take_whole(value, UINT32_MAX, &object->fields->most) || object->fields->most == 0 ? -1 : 0;
}

/* ---- Of schedules */

static int take_whole_text(struct v1_object *object, struct json_value value)
{
	const char **text = object->field;

	*text = copy_string(object->request, value);
	return *text && **text ? 0 : -1;
}

static int take_overlap(struct v1_object *object, struct json_value value)
{
	/* As enum ww_overlap has them. */
	static const char *const words[] = {"allow", "skip", "wait"};

	for (int i = 0; i < 3; i++) {
		if (!json_is(value, words[i]))
			continue;
		object->fields->plan.overlap = i;
		return 0;
	}
	return -1;
}

static int take_time(struct v1_object *object, struct json_value value)
{
	struct duration_problem problem;
	char text[48];

	if (value.kind == JSON_NULL)
		return 0;
	return take_text(value, text, sizeof text) || !has_zone(text) || time_parse(text, object->field, &problem) ? -1
	                                                                                                           : 0;
}

static const char span_expected[] = "seconds, or a text such as \"90s\" or \"1.5h\"";
static const char count_expected[] = "a whole number, 0 to 4294967295";

static const char from_one[] = "a whole number from 1 on";
static const char time_expected[] = "a time with its zone, such as \"2026-12-01T09:00:00Z\"";

#define LIMIT(name) offsetof(struct v1_fields, limit.name)
#define SPEC(name) offsetof(struct v1_fields, spec.name)
#define PLAN(name) offsetof(struct v1_fields, plan.name)

static const struct {
	const char *name;
	take_fn *take;
	const char *expected;
	size_t field;
	unsigned of;
} members[] = {
    {"tube", take_tube, "1 to 200 of A-Z a-z 0-9 - + / ; . $ _ ( ), and no - at its beginning", 0, V1_OF_PUT},
    {"key", take_key, "a text of 1 to 200 bytes", 0, V1_OF_PUT},
    {"key_base64", take_key_base64, "1 to 200 bytes in base64", 0, V1_OF_PUT},
    {"group", take_group, "a text of 1 to 200 bytes", 0, V1_OF_PUT | V1_OF_SCHEDULE | V1_OF_LIMIT},
    {"group_base64", take_group_base64, "1 to 200 bytes in base64", 0, V1_OF_PUT | V1_OF_SCHEDULE | V1_OF_LIMIT},
    {"body", take_body, "a text", 0, V1_OF_PUT | V1_OF_SCHEDULE | V1_OF_REPORT},
    {"body_base64", take_body_base64, "bytes in base64", 0, V1_OF_PUT | V1_OF_SCHEDULE | V1_OF_REPORT},
    {"delay", take_span, span_expected, SPEC(due), V1_OF_PUT | V1_OF_MOVE | V1_OF_RELEASE},
    {"at", take_at, time_expected, 0, V1_OF_PUT | V1_OF_MOVE},
    {"priority", take_count, count_expected, SPEC(priority), V1_OF_PUT | V1_OF_SCHEDULE | V1_OF_RELEASE},
    {"run", take_run, "at least one second, as a number or as a text such as \"5m\"", SPEC(run),
        V1_OF_PUT | V1_OF_SCHEDULE},
    {"every", take_every, "0, or at least 0.001 seconds", SPEC(period), V1_OF_PUT},
    {"missed", take_missed, "\"once\", \"all\" or \"skip\"", 0, V1_OF_PUT | V1_OF_SCHEDULE},
    {"skip", take_span, span_expected, SPEC(skip), V1_OF_PUT | V1_OF_SCHEDULE},
    {"attempts", take_count, count_expected, SPEC(attempts), V1_OF_PUT | V1_OF_SCHEDULE},
    {"backoff", take_span, span_expected, SPEC(backoff), V1_OF_PUT | V1_OF_SCHEDULE},
    {"backoff_max", take_span, span_expected, SPEC(backoff_max), V1_OF_PUT | V1_OF_SCHEDULE},
    {"keep", take_span, span_expected, SPEC(keep), V1_OF_PUT | V1_OF_SCHEDULE},
    {"mode", take_mode, "\"replace\", \"if-absent\", \"keep-earlier\" or \"keep-later\"", 0, V1_OF_PUT},
    {"debounce", take_debounce, "at least 0.001 seconds", SPEC(key_span), V1_OF_PUT},
    {"unique", take_unique, "at least 0.001 seconds", SPEC(key_span), V1_OF_PUT},
    {"token", take_token, "the token of the lease, as a string", 0, V1_OF_END | V1_OF_REPORT},
    {"error", take_error, "a text", 0, V1_OF_RELEASE},
    {"tubes", take_tubes, "a list of 1 to 100 names of tubes", 0, V1_OF_RESERVE},
    {"wait", take_span, span_expected, offsetof(struct v1_fields, span), V1_OF_RESERVE},
    {"most", take_most, "a whole number from 1 on", 0, V1_OF_RESERVE | V1_OF_KICK},
    {"running", take_number, from_one, LIMIT(running), V1_OF_LIMIT},
    {"starts", take_number, from_one, LIMIT(starts), V1_OF_LIMIT},
    {"per", take_span, span_expected, LIMIT(per), V1_OF_LIMIT},
    {"burst", take_number, from_one, LIMIT(burst), V1_OF_LIMIT},
    {"each", take_truth, "true or false", offsetof(struct v1_fields, each), V1_OF_LIMIT},
    {"span", take_span, span_expected, offsetof(struct v1_fields, span), V1_OF_PAUSE},
    {"cron", take_whole_text, "an expression, such as \"0 3 * * *\" or \"@every 90m\"", PLAN(expression),
        V1_OF_SCHEDULE},
    {"zone", take_whole_text, "the name of a zone, such as \"Europe/Berlin\"", PLAN(zone), V1_OF_SCHEDULE},
    {"overlap", take_overlap, "\"allow\", \"skip\" or \"wait\"", 0, V1_OF_SCHEDULE},
    {"spread", take_span, span_expected, PLAN(spread), V1_OF_SCHEDULE},
    {"start", take_time, time_expected, PLAN(start), V1_OF_SCHEDULE},
    {"end", take_time, time_expected, PLAN(end), V1_OF_SCHEDULE},
    {"paused", take_truth, "true or false", PLAN(is_paused), V1_OF_SCHEDULE},
};

enum { MEMBERS = sizeof members / sizeof *members };

_Static_assert(MEMBERS <= 64, "v1_fields.seen has a bit for each");

static int find_member(struct json_value name, unsigned of)
{
	for (int i = 0; i < MEMBERS; i++)
		if (members[i].of & of && json_is(name, members[i].name))
			return i;
	return -1;
}

static void names_of(unsigned of, char *text, size_t room)
{
	size_t length = 0;

	for (int i = 0; i < MEMBERS; i++)
		if (members[i].of & of && length < room)
			length +=
			    (size_t)snprintf(text + length, room - length, "%s%s", length ? ", " : "", members[i].name);
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
	char names[300];

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
	for (int i = 0; i < MEMBERS; i++)
		if (strcmp(members[i].name, name) == 0)
			return (fields->seen >> i & 1) != 0;
	return 0;
}

/* Members that say the same in two ways. */
static int refuse_pairs(struct v1_request *request, const struct v1_fields *fields)
{
	static const char *const pairs[][2] = {{"key", "key_base64"}, {"group", "group_base64"},
	    {"body", "body_base64"}, {"delay", "at"}, {"mode", "debounce"}, {"mode", "unique"}, {"debounce", "unique"}};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		if (v1_has(fields, pairs[i][0]) && v1_has(fields, pairs[i][1]))
			return v1_problem(
			    request, 422, pairs[i][1], NULL, "give either %s or %s", pairs[i][0], pairs[i][1]);
	return 0;
}

static int read_object(struct v1_request *request, struct v1_fields *fields, const char *text, size_t size)
{
	struct v1_object object = {request, fields, NULL};
	struct json_value name;
	struct json_value value;
	size_t at = 0;
	int more;

	(void)ww_job_spec_default(&fields->spec);
	(void)ww_jobs_limit_default(&fields->limit);
	while ((more = json_next(text, size, &at, &name, &value)) > 0) {
		int i = find_member(name, request->operation->members);

		if (i < 0)
			return refuse_member(request, name);
		if (fields->seen >> i & 1)
			return v1_problem(request, 422, members[i].name, NULL, "it is given twice");
		fields->seen |= UINT64_C(1) << i;
		object.field = (char *)fields + members[i].field;
		if (members[i].take(&object, value) != 0)
			return v1_problem(request, 422, members[i].name, NULL, "this must be %s", members[i].expected);
	}
	if (more < 0)
		return v1_problem(request, 400, NULL, "send an object of JSON",
		    "the body is not an object of JSON: see byte %zu", (size_t)(text - request->in.data) + at);
	fields->spec.key = fields->key;
	fields->spec.tube = *fields->tube ? fields->tube : WW_TUBE_DEFAULT;
	return refuse_pairs(request, fields);
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

static int is_list(const struct buffer *in)
{
	size_t at = 0;

	while (at < in->size && strchr(" \t\r\n", in->data[at]))
		at++;
	return at < in->size && in->data[at] == '[';
}

int v1_read(struct v1_request *request, int is_list_allowed)
{
	request->count = 1;
	request->is_many = is_list_allowed && is_list(&request->in);
	if (request->is_many && count_objects(request, &request->count) != 0)
		return -1;
	request->fields = calloc(request->count, sizeof *request->fields);
	/* What a string stands for is no longer than the string with its quotes. */
	if (!request->fields || buffer_reserve(&request->decoded, request->in.size + 1) != 0)
		return v1_failed(request, WW_ENOMEM);
	if (request->is_many)
		return read_list(request);
	/* An operation that needs no member needs no object. */
	if (request->in.size == 0)
		return read_object(request, request->fields, "{}", 2);
	return read_object(request, request->fields, request->in.data, request->in.size);
}
