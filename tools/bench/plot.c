/* Plots as SVG: lines. */
#include "tools/bench/plot.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/plot_internal.h"
#include "tools/bench/plot_style.h"
#include "tools/common/memory.h"

enum { LEFT = 56, RIGHT = 166, TOP = 30, BOTTOM = 46, HEIGHT = 390 };
enum { INSET = 14 };                        /* from the frame to the first and last point */
enum { LABEL_GAP = 15 };                    /* from one name to the next */
enum { LEADER = 22 };                       /* from the frame to the names */
enum { COUNT_LABEL = 72, TIME_LABEL = 44 }; /* the room of a label below the x axis */
enum { RELAXATIONS = 400 };

struct plot_line *plot_line(struct plot *plot, const char *name)
{
	struct plot_line *line;
	size_t i;

	for (i = 0; i < plot->count; i++)
		if (strcmp(plot->lines[i].name, name) == 0)
			return &plot->lines[i];
	plot->lines = memory_grow(plot->lines, &plot->capacity, plot->count, sizeof *plot->lines);
	line = &plot->lines[plot->count++];
	memset(line, 0, sizeof *line);
	line->name = name;
	return line;
}

void plot_point(struct plot_line *line, struct plot_point point)
{
	if (!(point.x > 0 && point.y > 0))
		return;
	if (!(point.low > 0 && point.low <= point.y))
		point.low = point.y;
	if (!(point.high >= point.y))
		point.high = point.y;
	line->points = memory_grow(line->points, &line->capacity, line->count, sizeof *line->points);
	line->points[line->count++] = point;
}

void plot_free(struct plot *plot)
{
	size_t i;

	for (i = 0; i < plot->count; i++)
		free(plot->lines[i].points);
	free(plot->lines);
	plot->lines = NULL;
	plot->count = plot->capacity = 0;
}

static int plot_compare(const void *a, const void *b)
{
	const struct plot_point *left = a, *right = b;

	return (left->x > right->x) - (left->x < right->x);
}

void plot_finish(struct plot *plot)
{
	size_t kept = 0, i;

	for (i = 0; i < plot->count; i++) {
		struct plot_line *line = &plot->lines[i];

		if (line->count == 0) {
			free(line->points);
			continue;
		}
		if (!plot->curves)
			qsort(line->points, line->count, sizeof *line->points, plot_compare);
		plot->lines[kept++] = *line;
	}
	plot->count = kept;
}

void plot_range(const struct plot *plot, double *x_low, double *x_high, double *y_low, double *y_high)
{
	const struct plot_point *first = plot->lines[0].points;
	size_t i, j;

	*x_low = *x_high = first->x;
	*y_low = first->low;
	*y_high = first->high;
	for (i = 0; i < plot->count; i++)
		for (j = 0; j < plot->lines[i].count; j++) {
			const struct plot_point *point = &plot->lines[i].points[j];

			*x_low = point->x < *x_low ? point->x : *x_low;
			*x_high = point->x > *x_high ? point->x : *x_high;
			*y_low = point->low < *y_low ? point->low : *y_low;
			*y_high = point->high > *y_high ? point->high : *y_high;
		}
}

int plot_is_rows(const struct plot *plot)
{
	double x_low, x_high, y_low, y_high;

	plot_range(plot, &x_low, &x_high, &y_low, &y_high);
	return x_low == x_high;
}

void plot_draw_x_axis(FILE *out, const struct plot_frame *frame, const char *title)
{
	struct axis_tick ticks[AXIS_TICKS];
	size_t count = axis_ticks(&frame->x, frame->x.unit == AXIS_COUNT ? COUNT_LABEL : TIME_LABEL, ticks), i;
	double top = frame->y.at_high, foot = frame->y.at_low;
	char text[AXIS_TEXT];

	for (i = 0; i < count; i++) {
		double x = axis_place(&frame->x, ticks[i].value);

		fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>", ticks[i].labelled ? "grid" : "minor", x, top,
		    foot);
		if (ticks[i].labelled)
			fprintf(out, "<text class=\"axis x\" x=\"%.1f\" y=\"%.1f\">%s</text>", x, foot + 17,
			    axis_text(text, frame->x.unit, ticks[i].value));
	}
	fprintf(
	    out, "<text class=\"axis m\" x=\"%.1f\" y=\"%.1f\">", (frame->x.at_low + frame->x.at_high) / 2, foot + 36);
	style_write_text(out, title);
	fputs("</text>\n", out);
}

