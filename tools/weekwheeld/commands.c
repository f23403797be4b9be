/* The steps of each verb: what it takes from its connection, what it asks the store, what it answers. */
#include "tools/weekwheeld/commands.h"

#include <string.h>

#include "tools/weekwheeld/schedules.h"

static void become_worker(struct connection *connection)
{
	connection->server->workers += !connection->is_worker;
	connection->is_worker = 1;
}

/* ---- Putting and moving */

static void spec_own(struct ww_job_spec *spec, const struct command_own *own)
{
	spec->key = own->key;
	spec->key_length = own->key_length;
	spec->period = own->every;
	spec->skip = own->skip;
	spec->backoff = own->backoff;
	if (own->backoff_max)
		spec->backoff_max = own->backoff_max;
	spec->version = own->version;
	spec->attempts = own->attempts;
	spec->keep = own->keep;
	spec->missed = own->missed;
	spec->key_mode = own->key_mode;
	spec->key_span = own->key_span;
	spec->group = own->group;
	spec->group_length = own->group_length;
	if (own->at)
		spec->flags = WW_JOB_WALL | WW_JOB_AT;
}

static int put_prepare(struct call *call)
{
	struct connection *connection = call->connection;
	struct server *server = connection->server;
	const struct command *command = call->command;
	struct ww_job_spec *spec = &call->spec;

	server->producers += !connection->is_producer;
	connection->is_producer = 1;
	(void)ww_job_spec_default(spec);
	if (command->verb != VERB_PUT)
		spec_own(spec, &command->own);
	spec->tube = call->used;
	if (server->is_draining)
		call->text = "DRAINING\r\n";
	else if (!push_takes(server, call->used, command->body, command->body_length))
		call->text = "BAD_FORMAT\r\n";
	else if (!bounds_quota(server, spec, 0, 0) || !bounds_job(server, command->body_length))
		call->text = "OUT_OF_MEMORY\r\n";
	if (call->text)
		return 0;
	spec->body = command->body;
	spec->body_length = command->body_length;
	spec->due = command->delay;
	spec->run = command->run;
	spec->priority = command->priority;
	return 1;
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

	if (call->result == WW_PUT_NEW || call->result == WW_PUT_REPLACED)
		counts_add(counts_of(&call->connection->server->counts, call->used), COUNT_PUT);
	if (call->result < 0)
		answer_result(call->connection, call->result, NULL);
	else if (call->spec.key_mode != WW_KEY_REPLACE || call->result >= WW_PUT_KEPT)
		answer_numbers(call->connection, words[call->result], call->number, call->version);
	else
		answer_number(call->connection, words[call->result], call->number);
}

/* A job must be named, by its id or its key. */
static int job_prepare(struct call *call)
{
	call->result = call->job.id || call->job.key_length ? WW_OK : WW_ENOTFOUND;
	return call->result == WW_OK;
}

/* A client names a job by its id that may be a schedule: to it there is none. */
static int is_schedule(struct call *call)
{
	const struct ww_job_ref job = {.id = call->command->id};
	struct ww_job_info info;

	return job.id && ww_jobs_peek(call_jobs(call), &job, &info, NULL) == WW_OK && store_hides(info.tube);
}

static void move_run(struct call *call)
{
	const struct command *command = call->command;

	call->result = is_schedule(call) ? WW_ENOTFOUND : call_begin(call);
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

/* ---- Looking */

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
	answer_job(call->connection, "FOUND", call->info.id, call->body, call->info.body_length);
	ww_jobs_free(call_jobs(call), call->body);
}

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

/* ---- Reserving, and how a lease ends */

static int reserve(struct call *call)
{
	const struct command *command = call->command;

	become_worker(call->connection);
	waiting_reserve(call->connection, command->verb == VERB_RESERVE ? WAIT_FOREVER : command->delay);
	return 0;
}

/* The store says of a job that cannot be had that it is in use, or that its id is invalid. */
static int not_found(int error)
{
	return error == WW_EINUSE || error == WW_EINVAL ? WW_ENOTFOUND : error;
}

static int reserve_job_prepare(struct call *call)
{
	/* A job that this turn has put is given away only after the commit. */
	turn_commit(call->connection->server);
	return 1;
}

static void reserve_job_run(struct call *call)
{
	call->result = WW_ENOTFOUND;
	if (!is_schedule(call))
		call->result = ww_jobs_reserve_job(call_jobs(call), call->command->id, &call->lease);
}

