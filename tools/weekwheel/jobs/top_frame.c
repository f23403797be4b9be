/* Draws a frame of the command top: text of 80 columns with a little colour. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/weekwheel/jobs/top.h"

/* The rows of neither tubes nor wheels; and the rows of the wheels: a heading, and two for each. */
enum { WIDTH = 80, LABEL = 5, FIXED_ROWS = 7, WHEEL_ROWS = 1 + 2 * TOP_WHEELS };

struct frame {
	FILE *out;
	const struct top_look *look;
};

static const char *const bold = "1", *const warning = "33", *const bar = "36", *const reverse = "7", *const plain = "0";

/* On a terminal, also clear what an earlier frame left to the right. */
static void end_line(const struct frame *frame)
{
	fputs(frame->look->cursor ? "\033[K\r\n" : "\n", frame->out);
}

/* Write a line in a colour, or in none for NULL. */
__attribute__((format(printf, 3, 4))) static void line(
    const struct frame *frame, const char *colour, const char *format, ...)
{
	char text[WIDTH * 4];
	va_list arguments;
	size_t i;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	text[WIDTH - 1] = 0;
	for (i = 0; text[i]; i++)
		if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] >= 0x7f)
			text[i] = '?';
	while (i && text[i - 1] == ' ')
		text[--i] = 0;
	if (colour && frame->look->colour && *text)
		fprintf(frame->out, "\033[%sm%s\033[0m", colour, text);
	else
		fputs(text, frame->out);
	end_line(frame);
}

/* Write a count in at most 7 characters. */
static const char *count(char text[12], uint64_t n)
{
	if (n < 10000000)
		snprintf(text, 12, "%" PRIu64, n);
	else if (n < 10000000000)
		snprintf(text, 12, "%" PRIu64 "M", n / 1000000);
	else
		snprintf(text, 12, "%.3gG", (double)n / 1e9);
	return text;
}

/* Write what a counter gained each second, or "-" if the server was restarted, which counts from 0. */
static const char *rate(char text[12], uint64_t now, uint64_t previous, int64_t ms)
{
	if (ms <= 0 || now < previous)
		snprintf(text, 12, "-");
	else
		snprintf(text, 12, "%.*f", now - previous < 100 ? 1 : 0, (double)(now - previous) * 1000 / (double)ms);
	return text;
}

static const struct tube_row *find(const struct top_sample *sample, const char *name)
{

	for (size_t i = 0; sample && i < sample->tubes.count; i++)
		if (strcmp(sample->tubes.at[i].name, name) == 0)
			return &sample->tubes.at[i];
	return NULL;
}

static void head(const struct frame *frame, const struct jobs *jobs, const struct top_sample *now, uint64_t time)
{
	char date[DURATION_TEXT], up[DURATION_TEXT] = "?", oldest[DURATION_TEXT];
	struct duration_problem problem;
	uint64_t ns = 0;
	int known = duration_parse(now->oldest, &ns, &problem) == 0;

	if (now->uptime < DURATION_MAX / DURATION_SECOND)
		duration_format(up, now->uptime * DURATION_SECOND);
	line(frame, bold, "%s  %.30s  version %.12s  up %s", time_format(date, time), jobs->server, now->all.name, up);
	line(frame, NULL,
	    "jobs: %" PRIu64 " ready, %" PRIu64 " delayed, %" PRIu64 " reserved, %" PRIu64 " buried; %" PRIu64
	    " workers",
	    now->all.ready, now->all.delayed, now->all.reserved, now->all.buried, now->workers);
	if (known && ns)
		line(frame, ns >= DURATION_SECOND ? warning : NULL, "oldest overdue: %s", duration_format(oldest, ns));
	else
		line(frame, NULL, known ? "nothing is overdue" : "oldest overdue: not known of this server");
}

/* While limits hold jobs, a column more says so, and names have less room. */
static uint64_t count_held(const struct top_sample *sample)
{
	uint64_t held = 0;

	for (size_t i = 0; i < sample->tubes.count; i++)
		held += sample->tubes.at[i].held;
	return held;
}

static void held_cell(char text[12], int is_shown, uint64_t held)
{
	char number[12];

	snprintf(text, 12, is_shown ? " %7s" : "%s", is_shown ? count(number, held) : "");
}

