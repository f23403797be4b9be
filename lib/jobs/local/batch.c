/* Calls, one at a time; what is written together, and taken back together. */
#include <string.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "lib/jobs/local/local_internal.h"

/* ---- One at a time */

int ww_jobs_enter(struct jobs_local *jobs)
{
	if (getpid() != jobs->process)
		return WW_ECLOSED;
	pthread_mutex_lock(&jobs->lock);
	if (jobs->busy && pthread_equal(jobs->owner, pthread_self())) {
		pthread_mutex_unlock(&jobs->lock);
		return WW_EBUSY;
	}
	while (jobs->busy)
		pthread_cond_wait(&jobs->idle, &jobs->lock);
	jobs->busy = 1;
	jobs->owner = pthread_self();
	pthread_mutex_unlock(&jobs->lock);
	return WW_OK;
}

void ww_jobs_leave(struct jobs_local *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	jobs->busy = 0;
	pthread_cond_broadcast(&jobs->idle);
	pthread_mutex_unlock(&jobs->lock);
}

/* The thread is busy: execute what waits, as one batch. */
static void execute(struct jobs_local *jobs, struct call *first)
{
	struct call *next;
	int error;

	for (struct call *call = first; call; call = call->next)
		call->result = call->fn(jobs, call->arguments);
	error = ww_jobs_commit_batch(jobs);
	pthread_mutex_lock(&jobs->lock);
	for (struct call *call = first; call; call = next) {
		next = call->next;
		if (error)
			call->result = error;
		call->done = 1; /* from here on it is its caller's again */
	}
	jobs->busy = 0;
	pthread_cond_broadcast(&jobs->idle);
	pthread_mutex_unlock(&jobs->lock);
}

/* The lock is held, and given back. Whoever closes the store waits for this. */
static void leave_submit(struct jobs_local *jobs)
{
	if (--jobs->inside == 0 && jobs->closed)
		pthread_cond_broadcast(&jobs->idle);
	pthread_mutex_unlock(&jobs->lock);
}

int ww_jobs_submit(struct jobs_local *jobs, call_fn *fn, void *arguments)
{
	struct call call = {fn, arguments, WW_OK, 0, NULL};
	struct call *first;

	if (getpid() != jobs->process)
		return WW_ECLOSED;
	pthread_mutex_lock(&jobs->lock);
	if (jobs->busy && pthread_equal(jobs->owner, pthread_self())) {
		pthread_mutex_unlock(&jobs->lock);
		return fn(jobs, arguments);
	}
	jobs->inside++;
	*jobs->last = &call;
	jobs->last = &call.next;
	while (jobs->busy && !call.done)
		pthread_cond_wait(&jobs->idle, &jobs->lock);
	if (call.done) {
		leave_submit(jobs);
		return call.result;
	}
	jobs->busy = 1;
	jobs->owner = pthread_self();
	first = jobs->first;
	jobs->first = NULL;
	jobs->last = &jobs->first;
	pthread_mutex_unlock(&jobs->lock);
	execute(jobs, first);
	pthread_mutex_lock(&jobs->lock);
	leave_submit(jobs);
	return call.result;
}

int ww_jobs_is_mine(struct jobs_local *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	int mine = jobs->busy && pthread_equal(jobs->owner, pthread_self());
	pthread_mutex_unlock(&jobs->lock);
	return mine;
}

int ww_jobs_local_begin(struct ww_jobs *jobs)
{
	return ww_jobs_enter(local_of(jobs));
}

int ww_jobs_local_commit(struct ww_jobs *handle)
{
	struct jobs_local *jobs = local_of(handle);
	int error;

	if (getpid() != jobs->process)
		return WW_ECLOSED;
	if (!ww_jobs_is_mine(jobs))
		return WW_EBUSY;
	error = ww_jobs_commit_batch(jobs);
	ww_jobs_leave(jobs);
	return error;
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
		struct undo *more = ww_jobs_allocate(jobs, room * sizeof *more);
		if (!more)
			return WW_ENOMEM;
		if (jobs->undo_count)
			memcpy(more, jobs->undo, jobs->undo_count * sizeof *more);
		ww_jobs_give(jobs, jobs->undo, jobs->undo_room * sizeof *more);
		jobs->undo = more;
		jobs->undo_room = room;
	}
	jobs->undo[jobs->undo_count++] = *undo;
	return WW_OK;
}

static void take_back(struct jobs_local *jobs)
{
	jobs->undoing = 1;
	while (jobs->undo_count) {
		const struct undo *undo = &jobs->undo[--jobs->undo_count];
		if (undo->kind == UNDO_COUNTS)
			ww_jobs_tube_change(jobs, undo, -1);
		else if (ww_jobs_set(jobs, undo->id, &undo->was)) {
			/* No memory for what it was: the store still has it, and all is read again. */
			jobs->elapsed.edge_due = jobs->elapsed.edge_id = 0;
			jobs->wall.edge_due = jobs->wall.edge_id = 0;
			jobs->elapsed.wants = jobs->wall.wants = 1;
		}
	}
	jobs->undoing = 0;
	jobs->meta = jobs->meta_before;
}

static int store_batch(struct jobs_local *jobs)
{
	uint64_t began;
	int error = jobs->broken;

	if (!error)
		error = ww_jobs_tubes_store(jobs);
	if (!error)
		error = ww_jobs_meta_write(jobs);
	if (error) {
		jobs->store.ops->abort(jobs->store.self);
		return error;
	}
	began = time_now(CLOCK_MONOTONIC);
	error = jobs->store.ops->commit(jobs->store.self);
	jobs->commits++;
	if (jobs->config.sync == WW_SYNC_ALWAYS) {
		jobs->syncs++;
		jobs->sync_ns += time_now(CLOCK_MONOTONIC) - began;
	}
	return error;
}

/* Tell of tubes that got something ready. */
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
	jobs->undo_count = 0;
	jobs->meta_before = jobs->meta;
	ww_jobs_load(&jobs->elapsed);
	ww_jobs_load(&jobs->wall);
	jobs->store.ops->rest(jobs->store.self);
	notify(jobs);
	ww_jobs_tubes_settle(jobs);
	return error;
}
