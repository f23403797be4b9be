#ifndef LIB_JOBS_BODY_H
#define LIB_JOBS_BODY_H

/*
 * The copy of a body that a caller gets, and gives back by ww_jobs_free. Every kind of store makes it this way:
 *
 *     | size of the block | ... | the body | the headers |
 *     <---- JOB_BODY_HEAD ------>^ what the caller gets
 */

#include <stddef.h>
#include <string.h>

#include "weekwheel/allocator.h"

enum { JOB_BODY_HEAD = 64 };

/* A copy, or NULL. *headers becomes where the copy has them; NULL: there are none. */
static inline void *job_body_copy(
    const struct ww_allocator *allocator, const void *body, size_t length, const char **headers, size_t headers_length)
{
	size_t size = JOB_BODY_HEAD + length + headers_length;
	char *block = allocator->allocate(allocator->user, size);

	if (!block)
		return NULL;
	memcpy(block, &size, sizeof size);
	if (length)
		memcpy(block + JOB_BODY_HEAD, body, length);
	if (headers_length)
		memcpy(block + JOB_BODY_HEAD + length, *headers, headers_length);
	*headers = headers_length ? block + JOB_BODY_HEAD + length : NULL;
	return block + JOB_BODY_HEAD;
}

static inline void job_body_free(const struct ww_allocator *allocator, void *body)
{
	char *block = body;
	size_t size;

	if (!body)
		return;
	block -= JOB_BODY_HEAD;
	memcpy(&size, block, sizeof size);
	allocator->free(allocator->user, block, size);
}

#endif
