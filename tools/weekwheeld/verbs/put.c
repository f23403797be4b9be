/* The verbs that put jobs, move them, and delete them by their key. */
#include "tools/job/job.h"
#include "tools/weekwheeld/engine/follow.h"
#include "tools/weekwheeld/verbs/verbs.h"

void put_spec(struct ww_job_spec *spec, const struct command *command)
{
	const struct command_own *own = &command->own;
	struct ww_job_spec initial;

	(void)ww_job_spec_default(&initial);
	*spec = initial;
	if (command->verb != VERB_PUT) {
		*spec = own->job;
		if (!spec->backoff_max)
			spec->backoff_max = initial.backoff_max;
		spec->key = own->key;
		spec->key_length = own->key_length;
		spec->group = own->group;
		spec->group_length = own->group_length;
		if (own->at)
			spec->flags = WW_JOB_WALL | WW_JOB_AT;
	}
	spec->headers = command->body;
	spec->then = command->body + spec->headers_length;
	spec->body = command->body + spec->headers_length + spec->then_length;
	spec->body_length = command->body_length - spec->headers_length - spec->then_length;
	spec->due = command->delay;
	spec->run = command->run;
	spec->priority = command->priority;
}

static void forget_then(struct call *call)
{
	buffer_free(&call->made);
	call->made = (struct buffer){0};
}

/* Take the follow-up, which is JSON. Returns the answer that refuses it, or NULL. */
static const char *take_then(struct call *call)
{
	struct ww_job_spec *spec = &call->spec;
	const struct json_value value = {JSON_OTHER, spec->then, spec->then_length};
	char problem[JOB_PROBLEM] = "";
	char *room;

	if (!spec->then_length)
		return NULL;
	if (buffer_reserve(&call->made, value.size + 1) != 0)
		return "OUT_OF_MEMORY\r\n";
	room = call->made.data;
	enum follow_answer answer =
	    job_then_take(value, &room, &spec->then, &spec->then_length, problem) == 0
	        ? follow_check(call->connection->server, call->connection->login.who.token, spec, problem)
	        : FOLLOW_BAD;
	if (answer == FOLLOW_YES)
		return NULL;
	server_note(call->connection->server, "a follow-up is refused: %s", problem);
	return answer == FOLLOW_SHARED ? "NO_THEN\r\n" : answer == FOLLOW_DENIED ? "DENIED\r\n" : "BAD_FORMAT\r\n";
}

static int put_prepare(struct call *call)
{
	struct connection *connection = call->connection;
	struct server *server = connection->server;
	const struct command *command = call->command;
	struct ww_job_spec *spec = &call->spec;

	server->clients->producers += !connection->is_producer;
	connection->is_producer = 1;
	put_spec(spec, command);
	spec->tube = call->used;
	if (command->verb != VERB_PUT)
		(void)ww_job_spread(spec, command->own.spread);
	if (server->is_draining)
		call->text = "DRAINING\r\n";
	else if (server->is_shared && spec->expire)
		call->text = "NO_EXPIRY\r\n";
	else if (server->is_shared && spec->code)
		call->text = "NO_CODES\r\n";
	else if (push_refuses(server, call->used, spec))
		call->text = "BAD_FORMAT\r\n";
	else if (!bounds_quota(server, spec, 0, 0) || !bounds_job(server, command->body_length))
		call->text = "OUT_OF_MEMORY\r\n";
	else
		call->text = take_then(call);
	if (call->text)
		forget_then(call);
	return !call->text;
}

static void put_run(struct call *call)
{
	call->result = call_begin(call);
	if (call->result == WW_OK)
		call->result = ww_jobs_put(call_jobs(call), &call->spec, &call->number, &call->version);
}

static void put_run_all(struct call *first)
{
	struct ww_job_put puts[CALLS_MAX];
	size_t count = 0;
	int error;

	for (const struct call *call = first; call; call = STAILQ_NEXT(call, following))
		if (call->is_asking)
			puts[count++] = (struct ww_job_put){.spec = &call->spec};
	error = ww_jobs_put_many(call_jobs(first), puts, count);
	count = 0;
	for (struct call *call = first; call; call = STAILQ_NEXT(call, following)) {
		const struct ww_job_put *put = &puts[count];

		if (!call->is_asking)
			continue;
		call->number = put->id;
		call->version = put->version;
		call->result = error < 0 && put->result >= 0 && put->id == 0 ? error : put->result;
		count++;
	}
}

static void put_answer(struct call *call)
{
	static const char *const words[] = {[WW_PUT_NEW] = "INSERTED",
	    [WW_PUT_REPLACED] = "REPLACED",
	    [WW_PUT_KEPT] = "KEPT",
	    [WW_PUT_ENDED] = "ENDED"};

	forget_then(call);
	if (call->result == WW_PUT_NEW || call->result == WW_PUT_REPLACED)
		counts_add(counts_of(&call->connection->server->counts, call->used), COUNT_PUT);
	if (call->result < 0)
		answer_result(call->connection, call->result, NULL);
	else if (call->spec.key_mode != WW_KEY_REPLACE || call->result >= WW_PUT_KEPT)
		answer_numbers(call->connection, words[call->result], call->number, call->version);
	else
		answer_number(call->connection, words[call->result], call->number);
}

const struct steps verb_put = {put_prepare, put_run, put_answer, put_run_all};

/* ---- move and delete-key */

static void move_run(struct call *call)
{
	const struct command *command = call->command;

	call->result = job_is_schedule(call) ? WW_ENOTFOUND : call_begin(call);
	if (call->result == WW_OK)
		call->result = ww_jobs_move(
		    call_jobs(call), &call->job, command->delay, command->own.at ? WW_JOB_AT : 0, &call->number);
}

static void move_answer(struct call *call)
{
	/* WW_EINVAL: the job is buried and has no due time. */
	if (call->result < 0)
		answer_result(call->connection, call->result == WW_EINVAL ? WW_ENOTFOUND : call->result, NULL);
	else
		answer_number(call->connection, "MOVED", call->number);
}

const struct steps verb_move = {job_prepare, move_run, move_answer, NULL};

static void delete_key_run(struct call *call)
{
	call->result = call_begin(call);
	if (call->result == WW_OK)
		call->result = ww_jobs_cancel(call_jobs(call), &call->job);
}

static void delete_key_answer(struct call *call)
{
	answer_result(call->connection, call->result, call->result ? "DELETED\r\n" : "RUNNING\r\n");
}

const struct steps verb_delete_key = {NULL, delete_key_run, delete_key_answer, NULL};