void plot_draw_y_axis(FILE *out, const struct plot_frame *frame, const char *title)
{
	struct axis_tick ticks[AXIS_TICKS];
	size_t count = axis_ticks(&frame->y, 17, ticks), i;
	char text[AXIS_TEXT];

	for (i = 0; i < count; i++) {
		double y = axis_place(&frame->y, ticks[i].value);

		fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fH%.1f\"/>", ticks[i].labelled ? "grid" : "minor",
		    frame->x.at_low - INSET, y, frame->x.at_high + INSET);
		if (ticks[i].labelled)
			fprintf(out, "<text class=\"axis y\" x=\"%.1f\" y=\"%.1f\">%s</text>",
			    frame->x.at_low - INSET - 6, y + 4, axis_text(text, frame->y.unit, ticks[i].value));
	}
	fprintf(out, "<text class=\"what\" x=\"4\" y=\"%.1f\">", frame->y.at_high - 14);
	style_write_text(out, title);
	fputs("</text>\n", out);
}

static void plot_write_values(FILE *out, const struct plot *plot, const struct plot_point *point)
{
	char text[AXIS_TEXT];

	fprintf(out, "%s", axis_text(text, plot->y_unit, point->y));
	if (point->low == point->high)
		return;
	fprintf(out, " (%s", axis_text(text, plot->y_unit, point->low));
	fprintf(out, " to %s)", axis_text(text, plot->y_unit, point->high));
}

void plot_draw_point(
    FILE *out, const struct plot *plot, const char *name, const struct plot_point *point, double x, double y)
{
	char text[AXIS_TEXT];

	fprintf(out, "<use href=\"#m%u\" x=\"%.1f\" y=\"%.1f\"><title>", style_of(name), x, y);
	style_write_text(out, name);
	fprintf(out, " at %s: ", axis_text(text, plot->x_unit, point->x));
	plot_write_values(out, plot, point);
	fputs("</title></use>", out);
}

static void plot_draw_whiskers(FILE *out, const struct plot_frame *frame, const struct plot_line *line)
{
	size_t i;

	fputs("<path class=\"whisker\" d=\"", out);
	for (i = 0; i < line->count; i++) {
		const struct plot_point *point = &line->points[i];
		double high = axis_place(&frame->y, point->high), low = axis_place(&frame->y, point->low);

		/* A whisker that its marker hides is not worth its bytes. */
		if (low - high > 2)
			fprintf(out, "M%.1f %.1fV%.1fm-3 0h6M%.1f %.1fh6", axis_place(&frame->x, point->x), low, high,
			    axis_place(&frame->x, point->x) - 3, low);
	}
	fputs("\"/>", out);
}

/* Curves are steps: of the ticks longer than the last x, this share is as long as the next. */
static void plot_draw_path(FILE *out, const struct plot_frame *frame, const struct plot_line *line, int steps)
{
	size_t i;

	fputs("<path class=\"line\" d=\"", out);
	for (i = 0; i < line->count; i++) {
		double x = axis_place(&frame->x, line->points[i].x), y = axis_place(&frame->y, line->points[i].y);

		if (steps && i > 0)
			fprintf(out, "V%.1fH%.1f", y, x);
		else
			fprintf(out, "%s%.1f %.1f", i == 0 ? "M" : i == 1 ? "L" : " ", x, y);
	}
	fputs("\"/>", out);
}

/* Where a name goes: beside the last point of its line, moved so that none covers another. */
struct label {
	const struct plot_line *line;
	double wanted, y;
};

static int label_compare(const void *a, const void *b)
{
	const struct label *left = a, *right = b;

	if (left->wanted != right->wanted)
		return left->wanted < right->wanted ? -1 : 1;
	return strcmp(left->line->name, right->line->name);
}

/* Push neighbours that are too close apart, each by half of what is missing, until that has settled. */
static void label_spread(struct label *labels, size_t count, double top, double foot)
{
	size_t round, i;

	for (round = 0; round < RELAXATIONS; round++) {
		for (i = 0; i + 1 < count; i++) {
			double missing = LABEL_GAP - (labels[i + 1].y - labels[i].y);

			if (missing > 0) {
				labels[i].y -= missing / 2;
				labels[i + 1].y += missing / 2;
			}
		}
		if (labels[0].y < top)
			labels[0].y = top;
		if (labels[count - 1].y > foot)
			labels[count - 1].y = foot;
	}
}

