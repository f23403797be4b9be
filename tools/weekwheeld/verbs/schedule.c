/* The verbs of schedules, where the server is built with their library. */
#include "tools/weekwheeld/verbs/verbs.h"

#ifdef HAVE_SCHEDULE
#include <inttypes.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/percent.h"
#include "tools/job/job.h"
#include "tools/weekwheeld/engine/schedules.h"
#include "weekwheel/schedule.h"

static struct ww_schedule *all_of(const struct call *call)
{
	return schedules_all(call->connection->server);
}

/* The key of the command is the schedule's name. */
static const char *name_of(const struct call *call, char name[WW_JOB_KEY_MAX + 1])
{
	const struct command_own *own = &call->command->own;

	memcpy(name, own->key, own->key_length);
	name[own->key_length] = 0;
	return memchr(own->key, 0, own->key_length) ? "" : name;
}

static int put_prepare(struct call *call)
{
	struct connection *connection = call->connection;
	const struct command *command = call->command;

	connection->server->clients->producers += !connection->is_producer;
	connection->is_producer = 1;
	if (connection->server->is_draining)
		call->text = "DRAINING\r\n";
	else if (connection->server->is_shared && call->command->own.job.expire)
		call->text = "NO_EXPIRY\r\n";
	else if (connection->server->is_shared && call->command->own.job.code)
		call->text = "NO_CODES\r\n";
	else if (push_refuses(connection->server, call->used,
	             &(struct ww_job_spec){.body = command->body, .body_length = command->body_length}))
		call->text = "BAD_FORMAT\r\n";
	else if (!bounds_job(connection->server, command->body_length))
		call->text = "OUT_OF_MEMORY\r\n";
	return !call->text;
}

/* What is wrong, as the answer says it. */
static int report_problem(
    struct buffer *out, const struct ww_schedule_spec *spec, const struct ww_calendar_problem *problem)
{
	int is_name = 0;
	const char *reason = *problem->reason ? problem->reason : schedules_refusal(spec, &is_name);
	const char *what = is_name ? "name" : problem->in_zone ? "zone" : "cron";
	char encoded[3 * sizeof problem->reason];

	(void)percent_encode(reason, strlen(reason), encoded, sizeof encoded);
	return buffer_format(out, "BAD_SCHEDULE %s %zu %s\r\n", what, problem->at, encoded);
}

static int note_pause(const struct ww_schedule_info *info, void *context)
{
	*(int *)context = info->spec.is_paused;
	return 0;
}

static void put_run(struct call *call)
{
	const struct command *command = call->command;
	const struct command_own *own = &command->own;
	struct ww_calendar_problem problem = {0};
	struct ww_schedule_spec spec;
	struct ww_job_spec job;
	char name[WW_JOB_KEY_MAX + 1];
	int was_paused = 0;

	(void)ww_schedule_spec_default(&spec);
	spec.tube = call->used;
	spec.name = name_of(call, name);
	spec.expression = own->cron;
	if (*own->zone)
		spec.zone = own->zone;
	put_spec(&job, command);
	job_schedule_from_spec(&spec, &job);
	spec.overlap = (enum ww_overlap)own->overlap;
	spec.spread = command->delay;
	spec.start = own->start;
	spec.end = own->end;
	spec.is_paused = own->is_paused;
	spec.if_absent = own->job.key_mode == WW_KEY_IF_ABSENT;
	call->result = call_begin(call);
	if (call->result == WW_OK) {
		(void)ww_schedule_peek(all_of(call), spec.tube, spec.name, note_pause, &was_paused);
		call->result = ww_schedule_put(all_of(call), &spec, &call->number, &problem);
	}
	if (call->result == WW_EINVAL && report_problem(&call->made, &spec, &problem))
		call->result = WW_ENOMEM;
	if (call->result == WW_PUT_REPLACED &&
	    buffer_format(&call->made, was_paused && !spec.is_paused ? " resumed" : " replaced") != 0)
		call->result = WW_ENOMEM;
}

static void put_answer(struct call *call)
{
	struct connection *connection = call->connection;
	char next[DURATION_TEXT];

	if (call->result == WW_EINVAL)
		answer_format(connection, "%.*s", (int)call->made.size, call->made.data);
	else if (call->result < 0)
		answer_result(connection, call->result, NULL);
	else
		answer_format(connection, "%s %s%.*s\r\n", call->result == WW_PUT_KEPT ? "KEPT" : "SCHEDULED",
		    duration_seconds(next, call->number), (int)call->made.size,
		    call->made.data ? (const char *)call->made.data : "");
	buffer_free(&call->made);
	call->made = (struct buffer){0};
}

static int run_prepare(struct call *call)
{
	if (call->connection->server->is_draining)
		call->text = "DRAINING\r\n";
	return !call->text;
}

