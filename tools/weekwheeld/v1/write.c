/* Writes the answers of /v1: jobs, leases, tubes, numbers, and problems (RFC 9457). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/common/base64.h"
#include "tools/common/duration.h"
#include "tools/common/utf8.h"
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

static void add_quoted(struct v1_request *request, const void *text, size_t size)
{
	if (!request->status)
		return;
	if (buffer_reserve(&request->out, JSON_QUOTED(size)) != 0)
		lost(request);
	else
		request->out.size += json_quote(request->out.data + request->out.size, text, size);
}

void v1_add_string(struct v1_request *request, const char *text)
{
	add_quoted(request, text, strlen(text));
}

void v1_listed(struct v1_request *request, size_t count, uint64_t next)
{
	v1_add(request, next ? "],\"next\":\"%" PRIu64 "\"}" : "],\"next\":null}", next);
	request->is_partial = count == 0 && next;
	request->filter.after = next;
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

/* ---- Members */

void v1_add_seconds(struct v1_request *request, const char *name, uint64_t ns)
{
	char text[DURATION_TEXT];

	v1_add(request, ",\"%s\":%s", name, duration_seconds(text, ns));
}

int v1_json_time(struct buffer *out, const char *name, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / WW_SECOND);
	struct tm utc;
	char text[32];

	if (!unix_ns || !gmtime_r(&seconds, &utc) || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
		return buffer_format(out, "\"%s\":null", name);
	return buffer_format(out, "\"%s\":\"%s.%03uZ\"", name, text, (unsigned)(unix_ns % WW_SECOND / WW_MILLISECOND));
}

/* NUL is no control character that programs expect in a text. */
static int is_text(const char *bytes, size_t size)
{
	const char *at = bytes;
	const char *end = bytes + size;

	while (at < end) {
		/* Most of a body of megabytes. */
		for (; at < end && (signed char)*at > 0; at++)
			;
		if (at < end && (*at == 0 || utf8_take(&at, end) < 0))
			return 0;
	}
	return 1;
}

int v1_json_bytes(struct buffer *out, const char *name, const void *bytes, size_t size)
{
	int is_plain = size == 0 || is_text(bytes, size);

	if (buffer_format(out, is_plain ? "\"%s\":" : "\"%s_base64\":\"", name) != 0 ||
	    buffer_reserve(out, is_plain ? JSON_QUOTED(size) : BASE64_SIZE(size) + 2) != 0)
		return -1;
	if (is_plain) {
		out->size += json_quote(out->data + out->size, bytes, size);
		return 0;
	}
	out->size += base64_encode(out->data + out->size, bytes, size);
	return buffer_append(out, "\"", 1);
}

void v1_add_time(struct v1_request *request, const char *name, uint64_t unix_ns)
{
	v1_add(request, ",");
	if (request->status && v1_json_time(&request->out, name, unix_ns) != 0)
		lost(request);
}

void v1_add_bytes_as(struct v1_request *request, const char *name, const void *bytes, size_t size)
{
	v1_add(request, ",");
	if (request->status && v1_json_bytes(&request->out, name, bytes, size) != 0)
		lost(request);
}

void v1_moment_now(struct ww_jobs *jobs, struct v1_moment *moment)
{
	if (ww_jobs_now(jobs, WW_JOB_WALL, &moment->wall) != WW_OK)
		moment->wall = time_now();
	if (ww_jobs_now(jobs, 0, &moment->elapsed) != WW_OK)
		moment->elapsed = 0;
}

/* A time of the store's elapsed clock as Unix time. */
static uint64_t as_unix(uint64_t elapsed, const struct v1_moment *now)
{
	if (elapsed < now->elapsed && now->elapsed - elapsed > now->wall)
		return 0;
	return now->wall + elapsed - now->elapsed;
}

static void add_head(struct v1_request *request, uint64_t id, const char *tube, const void *key, size_t key_length)
{
	v1_add(request, "{\"id\":\"%" PRIu64 "\",\"tube\":", id);
	v1_add_string(request, tube);
	if (key_length)
		v1_add_bytes_as(request, "key", key, key_length);
}

void v1_write_limit(struct v1_request *request, const struct ww_limit_info *info)
{
	v1_add(request, "{\"tube\":");
	v1_add_string(request, info->ref.tube);
	if (info->ref.group_length)
		v1_add_bytes_as(request, "group", info->ref.group, info->ref.group_length);
	v1_add(request, ",\"each\":%s,\"running\":%" PRIu64 ",\"starts\":%" PRIu64, info->ref.each ? "true" : "false",
	    info->limit.running, info->limit.starts);
	v1_add_seconds(request, "per", info->limit.per);
	v1_add(request, ",\"burst\":%" PRIu64 ",\"now_running\":%" PRIu64 ",\"now_held\":%" PRIu64, info->limit.burst,
	    info->running, info->held);
	v1_add_seconds(request, "left", info->left);
	v1_add(request, "}");
}