static void reserve_job_answer(struct call *call)
{
	struct connection *connection = call->connection;

	if (call->result < 0) {
		answer_result(connection, not_found(call->result), NULL);
	} else if (connection->is_closed) {
		ask_return(connection->server, &call->lease);
	} else {
		become_worker(connection);
		waiting_give(connection, &call->lease);
	}
}

/* The oldest past lease of the job that no delete means which the client has sent along. */
static const struct lease *past_of(const struct connection *connection, uint64_t id)
{
	const struct lease *lease = lease_past(connection, id, NULL);
	const struct call *call = STAILQ_FIRST(&connection->calls);

	while (lease && call) {
		if (call->command->id == id && call->token == lease->token) {
			lease = lease_past(connection, id, lease);
			call = STAILQ_FIRST(&connection->calls);
		} else {
			call = STAILQ_NEXT(call, following);
		}
	}
	return lease;
}

/*
 * Take the token of the lease if the job is this connection's, or was. If the connection has had it twice, nobody knows
 * which delivery is meant: a delete ends the older one, which is over in any case. The job then stays until both are done.
 */
static int lease_prepare(struct call *call)
{
	uint64_t id = call->command->id;
	const struct lease *now = lease_of(call->connection, id);
	const struct lease *past = past_of(call->connection, id);
	int is_delete = call->command->verb == VERB_DELETE;
	const struct lease *lease = past && (!now || is_delete) ? past : now;

	call->is_late = past && is_delete;
	call->token = lease ? lease->token : 0;
	call->created = lease ? lease->created : 0;
	return 1;
}

/* The lease may have ended in another way while the store was asked. */
static struct lease *lease_answered(const struct call *call)
{
	struct lease *lease = call->token ? lease_of(call->connection, call->command->id) : NULL;

	if (!call->token || (lease && lease->token == call->token))
		return lease;
	lease = NULL;
	do
		lease = lease_past(call->connection, call->command->id, lease);
	while (lease && lease->token != call->token);
	return lease;
}

/*
 * The store has been asked to end the lease, if there is one. If it could not say what has become of the job, ask again. If
 * the job is there and not the client's any more, the client hears it, but may say it twice.
 */
static void lease_answer(const struct call *call, enum count count)
{
	struct lease *lease = lease_answered(call);
	int is_known = call->result >= 0 || call->result == WW_ENOTFOUND;

	if (lease && (call->ended != WW_ESTALE || is_known))
		lease_ended(call->connection->server, lease, call->ended, count);
	else if (lease && call->result == WW_EINUSE)
		lease_told(call->connection->server, lease);
}

/*
 * Whether the job was put again since it was delivered to this connection: at another time or, if the clock was set back,
 * nobody had it yet. That put must be delivered, whatever the client says of what it had. A shared store may have kept
 * the put and lost the delivery.
 */
static int is_replaced(const struct call *call, const struct ww_job_info *info)
{
	int is_fresh = !info->reserves && !call->connection->server->is_shared;

	return call->token && (info->created != call->created || is_fresh);
}

/*
 * Another has reserved the job, or the lease is over and it has a key or a period. The client means the delivery that it
 * had: not those of a periodic job that follow, nor one for a put since then that was answered KEPT.
 */
static int is_kept(const struct call *call, const struct ww_job_info *info)
{
	return info->state == WW_JOB_RESERVED || (call->token && (info->period || info->key_length));
}

/* Delete a job that this connection has not reserved, or no longer. WW_EINUSE: the client may not. */
static int cancel(struct call *call)
{
	struct ww_job_ref job = {.id = call->command->id};
	struct ww_job_info info;
	int error;

	do {
		job.version = 0;
		error = job.id ? ww_jobs_peek(call_jobs(call), &job, &info, NULL) : WW_ENOTFOUND;
		if (error == WW_OK && store_hides(info.tube))
			return WW_ENOTFOUND;
		if (error == WW_OK && is_replaced(call, &info))
			return WW_OK;
		if (error == WW_OK && is_kept(call, &info))
			return WW_EINUSE;
		if (error == WW_OK)
			error = call_begin(call);
		/* A put may come between. */
		job.version = call->token ? info.version : 0;
		if (error == WW_OK)
			error = ww_jobs_cancel(call_jobs(call), &job);
	} while (error == WW_ESTALE);
	return error;
}

