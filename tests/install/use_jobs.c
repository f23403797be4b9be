/*
 * A user's program for an installed weekwheel-jobs: it puts a job into a directory, opens that again, and gets the job.
 */

#include <stdio.h>
#include <string.h>
#include <weekwheel/jobs.h>

static int deliver(struct ww_jobs *jobs)
{
	const char *const tubes[] = {WW_TUBE_DEFAULT};
	struct ww_lease lease;
	int result = ww_jobs_reserve(jobs, tubes, 1, &lease);

	if (result != 1)
		return result < 0 ? result : WW_ENOTFOUND;
	result = lease.body_length == 5 && memcmp(lease.body, "hello", 5) == 0 ? WW_OK : WW_ECORRUPT;
	ww_jobs_free(jobs, lease.body);
	return result == WW_OK ? ww_jobs_finish(jobs, lease.id, lease.token) : result;
}

static int put(struct ww_jobs *jobs)
{
	struct ww_job_spec spec;

	(void)ww_job_spec_default(&spec);
	spec.body = "hello";
	spec.body_length = 5;
	return ww_jobs_put(jobs, &spec, NULL, NULL);
}

int main(int count, char **arguments)
{
	struct ww_driver_config threadless;
	struct ww_driver *driver = NULL;
	struct ww_jobs_config config;
	struct ww_jobs *jobs = NULL;
	int error = ww_driver_config_default(&threadless);
	int i;

	threadless.flags = WW_DRIVER_THREADLESS;
	if (error == WW_OK)
		error = ww_driver_create(&driver, &threadless);
	(void)ww_jobs_config_default(&config);
	config.path = count > 1 ? arguments[1] : "jobs";
	config.driver = driver;
	for (i = 0; i < 2 && error == WW_OK; i++) {
		error = ww_jobs_open(&jobs, &config);
		if (error == WW_OK)
			error = i == 0 ? put(jobs) : deliver(jobs);
		if (error == WW_OK)
			error = ww_jobs_close(jobs);
	}
	if (error != WW_OK) {
		(void)fprintf(stderr, "%s\n", ww_strerror(error));
		return 1;
	}
	return ww_driver_destroy(driver) == WW_OK ? 0 : 1;
}