void v1_write_job(
    struct v1_request *request, const struct ww_job_info *info, const struct v1_moment *now, int with_body)
{
	add_head(request, info->id, info->tube, info->key, info->key_length);
	if (info->group_length)
		v1_add_bytes_as(request, "group", info->group, info->group_length);
	v1_add(request, ",\"version\":%" PRIu64 ",\"state\":\"%s\",\"priority\":%" PRIu32, info->version,
	    protocol_states[info->state], info->priority);
	if (info->state != WW_JOB_BURIED)
		v1_add_time(request, "due", info->flags & WW_JOB_WALL ? info->due : as_unix(info->due, now));
	v1_add_seconds(request, "left", info->left);
	v1_add(request, ",\"clock\":\"%s\"", info->flags & WW_JOB_WALL ? "wall" : "elapsed");
	v1_add_time(request, "created", info->created);
	v1_add_seconds(request, "run", info->run);
	v1_add_seconds(request, "every", info->period);
	v1_add_seconds(request, "backoff", info->backoff);
	v1_add(request,
	    ",\"attempts\":%" PRIu32 ",\"reserves\":%" PRIu32 ",\"timeouts\":%" PRIu32 ",\"releases\":%" PRIu32
	    ",\"buries\":%" PRIu32 ",\"kicks\":%" PRIu32 ",\"error\":",
	    info->attempts, info->reserves, info->timeouts, info->releases, info->buries, info->kicks);
	v1_add_string(request, info->error);
	v1_add(request, ",\"length\":%zu", info->body_length);
	if (with_body)
		v1_add_bytes_as(request, "body", info->body ? info->body : "", info->body ? info->body_length : 0);
	v1_add(request, "}");
}

void v1_write_lease(struct v1_request *request, const struct ww_lease *lease, const struct v1_moment *now)
{
	add_head(request, lease->id, lease->tube, lease->key, lease->key_length);
	v1_add(request,
	    ",\"token\":\"%" PRIu64 "\",\"attempt\":%" PRIu32 ",\"attempts\":%" PRIu32 ",\"priority\":%" PRIu32,
	    lease->token, lease->attempt, lease->attempts, lease->priority);
	v1_add_time(request, "ends", as_unix(lease->ends, now));
	v1_add_time(request, "created", lease->created);
	if (lease->missed)
		v1_add(request, ",\"missed\":%" PRIu64, lease->missed);
	v1_add_bytes_as(request, "body", lease->body ? lease->body : "", lease->body ? lease->body_length : 0);
	v1_add(request, "}");
}

static void add_counts(struct v1_request *request, const struct ww_tube_stats *tube)
{
	v1_add(request,
	    "\"delayed\":%" PRIu64 ",\"ready\":%" PRIu64 ",\"urgent\":%" PRIu64 ",\"reserved\":%" PRIu64
	    ",\"buried\":%" PRIu64 ",\"puts\":%" PRIu64 ",\"finished\":%" PRIu64,
	    tube->delayed, tube->ready, tube->urgent, tube->reserved, tube->buried, tube->puts, tube->finished);
}

void v1_write_tube(struct v1_request *request, const struct ww_tube_stats *tube)
{
	v1_add(request, "{\"name\":");
	v1_add_string(request, tube->name);
	v1_add(request, ",");
	add_counts(request, tube);
	v1_add_seconds(request, "pause", tube->pause);
	v1_add_seconds(request, "pause_left", tube->pause_left);
	v1_add(request, "}");
}

void v1_write_stats(struct v1_request *request, const struct ww_jobs_stats *stats)
{
	v1_add(request, "{");
	add_counts(request, &stats->all);
	v1_add(request,
	    ",\"tubes\":%" PRIu64 ",\"timeouts\":%" PRIu64 ",\"accepted\":%" PRIu64 ",\"ended\":%" PRIu64
	    ",\"memory\":%" PRIu64 ",\"disk\":%" PRIu64,
	    stats->tubes, stats->timeouts, stats->accepted, stats->ended, stats->bytes, stats->disk);
	v1_add_seconds(request, "oldest", stats->oldest);
	v1_add(request, ",\"fault\":");
	if (stats->fault == WW_OK)
		v1_add(request, "null");
	else
		v1_add_string(request, stats->fault_text);
	v1_add(request, ",\"read_only\":%s}", request->who.token ? "false" : "true");
}
