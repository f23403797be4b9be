/* Writes the answers of /v1: jobs, leases, tubes, numbers, and problems (RFC 9457). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/weekwheeld/v1/v1.h"

/* Without memory the answer is gone, and serve.c says so. */
static void lost(struct v1_request *request)
{
	buffer_free(&request->out);
	request->status = 0;
}

void v1_add_bytes(struct v1_request *request, const char *text, size_t size)
{
	if (request->status && buffer_append(&request->out, text, size) != 0)
		lost(request);
}

void v1_add(struct v1_request *request, const char *format, ...)
{
	char text[512];
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	v1_add_bytes(request, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

void v1_add_string(struct v1_request *request, const char *text)
{
	if (request->status && buffer_quote(&request->out, text, strlen(text)) != 0)
		lost(request);
}

int v1_listed(struct v1_request *request, int error, size_t count, uint64_t next)
{
	if (error < 0)
		return error;
	v1_add(request, next ? "],\"next\":\"%" PRIu64 "\"}" : "],\"next\":null}", next);
	request->is_partial = count == 0 && next;
	request->filter.after = next;
	return WW_OK;
}

/* ---- Problems */

static const char *title_of(unsigned status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 409:
		return "Conflict";
	case 412:
		return "Precondition Failed";
	case 413:
		return "Content Too Large";
	case 415:
		return "Unsupported Media Type";
	case 422:
		return "Unprocessable Content";
	case 429:
		return "Too Many Requests";
	case 503:
		return "Service Unavailable";
	case 507:
		return "Insufficient Storage";
	default:
		return "Internal Server Error";
	}
}

static void write_problem(
    struct v1_request *request, unsigned status, const char *field, const char *remedy, const char *detail)
{
	v1_add(
	    request, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u,\"detail\":", title_of(status), status);
	v1_add_string(request, detail);
	if (field) {
		v1_add(request, ",\"field\":");
		v1_add_string(request, field);
	}
	if (request->at)
		v1_add(request, ",\"index\":%zu", request->at - 1);
	if (remedy) {
		v1_add(request, ",\"remedy\":");
		v1_add_string(request, remedy);
	}
	v1_add(request, "}");
}

int v1_problem(
    struct v1_request *request, unsigned status, const char *field, const char *remedy, const char *format, ...)
{
	char detail[512];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(detail, sizeof detail, format, arguments);
	va_end(arguments);
	buffer_drop(&request->out, request->out.size);
	request->status = status;
	request->type = "application/problem+json";
	request->etag = 0;
	write_problem(request, status, field, remedy, detail);
	return -1;
}

int v1_not_a_request(struct v1_request *request, const char *field, const char *tube)
{
	return v1_problem(request, 422, field, "see weekwheeld(1), \"DELIVERY OVER HTTP\"",
	    "jobs of the tube %s are pushed, and %s", tube,
	    strcmp(field, "body") == 0 ? "this body is not a request" : "a request takes no such header from a job");
}

static const struct failure {
	int error;
	unsigned status;
	const char *field;
	const char *detail; /* NULL: the sentence of the error */
	const char *remedy;
} failures[] = {
    {WW_ENOTFOUND, 404, NULL, "there is no such job or tube", NULL},
    {WW_ESTALE, 412, NULL, "the job has another version, or the lease has ended",
        "get the job again, or give up what the lease was for"},
    {WW_EINUSE, 409, NULL, "the job is reserved", "wait until its lease ends"},
    {WW_EINVAL, 409, NULL, "the job is buried and has no due time", "kick it first"},
    {WW_ETOOBIG, 413, "body", "the body is longer than --max-job-size allows", NULL},
    {WW_EBACKWARDS, 422, "at", "the time has passed", NULL},
    {WW_EOVERFLOW, 422, "at", "the due time is too far away", NULL},
    {WW_EFULL, 507, NULL, NULL, "jobs can be reserved and deleted; new ones are taken when there is room"},
    {WW_ENOMEM, 503, NULL, NULL, NULL},
    {WW_EAGAIN, 503, NULL, NULL, "try again"},
    {WW_ECLOSED, 503, NULL, "the server ends", "try again"},
};

static struct failure failure_of(int error)
{
	struct failure failure = {error, 500, NULL, NULL, NULL};

	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
		if (failures[i].error == error)
			failure = failures[i];
	if (!failure.detail)
		failure.detail = ww_strerror(error);
	return failure;
}

int v1_failed_of(struct v1_request *request, int error, const char *of)
{
	struct failure failure = failure_of(error);

	if (error == WW_ENOTFOUND || error == WW_ESTALE)
		return v1_problem(request, failure.status, NULL, error == WW_ESTALE ? "get it again" : NULL,
		    error == WW_ESTALE ? "the %s has another version" : "there is no such %s", of);
	return v1_failed(request, error);
}

int v1_failed(struct v1_request *request, int error)
{
	struct failure failure = failure_of(error);

	return v1_problem(request, failure.status, failure.field, failure.remedy, "%s", failure.detail);
}

void v1_write_failure(struct v1_request *request, int error)
{
	struct failure failure = failure_of(error);

	write_problem(request, failure.status, failure.field, failure.remedy, failure.detail);
}

/* ---- Objects */

void v1_add_time(struct v1_request *request, const char *name, uint64_t unix_ns)
{
	v1_add(request, ",");
	if (request->status && field_write_time(&request->out, name, unix_ns, 0) != 0)
		lost(request);
}

void v1_moment_now(struct ww_jobs *jobs, struct field_moment *moment)
{
	*moment = (struct field_moment){0};
	if (ww_jobs_now(jobs, WW_JOB_WALL, &moment->wall) != WW_OK)
		moment->wall = wall_now();
	(void)ww_jobs_now(jobs, 0, &moment->elapsed);
}

void v1_write_members(struct v1_request *request, const struct field *fields, uint32_t where, const void *from,
    const struct field_moment *now)
{
	if (request->status && field_write(&request->out, fields, where, from, FIELD_PLAIN, now) != 0)
		lost(request);
}

void v1_write(struct v1_request *request, const struct field *fields, uint32_t where, const void *from,
    const struct field_moment *now)
{
	v1_add(request, "{");
	v1_write_members(request, fields, where, from, now);
	v1_add(request, "}");
}

#define TUBE(name) FIELD_PLACE(struct v1_tube, stats.name)

const struct field v1_tube_fields[] = {
    {"name", FIELD_TEXT, .out = TUBE(name)},
    {"delayed", FIELD_COUNT, .out = TUBE(delayed)},
    {"ready", FIELD_COUNT, .out = TUBE(ready)},
    {"urgent", FIELD_COUNT, .out = TUBE(urgent)},
    {"reserved", FIELD_COUNT, .out = TUBE(reserved)},
    {"buried", FIELD_COUNT, .out = TUBE(buried)},
    {"puts", FIELD_COUNT, .out = TUBE(puts)},
    {"finished", FIELD_COUNT, .out = TUBE(finished)},
    {"pause", FIELD_SPAN, .out = TUBE(pause)},
    {"pause_left", FIELD_SPAN, .out = TUBE(pause_left)},
    {"unknown_code", FIELD_COUNT, .out = FIELD_PLACE(struct v1_tube, unknown_code), .flags = FIELD_OPTIONAL,
        .since = "0.2", .says = "Ready jobs whose code is above that of every worker."},
    {"lowest_unknown_code", FIELD_COUNT, .out = FIELD_PLACE(struct v1_tube, lowest_unknown_code),
        .flags = FIELD_OPTIONAL, .since = "0.2", .says = "The lowest of their codes."},
    {.name = NULL},
};

#define STATS(name) FIELD_PLACE(struct ww_jobs_stats, name)

static const struct field stats_fields[] = {
    {"delayed", FIELD_COUNT, .out = STATS(all.delayed)},
    {"ready", FIELD_COUNT, .out = STATS(all.ready)},
    {"urgent", FIELD_COUNT, .out = STATS(all.urgent)},
    {"reserved", FIELD_COUNT, .out = STATS(all.reserved)},
    {"buried", FIELD_COUNT, .out = STATS(all.buried)},
    {"puts", FIELD_COUNT, .out = STATS(all.puts)},
    {"finished", FIELD_COUNT, .out = STATS(all.finished)},
    {"tubes", FIELD_COUNT, .out = STATS(tubes)},
    {"timeouts", FIELD_COUNT, .out = STATS(timeouts)},
    {"expired", FIELD_COUNT, .out = STATS(expired)},
    {"accepted", FIELD_COUNT, .out = STATS(accepted)},
    {"ended", FIELD_COUNT, .out = STATS(ended)},
    {"memory", FIELD_COUNT, .out = STATS(bytes)},
    {"disk", FIELD_COUNT, .out = STATS(disk)},
    {"oldest", FIELD_SPAN, .out = STATS(oldest)},
    {.name = NULL},
};

void v1_write_stats(struct v1_request *request, const struct ww_jobs_stats *stats)
{
	v1_add(request, "{");
	v1_write_members(request, stats_fields, 0, stats, NULL);
	v1_add(request, ",\"fault\":");
	if (stats->fault == WW_OK)
		v1_add(request, "null");
	else
		v1_add_string(request, stats->fault_text);
	v1_add(request, ",\"read_only\":%s}", request->who.token ? "false" : "true");
}
