#ifndef TOOLS_BENCH_PAGE_FIGURE_H
#define TOOLS_BENCH_PAGE_FIGURE_H

/* From results to plots. */

#include <stdio.h>

#include "tools/bench/plot.h"
#include "tools/bench/result.h"

enum figure_kind {
	FIGURE_COST,   /* of an operation or a timer, against the number of timers */
	FIGURE_METRIC, /* one metric, against the number of timers */
	FIGURE_FIXED,  /* memory that does not depend on the timers, against the horizon */
	FIGURE_SHARE,  /* the share of ticks that take longer than x */
	FIGURE_TICKS   /* the ticks around a boundary */
};

struct figure {
	enum figure_kind kind;
	enum workload workload;
	enum metric metric;
	const char *y_title;
};

/* Return the height of the figure; 0 if there is nothing to draw. */
double figure_height(const struct figure *figure, const struct results *results);

/* Write the figure as a <g> whose top is at `top`. */
void figure_draw(FILE *out, const struct figure *figure, const struct results *results, double width, double top);

/* Write a sentence of what the figure says, if it shows weekwheel and something else. */
void figure_write_verdict(FILE *out, const struct figure *figure, const struct results *results);

/* Return 1 if the result is the cost of an operation or a timer. */
int figure_is_cost(const struct result *result);

/* Return a value of the result in the unit that axes have: nanoseconds or bytes. */
double figure_scaled(const struct result *result, double value);

/* Return the unit of a metric on axes. */
enum axis_unit figure_unit(enum metric metric);

#endif
