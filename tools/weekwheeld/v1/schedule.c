/* Schedules, and what an expression of cron means. */
#include "tools/weekwheeld/v1/v1.h"

#ifdef HAVE_SCHEDULE
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "tools/weekwheeld/engine/schedules.h"
#include "weekwheel/schedule.h"

enum { LIMIT = 100, TIMES = 10 };

static struct ww_schedule *all_of(const struct v1_request *request)
{
	return schedules_all(request->task.server);
}

/* The path's key as the name of a schedule. Without text, one that no schedule has. */
static const char *name_of(const struct v1_request *request, char name[WW_JOB_KEY_MAX + 1])
{
	memcpy(name, request->key, request->key_length);
	name[request->key_length] = 0;
	return memchr(request->key, 0, request->key_length) ? "" : name;
}

/* Answer an error, if it is one, in words of schedules. Returns 0. */
static int judge(struct v1_request *request, int error)
{
	/* A name that no schedule can have is unknown. */
	if (error < 0)
		(void)v1_failed_of(request, error == WW_EINVAL ? WW_ENOTFOUND : error, "schedule");
	return WW_OK;
}

/* ---- Times of a zone */

struct v1_times {
	struct v1_request *request;
	int count;
};

static void add_local(uint64_t time, int32_t offset, void *context)
{
	struct v1_times *times = context;
	time_t seconds = (time_t)(time / WW_SECOND) + offset;
	int minutes = (offset < 0 ? -offset : offset) / 60;
	char text[32];
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		return;
	v1_add(times->request, "%s\"%s%c%02d:%02d\"", times->count++ ? "," : "", text, offset < 0 ? '-' : '+',
	    minutes / 60, minutes % 60);
}

/* ---- Looking */

struct v1_schedules {
	struct v1_request *request;
	size_t count;
	int is_one; /* with its times and its body */
};

static void add_times(struct v1_request *request, const struct ww_schedule_info *info)
{
	struct v1_times times = {request, 0};

	v1_add(request, ",");
	v1_write_members(request, job_schedule_times, 0, info, NULL);
	v1_add(request, ",\"times\":[");
	schedules_times(info, add_local, &times);
	v1_add(request, "]");
	request->etag = info->version;
}

static int add_one(const struct ww_schedule_info *info, void *context)
{
	struct v1_schedules *schedules = context;
	struct v1_request *request = schedules->request;

	if (!v1_may(request, info->spec.tube))
		return 0;
	v1_add(request, schedules->count++ ? ",{" : "{");
	v1_write_members(request, job_schedule_fields, schedules->is_one ? JOB_BODY : JOB_SHOWN, info, NULL);
	if (schedules->is_one) {
		add_times(request, info);
	} else {
		v1_add(request, ",");
		v1_write_members(request, job_schedule_times, 0, info, NULL);
	}
	v1_add(request, "}");
	return !request->status;
}

static int prepare_list(struct v1_request *request)
{
	if (!request->filter.tube)
		return 0;
	return v1_may(request, request->filter.tube) ? 0 : v1_refuse_tube(request, request->filter.tube);
}

static int run_list(struct v1_request *request)
{
	struct v1_schedules schedules = {.request = request};
	uint64_t next = request->filter.after;
	int error;

	v1_add(request, "{\"schedules\":[");
	error = ww_schedule_list(
	    all_of(request), request->filter.tube, request->limit ? request->limit : LIMIT, add_one, &schedules, &next);
	return judge(request, v1_listed(request, error, schedules.count, next));
}

static int run_get(struct v1_request *request)
{
	struct v1_schedules schedules = {.request = request, .is_one = 1};
	char name[WW_JOB_KEY_MAX + 1];

	return judge(
	    request, ww_schedule_peek(all_of(request), request->tube, name_of(request, name), add_one, &schedules));
}

/* ---- Changing */

