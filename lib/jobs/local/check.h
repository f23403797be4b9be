#ifndef LIB_JOBS_LOCAL_CHECK_H
#define LIB_JOBS_LOCAL_CHECK_H

/*
 * ww_jobs_check: everything that must hold between records, indices and counts. It reads the whole store, while other
 * calls wait. Returns how many problems were told.
 */

#include "lib/jobs/local/queue.h"

call_fn ww_jobs_local_check;

#endif
