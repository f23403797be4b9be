/* What a job is by default, and how it is spread. */
#include <string.h>

#include "lib/base/spread.h"
#include "lib/base/time.h"
#include "weekwheel/jobs.h"

int ww_job_spec_default(struct ww_job_spec *spec)
{
	if (!spec)
		return WW_EINVAL;
	*spec = (struct ww_job_spec){.tube = WW_TUBE_DEFAULT,
	    .run = 60 * WW_SECOND,
	    .backoff_max = 3600 * WW_SECOND,
	    .priority = 1024,
	    .missed = WW_MISSED_ONCE};
	return WW_OK;
}

int ww_job_spread(struct ww_job_spec *spec, uint64_t span)
{
	const size_t tube = spec && spec->tube ? strnlen(spec->tube, WW_TUBE_MAX + 1) : 0;

	if (!tube || tube > WW_TUBE_MAX || span > WW_DRIVER_TIME_MAX)
		return WW_EINVAL;
	const void *name = spec->key_length ? spec->key : spec->body;
	size_t length = spec->key_length ? spec->key_length : spec->body_length;
	if (length && !name)
		return WW_EINVAL;
	/* A sum that is too large is refused by the put. */
	spec->due = time_add(spec->due, spread_part(span, WW_MILLISECOND, spec->tube, name, length));
	return WW_OK;
}
