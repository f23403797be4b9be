/* Draws the wheels of top. Where the screen is narrow, a character stands for several slots. */
#include <stdio.h>
#include <string.h>

#include "tools/weekwheel/jobs/top_screen.h"

enum { LABEL = 5, MOST = 12 };

static const char *const bar = "36", *const reverse = "7";

/* Return how many slots a character stands for: the fewest that fit. */
static size_t fold(const struct screen *screen, size_t slots)
{
	size_t each = 1;

	while (each < slots && (slots % each || LABEL + (int)(slots / each) > screen->width))
		each++;
	return each;
}

static size_t widest(const struct screen *screen)
{
	size_t most = 0;

	for (size_t i = 0; i < TOP_WHEELS; i++) {
		size_t cells = top_wheel_kinds[i].slots / fold(screen, top_wheel_kinds[i].slots);

		most = cells > most ? cells : most;
	}
	return most;
}

static struct top_wheel folded(const struct top_wheel *wheel, const struct top_wheel_kind *kind, size_t each)
{
	struct top_wheel result = {.hand = wheel->hand / each};

	for (size_t i = 0; i < kind->slots; i++)
		result.slots[i / each] += wheel->slots[i];
	return result;
}

/* Draw one character for each cell, and the number that the highest stands for. */
static void cells_line(struct screen *screen, const char *name, const struct top_wheel *wheel, size_t cells)
{
	uint64_t most = top_wheel_most(wheel);
	size_t width = widest(screen);
	char text[12];

	fprintf(screen->out, "%-*s", LABEL, name);
	screen_paint(screen, bar);
	for (size_t i = 0; i < cells; i++) {
		if (i == wheel->hand)
			screen_paint(screen, reverse);
		fputs(top_wheel_cell(wheel->slots[i], most, screen->look->utf8), screen->out);
		if (i == wheel->hand) {
			screen_paint(screen, NULL);
			screen_paint(screen, bar);
		}
	}
	screen_paint(screen, NULL);
	if (LABEL + (int)width + MOST <= screen->width)
		fprintf(screen->out, "%*s max %s", (int)(width - cells), "", screen_count(text, most));
	screen_next(screen);
}

/* A ruler of cells that stand for several slots has a number at each fifth, third or fourth. */
static void rule(char *ruler, size_t cells, size_t each)
{
	size_t apart = cells % 5 == 0 ? 5 : cells % 3 == 0 ? 3 : 4;

	memset(ruler, ' ', cells);
	for (size_t i = 0; i + 2 <= cells; i += apart) {
		char number[24];

		snprintf(number, sizeof number, "%zu", i * each);
		memcpy(ruler + i, number, strnlen(number, 2));
	}
}

static void hand_line(struct screen *screen, const struct top_wheel_kind *kind, size_t hand, size_t each)
{
	size_t cells = kind->slots / each;
	char ruler[TOP_SLOTS + 1] = "";

	if (each == 1)
		memcpy(ruler, kind->ruler, cells);
	else
		rule(ruler, cells, each);
	ruler[hand] = '^';
	screen_line(screen, NULL, "%*s%s", LABEL, "", ruler);
}

static void heading(struct screen *screen, const struct top_wheels *wheels)
{
	char overdue[12], due[TOP_WHEELS][12], all[200], few[100], last[60];
	const char *turn[TOP_WHEELS];

	for (size_t i = 0; i < TOP_WHEELS; i++) {
		screen_count(due[i], wheels->at[i].sum);
		turn[i] = top_wheel_kinds[i].turn;
	}
	snprintf(all, sizeof all, "Overdue %s; due in %s: %s, %s: %s, %s: %s, %s: %s",
	    screen_count(overdue, wheels->overdue), turn[0], due[0], turn[1], due[1], turn[2], due[2], turn[3], due[3]);
	snprintf(few, sizeof few, "Overdue %s; due in %s: %s, %s: %s", overdue, turn[0], due[0], turn[3], due[3]);
	snprintf(last, sizeof last, "Due in %s: %s", turn[3], due[3]);
	screen_first(screen, screen_bold, (const char *const[]){all, few, last}, 3);
}

void dials_draw(struct screen *screen, const struct top_wheels *wheels, int lines)
{
	if (lines > 0 && !wheels->has_forecast) {
		screen_line(screen, screen_bold, "No wheels: this server does not show when its jobs are due");
		return;
	}
	if (lines > 0)
		heading(screen, wheels);
	for (size_t i = 0; lines >= DIALS_FLAT && i < TOP_WHEELS; i++) {
		const struct top_wheel_kind *kind = &top_wheel_kinds[i];
		size_t each = fold(screen, kind->slots);
		struct top_wheel wheel = folded(&wheels->at[i], kind, each);

		cells_line(screen, kind->name, &wheel, kind->slots / each);
		if (lines >= DIALS_FULL)
			hand_line(screen, kind, wheel.hand, each);
	}
}
