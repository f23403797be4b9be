#ifndef TOOLS_WEEKWHEEL_STORE_LINE_H
#define TOOLS_WEEKWHEEL_STORE_LINE_H

/*
 * A job or a limit as a line of JSON, which export writes and import reads: an object as tools/job/field.h says, with times
 * to the nanosecond. A limit's first member, "limit", says whose it is. Lines of 0.1 are read, too: all bytes are in base64
 * there, and ids and times are numbers. A line is of 0.1 unless its id or due time is a string, or it has "every", "each" or
 * a name that ends in "_base64".
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/common/buffer.h"
#include "weekwheel/jobs.h"

/* Write it. Elapsed time plus shift is Unix time. Returns not 0 without memory. */
int line_write(struct buffer *out, const struct ww_job_info *info, int64_t shift);
int line_write_limit(struct buffer *out, const struct ww_limit_info *info);

enum { LINE_PROBLEM = 300 };

/* A line that was read. All zeros at first. */
struct job_line {
	struct ww_job_spec spec; /* due: WW_JOB_AT and a Unix time, or a delay; it points to the other members */
	struct ww_job_info
	    info; /* of a state WW_JOB_ENDED: spec.key_span is how long its key was to be taken after spec.due */
	struct ww_limit_info limit;
	struct buffer room; /* what they point to */
	char problem[LINE_PROBLEM];
};

/* Whether the line is one of a limit. */
int line_is_limit(const char *text, size_t size);

/* Read text[0 .. size-1]. Return 0, or -1 with line->problem saying what was expected and where. */
int line_read(struct job_line *line, const char *text, size_t size);
/* The same of a limit, into line->limit. */
int line_read_limit(struct job_line *line, const char *text, size_t size);

#endif
