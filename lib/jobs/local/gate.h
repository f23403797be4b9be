#ifndef LIB_JOBS_LOCAL_GATE_H
#define LIB_JOBS_LOCAL_GATE_H

/* A gate: how many jobs of a tube or a group run, and how often one starts. */

#include <stdint.h>

#include "weekwheel/jobs.h"

struct gate;

/* The limit that it keeps: its own, or that of each group of its tube. */
const struct ww_limit *ww_jobs_gate_limit(const struct gate *gate);
/* Whether nothing may start now; 0 for a tube without limits. */
int ww_jobs_gate_holds(const struct gate *gate);
/* Whether as many run as may. */
int ww_jobs_gate_is_full(const struct gate *gate);
/* A limit that now holds, or from now on, has its burst used up as of that time; 0: it has not. */
void ww_jobs_gate_use_up(struct gate *gate, uint64_t time);
/* What it counts is forgotten. */
void ww_jobs_gate_forget(struct gate *gate);
/* A timer is not needed any more. */
void ww_jobs_gate_cancel(struct gate *gate);
/* When the next start is allowed. */
uint64_t ww_jobs_gate_allows(const struct gate *gate);
/* Leases of the tube or group. */
uint64_t ww_jobs_gate_running(const struct gate *gate);
/* Whether a group's bucket is full: nothing is lost if the group is forgotten. */
int ww_jobs_gate_is_rested(const struct gate *gate);
/* A job has started, the last one that was ready or not. */
void ww_jobs_gate_start(struct gate *gate, uint64_t now, int is_last);
/* That start was none. */
void ww_jobs_gate_return(struct gate *gate);

#endif