/* If this connection's lease has run out, it may still delete the job. */
static void delete_rest(struct call *call)
{
	call->result = call->ended == WW_ESTALE ? cancel(call) : call->ended;
}

static void delete_run(struct call *call)
{
	call->ended = call->token ? call_begin(call) : WW_ESTALE;
	if (call->ended == WW_OK)
		call->ended = ww_jobs_finish(call_jobs(call), call->command->id, call->token);
	delete_rest(call);
}

static void delete_run_all(struct call *first)
{
	struct ww_job_end ends[CALLS_MAX];
	size_t count = 0;

	/* What has become of the job is asked before another delete of it. */
	for (struct call *call = first; call; call = STAILQ_NEXT(call, following))
		if (call->is_asking && call->is_late)
			delete_run(call);
		else if (call->is_asking && call->token)
			ends[count++] = (struct ww_job_end){call->command->id, call->token, WW_EIO};
	if (count > 0)
		(void)ww_jobs_finish_many(call_jobs(first), ends, count);
	count = 0;
	for (struct call *call = first; call; call = STAILQ_NEXT(call, following)) {
		if (!call->is_asking || call->is_late)
			continue;
		call->ended = call->token ? ends[count++].result : WW_ESTALE;
		delete_rest(call);
	}
}

static void delete_answer(struct call *call)
{
	lease_answer(call, COUNT_DONE);
	answer_result(call->connection, not_found(call->result), "DELETED\r\n");
}

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

static int is_bury(const struct call *call)
{
	return call->command->verb == VERB_BURY || call->command->verb == VERB_BURY_JOB;
}

/* The lease is over. The delivery of a job that was put again has ended as the client says, and nothing else happens. */
static int give_back_rest(struct call *call)
{
	const struct ww_job_ref job = {.id = call->command->id};
	struct ww_job_info info;
	int error = call->token ? ww_jobs_peek(call_jobs(call), &job, &info, NULL) : WW_ENOTFOUND;

	return error == WW_OK && !is_replaced(call, &info) ? WW_EINUSE : error;
}

static void release_or_bury_run(struct call *call)
{
	const struct command *command = call->command;
	const char *reason = command->verb < VERB_OWN ? NULL : command->own.reason;

	call->ended = call->token ? call_begin(call) : WW_ESTALE;
	if (call->ended == WW_OK && is_bury(call))
		call->ended = ww_jobs_bury(call_jobs(call), command->id, call->token, command->priority, reason);
	else if (call->ended == WW_OK)
		call->ended = ww_jobs_release(
		    call_jobs(call), command->id, call->token, command->priority, command->delay, reason);
	if (call->ended == 1 || (call->ended == WW_OK && is_bury(call)))
		burial_tell(call_jobs(call), command->id);
	call->result = call->ended == WW_ESTALE ? give_back_rest(call) : call->ended;
}

static void release_or_bury_answer(struct call *call)
{
	/* The store buries a job that is released after its last attempt, and returns 1. */
	int is_buried = is_bury(call) || call->result == 1;
	int result = call->ended == WW_ESTALE ? not_found(call->result) : call->result;

	lease_answer(call, is_buried ? COUNT_BURIED : COUNT_FAILED);
	answer_result(call->connection, result, is_buried ? "BURIED\r\n" : "RELEASED\r\n");
}

static void touch_run(struct call *call)
{
	call->result = WW_ESTALE;
	if (call->token)
		call->result = ww_jobs_touch(call_jobs(call), call->command->id, call->token, &call->number);
}

static void touch_answer(struct call *call)
{
	struct lease *lease = lease_answered(call);

	if (lease && call->result == WW_OK)
		lease_touched(call->connection->server, lease, call->number);
	else if (lease && call->result == WW_ESTALE)
		lease_told(call->connection->server, lease);
	answer_result(call->connection, call->result == WW_ESTALE ? WW_ENOTFOUND : call->result, "TOUCHED\r\n");
}

/* In a store of this process a kick is done in pieces, and answers itself. */
static int kick_prepare(struct call *call)
{
	if (call->connection->server->is_shared)
		return 1;
	call->text = "";
	kick_begin(call->connection, call->command);
	return 0;
}

static void kick_run(struct call *call)
{
	call->result = ww_jobs_kick(call_jobs(call), call->used, call->command->bound, &call->number);
}

