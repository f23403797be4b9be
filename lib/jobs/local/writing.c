/* What a batch may change: it begins a write of the store, and notes how to take each change back. */
#include "lib/jobs/local/writing.h"

#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"

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
	/*
	 * What the indices and the counts of the tube take in addition. A call that is refused must not begin a write:
	 * that takes room.
	 */
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
