#ifndef TOOLS_WEEKWHEEL_JOBS_PUT_H
#define TOOLS_WEEKWHEEL_JOBS_PUT_H

/* weekwheel put: what is asked for, and how it is sent. */

#include "tools/weekwheel/jobs/jobs.h"
#include "weekwheel/callback.h"

/* The longest job that is read; no server takes a longer one. */
#define PUT_BODY_MAX ((size_t)1 << 30)

struct put {
	struct jobs jobs;
	uint64_t delay, at, period, run, backoff, backoff_max, skip;
	uint64_t priority, attempts, version;
	const char *missed;
	int has_delay, has_at, has_attempts, has_backoff, has_backoff_max, has_skip;
	const char *body; /* NULL: not on the command line */
	const char *file; /* NULL: none; "-" is standard input */
	int lines;
	const char *url, *method; /* of a request; NULL: the job is none, POST */
	struct ww_callback_request request;
	/* What stands before each body: the request's first line and its headers. */
	char *head;
	size_t head_length;
	/* What stands before and behind the body's size in a job's command. */
	char before[120], behind[JOBS_KEY_TEXT + 300];
};

enum put_kind { PUT_RUN, PUT_HELP, PUT_WRONG };

/* Read the command line. PUT_WRONG comes after a message. */
enum put_kind put_parse(struct put *put, char **arguments);
void put_help(FILE *out);

/* Whether the job needs weekwheeld: beanstalkd's put has whole seconds, and neither keys nor periods. */
int put_is_own(const struct put *put);

/* Fill before and behind. */
void put_compose(struct put *put);

/* Take a --header; then, with all that was given, write the head. 0, or OPTIONS_ERROR after a message. */
int put_request_header(struct put *put, const struct options *options);
int put_request_check(struct put *put, const struct options *options);

/* Queue the command that puts this body. */
void put_send(struct put *put, const void *body, size_t size);

/* Put a job for each line of standard input. Returns the exit status. */
int put_lines(struct put *put);

#endif
