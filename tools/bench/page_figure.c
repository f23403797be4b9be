/* From results to plots. */
#include "tools/bench/page_figure.h"

#include <string.h>

#include "tools/bench/plot_style.h"
#include "tools/bench/plot_ticks.h"

enum { FIXED_LEAST = 256 };

int figure_is_cost(const struct result *result)
{
	return result->metric == NS_PER_OP || result->metric == NS_PER_TIMER;
}

double figure_scaled(const struct result *result, double value)
{
	return result->metric == MAX_TICK_US || result->metric == P999_TICK_US ? 1000 * value : value;
}

enum axis_unit figure_unit(enum metric metric)
{
	return metric == BYTES_PER_TIMER ? AXIS_BYTES : AXIS_TIME;
}

static int figure_shows(const struct figure *figure, const struct result *result)
{
	if (result->workload != figure->workload)
		return 0;
	return figure->kind == FIGURE_COST ? figure_is_cost(result) : result->metric == figure->metric;
}

static void figure_collect(const struct figure *figure, const struct results *results, struct plot *plot)
{
	size_t i;

	for (i = 0; i < results->count; i++) {
		const struct result *result = &results->result[i];
		struct plot_point point = {(double)result->n, figure_scaled(result, result->median),
		    figure_scaled(result, result->min), figure_scaled(result, result->max)};

		if (figure_shows(figure, result))
			plot_point(plot_line(plot, result->structure->name), point);
	}
}

/*
 * Whether a structure can be made for such delays, and then takes an amount of memory that is worth a point: a header
 * of some bytes beside a wheel of kilobytes is none.
 */
static int fixed_is_shown(const struct structure *structure, uint64_t horizon)
{
	if (structure->longest && horizon > structure->longest && !structure->any_horizon)
		return 0;
	return structure->fixed_bytes(horizon) >= FIXED_LEAST;
}

/* The spans of a minute to a year. */
static void figure_add_fixed(struct plot *plot, const struct structure *structure)
{
	static const uint64_t horizons[] = {60, 3600, 86400, 604800, 2592000, 31536000};
	struct plot_line *line = plot_line(plot, structure->name);
	size_t i;

	if (line->count > 0 || !structure->fixed_bytes)
		return;
	for (i = 0; i < sizeof horizons / sizeof *horizons; i++) {
		struct plot_point point = {(double)horizons[i], (double)structure->fixed_bytes(horizons[i]), 0, 0};

		point.low = point.high = point.y;
		if (fixed_is_shown(structure, horizons[i]))
			plot_point(line, point);
	}
}

static void figure_collect_fixed(const struct results *results, struct plot *plot)
{
	size_t i;

	for (i = 0; i < results->count; i++)
		if (results->result[i].workload == WORKLOAD_G)
			figure_add_fixed(plot, results->result[i].structure);
}

static void figure_plot(const struct figure *figure, const struct results *results, struct plot *plot)
{
	memset(plot, 0, sizeof *plot);
	plot->x_title = "timers";
	plot->x_unit = AXIS_COUNT;
	plot->y_title = figure->y_title;
	plot->y_unit = figure_unit(figure->metric);
	if (figure->kind == FIGURE_FIXED) {
		plot->x_title = "the longest delay to be held";
		plot->x_unit = AXIS_SPAN;
		plot->y_unit = AXIS_BYTES;
		figure_collect_fixed(results, plot);
	} else if (figure->kind == FIGURE_SHARE) {
		plot->x_title = "time of a tick";
		plot->x_unit = AXIS_TIME;
		plot->y_unit = AXIS_SHARE;
		plot->curves = 1;
		ticks_curves(results, plot);
	} else {
		figure_collect(figure, results, plot);
	}
	plot_finish(plot);
}

double figure_height(const struct figure *figure, const struct results *results)
{
	struct plot plot;
	double height;

	if (figure->kind == FIGURE_TICKS)
		return ticks_height(results);
	figure_plot(figure, results, &plot);
	height = plot_height(&plot);
	plot_free(&plot);
	return height;
}

void figure_draw(FILE *out, const struct figure *figure, const struct results *results, double width, double top)
{
	struct plot plot;

	if (figure->kind == FIGURE_TICKS) {
		ticks_draw(out, results, width, top);
		return;
	}
	figure_plot(figure, results, &plot);
	plot.width = width;
	plot_draw(out, &plot, top);
	plot_free(&plot);
}

static const struct plot_point *figure_point_at(const struct plot_line *line, double x)
{
	size_t i;

	for (i = 0; i < line->count; i++)
		if (line->points[i].x == x)
			return &line->points[i];
	return NULL;
}

static const struct plot_line *figure_ours(const struct plot *plot)
{
	size_t i;

	for (i = 0; i < plot->count; i++)
		if (style_is_ours(plot->lines[i].name))
			return &plot->lines[i];
	return NULL;
}

/* Return the other structure with the lowest (sign 1) or highest (sign -1) value at x. */
static const struct plot_line *figure_extreme(const struct plot *plot, double x, double sign)
{
	const struct plot_line *best = NULL;
	size_t i;

	for (i = 0; i < plot->count; i++) {
		const struct plot_line *line = &plot->lines[i];
		const struct plot_point *point = figure_point_at(line, x);

		if (!point || style_is_ours(line->name) || style_is_floor(line->name))
			continue;
		if (!best || sign * point->y < sign * figure_point_at(best, x)->y)
			best = line;
	}
	return best;
}

static void figure_write_other(
    FILE *out, const struct plot *plot, const struct plot_line *line, const struct plot_point *ours)
{
	double value = figure_point_at(line, ours->x)->y, ratio = value / ours->y;
	char text[AXIS_TEXT];

	style_write_text(out, line->name);
	fprintf(out, ", %s", axis_text(text, plot->y_unit, value));
	fprintf(out, " (%s times)", axis_text_ratio(text, ratio));
}

static void figure_write_comparison(FILE *out, const struct plot *plot, const struct plot_point *ours)
{
	const struct plot_line *lowest = figure_extreme(plot, ours->x, 1), *highest = figure_extreme(plot, ours->x, -1);
	char text[AXIS_TEXT];

	if (!lowest)
		return;
	fputs("<b>", out);
	if (ours->x > 1)
		fprintf(out, "%s %s%s: ", plot->x_unit == AXIS_SPAN ? "For" : "At",
		    axis_text(text, plot->x_unit, ours->x), plot->x_unit == AXIS_COUNT ? " timers" : "");
	fprintf(out, "weekwheel %s; ", axis_text(text, plot->y_unit, ours->y));
	fputs(lowest == highest ? "" : "the lowest of the others, ", out);
	figure_write_other(out, plot, lowest, ours);
	if (lowest != highest) {
		fputs("; the highest, ", out);
		figure_write_other(out, plot, highest, ours);
	}
	fputs(".</b>", out);
}

void figure_write_verdict(FILE *out, const struct figure *figure, const struct results *results)
{
	const struct plot_line *ours;
	struct plot plot;

	if (figure->kind == FIGURE_TICKS || figure->kind == FIGURE_SHARE)
		return;
	figure_plot(figure, results, &plot);
	ours = figure_ours(&plot);
	if (ours)
		figure_write_comparison(out, &plot, &ours->points[ours->count - 1]);
	plot_free(&plot);
}
