#ifndef LIB_JOBS_LOCAL_HISTORY_H
#define LIB_JOBS_LOCAL_HISTORY_H

/*
 * What became of runs: for jobs that ask for it, each end of a lease is kept for a time, with what its worker reported
 * (J12). history.c has the format.
 *
 * Complexity: O(log n). A look at the history passes at most a thousand runs, as other calls wait meanwhile.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/jobs/local/record.h"
#include "lib/jobs/store/store.h"
#include "weekwheel/jobs.h"

struct jobs_local;

/* A lease that ends. */
struct ended_run {
	enum ww_event_kind outcome;
	uint64_t id;
	uint64_t token;
	uint64_t attempt;
	const struct job_record *record; /* as it becomes */
};

/* Runs that ended in this batch, each behind its size. */
struct ended_runs {
	unsigned char *bytes;
	size_t size;
	size_t room;
};

/* A report is of a lease: WW_ESTALE if that has ended. */
int ww_jobs_local_report(struct ww_jobs *handle, uint64_t id, uint64_t token, const void *report, size_t length);
int ww_jobs_local_history(struct ww_jobs *handle, const struct ww_run_filter *filter, size_t limit, ww_run_fn *fn,
    void *context, uint64_t *next);

/* Find the first and the last. */
int ww_jobs_history_open(struct jobs_local *jobs);
void ww_jobs_history_close(struct jobs_local *jobs);
/*
 * Note how a lease ends, and let that be kept for as long as the job asks for. Called before the change is written, as
 * bytes of the record may lie in the store. Without memory the run is not kept.
 */
void ww_jobs_end_run(struct jobs_local *jobs, const struct ended_run *run);
/* Put what this batch has ended, and forget a few of the first. On a full disk nothing is put, and WW_OK returned. */
int ww_jobs_history_store(struct jobs_local *jobs);
/* The elapsed time of the store that the runs come from began elsewhere: add this to all times until which they are kept. */
int ww_jobs_history_shift(struct jobs_local *jobs, int64_t shift);
/* Whether a pair of META is a run. */
int ww_jobs_is_run(struct store_bytes key);

#endif
