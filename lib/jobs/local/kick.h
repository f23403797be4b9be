#ifndef LIB_JOBS_LOCAL_KICK_H
#define LIB_JOBS_LOCAL_KICK_H

/* Kicks, which make delayed and buried jobs ready, and the pauses of tubes, which are not stored. */

#include "lib/jobs/local/queue.h"

call_fn ww_jobs_local_kick, ww_jobs_local_kick_job, ww_jobs_local_pause;

#endif
