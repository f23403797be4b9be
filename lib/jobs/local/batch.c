/*
 * How calls are executed: one at a time, written together, and taken back together if the write fails.
 *
 * A thread that finds the store busy queues its call and waits. The busy thread commits its batch and leaves. Then one
 * of the waiting threads becomes busy, executes all queued calls as the next batch, and wakes their callers.
 */
#include "lib/base/fork.h"
#include "lib/base/time.h"
#include "lib/jobs/body.h"
#include "lib/jobs/local/local_internal.h"

/* On the stack of the thread that waits for it. */
struct queued_call {
	call_fn *fn;
	struct jobs_call *call;
	int result;
	int done;
	struct queued_call *next;
};

/* ---- One at a time */

/* Whether this thread is busy. The lock is held. */
static int is_owner(const struct jobs_local *jobs)
{
	return jobs->busy && pthread_equal(jobs->owner, pthread_self());
}

int ww_jobs_local_begin(struct ww_jobs *handle)
{
	struct jobs_local *jobs = local_of(handle);
	int mine;

	if (ww_fork_count() != jobs->forks)
		return WW_ECLOSED;
	pthread_mutex_lock(&jobs->lock);
	mine = is_owner(jobs);
	while (!mine && jobs->busy)
		pthread_cond_wait(&jobs->idle, &jobs->lock);
	jobs->busy = 1;
	jobs->owner = pthread_self();
	pthread_mutex_unlock(&jobs->lock);
	return mine ? WW_EBUSY : WW_OK;
}

/* The busy thread executes what is queued, as one batch. */
static void execute(struct jobs_local *jobs, struct queued_call *first)
{
	struct queued_call *next;
	int error;

	for (struct queued_call *queued = first; queued; queued = queued->next)
		queued->result = queued->fn(jobs, queued->call);
	error = ww_jobs_commit_batch(jobs);
	pthread_mutex_lock(&jobs->lock);
	for (struct queued_call *queued = first; queued; queued = next) {
		next = queued->next;
		if (error)
			queued->result = error;
		queued->done = 1; /* from here on its caller may return */
	}
	jobs->busy = 0;
	pthread_cond_broadcast(&jobs->idle);
}

int ww_jobs_submit(struct jobs_local *jobs, call_fn *fn, struct jobs_call *call)
{
	struct queued_call queued = {fn, call, WW_OK, 0, NULL};
	struct queued_call *first;

	if (ww_fork_count() != jobs->forks)
		return WW_ECLOSED;
	pthread_mutex_lock(&jobs->lock);
	if (is_owner(jobs)) {
		pthread_mutex_unlock(&jobs->lock);
		return fn(jobs, call);
	}
	jobs->inside++;
	*jobs->last = &queued;
	jobs->last = &queued.next;
	while (jobs->busy && !queued.done)
		pthread_cond_wait(&jobs->idle, &jobs->lock);
	if (!queued.done) {
		jobs->busy = 1;
		jobs->owner = pthread_self();
		first = jobs->first;
		jobs->first = NULL;
		jobs->last = &jobs->first;
		pthread_mutex_unlock(&jobs->lock);
		execute(jobs, first); /* returns with the lock */
	}
	/* ww_jobs_close waits for this. */
	if (--jobs->inside == 0 && jobs->closed)
		pthread_cond_broadcast(&jobs->idle);
	pthread_mutex_unlock(&jobs->lock);
	return queued.result;
}

int ww_jobs_is_mine(struct jobs_local *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	int mine = is_owner(jobs);
	pthread_mutex_unlock(&jobs->lock);
	return mine;
}

int ww_jobs_local_commit(struct ww_jobs *handle)
{
	struct jobs_local *jobs = local_of(handle);
	int error;

	if (ww_fork_count() != jobs->forks)
		return WW_ECLOSED;
	if (!ww_jobs_is_mine(jobs))
		return WW_EBUSY;
	error = ww_jobs_commit_batch(jobs);
	pthread_mutex_lock(&jobs->lock);
	jobs->busy = 0;
	pthread_cond_broadcast(&jobs->idle);
	pthread_mutex_unlock(&jobs->lock);
	return error;
}

/* ---- The calls of jobs.h */

/* A call has failed: take back what it had handed out before it, or the write of its batch, failed. */
static void withdraw(const struct jobs_local *jobs, struct jobs_call *call, int error)
{
	job_body_free(jobs->allocator, call->copy);
	for (size_t i = 0; i < call->leased; i++) {
		job_body_free(jobs->allocator, call->leases[i].body);
		call->leases[i].body = NULL;
	}
	for (size_t i = 0; call->puts && i < call->count; i++)
		if (call->puts[i].result >= 0)
			call->puts[i].result = error;
	for (size_t i = 0; call->ends && i < call->count; i++)
		if (call->ends[i].result >= 0)
			call->ends[i].result = error;
}