static int prepare_put(struct v1_request *request)
{
	struct server *server = request->task.server;
	const struct v1_fields *fields;
	const char *fault;

	if (v1_prepare_tube_object(request) != 0)
		return -1;
	fields = request->fields;
	if (!fields->plan.expression)
		return v1_problem(request, 422, "cron", "send for instance \"cron\": \"0 3 * * *\"", "this is missing");
	if (server->is_draining)
		return v1_problem(request, 503, NULL, "put it at another server", "the server takes no new schedules");
	if (server->is_shared && fields->job.spec.expire)
		return v1_problem(request, 422, "expire", V1_STORE_REMEDY, "jobs in Redis do not expire");
	if (server->is_shared && fields->job.spec.code)
		return v1_problem(request, 422, "code", V1_STORE_REMEDY, "jobs in Redis have no code");
	fault = push_refuses(server, request->tube, &fields->job.spec);
	if (fault)
		return v1_not_a_request(request, fault, request->tube);
	if (!bounds_job(server, fields->job.spec.body_length))
		return v1_failed(request, WW_ENOMEM);
	return 0;
}

static void fill(const struct v1_request *request, struct ww_schedule_spec *spec)
{
	const struct v1_fields *fields = request->fields;
	const struct v1_plan *plan = &fields->plan;

	(void)ww_schedule_spec_default(spec);
	spec->tube = request->tube;
	spec->expression = plan->expression;
	if (plan->zone)
		spec->zone = plan->zone;
	job_schedule_from_spec(spec, &fields->job.spec);
	spec->overlap = (enum ww_overlap)plan->overlap;
	spec->spread = plan->spread;
	spec->start = plan->start;
	spec->end = plan->end;
	spec->is_paused = plan->is_paused;
	spec->if_absent = request->is_new_only;
	spec->version = request->version;
}

/* What is wrong with the name, a time or a number. */
static int refuse_other(struct v1_request *request, const struct ww_schedule_spec *spec)
{
	int is_name;
	const char *why = schedules_refusal(spec, &is_name);

	return v1_problem(request, 422, is_name ? "name" : NULL, "see /v1/openapi.json", "%s", why);
}

/* What is wrong with the expression or the zone. */
static int refuse(struct v1_request *request, const struct ww_calendar_problem *problem, const char *expression)
{
	return v1_problem(request, 422, problem->in_zone ? "zone" : expression,
	    "GET /v1/cron?expression=...&zone=... explains an expression", "byte %zu: %s", problem->at + 1,
	    problem->reason);
}

/* Who may put a schedule may not see one that was there. */
static int add_put(const struct ww_schedule_info *info, void *context)
{
	add_times(context, info);
	return 0;
}

static int run_put(struct v1_request *request)
{
	static const char *const results[] = {
	    [WW_PUT_NEW] = "new", [WW_PUT_REPLACED] = "replaced", [WW_PUT_KEPT] = "kept"};
	struct ww_calendar_problem problem = {0};
	char name[WW_JOB_KEY_MAX + 1];
	struct ww_schedule_spec spec;
	int result;

	fill(request, &spec);
	spec.name = name_of(request, name);
	result = ww_schedule_put(all_of(request), &spec, NULL, &problem);
	if (result == WW_EINVAL) {
		(void)(*problem.reason ? refuse(request, &problem, "cron") : refuse_other(request, &spec));
		return WW_OK;
	}
	request->status = result == WW_PUT_NEW ? 201 : 200;
	if (result >= 0) {
		v1_add(request, "{\"result\":\"%s\"", results[result]);
		result = ww_schedule_peek(all_of(request), request->tube, spec.name, add_put, request);
		v1_add(request, "}");
	}
	return judge(request, result);
}

static int run_remove(struct v1_request *request)
{
	char name[WW_JOB_KEY_MAX + 1];

	return judge(request, v1_end(request, ww_schedule_remove_version(all_of(request), request->tube,
	                                          name_of(request, name), request->version)));
}

static int run_pause(struct v1_request *request)
{
	char name[WW_JOB_KEY_MAX + 1];

	return judge(
	    request, v1_end(request, ww_schedule_pause(all_of(request), request->tube, name_of(request, name), 1)));
}

