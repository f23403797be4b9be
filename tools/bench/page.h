#ifndef TOOLS_BENCH_PAGE_H
#define TOOLS_BENCH_PAGE_H

/* The results for people: a page that needs nothing but itself, and plots as files of their own. */

#include <stdio.h>

#include "tools/bench/result.h"

/* Write the page as HTML. Return 0, or -1 if `out` could not be written, with errno set. */
int page_write(FILE *out, const struct results *results);

/* Return 0 if the folder can be written to, or -1 with errno set. */
int page_plots_possible(const char *folder);

/*
 * Write heartbeat.svg, life.svg, day-boundary.svg and memory.svg to the folder, which is there; only those of
 * which there are results. Return how many were written, or -1 after saying why.
 */
int page_plots(const char *folder, const struct results *results);

#endif
