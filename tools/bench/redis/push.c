/* Pushes jobs that are requests to a server of this process, which answers each with an empty 204. */
#include "tools/bench/redis/redis.h"

#ifdef HAVE_MICROHTTPD

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/common/memory.h"
#include "weekwheel/callback.h"
#include "weekwheel/driver.h"

enum { PUT_MANY = 1024 };

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
    const char *version, const char *upload, size_t *size, void **request)
{
	static int seen;
	struct MHD_Response *empty = context;

	(void)url, (void)method, (void)version, (void)upload;
	/* The first call says that there is a request, further ones have pieces of its body, the last one nothing. */
	if (!*request || *size) {
		*request = &seen;
		*size = 0;
		return MHD_YES;
	}
	return MHD_queue_response(connection, MHD_HTTP_NO_CONTENT, empty);
}

static void put_all(struct ww_jobs *jobs, uint64_t count, unsigned port)
{
	struct ww_job_spec spec;
	struct ww_job_put *puts = memory_zeroed(PUT_MANY, sizeof *puts);
	char body[128];

	(void)ww_job_spec_default(&spec);
	spec.body = body;
	spec.body_length = (size_t)snprintf(body, sizeof body, "POST http://127.0.0.1:%u/\n\nhello", port);
	for (size_t i = 0; i < PUT_MANY; i++)
		puts[i].spec = &spec;
	for (uint64_t done = 0; done < count;) {
		size_t some = count - done < PUT_MANY ? (size_t)(count - done) : PUT_MANY;
		bench_put_many(jobs, puts, some);
		done += some;
	}
	free(puts);
}

static struct ww_jobs *open_embedded(const char *path, struct ww_driver *driver)
{
	struct ww_jobs_config config;
	struct ww_jobs *jobs;

	(void)ww_jobs_config_default(&config);
	config.driver = driver;
	if (strcmp(path, "memory") == 0)
		config.flags = WW_JOBS_MEMORY;
	else
		config.path = path;
	config.sync = WW_SYNC_SYSTEM;
	bench_check(path, ww_jobs_open(&jobs, &config));
	return jobs;
}

/* Push until all are done. Return ns. */
static uint64_t push_all(struct ww_jobs *jobs, uint64_t count, size_t in_flight)
{
	const char *const tubes[] = {WW_TUBE_DEFAULT};
	struct ww_callback_config config;
	struct ww_callback_stats stats;
	struct ww_callback *callback;
	uint64_t began = time_now(CLOCK_MONOTONIC);

	(void)ww_callback_config_default(&config);
	config.jobs = jobs;
	config.tubes = tubes;
	config.tube_count = 1;
	config.networks = WW_CALLBACK_LOOPBACK;
	config.in_flight = config.per_host = in_flight;
	bench_check("callback", ww_callback_open(&callback, &config));
	do {
		bench_sleep(WW_MILLISECOND);
		bench_check("stats", ww_callback_stats(callback, &stats));
		if (stats.retried || stats.buried || stats.refused)
			bench_fail("push", "a request failed");
	} while (stats.finished < count);
	began = time_now(CLOCK_MONOTONIC) - began;
	bench_check("close", ww_callback_close(callback, WW_SECOND));
	return began;
}

void bench_push(const char *url, char **words)
{
	uint64_t count = strtoull(words[0], NULL, 10);
	struct MHD_Response *empty = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
	struct MHD_Daemon *daemon =
	    MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, empty, MHD_OPTION_END);
	const union MHD_DaemonInfo *info = daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	struct ww_driver *driver = NULL;
	struct ww_jobs *jobs;

	if (!info)
		bench_fail("push", "no HTTP server can be started");
	if (strstr(url, "://")) {
		jobs = bench_open(url, 0);
	} else {
		bench_check("driver", ww_driver_create(&driver, NULL));
		jobs = open_embedded(url, driver);
	}
	put_all(jobs, count, info->port);
	double seconds = (double)push_all(jobs, count, strtoul(words[1], NULL, 10)) / 1e9;
	printf("{\"requests\":%" PRIu64 ",\"seconds\":%.3f,\"per_second\":%.0f}\n", count, seconds,
	    (double)count / seconds);
	bench_check("close", ww_jobs_close(jobs));
	if (driver)
		bench_check("driver", ww_driver_destroy(driver));
	MHD_stop_daemon(daemon);
	MHD_destroy_response(empty);
}

#else

void bench_push(const char *url, char **words)
{
	(void)words;
	bench_fail(url, "needs libmicrohttpd");
}

#endif
