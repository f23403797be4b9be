/* Plots as SVG: a row for each structure, the least first. */
#include <stdlib.h>
#include <string.h>

#include "tools/bench/plot_internal.h"
#include "tools/bench/plot_style.h"
#include "tools/common/memory.h"

enum { LEFT = 112, RIGHT = 84, TOP = 34, BOTTOM = 30, ROW = 23 };

double plot_rows_height(const struct plot *plot)
{
	return TOP + ROW * (double)plot->count + BOTTOM;
}

static int row_compare(const void *a, const void *b)
{
	const struct plot_line *const *left = a, *const *right = b;
	double difference = (*left)->points->y - (*right)->points->y;

	if (difference != 0)
		return difference < 0 ? -1 : 1;
	return strcmp((*left)->name, (*right)->name);
}

static void row_draw_axis(FILE *out, const struct plot *plot, const struct plot_frame *frame)
{
	struct axis_tick ticks[AXIS_TICKS];
	size_t count = axis_ticks(&frame->x, 52, ticks), i;
	char text[AXIS_TEXT];

	for (i = 0; i < count; i++) {
		double x = axis_place(&frame->x, ticks[i].value);

		fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>", ticks[i].labelled ? "grid" : "minor", x,
		    frame->y.at_high, frame->y.at_low);
		if (ticks[i].labelled)
			fprintf(out, "<text class=\"axis x\" x=\"%.1f\" y=\"%.1f\">%s</text>", x, frame->y.at_low + 18,
			    axis_text(text, frame->x.unit, ticks[i].value));
	}
	fputs("<text class=\"what\" x=\"4\" y=\"14\">", out);
	style_write_text(out, plot->y_title);
	if (plot->x_unit == AXIS_COUNT && plot->lines->points->x > 1)
		fprintf(out, ", %s timers", axis_text(text, plot->x_unit, plot->lines->points->x));
	fputs("</text>\n", out);
}

static void row_draw(
    FILE *out, const struct plot *plot, const struct plot_frame *frame, const struct plot_line *line, double y)
{
	const struct plot_point *point = line->points;
	double x = axis_place(&frame->x, point->y), low = axis_place(&frame->x, point->low);
	double high = axis_place(&frame->x, point->high);
	char text[AXIS_TEXT];

	style_write_group(out, line->name);
	fprintf(out, "<text class=\"name end\" x=\"%d\" y=\"%.1f\">", LEFT - 12, y + 4);
	style_write_text(out, line->name);
	fprintf(out, "</text><path class=\"stem\" d=\"M%d %.1fH%.1f\"/>", LEFT, y, x);
	if (high - low > 2)
		fprintf(
		    out, "<path class=\"whisker\" d=\"M%.1f %.1fH%.1fm0-4v8M%.1f %.1fv8\"/>", low, y, high, low, y - 4);
	plot_draw_point(out, plot, line->name, point, x, y);
	fprintf(out, "<text class=\"value\" x=\"%.1f\" y=\"%.1f\">%s</text></g>\n", (high > x ? high : x) + 10, y + 4,
	    axis_text(text, plot->y_unit, point->y));
}

void plot_draw_rows(FILE *out, const struct plot *plot)
{
	const struct plot_line **rows = memory_zeroed(plot->count, sizeof *rows);
	struct plot_frame frame = {0};
	double x_low, x_high, y_low, y_high;
	size_t i;

	for (i = 0; i < plot->count; i++)
		rows[i] = &plot->lines[i];
	qsort(rows, plot->count, sizeof *rows, row_compare);
	plot_range(plot, &x_low, &x_high, &y_low, &y_high);
	/* Some room to the left, so that the least is a stem, too. */
	axis_fit(&frame.x, y_low / 1.3, y_high);
	frame.x.unit = plot->y_unit;
	frame.x.at_low = LEFT;
	frame.x.at_high = plot->width - RIGHT;
	frame.y.at_high = TOP;
	frame.y.at_low = TOP + ROW * (double)plot->count;
	row_draw_axis(out, plot, &frame);
	for (i = 0; i < plot->count; i++)
		row_draw(out, plot, &frame, rows[i], TOP + ROW * ((double)i + 0.5));
	free(rows);
}
