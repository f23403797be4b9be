#ifndef LIB_JOBS_LOCAL_WINDOW_H
#define LIB_JOBS_LOCAL_WINDOW_H

/*
 * The starts of the last span of time, counted in slices: how many there were, and when there will be fewer.
 *
 *     |  3 |  0 |  5 | ... |  1 |     the latest slice and the 128 before it: the span and one slice more
 *
 * Complexity: O(WINDOW_SLICES) at most, and O(1) for starts that follow each other.
 */

#include <stdint.h>

struct jobs_local;

enum { WINDOW_SLICES = 128 };

struct window {
	uint64_t slice; /* ns */
	uint64_t last;  /* the number of the latest slice */
	uint64_t total;
	uint32_t counts[WINDOW_SLICES + 1]; /* by number modulo */
};

/* For spans of that many ns, at least WINDOW_SLICES. NULL: no memory. */
struct window *ww_jobs_window_make(struct jobs_local *jobs, uint64_t per);
void ww_jobs_window_free(struct jobs_local *jobs, struct window *window);
/* A start. Times do not go back. */
void ww_jobs_window_add(struct window *window, uint64_t now);
/* One start was none. */
void ww_jobs_window_take(struct window *window);
/* The time from which on the last span has at most this many. */
uint64_t ww_jobs_window_below(const struct window *window, uint64_t most);

#endif
