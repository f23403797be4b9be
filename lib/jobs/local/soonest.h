#ifndef LIB_JOBS_LOCAL_SOONEST_H
#define LIB_JOBS_LOCAL_SOONEST_H

/*
 * What is known of the delayed jobs of one tube, on one clock, that are due first. search.c finds what is not known.
 *
 *                now              until
 *     -----------|--o-----o---o----|--- ? -------o----------->  due time of the tube's delayed jobs
 *                   jobs[] has them       the counts tell in which slot to look
 *
 * Each place is searched once: `until` goes back only when jobs are put before it and jobs[] is full. Times are those
 * of the clock. Only the owner of the batch calls these functions, and none of them can fail.
 */

#include <stdint.h>

struct tube;

#define SOONEST_MOST 8

struct soonest {
	uint64_t taken_back; /* how many batches were when this was right */
	uint64_t now;        /* when somebody asked last */
	uint64_t until_due;  /* each that is due after `now` and comes before this place is in jobs[] */
	uint64_t until_id;
	unsigned count;
	struct {
		uint64_t due;
		uint64_t id;
	} jobs[SOONEST_MOST]; /* the first one first */
};

/* The order of jobs that wait. */
static inline int soonest_is_before(uint64_t due, uint64_t id, uint64_t other_due, uint64_t other_id)
{
	return due < other_due || (due == other_due && id < other_id);
}

/* A job of the tube waits now, or not any more. O(SOONEST_MOST) */
void ww_jobs_soonest_add(struct tube *tube, int wall, uint64_t due, uint64_t id);
void ww_jobs_soonest_remove(struct tube *tube, int wall, uint64_t due, uint64_t id);
/*
 * Begin a search, given the number of batches undone so far: if that number, or a clock that went back, has made it
 * wrong, forget everything.
 */
void ww_jobs_soonest_ask(struct soonest *known, uint64_t taken_back, uint64_t now);
/* Forget the first one: it is due, or is not delayed any more. */
void ww_jobs_soonest_drop(struct soonest *known);
/* Nothing is known, and a search has found that nothing lies before this place. */
void ww_jobs_soonest_skip(struct soonest *known, uint64_t due, uint64_t id);
/* Nothing is known, and a search has found that this job is the first one. */
void ww_jobs_soonest_find(struct soonest *known, uint64_t due, uint64_t id);

#endif
