/* A job that any machine may do: put it into the store in Redis whose URL is the argument, redis://HOST:PORT. */
#include <stdio.h>
#include <string.h>
#include <weekwheel/jobs_redis.h>

static void report(const char *sentence, void *context)
{
	fprintf(stderr, "%s\n", sentence);
	(void)context;
}

int main(int count, char **arguments)
{
	struct ww_jobs_redis_config config;
	struct ww_job_spec spec;
	struct ww_jobs *jobs;
	uint64_t id;

	if (count < 2) {
		printf("usage: %s redis://HOST:PORT\n", arguments[0]);
		return 0;
	}
	ww_jobs_redis_config_default(&config);
	config.url = arguments[1];
	config.report = report;
	int error = ww_jobs_redis_open(&jobs, &config);
	if (error < 0) {
		fprintf(stderr, "%s: %s\n", arguments[1], ww_strerror(error));
		return 1;
	}
	ww_job_spec_default(&spec);
	spec.tube = "mail";
	spec.body = "send the invoice";
	spec.body_length = strlen(spec.body);
	error = ww_jobs_put(jobs, &spec, &id, NULL);
	if (error >= 0)
		printf("job %llu is in the tube mail\n", (unsigned long long)id);
	ww_jobs_close(jobs);
	return error < 0;
}
