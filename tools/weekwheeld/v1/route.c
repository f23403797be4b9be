/* Finds the operation of a request, and takes what its path and its query say. */
#include <microhttpd.h>
#include <string.h>

#include "tools/common/number.h"
#include "tools/common/percent.h"
#include "tools/weekwheeld/v1/v1.h"

enum { SEGMENTS_MAX = 5, KEY_AT = 3 };

static const struct v1_operation *const tables[] = {v1_put_operations, v1_job_operations, v1_lease_operations,
    v1_look_operations, v1_limit_operations, v1_schedule_operations, v1_history_operations, v1_stream_operations};

enum { TABLES = sizeof tables / sizeof *tables };

struct segment {
	const char *at;
	size_t length;
};

static int is_word(struct segment segment, const char *word)
{
	return segment.length == strlen(word) && memcmp(segment.at, word, segment.length) == 0;
}

/* Split the path behind "/v1/". A key, which is the last segment, may have slashes. Returns how many segments there are. */
static int split(const char *path, struct segment segments[SEGMENTS_MAX])
{
	int count = 0;

	while (*path) {
		int is_last = count == SEGMENTS_MAX - 1 || (count == KEY_AT && is_word(segments[2], "keys"));
		size_t length = is_last ? strlen(path) : strcspn(path, "/");

		segments[count++] = (struct segment){path, length};
		path += length + (path[length] == '/');
	}
	return count;
}

static int matches(const char *pattern, const struct segment *segments, int count)
{
	struct segment wanted[SEGMENTS_MAX];
	int wanted_count = split(pattern, wanted);

	if (wanted_count != count)
		return 0;
	for (int i = 0; i < count; i++)
		if (*wanted[i].at != '*' && (wanted[i].length != segments[i].length ||
		                                memcmp(wanted[i].at, segments[i].at, segments[i].length) != 0))
			return 0;
	return 1;
}

/* Decode a segment. Returns its length, or -1 if it is longer than `room`. */
static long decode(struct segment segment, void *out, size_t room)
{
	const char *at = segment.at;
	char *bytes = out;
	size_t length = 0;

	while (at < segment.at + segment.length) {
		if (length == room)
			return -1;
		bytes[length++] = percent_take(&at, segment.at + segment.length);
	}
	return (long)length;
}

static int take_id(struct v1_request *request, struct segment segment)
{
	if (number_whole(segment.at, segment.length, 1, UINT64_MAX, &request->id) == 0)
		return 0;
	return v1_problem(request, 404, "id", NULL, "there is no such job: an id is a whole number");
}

static int take_tube(struct v1_request *request, struct segment segment)
{
	char name[WW_TUBE_MAX];
	long length = decode(segment, name, sizeof name);

	if (length > 0 && words_tube((struct span){name, name + length}, request->tube) == 0)
		return 0;
	return v1_problem(request, 404, "tube", NULL, "there is no such tube, and cannot be one of that name");
}

static int take_key(struct v1_request *request, struct segment segment)
{
	long length = decode(segment, request->key, WW_JOB_KEY_MAX);

	if (length <= 0)
		return v1_problem(request, 404, "key", NULL, "there is nothing of that key: it has 1 to 200 bytes");
	request->key_length = (size_t)length;
	return 0;
}

static int take_path(struct v1_request *request, const struct segment *segments, int count)
{
	int is_job = count > 1 && is_word(segments[0], "jobs");
	int is_tube = count > 1 && !is_job;

	if (is_job && take_id(request, segments[1]) != 0)
		return -1;
	if (is_tube && take_tube(request, segments[1]) != 0)
		return -1;
	return count > KEY_AT ? take_key(request, segments[KEY_AT]) : 0;
}

/* The path is right, and the method is not. */
static int refuse_method(struct v1_request *request, const struct segment *segments, int count)
{
	char methods[64] = "";

	for (size_t i = 0; i < TABLES; i++)
		for (const struct v1_operation *operation = tables[i]; operation->method; operation++) {
			size_t length = strlen(methods);

			if (matches(operation->path, segments, count) && length + 10 < sizeof methods)
				snprintf(methods + length, sizeof methods - length, "%s%s", length ? ", " : "",
				    operation->method);
		}
	if (*methods)
		return v1_problem(request, 405, NULL, NULL, "this path has the methods %s", methods);
	return v1_problem(request, 404, NULL, "see /v1/openapi.json", "there is no such path");
}

int v1_route(struct v1_request *request, const char *method, const char *path)
{
	struct segment segments[SEGMENTS_MAX];
	int count = split(path, segments);

	for (size_t i = 0; i < TABLES && count > 0; i++)
		for (const struct v1_operation *operation = tables[i]; operation->method; operation++)
			if (strcmp(operation->method, method) == 0 && matches(operation->path, segments, count)) {
				request->operation = operation;
				return take_path(request, segments, count);
			}
	return refuse_method(request, segments, count);
}

/* ---- The query */

static int take_text(struct v1_request *request, const char *name, const char *value, char *text, size_t room)
{
	long length = decode((struct segment){value, strlen(value)}, text, room - 1);

	if (length < 0 || memchr(text, 0, (size_t)length))
		return v1_problem(request, 400, name, NULL, "this must be a text of up to %zu bytes", room - 1);
	text[length] = 0;
	return 0;
}