static void kick_answer(struct call *call)
{
	if (call->result < 0 && call->result != WW_ENOTFOUND)
		answer_result(call->connection, call->result, NULL);
	else
		answer_number(call->connection, "KICKED", call->number);
}

static void kick_job_run(struct call *call)
{
	call->result = is_schedule(call) ? WW_ENOTFOUND : call_begin(call);
	if (call->result == WW_OK)
		call->result = ww_jobs_kick_job(call_jobs(call), call->command->id);
}

static void kick_job_answer(struct call *call)
{
	answer_result(call->connection, not_found(call->result), "KICKED\r\n");
}

/* ---- Tubes */

static int use(struct call *call)
{
	struct connection *connection = call->connection;
	struct server_tube *tube = tube_make(connection->server, call->command->tube);
	struct server_tube *former = connection->used;

	if (!tube) {
		answer_text(connection, "OUT_OF_MEMORY\r\n");
		return 0;
	}
	tube->users++;
	connection->used = tube;
	former->users--;
	tube_drop(connection->server, former);
	answer_format(connection, "USING %s\r\n", tube->name);
	return 0;
}

static int list_used(struct call *call)
{
	answer_format(call->connection, "USING %s\r\n", call->used);
	return 0;
}

static int watch(struct call *call)
{
	struct connection *connection = call->connection;
	struct server_tube *tube = tube_make(connection->server, call->command->tube);

	if (!tube || tube_watch(connection, tube) != 0) {
		if (tube)
			tube_drop(connection->server, tube);
		answer_text(connection, "OUT_OF_MEMORY\r\n");
		return 0;
	}
	answer_format(connection, "WATCHING %zu\r\n", connection->watch_count);
	return 0;
}

static int ignore(struct call *call)
{
	struct connection *connection = call->connection;
	struct server_tube *tube = tube_find(connection->server, call->command->tube);

	if (tube && tube_is_watched(connection, tube)) {
		if (connection->watch_count == 1) {
			answer_text(connection, "NOT_IGNORED\r\n");
			return 0;
		}
		tube_ignore(connection, tube);
	}
	answer_format(connection, "WATCHING %zu\r\n", connection->watch_count);
	return 0;
}

static void pause_run(struct call *call)
{
	stats_tube_run(call);
	if (call->result == WW_OK)
		call->result = ww_jobs_pause(call_jobs(call), call->command->tube, call->command->delay);
}

static void pause_answer(struct call *call)
{
	answer_result(call->connection, call->result, "PAUSED\r\n");
}

/* ---- Virtual time */

static int advance(struct call *call)
{
	struct connection *connection = call->connection;
	struct server *server = connection->server;
	uint64_t now = 0;
	int error;

	if (!server->elapsed_clock) {
		answer_text(connection, "UNKNOWN_COMMAND\r\n");
		return 0;
	}
	/* Earlier commands are done before the time changes. */
	turn_commit(server);
	error = clock_advance(server, call->command->delay);
	if (error == WW_OK)
		error = ww_jobs_now(server->jobs, WW_JOB_WALL, &now);
	if (error != WW_OK)
		answer_result(connection, error, NULL);
	else
		answer_format(connection, "ADVANCED %llu\r\n", (unsigned long long)(now / WW_SECOND));
	return 0;
}

/* ---- All */

static int login(struct call *call)
{
	login_say(call->connection, call->command);
	return 0;
}

