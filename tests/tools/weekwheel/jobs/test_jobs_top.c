/* Tests of the wheels of top: the slot of a job, how full a slot looks, and a frame with known counts. */
/* tier: quick */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/suite.h"
#include "tools/common/duration.h"
#include "tools/weekwheel/jobs/top.h"
#include "tools/weekwheel/jobs/top_screen.h"

enum { SPANS = 10080 };

/* Tuesday, 2026-12-01 09:58:57.05 UTC. */
static const uint64_t tuesday = UINT64_C(1796119137050000000);

static uint64_t spans[SPANS];

static void zone(const char *name)
{
	ck_assert_int_eq(setenv("TZ", name, 1), 0);
	tzset();
}

/* Fill the wheel with a job in each of these spans, up to -1. */
static void fill(struct top_wheel *wheel, int kind, uint64_t now, const int *at)
{
	memset(spans, 0, sizeof spans);
	for (; *at >= 0; at++)
		spans[*at]++;
	top_wheel_fill(wheel, &top_wheel_kinds[kind], now, spans);
}

START_TEST(spans_are_sorted_into_slots)
{
	struct top_wheel wheel;

	zone("UTC0");
	/* The last begins a turn later in the hand's slot, and is not shown before the hand has moved. */
	fill(&wheel, TOP_SECONDS, tuesday, (const int[]){0, 8, 9, 10, 598, 599, -1});
	ck_assert_uint_eq(wheel.hand, 57);
	ck_assert_uint_eq(wheel.slots[57], 2);
	ck_assert_uint_eq(wheel.slots[58], 2);
	ck_assert_uint_eq(wheel.slots[56], 1);
	ck_assert_uint_eq(wheel.sum, 6);
	fill(&wheel, TOP_MINUTES, tuesday, (const int[]){0, 1, 2, 3500, 3599, -1});
	ck_assert_uint_eq(wheel.hand, 58);
	ck_assert_uint_eq(wheel.slots[58], 2);
	ck_assert_uint_eq(wheel.slots[59], 1);
	ck_assert_uint_eq(wheel.slots[57], 1);
	fill(&wheel, TOP_HOURS, tuesday, (const int[]){3, 4, 5759, -1});
	ck_assert_uint_eq(wheel.hand, 9);
	ck_assert_uint_eq(wheel.slots[9], 1);
	ck_assert_uint_eq(wheel.slots[10], 1);
	fill(&wheel, TOP_DAYS, tuesday, (const int[]){840, 841, 8 * 60, 6 * 1440, 10079, -1});
	ck_assert_uint_eq(wheel.hand, 1);
	ck_assert_uint_eq(wheel.slots[1], 2);
	ck_assert_uint_eq(wheel.slots[2], 1);
	ck_assert_uint_eq(wheel.slots[0], 1);
}
END_TEST

/* Fill the spans as a server does whose only job is due then. */
static void count_one(const struct top_wheel_kind *kind, uint64_t now, uint64_t due)
{
	uint64_t i = (due - now) / kind->span;

	memset(spans, 0, sizeof spans);
	if (i < kind->count)
		spans[i] = 1;
}

static void keeps_its_slot(const struct top_wheel_kind *kind, uint64_t due, size_t slot, uint64_t late)
{
	uint64_t step = kind->every * DURATION_SECOND;
	uint64_t now = due - due % step - kind->count * kind->span + step;
	uint64_t questions = kind->count * kind->span / step;
	uint64_t stride = questions > 3 * kind->slots ? questions / (3 * kind->slots) : 1;
	struct top_wheel wheel;
	size_t hand = slot;
	size_t moves = 0;

	/* The answer comes a little after the question was due. A few questions for each slot are enough. */
	for (now += late; now < due; now += step * stride) {
		count_one(kind, now, due);
		top_wheel_fill(&wheel, kind, now, spans);
		moves += wheel.hand != hand;
		hand = wheel.hand;
		ck_assert_msg(wheel.slots[slot] == (moves > 0), "%s: slot %zu, hand %zu", kind->name, slot, hand);
		ck_assert_uint_eq(wheel.sum, 1);
	}
	/* A job on the border of a slot is due when the hand arrives there, and not before. */
	ck_assert_msg(moves >= kind->slots - 1, "%s: %zu moves", kind->name, moves);
}