/* Several, for stream.c. */
static int take_tubes(struct v1_request *request, const char *value)
{
	char names[V1_TUBES_MAX * 16];

	if (take_text(request, "tube", value, names, sizeof names) != 0)
		return -1;
	return buffer_format(&request->decoded, "%s,", names) == 0 ? 0 : v1_failed(request, WW_ENOMEM);
}

static int take_state(struct v1_request *request, const char *value)
{
	for (int state = WW_JOB_DELAYED; state <= WW_JOB_BURIED; state++)
		if (strcmp(value, job_states[state]) == 0) {
			request->filter.states |= 1u << state;
			return 0;
		}
	return v1_problem(request, 400, "state", NULL, "this must be delayed, ready, reserved or buried");
}

static int take_number(struct v1_request *request, const char *name, const char *value, uint64_t most, uint64_t *number)
{
	if (number_whole(value, strlen(value), 1, most, number) == 0)
		return 0;
	return v1_problem(
	    request, 400, name, NULL, "this must be a whole number from 1 to %llu", (unsigned long long)most);
}

static const struct {
	const char *name;
	unsigned bit;
} arguments[] = {
    {"tube", V1_BY_TUBE},
    {"prefix", V1_BY_PREFIX},
    {"state", V1_BY_STATE},
    {"after", V1_BY_AFTER},
    {"limit", V1_BY_LIMIT},
    {"body", V1_BY_BODY},
    {"span", V1_BY_SPAN},
    {"count", V1_BY_COUNT},
    {"expression", V1_BY_EXPRESSION},
    {"zone", V1_BY_ZONE},
};

enum { ARGUMENTS = sizeof arguments / sizeof *arguments };

/* The operation does not have it: say what it has. */
static int refuse_argument(struct v1_request *request, const char *name)
{
	char names[128] = "";

	for (size_t i = 0; i < ARGUMENTS; i++) {
		size_t length = strlen(names);

		if (request->operation->members & arguments[i].bit)
			snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", arguments[i].name);
	}
	if (!*names)
		return v1_problem(request, 400, name, "leave it out", "this path has no arguments");
	return v1_problem(request, 400, name, NULL, "there is no such argument here; there are %s", names);
}

static int take_truth(struct v1_request *request, const char *name, const char *value, int *is_true)
{
	*is_true = strcmp(value, "true") == 0;
	if (*is_true || strcmp(value, "false") == 0)
		return 0;
	return v1_problem(request, 400, name, NULL, "this must be true or false");
}

/* The operation has the argument, which was not given before, unless it may be given several times. */
static int note_argument(struct v1_request *request, const char *name)
{
	unsigned many = V1_BY_STATE | (request->operation->members & V1_OF_EVENTS ? V1_BY_TUBE : 0);
	unsigned bit = 0;

	for (size_t i = 0; i < ARGUMENTS; i++)
		if (strcmp(name, arguments[i].name) == 0)
			bit = request->operation->members & arguments[i].bit;
	if (!bit)
		return refuse_argument(request, name);
	if (request->arguments & bit & ~many)
		return v1_problem(request, 400, name, NULL, "it is given twice");
	request->arguments |= bit;
	return 0;
}

int v1_argument(struct v1_request *request, const char *name, const char *value)
{
	uint64_t number = 0;
	int error = 0;

	if (note_argument(request, name) != 0)
		return -1;
	if (!value)
		value = "";
	if (strcmp(name, "tube") == 0 && request->operation->members & V1_OF_EVENTS) {
		error = take_tubes(request, value);
	} else if (strcmp(name, "tube") == 0) {
		error = take_tube(request, (struct segment){value, strlen(value)});
		request->filter.tube = request->tube;
	} else if (strcmp(name, "prefix") == 0) {
		error = take_key(request, (struct segment){value, strlen(value)});
		request->filter.prefix = request->key;
		request->filter.prefix_length = request->key_length;
	} else if (strcmp(name, "state") == 0) {
		error = take_state(request, value);
	} else if (strcmp(name, "after") == 0) {
		error = take_number(request, name, value, UINT64_MAX, &request->filter.after);
	} else if (strcmp(name, "limit") == 0) {
		error = take_number(request, name, value, PROTOCOL_LIST_MAX, &number);
		request->limit = (size_t)number;
	} else if (strcmp(name, "count") == 0) {
		error = take_number(request, name, value, PROTOCOL_FORECAST_MAX, &number);
		request->limit = (size_t)number;
	} else if (strcmp(name, "span") == 0) {
		error = take_number(request, name, value, UINT32_MAX, &number);
		request->span = number * WW_SECOND;
	} else if (strcmp(name, "body") == 0) {
		error = take_truth(request, name, value, &request->with_body);
	} else if (strcmp(name, "expression") == 0) {
		error = take_text(request, name, value, request->expression, sizeof request->expression);
	} else {
		error = take_text(request, name, value, request->zone, sizeof request->zone);
	}
	return error;
}
