#ifndef TOOLS_WEEKWHEEL_JOBS_TOP_SCREEN_H
#define TOOLS_WEEKWHEEL_JOBS_TOP_SCREEN_H

/* The screen that top draws line by line. No line is longer than the terminal, and there are no more than fit. */

#include <stdio.h>

#include "tools/weekwheel/jobs/top.h"

enum { TOP_LINE_MAX = 512 };

struct screen {
	FILE *out;
	const struct top_look *look;
	int width; /* of a line: the last column stays free, where a terminal is about to wrap */
	int left;  /* lines that still fit, without the last one */
};

extern const char *const screen_bold, *const screen_warning;

/* Begin a frame at the top left, and end it with its last line. */
struct screen screen_begin(FILE *out, const struct top_look *look);
void screen_end(struct screen *screen, const char *last);

/* Write a line in a colour, or in none for NULL. What does not fit is cut off; beyond the last line nothing is written. */
void screen_line(struct screen *screen, const char *colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Write the first of these texts that fits; if none does, the last, cut off. */
void screen_first(struct screen *screen, const char *colour, const char *const *texts, size_t count);

/* Write empty lines. */
void screen_blank(struct screen *screen, int count);

/* Parts of a line that the caller measures: begin a colour, or NULL for none, and end the line. */
void screen_paint(const struct screen *screen, const char *colour);
void screen_next(struct screen *screen);

/* ---- Parts of a frame. Each draws the lines that the plan gives it. */

enum { DIALS_FULL = 1 + 2 * TOP_WHEELS, DIALS_FLAT = 1 + TOP_WHEELS, DIALS_WIDTH = 17 };

/* Draw the wheels on this many lines: one for what is due and, if there are more, one or two for each wheel. */
void dials_draw(struct screen *screen, const struct top_wheels *wheels, int lines);

/* Draw the title and rows of a panel on at most this many lines. The last of them may say that there are more. */
void panel_draw(struct screen *screen, const struct top_panel *panel, int lines);

/* Write a count in at most 7 characters. Returns text. */
const char *screen_count(char text[12], uint64_t n);

#endif
