/* Ends a batch: its changes are written together, or undone together if the write fails. */
#include "lib/jobs/local/batch.h"

#include "lib/base/time.h"
#include "lib/jobs/local/coded.h"
#include "lib/jobs/local/counts.h"
#include "lib/jobs/local/ended.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/events.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/history.h"
#include "lib/jobs/local/load.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/meta.h"
#include "lib/jobs/local/rule.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"

static void take_back(struct jobs_local *jobs)
{
	ww_jobs_drop_noted(jobs);
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
	jobs->expired = jobs->expired_before;
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

/* Notify the program and the threads that wait of the tubes that have something new that is ready. */
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
	jobs->expired_before = jobs->expired;
	jobs->store.ops->set_time(jobs->store.self, ww_jobs_time(&jobs->elapsed), ww_jobs_time(&jobs->wall));
	ww_jobs_load(&jobs->elapsed);
	ww_jobs_load(&jobs->wall);
	jobs->store.ops->rest(jobs->store.self);
	if (jobs->events_size || jobs->events_lost)
		ww_jobs_publish_noted(jobs);
	notify(jobs);
	ww_jobs_coded_settle(jobs);
	ww_jobs_groups_settle(jobs);
	ww_jobs_tubes_settle(jobs);
	return error;
}
