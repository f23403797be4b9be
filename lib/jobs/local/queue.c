/*
 * How calls are executed: one at a time, and as many together as wait.
 *
 * A thread that finds the store busy queues its call and waits. The busy thread commits its batch and leaves. Then one
 * of the waiting threads becomes busy, executes all queued calls as the next batch, and wakes their callers.
 */
#include "lib/jobs/local/queue.h"

#include "lib/base/fork.h"
#include "lib/jobs/local/local.h"

/* On the stack of the thread that waits for it. */
struct queued_call {
	call_fn *fn;
	void *arguments;
	int result;
	int done;
	struct queued_call *next;
};

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
		queued->result = queued->fn(jobs, queued->arguments);
	error = jobs->commit(jobs);
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

int ww_jobs_submit(struct jobs_local *jobs, call_fn *fn, void *arguments)
{
	struct queued_call queued = {fn, arguments, WW_OK, 0, NULL};
	struct queued_call *first;

	if (ww_fork_count() != jobs->forks)
		return WW_ECLOSED;
	pthread_mutex_lock(&jobs->lock);
	if (is_owner(jobs)) {
		pthread_mutex_unlock(&jobs->lock);
		return fn(jobs, arguments);
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
	error = jobs->commit(jobs);
	pthread_mutex_lock(&jobs->lock);
	jobs->busy = 0;
	pthread_cond_broadcast(&jobs->idle);
	pthread_mutex_unlock(&jobs->lock);
	return error;
}
