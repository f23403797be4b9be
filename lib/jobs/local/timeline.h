#ifndef LIB_JOBS_LOCAL_TIMELINE_H
#define LIB_JOBS_LOCAL_TIMELINE_H

/*
 * The two clocks of jobs, elapsed time and wall time (J5): the time on each, up to which due time jobs have entries,
 * and when to load more. No function fails.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/jobs/store/store.h"
#include "weekwheel/driver.h"

struct jobs_local;

/* A clock and the jobs on it. */
struct timeline {
	struct jobs_local *jobs;
	struct ww_driver *driver; /* NULL: the store has no driver of this clock */
	uint64_t offset;          /* the time of jobs minus the driver's time; modulo 2^64, as that may be ahead */
	enum store_table table;
	uint64_t edge_due; /* each job that is due before this, or then and with an id up to edge_id, has an entry */
	uint64_t edge_id;
	uint64_t first;   /* no job that waits is due before this */
	uint64_t opened;  /* when the store was opened */
	size_t loaded;    /* delayed entries */
	int cut;          /* the last load stopped at the edge because there were entries enough */
	int wants;        /* load more after the current batch */
	uint64_t planned; /* when to set `wants`, or UINT64_MAX */
	ww_handle timer;  /* of that time */
};

struct timeline *ww_jobs_timeline(struct jobs_local *jobs, int wall);
/* The time now. Also for other threads, once the store is open. */
uint64_t ww_jobs_time(const struct timeline *line);
/* The driver's time at a time of the timeline; 0 if that was before the driver's, at most WW_DRIVER_TIME_MAX. */
uint64_t ww_jobs_driver_time(const struct timeline *line, uint64_t at);
/* Whether a job with this due time lies before the edge. */
int ww_jobs_is_near(const struct timeline *line, uint64_t due, uint64_t id);
/* Count the lateness of a job that becomes ready now, unless it came due while the store was closed. */
void ww_jobs_count_late(const struct timeline *line, uint64_t due);
/* A job beyond the edge was stored: plan to load it in time, half a window before it is due. */
void ww_jobs_plan(struct timeline *line, uint64_t due);
/* Load more at this time of the timeline or, if there is no timer to be had, at the end of the next call. */
void ww_jobs_plan_at(struct timeline *line, uint64_t at);

/* The time `span` later, or the last time there is. */
static inline uint64_t time_after(uint64_t time, uint64_t span)
{
	const uint64_t end = WW_DRIVER_TIME_MAX * 2;

	return span > end || time > end - span ? end : time + span;
}

#endif
