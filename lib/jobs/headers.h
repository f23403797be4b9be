#ifndef LIB_JOBS_HEADERS_H
#define LIB_JOBS_HEADERS_H

/*
 * The headers of a job travel through every store as the text that jobs.h describes, and nobody below looks into it: a put
 * has checked it.
 */

#include <stddef.h>

/* Return 1 if ww_job_headers_add could have written this text. */
int ww_job_headers_are_sound(const char *headers, size_t length);

#endif
