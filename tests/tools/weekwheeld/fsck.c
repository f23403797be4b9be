/* fsck FOLDER, for tests: checks the store of jobs in the folder, prints what is wrong, and exits with 1 if anything is. */
#include <stdio.h>

#include "weekwheel/jobs.h"

static void problem(const char *text, void *unused)
{
	(void)unused;
	puts(text);
}

static int check(const char *path)
{
	struct ww_driver_config driver_config;
	struct ww_jobs_config config;
	struct ww_driver *driver = NULL;
	struct ww_jobs *jobs = NULL;
	int result;

	(void)ww_driver_config_default(&driver_config);
	driver_config.flags = WW_DRIVER_THREADLESS;
	result = ww_driver_create(&driver, &driver_config);
	(void)ww_jobs_config_default(&config);
	config.path = path;
	config.driver = driver;
	config.flags = WW_JOBS_READONLY;
	if (result == WW_OK)
		result = ww_jobs_open(&jobs, &config);
	if (result == WW_OK)
		result = ww_jobs_check(jobs, problem, NULL);
	if (result < 0)
		puts(ww_strerror(result));
	(void)ww_jobs_close(jobs);
	(void)ww_driver_destroy(driver);
	return result != 0;
}

int main(int count, char **arguments)
{
	return count == 2 ? check(arguments[1]) : 2;
}
