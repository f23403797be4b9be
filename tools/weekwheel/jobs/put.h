#ifndef TOOLS_WEEKWHEEL_JOBS_PUT_H
#define TOOLS_WEEKWHEEL_JOBS_PUT_H

/* The command put: what the command line asks for, and the parts that send it. */

#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/words.h"
#include "weekwheel/callback.h"
#include "weekwheel/jobs.h"

/* The longest job that is read. No server accepts a longer one. */
#define PUT_BODY_MAX ((size_t)1 << 30)

struct put_options {
	struct jobs jobs;
	uint64_t delay, at, run, priority, version;
	enum ww_key_mode mode;
	char words[WORDS_ROOM]; /* what other options say of the job, as words of the protocol */
	int has_delay, has_at;
	const char *body; /* NULL: not on the command line */
	const char *file; /* NULL: none; "-" is standard input */
	int lines;
	const char *then;         /* a follow-up in JSON, or the name of a file with one; NULL: none */
	const char *url, *method; /* of an HTTP request; NULL: no request, POST */
	const char *headers[WW_CALLBACK_HEADERS_MAX];
	size_t header_count;
	/* Before each body: its headers or the first lines of the request, and the follow-up. */
	char *head;
	size_t head_length;
	/* The parts of a job's command before and after the size of its body. */
	char before[120], behind[JOBS_KEY_TEXT + WORDS_ROOM + 100];
};

/* Take a --header. Return 0, or OPTIONS_ERROR after a message. */
int put_request_header(struct put_options *put, const struct options *options);

/* Write the head of a request from the whole command line. Return 0, or OPTIONS_ERROR after a message. */
int put_request_check(struct put_options *put, const struct options *options);

/* Add the follow-up to what stands before each body. Return 0, or OPTIONS_ERROR after a message. */
int put_then_check(struct put_options *put, const struct options *options);

/* Queue the command that puts this body. */
void put_send(struct put_options *put, const void *body, size_t size);

/* Connect and put the job or jobs. Return 0, or another number after a message. */
int put_run(void *put);

/* Put a job for each line of standard input. Return 0, or -1 after a message. */
int put_lines(struct put_options *put);

/* Read a file, or standard input for "-". The caller frees *bytes. Return 0, or -1 after a message. */
int put_read_file(const char *name, char **bytes, size_t *size);

#endif
