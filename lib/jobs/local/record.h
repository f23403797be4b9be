#ifndef LIB_JOBS_LOCAL_RECORD_H
#define LIB_JOBS_LOCAL_RECORD_H

/*
 * A job as it is stored.
 *
 *     | format | 25 numbers | key | error | body | checksum |
 *
 * Numbers are of seven bits a byte, the lowest first, with the high bit set in all but the last: most of a job's are 0
 * and take one byte. The checksum is the low half of XXH3 of the id and all before it.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/jobs/store/store.h"

#define JOB_RECORD_FORMAT 1

/* The most that is stored beside key, error and body. */
#define JOB_RECORD_OVERHEAD (1 + 25 * 10 + 4)

struct job_record {
	uint64_t version;
	uint64_t tube;  /* its number */
	uint64_t flags; /* WW_JOB_WALL */
	uint64_t priority;
	uint64_t due;  /* which the index has */
	uint64_t base; /* the time of a periodic job's schedule that this is about; due may be later, by a backoff */
	uint64_t created;
	uint64_t delay;
	uint64_t run;
	uint64_t period;
	uint64_t missed; /* enum ww_missed */
	uint64_t skip;
	uint64_t backoff;
	uint64_t backoff_max;
	uint64_t attempts; /* the limit */
	uint64_t tries;    /* deliveries that failed, since it was put, kicked, or its last time was finished */
	uint64_t reserves;
	uint64_t timeouts;
	uint64_t releases;
	uint64_t buries;
	uint64_t kicks;
	uint64_t buried; /* its place in the order of burying; 0: it is not */
	struct store_bytes key;
	struct store_bytes error;
	struct store_bytes body;
};

/* What job_record_write needs room for, at most. */
size_t ww_job_record_size(const struct job_record *record);
/* Returns how many bytes were written. */
size_t ww_job_record_write(const struct job_record *record, uint64_t id, unsigned char *to);
/* The bytes of the record stay where they are. WW_ECORRUPT: it is not what was written under that id. */
int ww_job_record_read(struct job_record *record, uint64_t id, struct store_bytes from);

#endif
