/* Logarithmic axes. */
#include "tools/bench/plot_axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double steps[] = {1, 2, 5};

/* Rounding must not lose a tick at the very end of an axis. */
#define ALMOST 1e-9

static double axis_round_down(double value)
{
	double decade = pow(10, floor(log10(value) + ALMOST));
	double rounded = decade;
	size_t i;

	for (i = 1; i < sizeof steps / sizeof *steps; i++)
		if (steps[i] * decade <= value * (1 + ALMOST))
			rounded = steps[i] * decade;
	return rounded;
}

static double axis_round_up(double value)
{
	double below = axis_round_down(value);
	double decade = pow(10, floor(log10(below) + ALMOST));
	size_t i;

	if (below >= value * (1 - ALMOST))
		return below;
	for (i = 0; i < sizeof steps / sizeof *steps; i++)
		if (steps[i] * decade > below * (1 + ALMOST))
			return steps[i] * decade;
	return 10 * decade;
}

void axis_fit(struct axis *axis, double low, double high)
{
	axis->low = axis_round_down(low);
	axis->high = axis_round_up(high);
	while (axis->high < 4 * axis->low) {
		axis->low = axis_round_down(axis->low / 1.9);
		axis->high = axis_round_up(axis->high * 1.9);
	}
}

double axis_place(const struct axis *axis, double value)
{
	double part = log(value / axis->low) / log(axis->high / axis->low);

	return axis->at_low + part * (axis->at_high - axis->at_low);
}

static void axis_add(const struct axis *axis, double value, int labelled, struct axis_tick *ticks, size_t *count)
{
	if (value < axis->low * (1 - ALMOST) || value > axis->high * (1 + ALMOST) || *count == AXIS_TICKS)
		return;
	ticks[*count].value = value;
	ticks[(*count)++].labelled = labelled;
}

static size_t axis_ticks_of_spans(const struct axis *axis, struct axis_tick *ticks)
{
	static const double spans[] = {60, 3600, 86400, 604800, 2592000, 31536000};
	static const double unlabelled = 2592000; /* there is no room between a week and a year */
	size_t count = 0, i;

	for (i = 0; i < sizeof spans / sizeof *spans; i++)
		axis_add(axis, spans[i], spans[i] < unlabelled || spans[i] > unlabelled, ticks, &count);
	return count;
}

/* An axis too short for two round values has its ends labelled. */
static size_t axis_ends(const struct axis *axis, struct axis_tick *ticks, size_t count)
{
	size_t labelled = 0, i;

	for (i = 0; i < count; i++)
		labelled += ticks[i].labelled != 0;
	if (labelled >= 2)
		return count;
	count = 0;
	axis_add(axis, axis->low, 1, ticks, &count);
	axis_add(axis, axis->high, 1, ticks, &count);
	return count;
}

size_t axis_ticks(const struct axis *axis, double gap, struct axis_tick *ticks)
{
	double decade_size = fabs(axis->at_high - axis->at_low) / log10(axis->high / axis->low);
	int first = (int)floor(log10(axis->low) + ALMOST), last = (int)ceil(log10(axis->high) - ALMOST);
	int every = (int)ceil(gap / decade_size);
	/* 2 and 5 are some three tenths of a decade from their neighbours. */
	int between = decade_size >= 40, labelled = decade_size * 0.3 >= gap;
	size_t count = 0, i;
	int exponent;

	if (axis->unit == AXIS_SPAN)
		return axis_ticks_of_spans(axis, ticks);
	for (exponent = first; exponent <= last; exponent++) {
		double decade = pow(10, exponent);

		axis_add(axis, decade, exponent % every == 0, ticks, &count);
		for (i = 1; between && i < sizeof steps / sizeof *steps; i++)
			axis_add(axis, steps[i] * decade, labelled, ticks, &count);
	}
	return axis_ends(axis, ticks, count);
}

/* Write the value with at most `decimals` digits after the point, without zeros at their end. */
static void axis_number(char *out, double value, int decimals)
{
	char *end = out + snprintf(out, AXIS_TEXT, "%.*f", decimals, value);

	if (!strchr(out, '.'))
		return;
	while (end[-1] == '0')
		*--end = '\0';
	if (end[-1] == '.')
		end[-1] = '\0';
}

static const char *axis_scaled(char *out, double value, const double *scales, const char *const *units, size_t count)
{
	char number[AXIS_TEXT];
	size_t i = 0;

	while (i + 1 < count && value >= scales[i + 1] * 0.9995)
		i++;
	value /= scales[i];
	axis_number(number, value, value < 0.0995 ? 3 : value < 0.995 ? 2 : value < 9.95 ? 1 : 0);
	snprintf(out, AXIS_TEXT, "%.20s %s", number, units[i]);
	return out;
}

const char *axis_text_count(char *out, double count)
{
	char digits[AXIS_TEXT];
	size_t length = (size_t)snprintf(digits, sizeof digits, "%.0f", count);
	size_t used = 0, i;

	for (i = 0; i < length && used + 2 < AXIS_TEXT; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = digits[i];
	}
	out[used] = '\0';
	return out;
}

static const char *axis_text_span(char *out, double seconds)
{
	static const double scales[] = {1, 60, 3600, 86400, 604800, 2592000, 31536000};
	static const char *const units[] = {"s", "min", "h", "day", "week", "month", "year"};

	return axis_scaled(out, seconds, scales, units, sizeof scales / sizeof *scales);
}

const char *axis_text(char *out, enum axis_unit unit, double value)
{
	static const double thousands[] = {1, 1e3, 1e6, 1e9};
	static const char *const times[] = {"ns", "µs", "ms", "s"};
	static const char *const bytes[] = {"B", "kB", "MB", "GB"};

	switch (unit) {
	case AXIS_TIME:
		return axis_scaled(out, value, thousands, times, 4);
	case AXIS_BYTES:
		return axis_scaled(out, value, thousands, bytes, 4);
	case AXIS_SPAN:
		return axis_text_span(out, value);
	case AXIS_SHARE:
		axis_number(out, value * 100, 4);
		return strcat(out, " %");
	case AXIS_COUNT:
		break;
	}
	if (value < 1e6)
		return axis_text_count(out, value);
	axis_number(out, value / 1e6, 2);
	return strcat(out, " million");
}

const char *axis_text_ratio(char *out, double ratio)
{
	if (ratio >= 9.95)
		return axis_text_count(out, ratio);
	snprintf(out, AXIS_TEXT, "%.*f", ratio < 0.0095 ? 3 : ratio < 0.095 ? 2 : 1, ratio);
	return out;
}
