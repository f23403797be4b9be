/* A job each night at three: it is in a store, which is in memory here. Run it once now. */
#include <stdio.h>
#include <weekwheel/schedule.h>
#include <weekwheel/weekwheel.h>

static int backup(struct ww_jobs *jobs)
{
	const char *const tubes[] = {"nightly"};
	struct ww_schedule *schedule;
	struct ww_schedule_spec spec;
	struct ww_lease lease;

	ww_schedule_spec_default(&spec);
	spec.tube = "nightly";
	spec.name = "backup";
	spec.expression = "0 3 * * *";
	spec.zone = "Europe/Berlin";
	spec.body = "./backup --all";
	spec.body_length = 14;
	if (ww_schedule_open(&schedule, jobs, NULL))
		return 1;
	/* In a service, a thread calls ww_schedule_work in a loop: it puts a job at each time. */
	if (ww_schedule_put(schedule, &spec, NULL, NULL) == WW_PUT_NEW &&
	    ww_schedule_run(schedule, "nightly", "backup", NULL) >= 0 && ww_jobs_reserve(jobs, tubes, 1, &lease) == 1) {
		printf("%.*s\n", (int)lease.body_length, (const char *)lease.body);
		ww_jobs_free(jobs, lease.body);
		ww_jobs_finish(jobs, lease.id, lease.token);
	}
	ww_schedule_close(schedule);
	return 0;
}

int main(void)
{
	struct ww_driver *driver, *wall;
	struct ww_driver_config wall_config;
	struct ww_jobs_config config;
	struct ww_jobs *jobs;

	ww_driver_config_default(&wall_config);
	wall_config.clock = ww_clock_wall(); /* a schedule's times are on the wall clock */
	if (ww_driver_create(&driver, NULL) || ww_driver_create(&wall, &wall_config))
		return 1;
	ww_jobs_config_default(&config);
	config.driver = driver;
	config.wall = wall;
	config.flags = WW_JOBS_MEMORY; /* or config.path = "jobs", a directory */
	if (ww_jobs_open(&jobs, &config))
		return 1;
	int status = backup(jobs);
	ww_jobs_close(jobs);
	return status || ww_driver_destroy(wall) || ww_driver_destroy(driver);
}
