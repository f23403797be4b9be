#ifndef TOOLS_BENCH_PLOT_INTERNAL_H
#define TOOLS_BENCH_PLOT_INTERNAL_H

/* What the two kinds of plots share. */

#include "tools/bench/plot.h"

/* The axes, whose places are those of the frame within the drawing. */
struct plot_frame {
	struct axis x, y;
};

/* Find the lowest and highest of all x, and of all y with their whiskers. */
void plot_range(const struct plot *plot, double *x_low, double *x_high, double *y_low, double *y_high);

/* Write the gridlines and the labels of an axis, and its title. */
void plot_draw_x_axis(FILE *out, const struct plot_frame *frame, const char *title);
void plot_draw_y_axis(FILE *out, const struct plot_frame *frame, const char *title);

/* Write a marker that says its values to whoever points at it. */
void plot_draw_point(
    FILE *out, const struct plot *plot, const char *name, const struct plot_point *point, double x, double y);

/* Return 1 if all points lie at one x. */
int plot_is_rows(const struct plot *plot);
double plot_rows_height(const struct plot *plot);
void plot_draw_rows(FILE *out, const struct plot *plot);

#endif