static int run_resume(struct v1_request *request)
{
	char name[WW_JOB_KEY_MAX + 1];

	return judge(
	    request, v1_end(request, ww_schedule_pause(all_of(request), request->tube, name_of(request, name), 0)));
}

static int prepare_now(struct v1_request *request)
{
	if (v1_prepare_tube(request) != 0)
		return -1;
	if (request->task.server->is_draining)
		return v1_problem(request, 503, NULL, "run it at another server", "the server takes no new jobs");
	return 0;
}

static int run_now(struct v1_request *request)
{
	char name[WW_JOB_KEY_MAX + 1];
	uint64_t id = 0;
	int error = ww_schedule_run(all_of(request), request->tube, name_of(request, name), &id);

	v1_add(request, "{\"id\":\"%" PRIu64 "\"}", id);
	return judge(request, error);
}

/* ---- What an expression means */

static int prepare_cron(struct v1_request *request)
{
	if (*request->expression)
		return 0;
	return v1_problem(request, 400, "expression", "for instance /v1/cron?expression=0%203%20*%20*%20*&zone=UTC",
	    "this is missing");
}

static int run_cron(struct v1_request *request)
{
	const char *zone = *request->zone ? request->zone : "UTC";
	struct ww_calendar_spec spec = {.expression = request->expression, .zone = zone};
	struct v1_times times = {request, 0};
	struct ww_calendar_problem problem;
	struct ww_calendar *calendar;
	char words[WW_CALENDAR_TEXT];
	struct field_moment now;
	int32_t offset = 0;
	int error;

	v1_moment_now(v1_jobs(request), &now);
	spec.anchor = now.wall;
	error = ww_calendar_open(&calendar, &spec, &problem);
	if (error == WW_EINVAL)
		(void)refuse(request, &problem, "expression");
	if (error)
		return error == WW_EINVAL ? WW_OK : error;
	(void)ww_calendar_explain(calendar, words, sizeof words);
	v1_add(request, "{\"expression\":");
	v1_add_string(request, request->expression);
	v1_add(request, ",\"zone\":");
	v1_add_string(request, zone);
	v1_add(request, ",\"words\":");
	v1_add_string(request, words);
	v1_add(request, ",\"elapsed\":%s,\"times\":[", ww_calendar_is_elapsed(calendar) ? "true" : "false");
	while (times.count < TIMES && ww_calendar_next(calendar, now.wall, &now.wall) == WW_OK &&
	       ww_calendar_offset(calendar, now.wall, &offset) == WW_OK)
		add_local(now.wall, offset, &times);
	v1_add(request, "]}");
	ww_calendar_close(calendar);
	return WW_OK;
}

const struct v1_operation v1_schedule_operations[] = {
    {"GET", "schedules", RIGHT_READ, V1_BY_TUBE | V1_BY_AFTER | V1_BY_LIMIT, 0, prepare_list, run_list},
    {"GET", "tubes/*/schedules/*", RIGHT_READ, 0, 0, v1_prepare_tube, run_get},
    {"PUT", "tubes/*/schedules/*", RIGHT_PUT, V1_OF_SCHEDULE, 1, prepare_put, run_put},
    {"DELETE", "tubes/*/schedules/*", RIGHT_PUT, 0, 1, v1_prepare_tube, run_remove},
    {"POST", "tubes/*/schedules/*/pause", RIGHT_PUT, 0, 1, v1_prepare_tube, run_pause},
    {"POST", "tubes/*/schedules/*/resume", RIGHT_PUT, 0, 1, v1_prepare_tube, run_resume},
    {"POST", "tubes/*/schedules/*/run", RIGHT_PUT, 0, 1, prepare_now, run_now},
    {"GET", "cron", 0, V1_BY_EXPRESSION | V1_BY_ZONE, 0, prepare_cron, run_cron},
    {NULL, NULL, 0, 0, 0, NULL, NULL},
};
#else
const struct v1_operation v1_schedule_operations[] = {{NULL, NULL, 0, 0, 0, NULL, NULL}};
#endif
