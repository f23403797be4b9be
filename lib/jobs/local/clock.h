#ifndef LIB_JOBS_LOCAL_CLOCK_H
#define LIB_JOBS_LOCAL_CLOCK_H

/*
 * How the two clocks go on when the store is opened, and what is stored of them for that (J5). They are written with
 * each batch, within ten minutes of a step of the wall clock, and at least once a day.
 */

#include <stdint.h>

struct jobs_local;

/* Make both timelines: elapsed time continues where it was, plus the downtime. `meta` has been read. */
void ww_jobs_clock_open(struct jobs_local *jobs, int is_new);
/* Note both clocks in `meta`, for the next opening. */
void ww_jobs_clock_save(struct jobs_local *jobs);
/* Unix time now in ns; 0: an elapsed clock that is virtual is alone. */
uint64_t ww_jobs_clock_wall(const struct jobs_local *jobs);

#endif
