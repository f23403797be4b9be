/* Putting jobs, one or many, with a key of the path or without. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/engine/follow.h"
#include "tools/weekwheeld/v1/v1.h"

#define DAY (86400 * WW_SECOND)

/* What a header says of one job's key. */
static int put_header(struct v1_request *request, struct ww_job_spec *spec)
{
	if (request->is_new_only) {
		if (spec->key_mode != WW_KEY_REPLACE)
			return v1_problem(request, 422, "If-None-Match", NULL, "give either this or a mode of the key");
		spec->key_mode = WW_KEY_IF_ABSENT;
	}
	if (!request->idempotency)
		return 0;
	if (request->is_many || spec->key_length > 0)
		return v1_problem(request, 422, "Idempotency-Key", "give each job a key, and \"unique\"",
		    "this goes with one job that has no key");
	spec->key = request->idempotency;
	spec->key_length = strlen(request->idempotency);
	if (spec->key_length == 0 || spec->key_length > WW_JOB_KEY_MAX)
		return v1_problem(
		    request, 422, "Idempotency-Key", NULL, "this must have 1 to %d bytes", WW_JOB_KEY_MAX);
	spec->key_mode = WW_KEY_UNIQUE;
	spec->key_span = DAY;
	return 0;
}

/* How many jobs of the list before this one are for its tube. */
static size_t before_in_tube(const struct v1_request *request, const struct v1_fields *fields)
{
	size_t count = 0;

	for (const struct v1_fields *before = request->fields; before < fields; before++)
		count += strcmp(before->job.spec.tube, fields->job.spec.tube) == 0;
	return count;
}

/* What follows it is put later, without this client. */
static int check_then(struct v1_request *request, const struct ww_job_spec *spec)
{
	char why[FOLLOW_WHY] = "this is no job";

	switch (follow_check(request->task.server, request->who.token, spec, why)) {
	case FOLLOW_YES:
		return 0;
	case FOLLOW_DENIED:
		return v1_problem(request, 403, "then", "use a token that grants it", "%s", why);
	case FOLLOW_SHARED:
		return v1_problem(request, 422, "then", V1_STORE_REMEDY, "%s", why);
	default:
		return v1_problem(request, 422, "then", NULL, "%s", why);
	}
}

static int put_one(struct v1_request *request, struct v1_fields *fields)
{
	struct server *server = request->task.server;
	struct ww_job_spec *spec = &fields->job.spec;
	const char *fault;
	size_t in_tube = 0;

	if (!v1_may(request, spec->tube))
		return v1_refuse_tube(request, spec->tube);
	if (put_header(request, spec) != 0)
		return -1;
	if (spec->key_mode != WW_KEY_REPLACE && spec->key_length == 0)
		return v1_problem(request, 422, "key", NULL, "a mode of the key needs a key");
	(void)ww_job_spread(spec, fields->job.spread);
	if (server->is_draining)
		return v1_problem(request, 503, NULL, "put it at another server", "the server takes no new jobs");
	if (server->is_shared && spec->expire)
		return v1_problem(request, 422, "expire", V1_STORE_REMEDY, "jobs in Redis do not expire");
	if (server->is_shared && spec->code)
		return v1_problem(request, 422, "code", V1_STORE_REMEDY, "jobs in Redis have no code");
	fault = push_refuses(server, spec->tube, spec);
	if (fault)
		return v1_not_a_request(request, fault, spec->tube);
	if (check_then(request, spec) != 0)
		return -1;
	if (spec->body_length + spec->then_length > server->settings->max_job_size)
		return v1_failed(request, WW_ETOOBIG);
	if (server->settings->max_tube_jobs > 0)
		in_tube = before_in_tube(request, fields);
	if (!bounds_quota(server, spec, (size_t)(fields - request->fields), in_tube))
		return v1_failed(request, WW_EFULL);
	if (!bounds_job(server, spec->headers_length + spec->body_length + spec->then_length))
		return v1_failed(request, WW_ENOMEM);
	return 0;
}

static int put_all(struct v1_request *request)
{
	request->puts = calloc(request->count, sizeof *request->puts);
	if (!request->puts)
		return v1_failed(request, WW_ENOMEM);
	for (size_t i = 0; i < request->count; i++) {
		request->puts[i] = (struct ww_job_put){.spec = &request->fields[i].job.spec, .result = WW_ECLOSED};
		request->at = request->is_many ? i + 1 : 0;
		if (put_one(request, &request->fields[i]) != 0)
			return -1;
	}
	request->at = 0;
	return 0;
}

