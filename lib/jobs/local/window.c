/* Counts the starts of the last span of time in slices, the oldest of which go as time passes. */
#include "lib/jobs/local/window.h"

#include "lib/jobs/local/memory.h"

enum { SLICES = WINDOW_SLICES + 1 };

struct window *ww_jobs_window_make(struct jobs_local *jobs, uint64_t per)
{
	struct window *window = ww_jobs_resize(jobs, NULL, 0, sizeof *window);

	if (window)
		window->slice = per / WINDOW_SLICES;
	return window;
}

void ww_jobs_window_free(struct jobs_local *jobs, struct window *window)
{
	if (window)
		ww_jobs_give(jobs, window, sizeof *window);
}

/* Slices that are older than the span are counted no more. */
static void go_on(struct window *window, uint64_t slice)
{
	if (slice > window->last + SLICES)
		window->last = slice - SLICES;
	while (window->last < slice) {
		uint32_t *count = &window->counts[++window->last % SLICES];
		window->total -= *count;
		*count = 0;
	}
}

void ww_jobs_window_add(struct window *window, uint64_t now)
{
	go_on(window, now / window->slice);
	window->counts[window->last % SLICES]++;
	window->total++;
}

void ww_jobs_window_take(struct window *window)
{
	for (uint64_t i = 0; i < SLICES && window->total; i++) {
		uint32_t *count = &window->counts[(window->last + SLICES - i) % SLICES];
		if (*count) {
			--*count;
			window->total--;
			return;
		}
	}
}

uint64_t ww_jobs_window_below(const struct window *window, uint64_t most)
{
	uint64_t total = window->total;
	uint64_t slice = window->last;

	/* The oldest comes first, and is forgotten when a slice takes its place. */
	while (total > most) {
		slice++;
		total -= window->counts[slice % SLICES];
	}
	return slice * window->slice;
}