START_TEST(a_job_keeps_its_slot_while_the_hand_comes_nearer)
{
	static const uint64_t late[] = {0, 40000000};
	/* 2026-12-03 12:00:00 UTC, and a time in the middle of all slots. */
	static const uint64_t due[] = {UINT64_C(1796299200000000000), UINT64_C(1796301030500000000)};
	static const size_t slots[][TOP_WHEELS] = {{0, 30, 17, 3}, {30, 0, 18, 3}};
	size_t i, j, k;

	zone("IST-5:30");
	for (i = 0; i < sizeof due / sizeof *due; i++)
		for (j = 0; j < sizeof late / sizeof *late; j++)
			for (k = 0; k < TOP_WHEELS; k++)
				keeps_its_slot(&top_wheel_kinds[k], due[i], slots[i][k], late[j]);
}
END_TEST

START_TEST(a_day_of_25_hours_is_one_slot)
{
	struct top_wheel wheel;

	/* 2026-10-24 12:00 in Berlin; clocks are put back in the night that follows. Monday begins 37 hours later. */
	zone("CET-1CEST,M3.5.0,M10.5.0/3");
	fill(&wheel, TOP_DAYS, UINT64_C(1792836000000000000), (const int[]){719, 720, 37 * 60 - 1, 37 * 60, -1});
	ck_assert_uint_eq(wheel.hand, 5);
	ck_assert_uint_eq(wheel.slots[5], 1);
	ck_assert_uint_eq(wheel.slots[6], 2);
	ck_assert_uint_eq(wheel.slots[0], 1);
}
END_TEST

START_TEST(a_slot_is_as_high_as_it_is_full)
{
	char seen[12] = "";
	uint64_t n;

	for (n = 0; n <= 9; n++)
		strcat(seen, top_wheel_cell(n, 9, 0));
	ck_assert_str_eq(seen, " .:-=+*#%@");
	ck_assert_str_eq(top_wheel_cell(1, 1000000, 0), ".");
	ck_assert_str_eq(top_wheel_cell(1, 1, 0), "@");
	ck_assert_str_eq(top_wheel_cell(0, 0, 0), " ");
	ck_assert_str_eq(top_wheel_cell(UINT64_MAX, UINT64_MAX, 0), "@");
	ck_assert_str_eq(top_wheel_cell(UINT64_MAX, 1, 0), "@");
	ck_assert_str_eq(top_wheel_cell(0, 8, 1), " ");
	ck_assert_str_eq(top_wheel_cell(1, 80, 1), "\xe2\x96\x81");
	ck_assert_str_eq(top_wheel_cell(4, 8, 1), "\xe2\x96\x84");
	ck_assert_str_eq(top_wheel_cell(5, 5, 1), "\xe2\x96\x88");
}
END_TEST

/* A frame of a server whose numbers are all `n`. */
static char *draw(const struct top_wheels *wheels, const struct top_look *look, uint64_t n)
{
	struct jobs jobs = {.server = "a server whose name is long enough to be cut off somewhere"};
	struct tube_row tubes[] = {
	    {.name = "a tube", .ready = n, .delayed = n, .reserved = n, .buried = n, .total = n, .deleted = n},
	    {.name = "a tube whose name is longer than that"}, {.name = "c"}};
	char limits[] = "LIMIT  GROUP\nmail   each\n",
	     schedules[] = "SCHEDULE  NEXT\nbackup    paused\nt\xc3\xa4glich   ended\n";
	struct top_view view = {.jobs = &jobs,
	    .previous = {.taken = 1},
	    .now = {.taken = 1001, .tubes = {tubes, 3, 3}, .all = tubes[0], .workers = n},
	    .has_previous = 1,
	    .wheels = *wheels,
	    .panels = {.at = {{.text = limits, .rows = 1}, {.text = schedules, .rows = 2}}}};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	top_frame(out, &view, look);
	fclose(out);
	return text;
}