static void change_run(struct call *call)
{
	struct ww_schedule *all = all_of(call);
	char name[WW_JOB_KEY_MAX + 1];

	(void)name_of(call, name);
	call->result = call_begin(call);
	if (call->result != WW_OK)
		return;
	switch (call->command->verb) {
	case VERB_RUN_SCHEDULE:
		call->result = ww_schedule_run(all, call->used, name, &call->number);
		break;
	case VERB_DELETE_SCHEDULE:
		call->result = ww_schedule_remove(all, call->used, name);
		break;
	default:
		call->result = ww_schedule_pause(all, call->used, name, call->command->verb == VERB_PAUSE_SCHEDULE);
		break;
	}
	/* A name that no schedule can have. */
	if (call->result == WW_EINVAL)
		call->result = WW_ENOTFOUND;
}

static void change_answer(struct call *call)
{
	static const char *const words[VERBS] = {[VERB_DELETE_SCHEDULE] = "DELETED\r\n",
	    [VERB_PAUSE_SCHEDULE] = "PAUSED\r\n",
	    [VERB_RESUME_SCHEDULE] = "RESUMED\r\n"};

	if (call->result >= 0 && call->command->verb == VERB_RUN_SCHEDULE)
		answer_number(call->connection, "INSERTED", call->number);
	else
		answer_result(call->connection, call->result, words[call->command->verb]);
}

/* ---- Lists */

struct schedule_list {
	struct buffer *out;
	int with_body;
	int with_times;
	int times;
	int bad;
};

static void add_one_time(uint64_t time, int32_t offset, void *context)
{
	struct schedule_list *list = context;
	char text[DURATION_TEXT];

	list->bad |= buffer_format(list->out, "%s[\"%s\",%" PRId32 "]", list->times++ ? "," : "",
	                 duration_seconds(text, time), offset) != 0;
}

/* The next times with their offsets, so that a client needs no database of zones. */
static int add_times(struct schedule_list *list, const struct ww_schedule_info *info)
{
	list->bad |= buffer_format(list->out, ",\"times\":[") != 0;
	list->times = 0;
	schedules_times(info, add_one_time, list);
	return buffer_append(list->out, "]", 1);
}

static int add_schedule(const struct ww_schedule_info *info, void *context)
{
	struct schedule_list *list = context;
	struct buffer *out = list->out;

	list->bad |=
	    buffer_format(out, out->size ? "\n{" : "{") ||
	    field_write(out, job_schedule_fields, list->with_body ? JOB_BODY : JOB_SHOWN, info, FIELD_LINE, NULL) ||
	    buffer_append(out, ",", 1) || field_write(out, job_schedule_times, 0, info, FIELD_LINE, NULL) ||
	    (list->with_times && add_times(list, info)) || buffer_append(out, "}", 1);
	return list->bad;
}

/* Write schedules as lines of JSON, and a line {"next":N} if there may be more. Returns 0 or a WW_E*. */
static int list_all(struct server *server, const struct command *command, struct buffer *out)
{
	const struct command_own *own = &command->own;
	const char *tube = own->has_tube ? command->tube : NULL;
	struct schedule_list list = {.out = out, .with_body = own->with_body, .with_times = own->key_length > 0};
	char name[WW_JOB_KEY_MAX + 1] = "";
	uint64_t next = own->after;
	int error;

	memcpy(name, own->key, own->key_length);
	if (*name) {
		error =
		    ww_schedule_peek(schedules_all(server), tube ? tube : WW_TUBE_DEFAULT, name, add_schedule, &list);
		next = 0;
	} else {
		error =
		    ww_schedule_list(schedules_all(server), tube, (size_t)command->bound, add_schedule, &list, &next);
	}
	if (list.bad || (next && buffer_format(out, "%s{\"next\":%" PRIu64 "}", out->size ? "\n" : "", next) != 0))
		return WW_ENOMEM;
	return error == WW_EINVAL ? WW_ENOTFOUND : error;
}

static void list_run(struct call *call)
{
	call->result = list_all(call->connection->server, call->command, &call->made);
}

static void list_answer(struct call *call)
{
	answer_block(call->connection, call->result, &call->made);
}

const struct steps verb_put_schedule = {put_prepare, put_run, put_answer, NULL};
const struct steps verb_change_schedule = {NULL, change_run, change_answer, NULL};
const struct steps verb_run_schedule = {run_prepare, change_run, change_answer, NULL};
const struct steps verb_list_schedules = {NULL, list_run, list_answer, NULL};
#else
static int refuse(struct call *call)
{
	call->text = "UNKNOWN_COMMAND\r\n";
	return 0;
}

const struct steps verb_put_schedule = {refuse, NULL, NULL, NULL};
const struct steps verb_change_schedule = {refuse, NULL, NULL, NULL};
const struct steps verb_run_schedule = {refuse, NULL, NULL, NULL};
const struct steps verb_list_schedules = {refuse, NULL, NULL, NULL};
#endif
