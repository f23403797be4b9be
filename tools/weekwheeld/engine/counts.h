#ifndef TOOLS_WEEKWHEELD_ENGINE_COUNTS_H
#define TOOLS_WEEKWHEELD_ENGINE_COUNTS_H

/*
 * Counts what clients and the pusher do with the jobs of each tube, and how long they take, for /metrics. The first
 * COUNTS_TUBES tubes have numbers of their own, and all others share theirs, so that clients who make up names cannot
 * fill the memory.
 */

#include <stdint.h>

#include "lib/base/seeded.h"
#include "weekwheel/jobs.h"

enum { COUNTS_TUBES = 1000, COUNTS_CLASSES = 20, COUNTS_HOURS = 24 };

enum count { COUNT_PUT, COUNT_DELIVERED, COUNT_DONE, COUNT_FAILED, COUNT_BURIED, COUNTS };

struct counts_tube {
	UT_hash_handle hh;
	uint64_t of[COUNTS];
	char name[WW_TUBE_MAX + 1];
};

struct counts_times {
	uint64_t of[COUNTS_CLASSES];
	uint64_t sum; /* ns */
};

/* What the workers can do: leases that ended in the fullest minute of each of the last hours. */
struct counts_pace {
	uint64_t minute; /* that is being counted */
	uint64_t ended;  /* in it */
	uint64_t most[COUNTS_HOURS];
};

struct job_counts {
	struct counts_tube *tubes; /* hashed by name */
	struct counts_tube others;
	struct counts_times run;  /* how long leases lasted that clients ended */
	struct counts_times late; /* how late jobs were delivered, in their first attempts */
	struct counts_pace pace;
};

struct buffer;

/* Return the numbers of a tube, which stay where they are until counts_free. Without memory they are those of the others. */
struct counts_tube *counts_of(struct job_counts *counts, const char *tube);

/* Count one more. Any thread may call this and counts_of. */
void counts_add(struct counts_tube *tube, enum count count);

/* A job was delivered: count that of its tube and, if it is the first attempt, how late it was. */
void counts_deliver(
    struct job_counts *counts, struct counts_tube *tube, uint32_t attempt, uint32_t kicks, uint64_t late);

/* A client has ended a lease after this many ns. `now`, here and below, is a time that grows, in ns. */
void counts_ran(struct job_counts *counts, uint64_t ns, uint64_t now);

/* The pusher has ended a lease. counts_ran includes this. */
void counts_end(struct job_counts *counts, uint64_t now);

/* The most leases that ended within a minute of the last day. Any thread. */
uint64_t counts_pace(struct job_counts *counts, uint64_t now);

/* Write the metrics. Not 0: there is no memory. */
int counts_write(struct job_counts *counts, uint64_t now, struct buffer *out);

void counts_free(struct job_counts *counts);

#endif
