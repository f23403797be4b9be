#ifndef LIB_JOBS_LOCAL_LIMIT_H
#define LIB_JOBS_LOCAL_LIMIT_H

/*
 * Which job of a tube may start, and what a lease means to the limits of its tube. A job that may not start stays where
 * it is; the first caller that wants it sets one timer, for the moment when the next may.
 *
 * Complexity: O(1), and one step for each group that is held anew.
 */

#include <stdint.h>

struct entry;
struct image;
struct tube;

/* The job of a tube that may start next for a worker that knows codes up to one. Returns 1, 0 if there is none, or an error of ww_driver_schedule_at. */
int ww_jobs_ready_next(struct tube *tube, uint32_t code, struct entry **entry);
/* Some ready job of a tube that has any: the next one if one may start. O(groups) */
struct entry *ww_jobs_ready_first(const struct tube *tube);
/* For tubes with `limits`: a job has started; that start was none; or a lease has ended. */
void ww_jobs_limit_start(const struct image *image);
void ww_jobs_limit_return(const struct image *image);
void ww_jobs_limit_end(const struct image *image);
/* How many ready jobs of a tube with `limits` cannot start. */
uint64_t ww_jobs_limit_held(const struct tube *tube);

#endif
