/* The ticks around the first boundary of a day. */
#include "tools/bench/plot_ticks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/plot_style.h"
#include "tools/common/memory.h"

enum { BOUNDARY = 86400, AROUND = 7200, COLUMN = 20, COLUMNS = 2 * AROUND / COLUMN };
enum { LEFT = 70, RIGHT = 18, TOP = 24, PANEL = 122, PANEL_GAP = 32, BOTTOM = 48 };
enum { SHOWN = 3, CURVE_STEPS = 24 };

/* The smooth one, the ordinary cascade, and the one that has nothing to cascade. */
static const char *const shown[SHOWN] = {"weekwheel", "linked", "flat"};

/* Of one structure, the ticks in the window. */
struct window {
	const char *name, *summary;
	uint32_t *ns;
	size_t count;
};

static const struct ticks *ticks_find(const struct results *results, const char *name, uint64_t n)
{
	size_t i;

	for (i = 0; i < results->ticks_count; i++) {
		const struct ticks *ticks = &results->ticks[i];

		if (ticks->n == n && ticks->count >= BOUNDARY && strcmp(ticks->structure->name, name) == 0)
			return ticks;
	}
	return NULL;
}

static int ticks_are_shown(const struct ticks *ticks)
{
	size_t i;

	for (i = 0; i < SHOWN; i++)
		if (strcmp(ticks->structure->name, shown[i]) == 0)
			return ticks->count >= BOUNDARY;
	return 0;
}

uint64_t ticks_timers(const struct results *results)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < results->ticks_count; i++)
		if (ticks_are_shown(&results->ticks[i]) && results->ticks[i].n > most)
			most = results->ticks[i].n;
	return most;
}

/* Return how many windows there are. */
static size_t ticks_windows(const struct results *results, struct window windows[SHOWN])
{
	uint64_t n = ticks_timers(results);
	size_t count = 0, i;

	for (i = 0; i < SHOWN; i++) {
		const struct ticks *ticks = ticks_find(results, shown[i], n);
		size_t first = BOUNDARY - AROUND;

		if (!ticks)
			continue;
		windows[count].name = ticks->structure->name;
		windows[count].summary = ticks->structure->summary;
		windows[count].count = ticks->count - first < 2 * AROUND ? (size_t)ticks->count - first : 2 * AROUND;
		windows[count++].ns = ticks->ns + first;
	}
	return count;
}

double ticks_height(const struct results *results)
{
	struct window windows[SHOWN];
	size_t count = ticks_windows(results, windows);

	return count == 0 ? 0 : TOP + (double)count * (PANEL + PANEL_GAP) - PANEL_GAP + BOTTOM;
}

static int ticks_compare(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Return a sorted copy of ns[0 .. count-1]. */
static uint32_t *ticks_sorted(const uint32_t *ns, size_t count)
{
	uint32_t *sorted = memory_zeroed(count, sizeof *sorted);

	memcpy(sorted, ns, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, ticks_compare);
	return sorted;
}

/* A clock that does not see a tick pass has no place on a logarithmic axis. */
static double ticks_at_least_one(uint32_t ns)
{
	return ns > 0 ? ns : 1;
}

static double ticks_median(const struct window *window)
{
	uint32_t *sorted = ticks_sorted(window->ns, window->count);
	double median = ticks_at_least_one(sorted[window->count / 2]);

	free(sorted);
	return median;
}

static size_t ticks_longest(const struct window *window)
{
	size_t longest = 0, i;

	for (i = 1; i < window->count; i++)
		if (window->ns[i] > window->ns[longest])
			longest = i;
	return longest;
}

static void ticks_fit(struct axis *axis, const struct window *windows, size_t count)
{
	double low = 0, high = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		double median = ticks_median(&windows[i]);
		double longest = ticks_at_least_one(windows[i].ns[ticks_longest(&windows[i])]);

		low = low == 0 || median < low ? median : low;
		high = longest > high ? longest : high;
	}
	axis->unit = AXIS_TIME;
	axis_fit(axis, low * 0.8, high);
}

/* Where a column begins; its middle is half a column on. */
static double ticks_x(double width, double column)
{
	return LEFT + (width - LEFT - RIGHT) * column / COLUMNS;
}

static void ticks_draw_grid(FILE *out, const struct axis *axis, double width)
{
	struct axis_tick ticks[AXIS_TICKS];
	size_t count = axis_ticks(axis, 17, ticks), i;
	char text[AXIS_TEXT];

	for (i = 0; i < count; i++) {
		double y = axis_place(axis, ticks[i].value);

		if (!ticks[i].labelled)
			continue;
		fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%.1f\"/>", LEFT, y, width - RIGHT);
		fprintf(out, "<text class=\"axis y\" x=\"%d\" y=\"%.1f\">%s</text>", LEFT - 6, y + 4,
		    axis_text(text, axis->unit, ticks[i].value));
	}
	fputc('\n', out);
}

