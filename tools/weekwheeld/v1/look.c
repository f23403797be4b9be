/* Lists, numbers and tubes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/page/files.h"
#include "tools/weekwheeld/v1/v1.h"

enum { LIMIT = 100, SPANS = 24, KICK_MAX = 10000 };

static int prepare_list(struct v1_request *request)
{
	if (!v1_may(request, request->filter.tube))
		return v1_refuse_tube(request, request->filter.tube);
	if (request->limit == 0)
		request->limit = LIMIT;
	if (request->with_body && request->limit > LIMIT)
		return v1_problem(request, 400, "limit", NULL, "with bodies a page has %d jobs at most", LIMIT);
	return 0;
}

struct v1_listing {
	struct v1_request *request;
	struct field_moment now;
	size_t count;
};

static int list_one(const struct ww_job_info *info, void *context)
{
	struct v1_listing *listing = context;

	if (store_hides(info->tube))
		return 0;
	if (listing->count++ > 0)
		v1_add(listing->request, ",");
	v1_write(listing->request, job_fields, listing->request->with_body ? JOB_SHOWN | JOB_BODY : JOB_SHOWN, info,
	    &listing->now);
	return !listing->request->status;
}

static int run_list(struct v1_request *request)
{
	struct v1_listing listing = {.request = request};
	uint64_t next = 0;
	int error;

	v1_moment_now(v1_jobs(request), &listing.now);
	v1_add(request, "{\"jobs\":[");
	error = ww_jobs_list(v1_jobs(request), &request->filter, request->limit, list_one, &listing, &next);
	return v1_listed(request, error, listing.count, next);
}

static int run_stats(struct v1_request *request)
{
	struct ww_jobs_stats stats;
	int error = store_stats(v1_jobs(request), &stats);

	if (error >= 0)
		v1_write_stats(request, &stats);
	return error;
}

static int prepare_stats(struct v1_request *request)
{
	return v1_may(request, "") ? 0 : v1_refuse_tube(request, "any");
}

struct tubes_found {
	struct v1_request *request;
	struct buffer stats; /* of each */
};

static int tubes_one(const struct ww_tube_stats *tube, void *context)
{
	struct tubes_found *found = context;

	if (store_hides(tube->name) || !v1_may(found->request, tube->name))
		return 0;
	return buffer_append(&found->stats, tube, sizeof *tube);
}

static void write_tube(struct v1_request *request, const struct ww_tube_stats *stats)
{
	struct v1_tube tube = {.stats = *stats};

	tube.unknown_code = tube_unknown(request->task.server, stats, &tube.lowest_unknown_code);
	v1_write(request, v1_tube_fields, 0, &tube, NULL);
}

static int run_tubes(struct v1_request *request)
{
	struct tubes_found found = {.request = request};
	struct ww_tube_stats stats;
	int error = ww_jobs_tubes(v1_jobs(request), tubes_one, &found);

	v1_add(request, "{\"tubes\":[");
	for (size_t at = 0; at < found.stats.size; at += sizeof stats) {
		memcpy(&stats, found.stats.data + at, sizeof stats);
		v1_add(request, at ? "," : "");
		write_tube(request, &stats);
	}
	v1_add(request, "]}");
	buffer_free(&found.stats);
	return error == -1 ? WW_ENOMEM : error;
}

static int run_tube(struct v1_request *request)
{
	struct ww_tube_stats stats;
	int error = ww_jobs_tube(v1_jobs(request), request->tube, &stats);

	if (error >= 0)
		write_tube(request, &stats);
	return error;
}

static int run_pause(struct v1_request *request)
{
	return v1_end(request, ww_jobs_pause(v1_jobs(request), request->tube, request->fields->span));
}

static int prepare_pause(struct v1_request *request)
{
	if (v1_prepare_tube_object(request) != 0)
		return -1;
	if (request->fields->span == 0)
		return v1_problem(request, 422, "span", NULL, "say how long: seconds, or a text such as \"1.5h\"");
	return 0;
}

static int run_resume(struct v1_request *request)
{
	return v1_end(request, ww_jobs_pause(v1_jobs(request), request->tube, 0));
}