int ww_jobs_local_call(struct ww_jobs *handle, struct jobs_call *call)
{
	static call_fn *const functions[] = {
	    [JOBS_PUT] = ww_jobs_local_put,
	    [JOBS_PUT_MANY] = ww_jobs_local_put_many,
	    [JOBS_MOVE] = ww_jobs_local_move,
	    [JOBS_CANCEL] = ww_jobs_local_cancel,
	    [JOBS_RESERVE] = ww_jobs_local_reserve,
	    [JOBS_RESERVE_MANY] = ww_jobs_local_reserve,
	    [JOBS_RESERVE_JOB] = ww_jobs_local_reserve_job,
	    [JOBS_FINISH] = ww_jobs_local_finish,
	    [JOBS_FINISH_MANY] = ww_jobs_local_finish_many,
	    [JOBS_RELEASE] = ww_jobs_local_fail,
	    [JOBS_RETURN] = ww_jobs_local_return,
	    [JOBS_BURY] = ww_jobs_local_fail,
	    [JOBS_TOUCH] = ww_jobs_local_touch,
	    [JOBS_KICK] = ww_jobs_local_kick,
	    [JOBS_KICK_JOB] = ww_jobs_local_kick_job,
	    [JOBS_PAUSE] = ww_jobs_local_pause,
	    [JOBS_REPORT] = ww_jobs_local_report,
	    [JOBS_HISTORY] = ww_jobs_local_history,
	    [JOBS_LIMIT_SET] = ww_jobs_local_limit_set,
	    [JOBS_LIMIT_GET] = ww_jobs_local_limit_get,
	    [JOBS_LIMIT_LIST] = ww_jobs_local_limit_list,
	    [JOBS_PEEK] = ww_jobs_local_peek,
	    [JOBS_PEEK_NEXT] = ww_jobs_local_peek_next,
	    [JOBS_STATE] = ww_jobs_local_state,
	    [JOBS_LIST] = ww_jobs_local_list,
	    [JOBS_FORECAST] = ww_jobs_local_forecast,
	    [JOBS_STATS] = ww_jobs_local_stats,
	    [JOBS_TUBE] = ww_jobs_local_tube,
	    [JOBS_TUBES] = ww_jobs_local_tubes,
	    [JOBS_CHECK] = ww_jobs_local_check,
	};
	struct jobs_local *jobs = local_of(handle);
	int is_single = call->op == JOBS_RESERVE || call->op == JOBS_RESERVE_JOB;
	struct ww_lease *leases = call->leases, lease;
	/* A list tells where it ended also if its callback ended it. */
	uint64_t *answer = call->op == JOBS_LIST ? NULL : call->answer, answered = 0;
	uint64_t *new_id = call->new_id, id = 0;
	int result;

	if (call->op == JOBS_WAIT)
		return ww_jobs_local_wait(jobs, call);
	for (size_t i = 0; call->ends && i < call->count; i++)
		call->ends[i].result = WW_OK;
	/* What belongs to the caller changes only if the batch succeeds. */
	if (is_single)
		call->leases = &lease;
	if (answer)
		call->answer = &answered;
	if (new_id)
		call->new_id = &id;
	result = ww_jobs_submit(jobs, functions[call->op], call);
	if (result < 0)
		withdraw(jobs, call, result);
	else if (call->body)
		*call->body = call->copy;
	if (is_single && result >= 0 && call->leased)
		*leases = lease;
	if (answer && result >= 0)
		*answer = answered;
	if (new_id && result >= 0)
		*new_id = id;
	call->leases = leases;
	call->new_id = new_id;
	if (answer)
		call->answer = answer;
	return result;
}

/* ---- All or nothing */

int ww_jobs_writing(struct jobs_local *jobs)
{
	int error;

	if (jobs->broken)
		return jobs->broken;
	if (jobs->writing)
		return WW_OK;
	if (jobs->config.flags & WW_JOBS_READONLY)
		return WW_EDENIED;
	error = jobs->store.ops->begin(jobs->store.self);
	jobs->writing = !error;
	return error;
}

int ww_jobs_writing_more(struct jobs_local *jobs, size_t size)
{
	/* What the indices and the counts of the tube take beside. A refused call is to begin no write: that takes room. */
	int error =
	    jobs->config.flags & WW_JOBS_READONLY ? WW_OK : jobs->store.ops->room(jobs->store.self, size + 4096);

	return error ? error : ww_jobs_writing(jobs);
}

