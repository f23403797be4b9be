/* The verbs that look at jobs: peek at one, list many. */
#include "tools/weekwheeld/verbs/list.h"
#include "tools/weekwheeld/verbs/verbs.h"

static void peek_run(struct call *call)
{
	call->result = ww_jobs_peek(call_jobs(call), &call->job, &call->info, &call->body);
	if (call->result != WW_OK || !store_hides(call->info.tube))
		return;
	ww_jobs_free(call_jobs(call), call->body);
	call->body = NULL;
	call->result = WW_ENOTFOUND;
}

static void peek_next_run(struct call *call)
{
	enum verb verb = call->command->verb;
	enum ww_job_state state = verb == VERB_PEEK_READY     ? WW_JOB_READY
	                          : verb == VERB_PEEK_DELAYED ? WW_JOB_DELAYED
	                                                      : WW_JOB_BURIED;

	call->result = ww_jobs_peek_next(call_jobs(call), call->used, state, &call->info, &call->body);
}

static void peek_answer(struct call *call)
{
	if (call->result < 0) {
		answer_result(call->connection, call->result, NULL);
		return;
	}
	const struct ww_job_info *info = &call->info;
	const struct ww_lease shown = {.id = info->id,
	    .body = call->body,
	    .body_length = info->body_length,
	    .headers = info->headers,
	    .headers_length = info->headers_length};

	answer_job(call->connection, "FOUND", &shown);
	ww_jobs_free(call_jobs(call), call->body);
}

const struct steps verb_peek = {job_prepare, peek_run, peek_answer, NULL};
const struct steps verb_peek_next = {NULL, peek_next_run, peek_answer, NULL};

static void list_run(struct call *call)
{
	struct server *server = call->connection->server;

	if (call->command->verb == VERB_FORECAST)
		call->result = list_forecast(server, call->command, &call->made);
	else
		call->result = list_jobs(server, call->command, &call->made);
}

static void list_answer(struct call *call)
{
	answer_block(call->connection, call->result, &call->made);
}

const struct steps verb_list = {NULL, list_run, list_answer, NULL};