static void ticks_draw_hours(FILE *out, double width, double top, double foot)
{
	static const char *const hours[] = {"2 h before", "1 h before", "the first day ends", "1 h after", "2 h after"};
	size_t i;

	for (i = 0; i < 5; i++) {
		double x = ticks_x(width, (double)i * COLUMNS / 4);

		fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>", i == 2 ? "mark" : "grid", x, top, foot);
		fprintf(out, "<text class=\"axis %s\" x=\"%.1f\" y=\"%.1f\">%s</text>",
		    i == 4   ? "y"
		    : i == 0 ? ""
		             : "x",
		    x, foot + 18, hours[i]);
	}
	fprintf(out, "<text class=\"axis m\" x=\"%.1f\" y=\"%.1f\">", ticks_x(width, COLUMNS / 2.0), foot + 38);
	fprintf(out, "a column is %d ticks of a second: its longest, above the median of all</text>\n", COLUMN);
}

/* Write the outline of the columns, which stand on the median of all ticks and reach to the longest of each. */
static void ticks_draw_columns(FILE *out, const struct window *window, const struct axis *axis, double width)
{
	double foot = axis_place(axis, ticks_median(window));
	size_t i, j;

	fprintf(out, "<path class=\"bin\" d=\"M%.1f %.1f", ticks_x(width, 0), foot);
	for (i = 0; i < window->count; i += COLUMN) {
		uint32_t longest = 0;

		for (j = i; j < i + COLUMN && j < window->count; j++)
			longest = window->ns[j] > longest ? window->ns[j] : longest;
		fprintf(out, "V%.1fH%.1f", axis_place(axis, ticks_at_least_one(longest)),
		    ticks_x(width, (double)(i / COLUMN) + 1));
	}
	fprintf(out, "V%.1fz\"/>\n", foot);
}

static void ticks_draw_longest(FILE *out, const struct window *window, const struct axis *axis, double width)
{
	size_t longest = ticks_longest(window);
	double time = ticks_at_least_one(window->ns[longest]);
	double x = ticks_x(width, (double)(longest / COLUMN) + 0.5), y = axis_place(axis, time);
	int at_right = x > width - 160;
	char text[AXIS_TEXT];

	fprintf(out, "<circle class=\"peak\" r=\"4.5\" cx=\"%.1f\" cy=\"%.1f\"/>", x, y);
	fprintf(out, "<text class=\"name halo%s\" x=\"%.1f\" y=\"%.1f\">longest: %s</text>", at_right ? " end" : "",
	    at_right ? x - 10 : x + 10, y + 4, axis_text(text, AXIS_TIME, time));
}

static void ticks_draw_panel(FILE *out, const struct window *window, const struct axis *axis, double width)
{
	ticks_draw_grid(out, axis, width);
	style_write_group(out, window->name);
	ticks_draw_columns(out, window, axis, width);
	ticks_draw_longest(out, window, axis, width);
	fprintf(out, "<text class=\"name\" x=\"%d\" y=\"%.1f\"><tspan class=\"what\">", LEFT, axis->at_high - 8);
	style_write_text(out, window->name);
	fputs("</tspan><tspan class=\"value\" dx=\"8\">", out);
	style_write_text(out, window->summary);
	fputs("</tspan></text></g>\n", out);
}

void ticks_draw(FILE *out, const struct results *results, double width, double top)
{
	struct window windows[SHOWN];
	size_t count = ticks_windows(results, windows), i;
	struct axis axis = {0};

	if (count == 0)
		return;
	ticks_fit(&axis, windows, count);
	fprintf(out, "<g transform=\"translate(0 %.1f)\">\n", top);
	ticks_draw_hours(out, width, TOP, TOP + (double)count * (PANEL + PANEL_GAP) - PANEL_GAP);
	for (i = 0; i < count; i++) {
		axis.at_high = TOP + (double)i * (PANEL + PANEL_GAP);
		axis.at_low = axis.at_high + PANEL;
		ticks_draw_panel(out, &windows[i], &axis, width);
	}
	fputs("</g>\n", out);
}

static void ticks_add_curve(struct plot_line *line, const struct window *window)
{
	uint32_t *sorted = ticks_sorted(window->ns, window->count);
	size_t left;

	/* The fewer are left, the closer the points, so that they are evenly spaced on a logarithmic axis. */
	for (left = window->count; left > 0; left -= left / CURVE_STEPS + 1) {
		struct plot_point point = {0};

		point.x = ticks_at_least_one(sorted[window->count - left]);
		point.y = (double)left / (double)window->count;
		plot_point(line, point);
	}
	free(sorted);
}

void ticks_curves(const struct results *results, struct plot *plot)
{
	struct window windows[SHOWN];
	size_t count = ticks_windows(results, windows), i;

	for (i = 0; i < count; i++)
		ticks_add_curve(plot_line(plot, windows[i].name), &windows[i]);
}
