#ifndef TOOLS_WEEKWHEEL_STORE_LIMIT_LINE_H
#define TOOLS_WEEKWHEEL_STORE_LIMIT_LINE_H

/* A limit as a line of JSON among those of jobs (line.h): its first member, "limit", says whose it is. */

#include <stddef.h>
#include <stdio.h>

#include "weekwheel/jobs.h"

struct limit_line {
	struct ww_limit limit;
	int is_each;
	char tube[WW_TUBE_MAX + 1];
	unsigned char group[WW_JOB_GROUP_MAX + 2];
	size_t group_length;
};

void limit_line_write(FILE *out, const struct ww_limit_info *info);
/* Whether the line is one of a limit. */
int limit_line_is(const char *text, size_t size);
/* Read it. Returns NULL, or what was expected. */
const char *limit_line_read(struct limit_line *line, const char *text, size_t size);

#endif
