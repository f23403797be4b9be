#ifndef TOOLS_WEEKWHEEL_JOBS_LISTING_H
#define TOOLS_WEEKWHEEL_JOBS_LISTING_H

/*
 * Reads the jobs, or runs of jobs, that match some conditions, page by page, as lines of JSON, and writes what lines
 * say in the form that /v1 has.
 */

#include "tools/job/job.h"
#include "tools/weekwheel/jobs/jobs.h"

struct listing {
	const char *verb;           /* NULL: list-delayed */
	uint64_t id;                /* of this job only; 0: all */
	const char *tube;           /* NULL: all */
	const char *states;         /* with commas; NULL: all */
	char prefix[JOBS_KEY_TEXT]; /* of the key, percent-encoded; "": any */
	uint64_t next;              /* where the next page begins; 0: at the beginning, or there is none */
};

enum { LISTING_PAGE = 1000, LISTING_FIELDS = 64 };

/* Take the value of an option as the states. Return 0, or OPTIONS_ERROR after a message. */
int listing_states(struct listing *listing, const struct options *options);

/* Called with the line of a job. */
typedef void listing_fn(void *context, const char *line, size_t size);

/* Read a page of up to `limit` jobs. Return 0, or -1 after a message. */
int listing_page(struct listing *listing, struct client *client, uint64_t limit, listing_fn *fn, void *context);

/*
 * Read what a table names of a line; what its struct points to is written to *room. A value that is missing, or is
 * not what it should be, stays as it is. Return the fields that were read, a bit each in the order of the table.
 */
uint64_t listing_read(const struct field *fields, void *to, const char *line, size_t size, struct buffer *room);

/* The same of a job. Its due time is Unix time on either clock: a job on elapsed time has only the time left. */
uint64_t listing_job(struct ww_job_info *info, const char *line, size_t size, struct buffer *room);

/* Fill in beanstalkd's fields of a job. */
uint64_t listing_stats(struct ww_job_info *info, const char *yaml, size_t size);

/* Return the bit of a field of jobs. */
uint64_t listing_bit(const char *name);

/* Write the members of these objects that were read, with commas between, or as an object in a line. */
void listing_members(const struct field *fields, uint32_t where, const void *from, uint64_t seen);
void listing_write(const struct field *fields, uint32_t where, const void *from, uint64_t seen);

/* Return how many attempts the job has had of those that its limit counts. A kick starts them anew. */
uint32_t listing_attempts(const struct ww_job_info *info);

#endif
