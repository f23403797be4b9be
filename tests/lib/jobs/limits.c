/* Jobs without a delay in the default tube, and its limit. */
#include "tests/lib/jobs/limits.h"

void limits_clear(struct world *world)
{
	struct ww_limit limit;

	OK(ww_jobs_limit_default(&limit));
	OK(ww_jobs_limit_set(world->jobs, &(struct ww_limit_ref){.tube = WW_TUBE_DEFAULT}, &limit));
}

void limits_put(struct world *world, unsigned count)
{
	struct ww_job_spec spec = spec_of("x");

	for (unsigned i = 0; i < count; i++)
		(void)put_job(world, &spec);
}

unsigned limits_run_all(struct world *world)
{
	struct ww_lease leases[LIMITS_MOST];
	int count = ww_jobs_reserve_many(world->jobs, (const char *const[]){WW_TUBE_DEFAULT}, 1, leases, LIMITS_MOST);

	ck_assert_int_ge(count, 0);
	for (int i = 0; i < count; i++) {
		OK(ww_jobs_finish(world->jobs, leases[i].id, leases[i].token));
		ww_jobs_free(world->jobs, leases[i].body);
	}
	return (unsigned)count;
}

unsigned limits_starts_since(const uint64_t *times, unsigned count, uint64_t from)
{
	unsigned found = 0;

	while (found < count && times[count - 1 - found] > from)
		found++;
	return found;
}