/* Count the lines, none of which may reach the end of the screen. A block is one character of three bytes. */
static int lines(const char *text, int columns)
{
	int count = 0, width = 0;

	for (const char *at = text; *at; at++) {
		width += ((unsigned char)*at & 0xc0) != 0x80 && *at != '\n';
		ck_assert_msg(width < columns || !width, "wider than %d:\n%s", columns, text);
		if (*at != '\n')
			continue;
		count++;
		width = 0;
	}
	return count;
}

START_TEST(a_frame_shows_known_counts)
{
	struct top_look look = {.rows = 24, .columns = 80};
	struct top_wheels wheels = {.overdue = 12, .is_asked = 1, .has_forecast = 1};
	char *text;

	zone("UTC0");
	fill(&wheels.at[TOP_SECONDS], TOP_SECONDS, tuesday, (const int[]){15, 25, 25, 40, -1});
	fill(&wheels.at[TOP_DAYS], TOP_DAYS, tuesday, (const int[]){1, 900, 900, -1});
	top_wheels_turn(&wheels, tuesday);
	text = draw(&wheels, &look, 3);
	ck_assert_int_eq(lines(text, 80), 23);
	ck_assert_ptr_nonnull(strstr(text, "2026-12-01 09:58:57  a server"));
	ck_assert_ptr_nonnull(strstr(text, "\nOverdue 12; due in 60 s: 4, 1 h: 0, 1 d: 0, 7 d: 3\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nsec   +                                                        +@ max 2\n"
	                                   "     0    .    10   .    20   .    30   .    40   .    50   . ^\nmin  "));
	ck_assert_ptr_nonnull(strstr(text, "\nhour                                                              max 0\n"
	                                   "     0     6  ^  12    18\nday   +@"));
	ck_assert_ptr_nonnull(strstr(text, " max 2\n     M^WTFSS\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n\nLIMIT  GROUP\nmail   each\n\n"));
	free(text);
	look.utf8 = 1;
	text = draw(&wheels, &look, 3);
	ck_assert_ptr_nonnull(strstr(text, "\nday   \xe2\x96\x84\xe2\x96\x88 "));
	ck_assert_int_eq(lines(text, 80), 23);
	free(text);
}
END_TEST

START_TEST(what_is_narrow_has_slots_together)
{
	struct top_look look = {.rows = 20, .columns = 20};
	struct top_wheels wheels = {.overdue = 12, .is_asked = 1, .has_forecast = 1};
	char *text;

	zone("UTC0");
	fill(&wheels.at[TOP_SECONDS], TOP_SECONDS, tuesday, (const int[]){15, 25, 25, 40, -1});
	top_wheels_turn(&wheels, tuesday);
	text = draw(&wheels, &look, 3);
	/* Three are due in the last five seconds of the minute, and one in the first five of the next. */
	ck_assert_ptr_nonnull(strstr(text, "\nsec  -          @\n     0  15 30 45^\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n     0  6^ 12 18\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n3 ready, 3 buried\n"));
	ck_assert_ptr_nonnull(strstr(text, "\noverdue: ?\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nTUBE          READY\na tube            3\n"));
	free(text);
	look.columns = 40;
	text = draw(&wheels, &look, 3);
	ck_assert_ptr_nonnull(strstr(text, "\n     0    10   20   30   40   50 ^\n"));
	free(text);
}
END_TEST

START_TEST(a_higher_screen_has_limits_and_schedules)
{
	struct top_look look = {.rows = 40, .columns = 80};
	struct top_wheels wheels = {.is_asked = 1, .has_forecast = 1};
	char *text = draw(&wheels, &look, 3);

	ck_assert_ptr_nonnull(
	    strstr(text, "\n\nLIMIT  GROUP\nmail   each\n\nSCHEDULE  NEXT\nbackup    paused\nt?glich   ended\n"));
	ck_assert_int_eq(lines(text, 80), 39);
	free(text);
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
	look.utf8 = 1;
	text = draw(&wheels, &look, 3);
	ck_assert_ptr_nonnull(strstr(text, "\nt\xc3\xa4glich   ended\n"));
	free(text);
	/* Rows that have no room are counted. */
	for (look.rows = 24; look.rows < 40; look.rows++) {
		text = draw(&wheels, &look, 3);
		ck_assert_msg(!strstr(text, "SCHEDULE") || strstr(text, "glich") ||
		                  strstr(text, "\n... and 2 more\n") || strstr(text, "\n... and 1 more\n"),
		    "%s", text);
		free(text);
	}
}
END_TEST