static int run_kick(struct v1_request *request)
{
	uint64_t count = 0;
	uint64_t most = request->fields->most ? request->fields->most : 1;
	int error = ww_jobs_kick(v1_jobs(request), request->tube, most < KICK_MAX ? most : KICK_MAX, &count);

	v1_add(request, "{\"kicked\":%" PRIu64 "}", count);
	return error == WW_ENOTFOUND ? WW_OK : error;
}

static int prepare_forecast(struct v1_request *request)
{
	if (!v1_may(request, request->filter.tube))
		return v1_refuse_tube(request, request->filter.tube);
	if (request->limit == 0)
		request->limit = SPANS;
	if (request->span == 0)
		request->span = 3600 * WW_SECOND;
	return 0;
}

static int run_forecast(struct v1_request *request)
{
	struct server *server = request->task.server;
	uint64_t *counts = calloc(request->limit, sizeof *counts);
	int error = WW_ENOMEM;

	if (counts)
		error = ww_jobs_forecast(v1_jobs(request), request->filter.tube, request->span, counts, request->limit);
	v1_add(request, "{\"span\":%" PRIu64 ",\"counts\":[", request->span / WW_SECOND);
	for (size_t i = 0; error >= 0 && i < request->limit; i++)
		v1_add(request, "%s%" PRIu64, i ? "," : "", counts[i]);
	v1_add(request, "],\"pace\":%.6f}", (double)counts_pace(&server->counts, store_now(server)) / 60);
	free(counts);
	return error;
}

/* Patterns have no byte that JSON would quote: tube_are_patterns. */
static void add_grant(struct v1_request *request, const struct grant *grant)
{
	const char *comma = "";

	v1_add(request, "{\"rights\":[");
	for (unsigned right = RIGHT_READ; right <= RIGHT_ADMIN; right <<= 1)
		if (grant->rights & right) {
			v1_add(request, "%s\"%s\"", comma, tokens_right_name(right));
			comma = ",";
		}
	v1_add(request, "],\"tubes\":[");
	for (const char *at = grant->patterns, *end; at; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, ',');
		v1_add(request, "%s\"%.*s\"", at == grant->patterns ? "" : ",", (int)(end - at), at);
	}
	v1_add(request, "]}");
}

/* Without tokens, everybody may look. */
static int run_token(struct v1_request *request)
{
	static struct grant everybody = {RIGHT_READ, "*"};
	static const struct token nobody = {.grants = &everybody, .grant_count = 1};
	const struct token *token = request->who.token ? request->who.token : &nobody;

	v1_add(request, "{\"name\":");
	if (token->name)
		v1_add_string(request, token->name);
	else
		v1_add(request, "null");
	v1_add(request, ",\"grants\":[");
	for (size_t i = 0; i < token->grant_count; i++) {
		v1_add(request, i ? "," : "");
		add_grant(request, &token->grants[i]);
	}
	v1_add(request, "]}");
	return WW_OK;
}

static int run_openapi(struct v1_request *request)
{
	v1_add_bytes(request, openapi_json, openapi_json_size);
	return WW_OK;
}

const struct v1_operation v1_look_operations[] = {
    {"GET", "jobs", RIGHT_READ, V1_BY_TUBE | V1_BY_PREFIX | V1_BY_STATE | V1_BY_AFTER | V1_BY_LIMIT | V1_BY_BODY, 0,
        prepare_list, run_list},
    {"GET", "tubes", RIGHT_READ, 0, 0, NULL, run_tubes},
    {"GET", "tubes/*", RIGHT_READ, 0, 0, v1_prepare_tube, run_tube},
    {"POST", "tubes/*/pause", RIGHT_ADMIN, V1_OF_PAUSE, 1, prepare_pause, run_pause},
    {"POST", "tubes/*/resume", RIGHT_ADMIN, 0, 1, v1_prepare_tube, run_resume},
    {"POST", "tubes/*/kick", RIGHT_WORK, V1_OF_KICK, 1, v1_prepare_tube_object, run_kick},
    {"GET", "stats", RIGHT_READ, 0, 0, prepare_stats, run_stats},
    {"GET", "forecast", RIGHT_READ, V1_BY_TUBE | V1_BY_SPAN | V1_BY_COUNT, 0, prepare_forecast, run_forecast},
    {"GET", "token", 0, 0, 0, NULL, run_token},
    {"GET", "openapi.json", 0, 0, 0, NULL, run_openapi},
    {NULL, NULL, 0, 0, 0, NULL, NULL},
};
