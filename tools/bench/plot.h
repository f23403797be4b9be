#ifndef TOOLS_BENCH_PLOT_H
#define TOOLS_BENCH_PLOT_H

/*
 * Plots as SVG: a line for each structure, over logarithmic axes. Where all structures were measured at one place only,
 * the plot is a list of rows instead.
 *
 *      y_title                                   y_title, at x
 *      |       ____o---- linked 40 ns            weekwheel ----o-- 15 ns
 *      |  o---'                                  linked    -------|o|-- 40 ns
 *      |  o------------o weekwheel 15 ns         libuv     ------------------o 667 ns
 *      +------------------ x_title               +------------------------------
 */

#include <stddef.h>
#include <stdio.h>

#include "tools/bench/plot_axis.h"

struct plot_point {
	double x, y;
	double low, high; /* the whisker */
};

struct plot_line {
	const char *name; /* of the structure */
	struct plot_point *points;
	size_t count, capacity;
};

struct plot {
	const char *x_title, *y_title;
	enum axis_unit x_unit, y_unit;
	double width;
	int curves; /* no markers and whiskers; names with the last x in a list, since all lines end at the foot */
	struct plot_line *lines;
	size_t count, capacity;
};

/* Return the line of this name, added if there is none; valid until the next is added. */
struct plot_line *plot_line(struct plot *plot, const char *name);

/* Add a point; those whose x or y is not above 0 have no place and are ignored. */
void plot_point(struct plot_line *line, struct plot_point point);

/* Free the lines, and forget them. */
void plot_free(struct plot *plot);

/* Sort the points of every line, and drop the lines that have none. To be called before those below. */
void plot_finish(struct plot *plot);

/* Return the height of the drawing; 0 if there is nothing to draw. */
double plot_height(const struct plot *plot);

/* Write the drawing as a <g> whose top is at `top`. */
void plot_draw(FILE *out, const struct plot *plot, double top);

/* Open and close an <svg> in a page; `label` is for those who cannot see it. */
void plot_open(FILE *out, double width, double height, const char *label);
void plot_close(FILE *out);

/*
 * The same for a file that stands alone, with a title above and two texts at the foot, broken into lines. Returns
 * where the drawing, `height` high, is to begin.
 */
double plot_open_file(
    FILE *out, double width, double height, const char *title, const char *subtitle, const char *const foot[2]);
void plot_close_file(FILE *out);

#endif
