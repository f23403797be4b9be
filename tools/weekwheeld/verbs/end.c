/* The verbs that end a lease, delete, release and bury, or prolong it, touch. */
#include "tools/weekwheeld/verbs/verbs.h"

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
 * Take the token of the lease if the job is this connection's, or was. If the connection has had it twice, it is not
 * known which delivery is meant: a delete ends the older one, which is over in any case. The job then stays until both
 * are done.
 */
int end_prepare(struct call *call)
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
 * The store has been told to end the lease, if there is one. If it could not say what has become of the job, ask
 * again. If the job is there and no longer the client's, answer that; but the client may repeat the command.
 */
static void lease_answer(const struct call *call, enum count count)
{
	struct lease *lease = lease_answered(call);
	int is_known = call->result >= 0 || call->result == WW_ENOTFOUND;

	if (lease && (call->ended != WW_ESTALE || is_known))
		lease_ended(call->connection->server, lease, call->ended, count);
	else if (lease && call->result == WW_EINUSE)
		lease_known(call->connection->server, lease);
}

/*
 * Whether the job was put again since it was delivered to this connection: at another time or, if the clock was set
 * back, nobody had it yet. That put must be delivered, whatever the client says of what it had. A shared store may
 * have kept the put and lost the delivery.
 */
static int is_replaced(const struct call *call, const struct ww_job_info *info)
{
	int is_fresh = !info->reserves && !call->connection->server->is_shared;

	return call->token && (info->created != call->created || is_fresh);
}

/*
 * Another has reserved the job, or the lease is over and it has a key or a period. The client means the delivery that
 * it had: not those of a periodic job that follow, nor one for a put since then that was answered KEPT.
 */
static int is_kept(const struct call *call, const struct ww_job_info *info)
{
	return info->state == WW_JOB_RESERVED || (call->token && (info->period || info->key_length));
}

/* A worker has done the job after its time was up, and nobody else has it: its follow-up is put as after any finish. */
static int finish_late(struct call *call, uint64_t id)
{
	struct ww_lease lease;
	int error = ww_jobs_reserve_job(call_jobs(call), id, &lease);

	if (error)
		return error;
	ww_jobs_free(call_jobs(call), lease.body);
	return ww_jobs_finish(call_jobs(call), id, lease.token);
}

/* Delete a job that this connection has not reserved, or no longer; 0 is any version. WW_EINUSE: the client may not. */
static int cancel(struct call *call, uint64_t version)
{
	struct ww_job_ref job = {.id = call->command->id};
	struct ww_job_info info;
	void *body;
	int error;

	do {
		job.version = 0;
		body = NULL;
		/* A follow-up is shown with the body alone. */
		error = job.id ? ww_jobs_peek(call_jobs(call), &job, &info, call->token ? &body : NULL) : WW_ENOTFOUND;
		ww_jobs_free(call_jobs(call), body);
		if (error == WW_OK && store_hides(info.tube))
			return WW_ENOTFOUND;
		if (error == WW_OK && is_replaced(call, &info))
			return WW_OK;
		if (error == WW_OK && is_kept(call, &info))
			return WW_EINUSE;
		if (error == WW_OK)
			error = call_begin(call);
		if (error == WW_OK && info.then_length)
			return finish_late(call, job.id);
		/* A put may come between. */
		job.version = call->token ? info.version : version;
		if (error == WW_OK)
			error = ww_jobs_cancel(call_jobs(call), &job);
	} while (error == WW_ESTALE && call->token);
	return error;
}

/* If this connection's lease has run out, it may still delete the job. */
static void delete_rest(struct call *call)
{
	call->result = call->ended == WW_ESTALE ? cancel(call, 0) : call->ended;
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
	answer_result(call->connection, job_result(call->result), "DELETED\r\n");
}

const struct steps verb_delete = {end_prepare, delete_run, delete_answer, delete_run_all};

/* As a list has shown it, and not what was put again since. A lease of this connection is no reason to delete it. */
static void delete_job_run(struct call *call)
{
	call->result = cancel(call, call->job.version);
}

static void delete_job_answer(struct call *call)
{
	answer_result(call->connection, job_result(call->result), "DELETED\r\n");
}

const struct steps verb_delete_job = {job_prepare, delete_job_run, delete_job_answer, NULL};

/* ---- release and bury */

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
		burial_log(call_jobs(call), command->id);
	call->result = call->ended == WW_ESTALE ? give_back_rest(call) : call->ended;
}

static void release_or_bury_answer(struct call *call)
{
	/* The store buries a job that is released after its last attempt, and returns 1. */
	int is_buried = is_bury(call) || call->result == 1;
	int result = call->ended == WW_ESTALE ? job_result(call->result) : call->result;

	lease_answer(call, is_buried ? COUNT_BURIED : COUNT_FAILED);
	answer_result(call->connection, result, is_buried ? "BURIED\r\n" : "RELEASED\r\n");
}

const struct steps verb_release = {end_prepare, release_or_bury_run, release_or_bury_answer, NULL};

/* ---- touch */

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
		lease_known(call->connection->server, lease);
	answer_result(call->connection, call->result == WW_ESTALE ? WW_ENOTFOUND : call->result, "TOUCHED\r\n");
}

const struct steps verb_touch = {end_prepare, touch_run, touch_answer, NULL};