static struct label *label_all(const struct plot *plot, const struct plot_frame *frame)
{
	struct label *labels = memory_zeroed(plot->count, sizeof *labels);
	size_t i;

	for (i = 0; i < plot->count; i++) {
		const struct plot_line *line = &plot->lines[i];

		labels[i].line = line;
		labels[i].wanted = axis_place(&frame->y, line->points[line->count - 1].y);
		labels[i].y = labels[i].wanted;
	}
	if (plot->curves) {
		for (i = 0; i < plot->count; i++)
			labels[i].y = frame->y.at_high + LABEL_GAP * (double)(i + 1);
		return labels;
	}
	qsort(labels, plot->count, sizeof *labels, label_compare);
	label_spread(labels, plot->count, frame->y.at_high, frame->y.at_low);
	return labels;
}

static void plot_draw_label(
    FILE *out, const struct plot *plot, const struct plot_frame *frame, const struct label *label)
{
	const struct plot_point *last = &label->line->points[label->line->count - 1];
	double x = axis_place(&frame->x, last->x), right = frame->x.at_high + INSET + LEADER;
	char text[AXIS_TEXT];

	if (!plot->curves)
		fprintf(out, "<path class=\"leader%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>",
		    x < frame->x.at_high - 1 ? " far" : "", x + 6, label->wanted, right - 3, label->y);
	fprintf(out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", right, label->y + 4);
	style_write_text(out, label->line->name);
	fprintf(out, "<tspan class=\"value\" dx=\"5\">%s</tspan></text>",
	    plot->curves ? axis_text(text, plot->x_unit, last->x) : axis_text(text, plot->y_unit, last->y));
}

static void plot_draw_line(
    FILE *out, const struct plot *plot, const struct plot_frame *frame, const struct label *label)
{
	const struct plot_line *line = label->line;
	size_t i;

	style_write_group(out, line->name);
	plot_draw_path(out, frame, line, plot->curves);
	if (!plot->curves) {
		plot_draw_whiskers(out, frame, line);
		for (i = 0; i < line->count; i++)
			plot_draw_point(out, plot, line->name, &line->points[i],
			    axis_place(&frame->x, line->points[i].x), axis_place(&frame->y, line->points[i].y));
	}
	plot_draw_label(out, plot, frame, label);
	fputs("</g>\n", out);
}

static void plot_draw_lines(FILE *out, const struct plot *plot)
{
	struct plot_frame frame = {0};
	double x_low, x_high, y_low, y_high;
	struct label *labels;
	size_t i;
	int ours;

	plot_range(plot, &x_low, &x_high, &y_low, &y_high);
	frame.x.unit = plot->x_unit;
	frame.y.unit = plot->y_unit;
	frame.x.low = x_low;
	frame.x.high = x_high;
	if (plot->curves)
		axis_fit(&frame.x, x_low, x_high);
	axis_fit(&frame.y, y_low, y_high);
	frame.x.at_low = LEFT + INSET;
	frame.x.at_high = plot->width - RIGHT - INSET;
	frame.y.at_low = HEIGHT - BOTTOM;
	frame.y.at_high = TOP;
	plot_draw_x_axis(out, &frame, plot->x_title);
	plot_draw_y_axis(out, &frame, plot->y_title);
	labels = label_all(plot, &frame);
	/* What is drawn last lies on top. */
	for (ours = 0; ours < 2; ours++)
		for (i = 0; i < plot->count; i++)
			if (style_is_ours(labels[i].line->name) == ours)
				plot_draw_line(out, plot, &frame, &labels[i]);
	free(labels);
}

double plot_height(const struct plot *plot)
{
	if (plot->count == 0)
		return 0;
	return plot_is_rows(plot) ? plot_rows_height(plot) : HEIGHT;
}

void plot_draw(FILE *out, const struct plot *plot, double top)
{
	if (plot->count == 0)
		return;
	fprintf(out, "<g transform=\"translate(0 %.1f)\">\n", top);
	if (plot_is_rows(plot))
		plot_draw_rows(out, plot);
	else
		plot_draw_lines(out, plot);
	fputs("</g>\n", out);
}
