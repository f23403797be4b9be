/* A durable job: a reminder that fails at the first attempt and succeeds at the second. */
#include <stdio.h>
#include <string.h>
#include <weekwheel/jobs.h>
#include <weekwheel/weekwheel.h>

static void print_error(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, ww_strerror(error));
}

/* Put a reminder that is due in a moment, reserve it, fail once, and finish it the second time. */
static int remind(struct ww_jobs *jobs)
{
	const char *const tubes[] = {"mail"};
	struct ww_job_spec spec;
	struct ww_lease lease;
	int error;

	ww_job_spec_default(&spec);
	spec.tube = "mail";
	spec.body = "send the invoice";
	spec.body_length = strlen(spec.body);
	spec.due = 100 * WW_MILLISECOND;              /* or 182 days: a job so far away takes no memory */
	spec.attempts = 5;                            /* then it is buried with its last error */
	spec.backoff = 50 * WW_MILLISECOND;           /* after the first failure; doubled with each */
	error = ww_jobs_put(jobs, &spec, NULL, NULL); /* returns when it is on disk */
	while (!error && ww_jobs_wait(jobs, tubes, 1, 10 * WW_SECOND, &lease) == 1) {
		printf("attempt %u: %.*s\n", lease.attempt, (int)lease.body_length, (const char *)lease.body);
		ww_jobs_free(jobs, lease.body);
		if (lease.attempt == 2)
			return ww_jobs_finish(jobs, lease.id, lease.token);
		error = ww_jobs_release(jobs, lease.id, lease.token, 1024, WW_JOB_BACKOFF, "no route to host");
	}
	return error;
}

int main(int count, char **arguments)
{
	struct ww_driver *driver;
	struct ww_jobs_config config;
	struct ww_jobs *jobs;
	int error = ww_driver_create(&driver, NULL);

	if (error) {
		print_error("driver", error);
		return 1;
	}
	ww_jobs_config_default(&config);
	config.driver = driver;
	config.path = count > 1 ? arguments[1] : NULL; /* the directory of the store */
	config.flags = count > 1 ? 0 : WW_JOBS_MEMORY; /* without a directory: in memory */
	error = ww_jobs_open(&jobs, &config);
	if (error) {
		print_error("jobs", error);
	} else {
		error = remind(jobs);
		ww_jobs_close(jobs);
	}
	ww_driver_destroy(driver);
	return error != 0;
}
