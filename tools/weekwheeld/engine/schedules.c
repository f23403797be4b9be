/*
 * Works at the schedules that are due. In a store of this process that is a part of the turn in
 * which they became due, in one write with their jobs. A shared store is asked by a task.
 */
#include "tools/weekwheeld/engine/schedules.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/utf8.h"
#include "weekwheel/schedule.h"

#ifdef HAVE_SCHEDULE

/* How many are worked at in a turn or by a task, and how long to wait after a failure. */
enum { WORK_MOST = 50, AGAIN_MS = 1000 };

/* How many of its next times are shown of a schedule. */
enum { TIMES_MOST = 10 };

struct schedules {
	struct task task;
	struct ww_schedule *all;
	uv_timer_t again; /* after a failure */
	int is_due;
	int is_asking;      /* the task is under way */
	uint64_t set_aside; /* as many were known */
	int result;
};

/* ---- Work */

/* No client sees these jobs, so their burial is said here. */
static void say_set_aside(struct schedules *schedules)
{
	struct ww_schedule_stats stats;

	if (ww_schedule_stats(schedules->all, &stats) != WW_OK || stats.set_aside == schedules->set_aside)
		return;
	schedules->set_aside = stats.set_aside;
	state_seen("schedules set aside",
	    "a schedule cannot be carried out, and is set aside: its expression, its zone or a bound of this server");
}

static void try_again(uv_timer_t *timer)
{
	schedules_ready(timer->data);
}

static void fail(struct server *server, int error)
{
	struct schedules *schedules = server->schedules;

	if (error < 0)
		store_failed(server, error);
	if (!uv_is_closing((uv_handle_t *)&schedules->again))
		uv_timer_start(&schedules->again, try_again, AGAIN_MS, 0);
}

/* In any thread. */
static void ask(struct task *task)
{
	struct schedules *schedules = (struct schedules *)task;

	schedules->result = ww_schedule_work(schedules->all, WORK_MOST, 0);
}

static void asked(struct task *task)
{
	struct schedules *schedules = (struct schedules *)task;
	struct server *server = task->server;

	schedules->is_asking = 0;
	say_set_aside(schedules);
	if (server->is_stopping)
		return;
	if (schedules->result < 0)
		fail(server, schedules->result);
	else if (schedules->is_due || schedules->result == WORK_MOST)
		schedules_ready(server);
}

void schedules_ready(struct server *server)
{
	struct schedules *schedules = server->schedules;

	/* What becomes due while the server drains is due at its next start, or at another server of the store. */
	if (!schedules || server->is_stopping || server->is_draining)
		return;
	schedules->is_due = 1;
	if (!server->is_shared) {
		loop_again(server);
		return;
	}
	if (schedules->is_asking)
		return;
	schedules->is_due = 0;
	schedules->is_asking = 1;
	schedules->result = 0;
	schedules->task.run = ask;
	schedules->task.done = asked;
	task_start(server, &schedules->task);
}

void schedules_turn(struct server *server)
{
	struct schedules *schedules = server->schedules;
	int result;

	if (!schedules || !schedules->is_due || server->is_shared || server->is_stopping || server->is_draining)
		return;
	schedules->is_due = 0;
	result = turn_begin(server);
	if (result == WW_OK)
		result = ww_schedule_work(schedules->all, WORK_MOST, 0);
	turn_commit(server);
	say_set_aside(schedules);
	if (result < 0 || (result > 0 && server->turn.is_failing))
		fail(server, result);
	else if (result == WORK_MOST)
		schedules_ready(server);
}

/* Bounds hold for schedules as for clients. Quotas and memory are those of a store in this process: its loop asks. */
static int admit(const struct ww_job_spec *spec, void *context)
{
	return bounds_quota(context, spec, 0, 0) && bounds_job(context, spec->body_length) ? WW_OK : WW_ENOMEM;
}

int schedules_start(struct server *server)
{
	struct schedules *schedules = calloc(1, sizeof *schedules);

	if (!schedules || ww_schedule_open(&schedules->all, server->jobs, NULL) != WW_OK) {
		free(schedules);
		return message_error("no memory for schedules");
	}
	if (!server->is_shared)
		ww_schedule_admit(schedules->all, admit, server);
	uv_timer_init(&server->loop, &schedules->again);
	schedules->again.data = server;
	server->schedules = schedules;
	schedules_ready(server);
	return 0;
}

void schedules_stop(struct server *server)
{
	if (!server->schedules)
		return;
	ww_schedule_close(server->schedules->all);
	free(server->schedules);
	server->schedules = NULL;
}

int schedules_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	struct ww_schedule_stats stats;

	if (!server->schedules || ww_schedule_stats(server->schedules->all, &stats) != WW_OK)
		return 0;
	return add(out, "schedules-made", 1, "Jobs that this server put for schedules.", stats.made) ||
	       add(out, "schedules-skipped", 1, "Times without a job, as the former one had not ended.",
	           stats.skipped) ||
	       add(out, "schedules-waits", 1, "Looks at a former job that had not ended.", stats.waits) ||
	       add(out, "schedules-set-aside", 1, "Schedules that could not be carried out and were buried.",
	           stats.set_aside) ||
	       add(out, "schedules-failures", 1, "Works at a schedule that the store refused.", stats.failures);
}

struct ww_schedule *schedules_all(struct server *server)
{
	return server->schedules ? server->schedules->all : NULL;
}

static int has_control(const char *name)
{
	for (const char *at = name, *end = name + strlen(name); at < end;) {
		int32_t code = utf8_take(&at, end);
		if (code >= 0 && (code < 0x20 || (code >= 0x7f && code <= 0x9f)))
			return 1;
	}
	return 0;
}

const char *schedules_refusal(const struct ww_schedule_spec *schedule, int *is_name)
{
	size_t length = strlen(schedule->name);

	_Static_assert(WW_SCHEDULE_NAME_MAX == 150, "as the sentence says");
	*is_name = 1;
	if (length == 0 || length > WW_SCHEDULE_NAME_MAX)
		return "the name of a schedule has 1 to 150 bytes";
	if (strlen(schedule->tube) + length + 1 > WW_JOB_KEY_MAX)
		return "the names of the tube and the schedule are too long together";
	if (has_control(schedule->name))
		return "the name of a schedule has no control characters";
	*is_name = 0;
	return "a time or a number is out of range";
}

void schedules_times(
    const struct ww_schedule_info *info, void (*fn)(uint64_t time, int32_t offset, void *context), void *context)
{
	struct ww_calendar_spec spec = {
	    .expression = info->spec.expression, .zone = info->spec.zone, .anchor = info->anchor};
	uint64_t time = info->next - info->delay;
	struct ww_calendar *calendar;
	int32_t offset;

	if (!info->next || ww_calendar_open(&calendar, &spec, NULL) != WW_OK)
		return;
	for (int i = 0; i < TIMES_MOST && (!info->spec.end || time <= info->spec.end); i++) {
		if (ww_calendar_offset(calendar, time + info->delay, &offset))
			break;
		fn(time + info->delay, offset, context);
		if (ww_calendar_next(calendar, time, &time))
			break;
	}
	ww_calendar_close(calendar);
}

#else
int schedules_start(struct server *server)
{
	(void)server;
	return 0;
}

void schedules_stop(struct server *server)
{
	(void)server;
}

void schedules_ready(struct server *server)
{
	(void)server;
}

void schedules_turn(struct server *server)
{
	(void)server;
}

int schedules_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	(void)server;
	(void)out;
	(void)add;
	return 0;
}
#endif
