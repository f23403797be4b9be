#ifndef TOOLS_WEEKWHEEL_STORE_LINE_H
#define TOOLS_WEEKWHEEL_STORE_LINE_H

/*
 * A job as a line of JSON, which export writes and import reads. Times and lengths of time are in seconds, with up to
 * nine digits behind the point; the due time is Unix time on either clock. Keys and bodies are in base64, as they are
 * any bytes.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "weekwheel/jobs.h"

/* Write a job. Elapsed time plus shift is Unix time. */
void line_write(FILE *out, const struct ww_job_info *info, int64_t shift);

enum { LINE_PROBLEM = 200 };

/* A line that was read. Its spec points to its other members. */
struct job_line {
	struct ww_job_spec spec; /* due: WW_JOB_AT and a Unix time, or a delay */
	int is_buried;
	int is_ended; /* spec.key_span: how long its key was to be taken after spec.due */
	char error[WW_JOB_ERROR_MAX + 1];
	char tube[WW_TUBE_MAX + 1];
	unsigned char key[WW_JOB_KEY_MAX + 2];
	unsigned char group[WW_JOB_GROUP_MAX + 2];
	unsigned char *body;
	size_t room; /* of the body */
	char problem[LINE_PROBLEM];
};

/* Read text[0 .. size-1]. Return 0, or -1 with line->problem saying what was expected and where. */
int line_read(struct job_line *line, const char *text, size_t size);

void line_free(struct job_line *line);

#endif
