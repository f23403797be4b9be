#ifndef TOOLS_BENCH_PLOT_AXIS_H
#define TOOLS_BENCH_PLOT_AXIS_H

/* Logarithmic axes: from values to places on the paper, where the ticks are, and how a value reads. */

#include <stddef.h>

enum axis_unit {
	AXIS_TIME,  /* nanoseconds, shown as ns, µs, ms or s */
	AXIS_BYTES, /* shown as B, kB or MB, of 1,000 */
	AXIS_COUNT,
	AXIS_SHARE, /* of 1, shown in percent */
	AXIS_SPAN   /* seconds, shown as 1 min, 1 h, 1 day */
};

struct axis {
	enum axis_unit unit;
	double low, high;       /* values, above 0, low < high */
	double at_low, at_high; /* where on the paper these are */
};

struct axis_tick {
	double value;
	int labelled;
};

enum { AXIS_TEXT = 40, AXIS_TICKS = 64 };

/* Make the axis hold `low` to `high`, which may be equal, and end at round values. */
void axis_fit(struct axis *axis, double low, double high);

/* Return where the value is. */
double axis_place(const struct axis *axis, double value);

/* Write the ticks in rising order to ticks[0 .. AXIS_TICKS-1]; labels stay `gap` apart. Return how many there are. */
size_t axis_ticks(const struct axis *axis, double gap, struct axis_tick *ticks);

/* Write the value with its unit, to two or three digits ("6.8 ns", "120 µs"), to out[AXIS_TEXT]; return out. */
const char *axis_text(char *out, enum axis_unit unit, double value);

/* The same with all digits of a count: "10,000,000". */
const char *axis_text_count(char *out, double count);

/* How many times: "0.7", "41", "3,004". */
const char *axis_text_ratio(char *out, double ratio);

#endif
