/* The rig of the tests of pushers: a store, a receiver and a pusher, and functions that wait for results. */
#include "tests/support/callback/pushing.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* One pause is 1 ms. */
enum { PAUSES = 60000 };

static const char *const tubes[] = {WW_TUBE_DEFAULT};

void pushing_make(struct pushing *pushing)
{
	pushing_make_upon(pushing, KIND_MEMORY);
}

void pushing_make_upon(struct pushing *pushing, int kind)
{
	memset(pushing, 0, sizeof *pushing);
	world_make(&pushing->world, kind);
	pushing->receiver = receiver_start(NULL);
	OK(ww_callback_config_default(&pushing->config));
	pushing->config.jobs = pushing->world.jobs;
	pushing->config.tubes = tubes;
	pushing->config.tube_count = 1;
	pushing->config.networks = WW_CALLBACK_LOOPBACK;
	pushing->config.poll = WW_MILLISECOND;
	/* Enough even for the slowest test run. */
	pushing->config.connect_timeout = 60 * WW_SECOND;
	pushing->config.timeout = 600 * WW_SECOND;
}

void pushing_open(struct pushing *pushing)
{
	OK(ww_callback_open(&pushing->callback, &pushing->config));
}

void pushing_end(struct pushing *pushing)
{
	OK(ww_callback_close(pushing->callback, 60 * WW_SECOND));
	receiver_stop(pushing->receiver);
	world_check(&pushing->world);
	world_end(&pushing->world);
}

struct ww_job_spec pushing_spec(void)
{
	struct ww_job_spec spec;

	OK(ww_job_spec_default(&spec));
	spec.backoff = 8 * WW_SECOND;
	return spec;
}

uint64_t pushing_put(struct pushing *pushing, const struct ww_job_spec *spec, const char *format, ...)
{
	struct ww_job_spec mine = spec ? *spec : pushing_spec();
	char text[4096];
	va_list arguments;

	va_start(arguments, format);
	mine.body_length = (size_t)vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	mine.body = text;
	return put_job(&pushing->world, &mine);
}

uint64_t pushing_post(struct pushing *pushing, const char *path, const char *lines)
{
	return pushing_put(
	    pushing, NULL, "POST http://127.0.0.1:%u%s\n%s\nhello", receiver_port(pushing->receiver), path, lines);
}

void pushing_pause(int *times)
{
	const struct timespec moment = {0, 1000000};

	ck_assert_msg(++*times < PAUSES, "waited for too long");
	(void)nanosleep(&moment, NULL);
}

/* Wait until a job is in that state, or gone. */
static int wait_for(struct pushing *pushing, uint64_t id, enum ww_job_state wanted, struct ww_job_info *info)
{
	const struct ww_job_ref ref = {.id = id};
	int times = 0;
	int error;

	while (!(error = ww_jobs_peek(pushing->world.jobs, &ref, info, NULL)) && info->state != wanted)
		pushing_pause(&times);
	return error;
}

void expect_finished(struct pushing *pushing, uint64_t id)
{
	struct ww_job_info info;
	const struct ww_job_ref ref = {.id = id};
	int times = 0;
	int error;

	while (!(error = ww_jobs_peek(pushing->world.jobs, &ref, &info, NULL))) {
		ck_assert_msg(
		    info.state == WW_JOB_READY || info.state == WW_JOB_RESERVED, "it is not finished: %s", info.error);
		pushing_pause(&times);
	}
	ck_assert_int_eq(error, WW_ENOTFOUND);
}

void expect_finished_later(struct pushing *pushing, uint64_t id)
{
	struct ww_job_info info;
	const struct ww_job_ref ref = {.id = id};
	int times = 0;

	while (!ww_jobs_peek(pushing->world.jobs, &ref, &info, NULL)) {
		ck_assert_msg(info.state != WW_JOB_BURIED, "it is not finished: %s", info.error);
		pushing_pause(&times);
		world_pass(&pushing->world, 10 * WW_MILLISECOND);
	}
}

void expect_buried(struct pushing *pushing, uint64_t id, const char *reason)
{
	struct ww_job_info info;

	OK(wait_for(pushing, id, WW_JOB_BURIED, &info));
	ck_assert_msg(strstr(info.error, reason) != NULL, "'%s' instead of '%s'", info.error, reason);
}

void expect_again(struct pushing *pushing, uint64_t id, uint64_t least, uint64_t most, const char *reason)
{
	struct ww_job_info info;
	uint64_t now = world_now(&pushing->world);

	OK(wait_for(pushing, id, WW_JOB_DELAYED, &info));
	ck_assert_uint_ge(info.due, now + least);
	ck_assert_uint_le(info.due, now + most);
	ck_assert_uint_eq(info.priority, 1024);
	ck_assert_msg(strstr(info.error, reason) != NULL, "'%s' instead of '%s'", info.error, reason);
}

void expect_backoff(struct pushing *pushing, uint64_t id, const char *reason)
{
	expect_again(pushing, id, 6 * WW_SECOND, 8 * WW_SECOND, reason);
}

struct ww_callback_stats pushing_stats(struct pushing *pushing)
{
	struct ww_callback_stats stats;

	OK(ww_callback_stats(pushing->callback, &stats));
	return stats;
}

void pushing_wait(struct pushing *pushing, const char *what, uint64_t wanted)
{
	int times = 0;

	for (;;) {
		const struct ww_callback_stats stats = pushing_stats(pushing);
		uint64_t is = strcmp(what, "in_flight") == 0   ? stats.in_flight
		              : strcmp(what, "waiting") == 0   ? stats.waiting
		              : strcmp(what, "untold") == 0    ? stats.untold
		              : strcmp(what, "stale") == 0     ? stats.stale
		              : strcmp(what, "finished") == 0  ? stats.finished
		              : strcmp(what, "reserved") == 0  ? stats.reserved
		              : strcmp(what, "retried") == 0   ? stats.retried
		              : strcmp(what, "requests") == 0  ? stats.requests
		              : strcmp(what, "redirects") == 0 ? stats.redirects
		              : strcmp(what, "buried") == 0    ? stats.buried
		              : strcmp(what, "resting") == 0   ? stats.resting
		              : strcmp(what, "rests") == 0     ? stats.rests
		              : strcmp(what, "rested") == 0    ? stats.rested
		              : strcmp(what, "crowded") == 0   ? stats.crowded
		              : strcmp(what, "over") == 0      ? stats.over
		              : strcmp(what, "timed_out") == 0 ? stats.timed_out
		                                               : UINT64_MAX;
		ck_assert_msg(is != UINT64_MAX, "no %s", what);
		if (is == wanted)
			return;
		pushing_pause(&times);
	}
}

static const char *find(const char *request, const char *name)
{
	const char *end = strstr(request, "\r\n\r\n");
	size_t size = strlen(name);

	for (const char *line = strstr(request, "\r\n"); line && line < end; line = strstr(line + 2, "\r\n"))
		if (strncasecmp(line + 2, name, size) == 0 && line[2 + size] == ':')
			return line + 2 + size + 1;
	return NULL;
}

const char *header_of(const char *request, const char *name, char *value)
{
	const char *found = find(request, name);

	ck_assert_msg(found != NULL, "no %s in %s", name, request);
	found += *found == ' ';
	(void)snprintf(value, 256, "%.*s", (int)strcspn(found, "\r"), found);
	return value;
}

int has_header(const char *request, const char *name)
{
	return find(request, name) != NULL;
}
