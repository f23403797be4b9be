#ifndef TOOLS_WEEKWHEEL_JOBS_PUT_H
#define TOOLS_WEEKWHEEL_JOBS_PUT_H

/* The command put: what the command line asks for, and the parts that send it. */

#include "tools/weekwheel/jobs/jobs.h"
#include "weekwheel/callback.h"

/* The longest job that is read. No server accepts a longer one. */
#define PUT_BODY_MAX ((size_t)1 << 30)

struct put_options {
	struct jobs jobs;
	uint64_t delay, at, period, run, backoff, backoff_max, keep, skip;
	uint64_t priority, attempts, version;
	const char *missed;
	char group[JOBS_KEY_TEXT]; /* percent-encoded; "": none */
	enum put_mode { PUT_REPLACE, PUT_IF_ABSENT, PUT_KEEP_EARLIER, PUT_KEEP_LATER, PUT_DEBOUNCE, PUT_UNIQUE } mode;
	uint64_t key_span; /* of the last two modes */
	int has_delay, has_at, has_attempts, has_backoff, has_backoff_max, has_skip;
	const char *body; /* NULL: not on the command line */
	const char *file; /* NULL: none; "-" is standard input */
	int lines;
	const char *url, *method; /* of an HTTP request; NULL: no request, POST */
	const char *headers[WW_CALLBACK_HEADERS_MAX];
	size_t header_count;
	/* The beginning of each body: the first line and the headers of the request. */
	char *head;
	size_t head_length;
	/* The parts of a job's command before and after the size of its body. */
	char before[120], behind[2 * JOBS_KEY_TEXT + 300];
};

/* Take a --header. Return 0, or OPTIONS_ERROR after a message. */
int put_request_header(struct put_options *put, const struct options *options);

/* Write the head of a request from the whole command line. Return 0, or OPTIONS_ERROR after a message. */
int put_request_check(struct put_options *put, const struct options *options);

/* Queue the command that puts this body. */
void put_send(struct put_options *put, const void *body, size_t size);

/* Connect and put the job or jobs. Return 0, or another number after a message. */
int put_run(void *put);

/* Put a job for each line of standard input. Return 0, or -1 after a message. */
int put_lines(struct put_options *put);

/* Read a file, or standard input for "-". The caller frees *bytes. Return 0, or -1 after a message. */
int put_read_file(const char *name, char **bytes, size_t *size);

#endif
