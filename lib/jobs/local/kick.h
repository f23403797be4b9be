#ifndef LIB_JOBS_LOCAL_KICK_H
#define LIB_JOBS_LOCAL_KICK_H

/* Kicks, which make delayed and buried jobs ready, and the pauses of tubes, which are not stored. */

#include <stdint.h>

struct ww_jobs;

int ww_jobs_local_kick(struct ww_jobs *handle, const char *tube, uint64_t bound, uint64_t *count);
int ww_jobs_local_kick_job(struct ww_jobs *handle, uint64_t id);
int ww_jobs_local_pause(struct ww_jobs *handle, const char *tube, uint64_t ns);

#endif
