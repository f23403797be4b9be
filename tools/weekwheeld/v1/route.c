/* Finds the operation of a request, and takes what its path and its query say. */
#include <microhttpd.h>
#include <string.h>
#include <strings.h>

#include "tools/common/number.h"
#include "tools/common/percent.h"
#include "tools/weekwheeld/v1/v1.h"

enum { SEGMENTS_MAX = 4 };

static const struct v1_operation *const tables[] = {
    v1_put_operations, v1_job_operations, v1_lease_operations, v1_look_operations, v1_limit_operations};

enum { TABLES = sizeof tables / sizeof *tables };

struct segment {
	const char *at;
	size_t length;
};

/* Split the path behind "/v1/". The last segment, a key, may have slashes. Returns how many segments there are. */
static int split(const char *path, struct segment segments[SEGMENTS_MAX])
{
	int count = 0;

	while (*path) {
		size_t length = count == SEGMENTS_MAX - 1 ? strlen(path) : strcspn(path, "/");

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
		return v1_problem(request, 404, "key", NULL, "there is no such job: a key has 1 to 200 bytes");
	request->key_length = (size_t)length;
	return 0;
}

static int take_path(struct v1_request *request, const struct segment *segments, int count)
{
	int is_job = count > 1 && memcmp(segments[0].at, "jobs", 4) == 0;
	int is_tube = count > 1 && !is_job;

	if (is_job && take_id(request, segments[1]) != 0)
		return -1;
	if (is_tube && take_tube(request, segments[1]) != 0)
		return -1;
	return count == 4 ? take_key(request, segments[3]) : 0;
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

static int take_state(struct v1_request *request, const char *value)
{
	for (int state = WW_JOB_DELAYED; state <= WW_JOB_BURIED; state++)
		if (strcmp(value, protocol_states[state]) == 0) {
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

int v1_argument(struct v1_request *request, const char *name, const char *value)
{
	uint64_t number = 0;
	int error = 0;

	if (!value)
		value = "";
	if (strcmp(name, "tube") == 0) {
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
		request->with_body = strcmp(value, "true") == 0;
	} else {
		error = v1_problem(request, 400, name, NULL,
		    "there is no such argument; there are tube, prefix, state, after, limit, body, span and count");
	}
	return error;
}