static int prepare_put(struct v1_request *request)
{
	return v1_read(request, 1) != 0 ? -1 : put_all(request);
}

static int note_due(
    struct v1_request *request, const struct ww_job_put *put, const struct field_moment *now, uint64_t *due)
{
	struct ww_job_info info;
	int error = ww_jobs_peek(v1_jobs(request), &(struct ww_job_ref){.id = put->id}, &info, NULL);

	if (error == WW_OK)
		*due = info.flags & WW_JOB_WALL ? info.due : now->wall + info.left;
	return error;
}

/*
 * A job that was there before may be due as it was. For many jobs this is not looked up: each would be a call of the
 * store.
 */
static void write_due(struct v1_request *request, const struct ww_job_put *put)
{
	const struct ww_job_spec *spec = put->spec;
	uint64_t delay = spec->key_mode == WW_KEY_DEBOUNCE && spec->key_span < spec->due ? spec->key_span : spec->due;
	int is_reported =
	    put->result == WW_PUT_NEW || (put->result == WW_PUT_REPLACED && spec->key_mode == WW_KEY_REPLACE);
	struct field_moment now;
	uint64_t due;

	if (put->result == WW_PUT_ENDED || (!is_reported && request->is_many))
		return;
	v1_moment_now(v1_jobs(request), &now);
	due = spec->flags & WW_JOB_AT ? spec->due : now.wall + delay;
	if (is_reported || note_due(request, put, &now, &due) == WW_OK)
		v1_add_time(request, "due", due);
}

static void write_put(struct v1_request *request, const struct ww_job_put *put)
{
	static const char *const results[] = {
	    [WW_PUT_NEW] = "new",
	    [WW_PUT_REPLACED] = "replaced",
	    [WW_PUT_KEPT] = "kept",
	    [WW_PUT_ENDED] = "ended",
	};

	v1_add(request, "{\"id\":\"%" PRIu64 "\",\"version\":%" PRIu64 ",\"result\":\"%s\"", put->id, put->version,
	    results[put->result]);
	write_due(request, put);
	v1_add(request, "}");
}

static void answer_puts(struct v1_request *request, const struct ww_job_put *puts)
{
	v1_add(request, "[");
	for (size_t i = 0; i < request->count; i++) {
		if (i > 0)
			v1_add(request, ",");
		if (puts[i].result < 0)
			v1_write_failure(request, puts[i].result);
		else
			write_put(request, &puts[i]);
	}
	v1_add(request, "]");
}

static int run_put(struct v1_request *request)
{
	struct ww_job_put *puts = request->puts;
	int error = ww_jobs_put_many(v1_jobs(request), puts, request->count);

	if (error == WW_OK && !request->is_many)
		error = puts->result;
	if (error < 0)
		return error;
	if (request->is_many) {
		answer_puts(request, puts);
	} else {
		request->status = puts->result == WW_PUT_NEW ? 201 : 200;
		request->etag = puts->version;
		write_put(request, puts);
	}
	return WW_OK;
}

/* The tube and the key are those of the path. */
static int prepare_put_key(struct v1_request *request)
{
	struct v1_fields *fields;

	if (v1_read(request, 0) != 0)
		return -1;
	fields = request->fields;
	if (v1_has(fields, "tube") || fields->job.spec.key_length)
		return v1_problem(request, 422, v1_has(fields, "tube") ? "tube" : "key", "leave it out",
		    "the path has the tube and the key");
	fields->job.spec.tube = request->tube;
	fields->job.spec.key = request->key;
	fields->job.spec.key_length = request->key_length;
	fields->job.spec.version = request->version;
	return put_all(request);
}

const struct v1_operation v1_put_operations[] = {
    {"POST", "jobs", RIGHT_PUT, V1_OF_PUT, 1, prepare_put, run_put},
    {"PUT", "tubes/*/keys/*", RIGHT_PUT, V1_OF_PUT, 1, prepare_put_key, run_put},
    {NULL, NULL, 0, 0, 0, NULL, NULL},
};