START_TEST(what_a_terminal_would_obey_is_a_question_mark)
{
	struct top_look look = {.rows = 5, .columns = 80, .utf8 = 1};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct screen screen = screen_begin(out, &look);

	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
	/* The first and the last of both ranges of controls, and their neighbours. */
	screen_line(&screen, NULL, "|\x01\x1f \x7e\x7f\xc2\x80\xc2\x9f\xc2\xa1|");
	fclose(out);
	ck_assert_str_eq(text, "|?? ~???\xc2\xa1|\n");
	free(text);
}
END_TEST

START_TEST(a_frame_fits_whatever_the_numbers)
{
	struct top_look look = {.utf8 = 1};
	struct top_wheels wheels = {.overdue = UINT64_MAX, .is_asked = 1, .has_forecast = 1};
	static const uint64_t numbers[] = {0, 7, UINT64_MAX};

	for (size_t i = 0; i < TOP_WHEELS; i++) {
		for (size_t j = 0; j < top_wheel_kinds[i].slots; j++)
			wheels.at[i].slots[j] = UINT64_MAX / 64 - j;
		wheels.at[i].sum = UINT64_MAX;
	}
	for (int i = 0; i < 2; i++, wheels.has_forecast = 0)
		for (look.rows = 1; look.rows <= 100; look.rows += look.rows < 30 ? 1 : 14)
			for (look.columns = 1; look.columns <= 310; look.columns += look.columns < 90 ? 1 : 44) {
				char *text = draw(&wheels, &look, numbers[(look.rows + look.columns) % 3]);

				ck_assert_int_eq(lines(text, look.columns), look.rows - 1);
				ck_assert_int_eq(strstr(text, "No wheels") != NULL,
				    !wheels.has_forecast && look.rows > 8 && look.columns > 9);
				free(text);
			}
}
END_TEST

START_TEST(the_help_has_as_many_pages_as_it_needs)
{
	struct top_look look = {.rows = 1, .columns = 20};

	for (; look.rows <= 60; look.rows++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		int pages = 0;

		ck_assert_ptr_nonnull(out);
		while (top_help(out, pages + 1, &look))
			pages++;
		fclose(out);
		ck_assert_int_eq(lines(text, 20), pages * (look.rows - 1));
		if (look.rows > 1)
			ck_assert_ptr_nonnull(strstr(text, "columns.\n"));
		free(text);
	}
}
END_TEST

START_TEST(colour_is_where_it_is_wanted)
{
	struct top_look look = {.rows = 24, .columns = 80, .colour = 1};
	struct top_wheels wheels = {.is_asked = 1, .has_forecast = 1};
	char *text;

	zone("UTC0");
	top_wheels_turn(&wheels, tuesday);
	text = draw(&wheels, &look, 1);
	ck_assert_ptr_nonnull(strstr(text, "day  \033[36m \033[7m \033[0m\033[36m     \033[0m "));
	free(text);
	look.colour = 0;
	text = draw(&wheels, &look, 1);
	ck_assert_ptr_null(strchr(text, '\033'));
	free(text);
}
END_TEST

TEST_MAIN("weekwheel/jobs_top", spans_are_sorted_into_slots, a_job_keeps_its_slot_while_the_hand_comes_nearer,
    a_day_of_25_hours_is_one_slot, a_slot_is_as_high_as_it_is_full, a_frame_shows_known_counts,
    what_is_narrow_has_slots_together, a_higher_screen_has_limits_and_schedules,
    what_a_terminal_would_obey_is_a_question_mark, a_frame_fits_whatever_the_numbers,
    the_help_has_as_many_pages_as_it_needs, colour_is_where_it_is_wanted)
