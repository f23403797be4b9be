#ifndef LIB_JOBS_LOCAL_LIMIT_H
#define LIB_JOBS_LOCAL_LIMIT_H

/* Which job of a tube may start, and what a lease means to the limits of its tube. */

#include <stdint.h>

struct entry;
struct image;
struct tube;

/* The job of a tube that may start next. Returns 1, 0 if there is none, or an error. */
int ww_jobs_ready_next(struct tube *tube, struct entry **entry);
/* Some ready job of a tube that has any: the next one if one may start. */
struct entry *ww_jobs_ready_first(const struct tube *tube);
/* For tubes with `limits`: a job has started; that start was none; or a lease has ended. */
void ww_jobs_limit_start(const struct image *image);
void ww_jobs_limit_return(const struct image *image);
void ww_jobs_limit_end(const struct image *image);
/* How many ready jobs of the tube cannot start. */
uint64_t ww_jobs_limit_held(const struct tube *tube);

#endif