int ww_jobs_broken(struct jobs_local *jobs, int error)
{
	if (error && !jobs->broken)
		jobs->broken = error;
	return error;
}

int ww_jobs_note(struct jobs_local *jobs, const struct undo *undo)
{
	if (jobs->undo_count == jobs->undo_room) {
		size_t room = jobs->undo_room ? 2 * jobs->undo_room : 64;
		struct undo *more =
		    ww_jobs_resize(jobs, jobs->undo, jobs->undo_room * sizeof *more, room * sizeof *more);
		if (!more)
			return WW_ENOMEM;
		jobs->undo = more;
		jobs->undo_room = room;
	}
	jobs->undo[jobs->undo_count++] = *undo;
	return WW_OK;
}

static void take_back(struct jobs_local *jobs)
{
	ww_jobs_untold(jobs);
	jobs->undoing = 1;
	while (jobs->undo_count) {
		const struct undo *undo = &jobs->undo[--jobs->undo_count];
		if (undo->kind == UNDO_COUNTS)
			ww_jobs_tube_change(undo, -1);
		else if (undo->kind == UNDO_RULE) {
			ww_jobs_rule_undo(undo->tube, undo->rule, &undo->rule_was);
		} else if (ww_jobs_set(jobs, undo->id, &undo->was)) {
			/* There is no memory for the entry. The store still has the job: read everything again. */
			jobs->elapsed.edge_due = jobs->elapsed.edge_id = 0;
			jobs->wall.edge_due = jobs->wall.edge_id = 0;
			jobs->elapsed.wants = jobs->wall.wants = 1;
		}
	}
	jobs->undoing = 0;
	jobs->elapsed.first = jobs->wall.first = 0;
	jobs->taken_back++;
	jobs->meta = jobs->meta_before;
	if (jobs->all.kept)
		ww_jobs_plan_forget(jobs, time_after(ww_jobs_time(&jobs->elapsed), WW_SECOND));
}

static int store_batch(struct jobs_local *jobs)
{
	uint64_t began;
	int error = jobs->broken;

	if (!error)
		error = ww_jobs_tubes_store(jobs);
	if (!error)
		error = ww_jobs_counts_store(jobs);
	if (!error)
		error = ww_jobs_history_store(jobs);
	if (!error)
		error = ww_jobs_meta_write(jobs);
	if (error) {
		jobs->store.ops->abort(jobs->store.self);
		return error;
	}
	began = time_now(CLOCK_MONOTONIC);
	error = jobs->store.ops->commit(jobs->store.self);
	if (!error && jobs->must_sync)
		error = jobs->store.ops->sync(jobs->store.self);
	jobs->must_sync = 0;
	jobs->commits++;
	if (jobs->config.sync == WW_SYNC_ALWAYS) {
		jobs->syncs++;
		jobs->sync_ns += time_now(CLOCK_MONOTONIC) - began;
	}
	return error;
}

/* Tell the program and the threads that wait which tubes have something new that is ready. */
static void notify(struct jobs_local *jobs)
{
	struct tube *tube = jobs->notify;

	if (!tube)
		return;
	for (; tube; tube = tube->next_notify) {
		tube->notify = 0;
		if (jobs->config.ready)
			jobs->config.ready(tube->name, jobs->config.context);
	}
	jobs->notify = NULL;
	pthread_mutex_lock(&jobs->lock);
	jobs->readies++;
	pthread_cond_broadcast(&jobs->ready_cond);
	pthread_mutex_unlock(&jobs->lock);
}

int ww_jobs_commit_batch(struct jobs_local *jobs)
{
	int error = jobs->writing ? store_batch(jobs) : jobs->broken;

	jobs->writing = 0;
	jobs->broken = WW_OK;
	if (error)
		take_back(jobs);
	ww_jobs_counts_settle(jobs, error);
	jobs->undo_count = 0;
	jobs->runs.size = 0;
	jobs->meta_before = jobs->meta;
	jobs->store.ops->tell_time(jobs->store.self, ww_jobs_time(&jobs->elapsed), ww_jobs_time(&jobs->wall));
	ww_jobs_load(&jobs->elapsed);
	ww_jobs_load(&jobs->wall);
	jobs->store.ops->rest(jobs->store.self);
	if (jobs->told_size || jobs->told_lost)
		ww_jobs_told(jobs);
	notify(jobs);
	ww_jobs_groups_settle(jobs);
	ww_jobs_tubes_settle(jobs);
	return error;
}