const struct steps command_steps[VERBS] = {
    [VERB_PUT] = {put_prepare, put_run, put_answer, put_run_all},
    [VERB_PEEK] = {job_prepare, peek_run, peek_answer, NULL},
    [VERB_PEEK_READY] = {NULL, peek_next_run, peek_answer, NULL},
    [VERB_PEEK_DELAYED] = {NULL, peek_next_run, peek_answer, NULL},
    [VERB_PEEK_BURIED] = {NULL, peek_next_run, peek_answer, NULL},
    [VERB_RESERVE] = {reserve, NULL, NULL, NULL},
    [VERB_RESERVE_TIMEOUT] = {reserve, NULL, NULL, NULL},
    [VERB_RESERVE_JOB] = {reserve_job_prepare, reserve_job_run, reserve_job_answer, NULL},
    [VERB_DELETE] = {lease_prepare, delete_run, delete_answer, delete_run_all},
    [VERB_RELEASE] = {lease_prepare, release_or_bury_run, release_or_bury_answer, NULL},
    [VERB_BURY] = {lease_prepare, release_or_bury_run, release_or_bury_answer, NULL},
    [VERB_TOUCH] = {lease_prepare, touch_run, touch_answer, NULL},
    [VERB_KICK] = {kick_prepare, kick_run, kick_answer, NULL},
    [VERB_KICK_JOB] = {job_prepare, kick_job_run, kick_job_answer, NULL},
    [VERB_USE] = {use, NULL, NULL, NULL},
    [VERB_WATCH] = {watch, NULL, NULL, NULL},
    [VERB_IGNORE] = {ignore, NULL, NULL, NULL},
    [VERB_LIST_TUBES] = {NULL, stats_list_tubes_run, stats_list_tubes, NULL},
    [VERB_LIST_TUBE_USED] = {list_used, NULL, NULL, NULL},
    [VERB_LIST_TUBES_WATCHED] = {stats_list_watched, NULL, NULL, NULL},
    [VERB_STATS] = {NULL, stats_server_run, stats_server, NULL},
    [VERB_STATS_JOB] = {job_prepare, stats_job_run, stats_job, NULL},
    [VERB_STATS_TUBE] = {stats_tube_prepare, stats_tube_run, stats_tube, NULL},
    [VERB_PAUSE_TUBE] = {stats_tube_prepare, pause_run, pause_answer, NULL},
    [VERB_PUT_KEY] = {put_prepare, put_run, put_answer, put_run_all},
    [VERB_PUT_AT] = {put_prepare, put_run, put_answer, put_run_all},
    [VERB_MOVE] = {job_prepare, move_run, move_answer, NULL},
    [VERB_MOVE_KEY] = {job_prepare, move_run, move_answer, NULL},
    [VERB_DELETE_KEY] = {NULL, delete_key_run, delete_key_answer, NULL},
    [VERB_RELEASE_JOB] = {lease_prepare, release_or_bury_run, release_or_bury_answer, NULL},
    [VERB_BURY_JOB] = {lease_prepare, release_or_bury_run, release_or_bury_answer, NULL},
    [VERB_PEEK_KEY] = {job_prepare, peek_run, peek_answer, NULL},
    [VERB_STATS_KEY] = {job_prepare, stats_job_run, stats_job, NULL},
    [VERB_LIST_DELAYED] = {NULL, list_run, list_answer, NULL},
    [VERB_FORECAST] = {NULL, list_run, list_answer, NULL},
    [VERB_ADVANCE] = {advance, NULL, NULL, NULL},
    [VERB_AUTH] = {login, NULL, NULL, NULL},
    [VERB_LIMIT_TUBE] = {NULL, limits_set_run, limits_set_answer, NULL},
    [VERB_REPORT] = {lease_prepare, history_report_run, history_report_answer, NULL},
    [VERB_HISTORY] = {NULL, history_list_run, history_list_answer, NULL},
    [VERB_LIST_LIMITS] = {NULL, limits_list_run, limits_list_answer, NULL},
#ifdef HAVE_SCHEDULE
    [VERB_PUT_SCHEDULE] = {schedules_put_prepare, schedules_put_run, schedules_put_answer, NULL},
    [VERB_DELETE_SCHEDULE] = {NULL, schedules_change_run, schedules_change_answer, NULL},
    [VERB_PAUSE_SCHEDULE] = {NULL, schedules_change_run, schedules_change_answer, NULL},
    [VERB_RESUME_SCHEDULE] = {NULL, schedules_change_run, schedules_change_answer, NULL},
    [VERB_RUN_SCHEDULE] = {schedules_run_prepare, schedules_change_run, schedules_change_answer, NULL},
    [VERB_LIST_SCHEDULES] = {NULL, schedules_list_run, schedules_list_answer, NULL},
#else
    [VERB_PUT_SCHEDULE] = {schedules_put_prepare, NULL, NULL, NULL},
    [VERB_DELETE_SCHEDULE] = {schedules_put_prepare, NULL, NULL, NULL},
    [VERB_PAUSE_SCHEDULE] = {schedules_put_prepare, NULL, NULL, NULL},
    [VERB_RESUME_SCHEDULE] = {schedules_put_prepare, NULL, NULL, NULL},
    [VERB_RUN_SCHEDULE] = {schedules_put_prepare, NULL, NULL, NULL},
    [VERB_LIST_SCHEDULES] = {schedules_put_prepare, NULL, NULL, NULL},
#endif
};
