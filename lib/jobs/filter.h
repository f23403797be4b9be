#ifndef LIB_JOBS_FILTER_H
#define LIB_JOBS_FILTER_H

/* Which jobs a list contains, in any kind of store. */

#include <string.h>

#include "weekwheel/jobs.h"

/* Whether a job matches all members of the filter except `after`. */
static inline int job_filter_takes(const struct ww_job_filter *filter, const struct ww_job_info *info)
{
	if (filter->tube && strcmp(filter->tube, info->tube) != 0)
		return 0;
	if (filter->prefix_length > info->key_length ||
	    (filter->prefix_length && memcmp(filter->prefix, info->key, filter->prefix_length) != 0))
		return 0;
	if (!(filter->states ? filter->states >> info->state & 1 : info->state != WW_JOB_ENDED))
		return 0;
	if (info->state == WW_JOB_BURIED)
		return !filter->from && !filter->to;
	return info->due >= filter->from && (!filter->to || info->due < filter->to);
}

#endif