static void tube_line(
    const struct frame *frame, const struct tube_row *tube, const struct tube_row *previous, int64_t ms, int shows_held)
{
	char held[12], ready[12], delayed[12], reserved[12], buried[12], puts[12], done[12];

	held_cell(held, shows_held, tube->held);
	line(frame, tube->buried ? warning : NULL, "%-*.*s %7s%s %8s %8s %7s %8s %8s", shows_held ? 16 : 24,
	    shows_held ? 16 : 24, tube->name, count(ready, tube->ready), held, count(delayed, tube->delayed),
	    count(reserved, tube->reserved), count(buried, tube->buried),
	    rate(puts, tube->total, previous ? previous->total : 0, previous ? ms : 0),
	    rate(done, tube->deleted, previous ? previous->deleted : 0, previous ? ms : 0));
}

static void tube_lines(
    const struct frame *frame, const struct top_sample *now, const struct top_sample *previous, int rows)
{
	int64_t ms = previous ? now->taken - previous->taken : 0;
	size_t shown = now->tubes.count;
	size_t i;

	int shows_held = count_held(now) > 0;

	line(frame, bold, "%-*s %7s%s %8s %8s %7s %8s %8s", shows_held ? 16 : 24, "TUBE", "READY",
	    shows_held ? "    HELD" : "", "DELAYED", "RESERVED", "BURIED", "PUTS/S", "DONE/S");
	if (shown > (size_t)rows)
		shown = (size_t)rows - 1;
	for (i = 0; i < shown; i++)
		tube_line(frame, &now->tubes.at[i], find(previous, now->tubes.at[i].name), ms, shows_held);
	if (shown < now->tubes.count) {
		line(frame, NULL, "... and %zu more", now->tubes.count - shown);
		i++;
	}
	for (; i < (size_t)rows; i++)
		line(frame, NULL, "%s", "");
}

static void paint(const struct frame *frame, const char *colour)
{
	if (frame->look->colour)
		fprintf(frame->out, "\033[%sm", colour);
}

/* Draw one character for each slot, and the number that the highest stands for. */
static void wheel_slots(const struct frame *frame, const struct top_wheel_kind *kind, const struct top_wheel *wheel)
{
	uint64_t most = top_wheel_most(wheel);
	char text[12];

	fprintf(frame->out, "%-*s", LABEL, kind->name);
	paint(frame, bar);
	for (size_t i = 0; i < kind->slots; i++) {
		if (i == wheel->hand)
			paint(frame, reverse);
		fputs(top_wheel_cell(wheel->slots[i], most, frame->look->utf8), frame->out);
		if (i == wheel->hand) {
			paint(frame, plain);
			paint(frame, bar);
		}
	}
	paint(frame, plain);
	fprintf(frame->out, "%*s max %s", (int)(TOP_SLOTS - kind->slots), "", count(text, most));
	end_line(frame);
}

static void wheel_hand(const struct frame *frame, const struct top_wheel_kind *kind, const struct top_wheel *wheel)
{
	line(frame, NULL, "%*s%.*s^%s", LABEL, "", (int)wheel->hand, kind->ruler, kind->ruler + wheel->hand + 1);
}

static void wheel_lines(const struct frame *frame, const struct top_wheels *wheels)
{
	char overdue[12], due[TOP_WHEELS][12];

	if (!wheels->has_forecast) {
		line(frame, bold, "No wheels: this server does not tell when its jobs are due");
		return;
	}
	for (size_t i = 0; i < TOP_WHEELS; i++)
		count(due[i], wheels->at[i].sum);
	line(frame, bold, "Overdue %s; due in %s: %s, %s: %s, %s: %s, %s: %s", count(overdue, wheels->overdue),
	    top_wheel_kinds[0].turn, due[0], top_wheel_kinds[1].turn, due[1], top_wheel_kinds[2].turn, due[2],
	    top_wheel_kinds[3].turn, due[3]);
	for (size_t i = 0; i < TOP_WHEELS; i++) {
		wheel_slots(frame, &top_wheel_kinds[i], &wheels->at[i]);
		wheel_hand(frame, &top_wheel_kinds[i], &wheels->at[i]);
	}
}

void top_frame(FILE *out, const struct jobs *jobs, const struct top_sample *now, const struct top_sample *previous,
    const struct top_wheels *wheels, const struct top_look *look)
{
	struct frame frame = {out, look};
	int rows = look->rows < TOP_ROWS ? TOP_ROWS : look->rows;

	if (look->cursor)
		fputs("\033[H", out);
	head(&frame, jobs, now, wheels->now);
	line(&frame, NULL, "%s", "");
	tube_lines(&frame, now, previous, rows - FIXED_ROWS - (wheels->has_forecast ? WHEEL_ROWS : 1));
	line(&frame, NULL, "%s", "");
	wheel_lines(&frame, wheels);
	if (look->cursor)
		fputs("q ends\033[J", out);
	fflush(out);
}
