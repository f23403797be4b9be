#ifndef LIB_JOBS_LOCAL_LIMITER_H
#define LIB_JOBS_LOCAL_LIMITER_H

/*
 * A rate limiter: how many jobs of a tube or a group run, how often one starts, and whether one may start now (J10). It
 * only counts. limit.c holds jobs, and lets them go when a limiter says so.
 *
 * Each start moves `even` on by one interval of the rate. The next one may come up to `burst` - 1 intervals before it.
 *
 * Complexity: O(1); where starts are counted in a window, at most its 128 slices. No function fails.
 */

#include <stdint.h>

#include "lib/jobs/local/rule.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs.h"

struct group;
struct tube;
struct window;

struct limiter {
	struct tube *tube;
	struct group *group; /* NULL: the whole tube's */
	struct rule rule;
	uint64_t even;         /* when the next start comes at an even pace: the theoretical arrival time of GCRA */
	uint64_t brisk;        /* the same at twice the pace, at which lost time is made up */
	struct window *window; /* the starts of late; NULL: not counted */
	ww_handle timer;       /* of the moment when the next start is allowed, once a caller wants it */
	int waits;             /* jobs wait for that moment: lateness is made up */
};

/* ---- The limit */

/* The limit that it keeps: its own, or that of each group of its tube. */
const struct ww_limit *ww_jobs_limiter_limit(const struct limiter *limiter);
/* The limit has changed: at `time`, its burst is used up; 0: nothing is. */
void ww_jobs_limiter_use_up(struct limiter *limiter, uint64_t time);
/* Forget the window, and give its memory back. */
void ww_jobs_limiter_forget(struct limiter *limiter);
/* Its timer is not needed any more. */
void ww_jobs_limiter_cancel(struct limiter *limiter);

/* ---- Questions */

/* Whether nothing may start now. */
int ww_jobs_limiter_holds(const struct limiter *limiter);
/* Whether as many run as may. Only the end of a lease changes that. */
int ww_jobs_limiter_is_full(const struct limiter *limiter);
/* When the next start is allowed; 0: at any time. */
uint64_t ww_jobs_limiter_allows(const struct limiter *limiter);
/* The leases of the tube or group. */
uint64_t ww_jobs_limiter_running(const struct limiter *limiter);
/* Whether its burst is whole again: nothing is lost if the group is forgotten. */
int ww_jobs_limiter_is_rested(const struct limiter *limiter);

/* ---- Starts */

/* A job has started, and was the last one that was ready or not. */
void ww_jobs_limiter_start(struct limiter *limiter, uint64_t now, int is_last);
/* That start was none. */
void ww_jobs_limiter_return(struct limiter *limiter);

#endif
