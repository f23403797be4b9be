#ifndef TOOLS_BENCH_PLOT_TICKS_H
#define TOOLS_BENCH_PLOT_TICKS_H

/* The ticks around the first boundary of a day, where an ordinary cascade has most to do. */

#include <stdint.h>
#include <stdio.h>

#include "tools/bench/plot.h"
#include "tools/bench/result.h"

/* Return how many timers the ticks that are shown were of: the largest number there is; 0 if there are none. */
uint64_t ticks_timers(const struct results *results);

/* Return the height of the panels, one below the other for each structure; 0 if there are none. */
double ticks_height(const struct results *results);

/* Write the panels as a <g> whose top is at `top`: in each column its longest tick. */
void ticks_draw(FILE *out, const struct results *results, double width, double top);

/* Add to the plot the share of these ticks that take longer than x, for each x. */
void ticks_curves(const struct results *results, struct plot *plot);

#endif
