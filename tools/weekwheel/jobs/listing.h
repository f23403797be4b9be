#ifndef TOOLS_WEEKWHEEL_JOBS_LISTING_H
#define TOOLS_WEEKWHEEL_JOBS_LISTING_H

/* Reads the jobs, or runs of jobs, that match some conditions, page by page, as lines of JSON. For list, and for cancel and purge. */

#include "tools/weekwheel/jobs/jobs.h"

struct listing {
	const char *verb;           /* NULL: list-delayed */
	uint64_t id;                /* of this job only; 0: all */
	const char *tube;           /* NULL: all */
	const char *states;         /* with commas; NULL: all */
	char prefix[JOBS_KEY_TEXT]; /* of the key, percent-encoded; "": any */
	uint64_t next;              /* where the next page begins; 0: at the beginning, or there is none */
};

enum { LISTING_PAGE = 1000 };

/* Take the value of an option as the states. Return 0, or OPTIONS_ERROR after a message. */
int listing_states(struct listing *listing, const struct options *options);

/* Called with the line of a job. */
typedef void listing_fn(void *context, const char *line, size_t size);

/* Read a page of up to `limit` jobs. Return 0, or -1 after a message. */
int listing_page(struct listing *listing, struct client *client, uint64_t limit, listing_fn *fn, void *context);

/*
 * Return when the job of the line is due, as Unix time. A job on elapsed time has no date, only the time left. The server
 * knows no date for such a job, which is why list compares --from and --to itself.
 */
uint64_t listing_due(const char *line, size_t size);

/* Return how many attempts the job has had of those that its limit counts. A kick starts them anew. */
uint64_t listing_attempts(const char *line, size_t size);

#endif
