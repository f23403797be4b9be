/* Drawing a frame of top: plain text of 80 columns, and a little colour. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jobs/duration.h"
#include "jobs/top.h"

enum { BAR_ROWS = 5, WIDTH = 80, FIXED_ROWS = 15 };

struct frame {
	FILE *out;
	int colour, cursor;
};

static const char *const bold = "1", *const warning = "33", *const bar = "36";

/* A line, in a colour or NULL; what an earlier frame has left behind it goes. */
static void line(const struct frame *frame, const char *colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void line(const struct frame *frame, const char *colour, const char *format, ...)
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
	if (colour && frame->colour && *text)
		fprintf(frame->out, "\033[%sm%s\033[0m", colour, text);
	else
		fputs(text, frame->out);
	fputs(frame->cursor ? "\033[K\r\n" : "\n", frame->out);
}

/* A count in at most 7 characters. */
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

/* What a counter gained each second; a server that was started anew begins from 0. */
static const char *rate(char text[12], uint64_t now, uint64_t before, int64_t ms)
{
	if (ms <= 0 || now < before)
		snprintf(text, 12, "-");
	else
		snprintf(text, 12, "%.*f", now - before < 100 ? 1 : 0, (double)(now - before) * 1000 / (double)ms);
	return text;
}

static const struct tube *find(const struct top_sample *sample, const char *name)
{
	size_t i;

	for (i = 0; sample && i < sample->tubes.count; i++)
		if (strcmp(sample->tubes.at[i].name, name) == 0)
			return &sample->tubes.at[i];
	return NULL;
}

static void head(const struct frame *frame, const struct jobs *jobs, const struct top_sample *now)
{
	char time[DURATION_TEXT], up[DURATION_TEXT], oldest[DURATION_TEXT];
	struct duration_problem problem;
	uint64_t ns = 0;
	int known = duration_parse(now->oldest, &ns, &problem) == 0;

	if (now->uptime < DURATION_MAX / DURATION_SECOND)
		duration_format(up, now->uptime * DURATION_SECOND);
	line(frame, bold, "%s  %.30s  version %.12s  up %s", time_format(time, time_now()), jobs->server, now->all.name,
	    up);
	line(frame, NULL,
	    "jobs: %" PRIu64 " ready, %" PRIu64 " delayed, %" PRIu64 " reserved, %" PRIu64 " buried; %" PRIu64
	    " workers",
	    now->all.ready, now->all.delayed, now->all.reserved, now->all.buried, now->workers);
	if (known && ns)
		line(frame, ns >= DURATION_SECOND ? warning : NULL, "oldest overdue: %s", duration_format(oldest, ns));
	else
		line(frame, NULL, known ? "nothing is overdue" : "oldest overdue: not known of this server");
}

static void tube_line(const struct frame *frame, const struct tube *tube, const struct tube *before, int64_t ms)
{
	char ready[12], delayed[12], reserved[12], buried[12], puts[12], done[12];

	line(frame, tube->buried ? warning : NULL, "%-24.24s %7s %8s %8s %7s %8s %8s", tube->name,
	    count(ready, tube->ready), count(delayed, tube->delayed), count(reserved, tube->reserved),
	    count(buried, tube->buried), rate(puts, tube->total, before ? before->total : 0, before ? ms : 0),
	    rate(done, tube->deleted, before ? before->deleted : 0, before ? ms : 0));
}

static void tube_lines(
    const struct frame *frame, const struct top_sample *now, const struct top_sample *before, int rows)
{
	int64_t ms = before ? now->taken - before->taken : 0;
	size_t shown = now->tubes.count;
	size_t i;

	line(frame, bold, "%-24s %7s %8s %8s %7s %8s %8s", "TUBE", "READY", "DELAYED", "RESERVED", "BURIED", "PUTS/S",
	    "DONE/S");
	if (shown > (size_t)rows)
		shown = (size_t)rows - 1;
	for (i = 0; i < shown; i++)
		tube_line(frame, &now->tubes.at[i], find(before, now->tubes.at[i].name), ms);
	if (shown < now->tubes.count) {
		line(frame, NULL, "... and %zu more", now->tubes.count - shown);
		i++;
	}
	for (; i < (size_t)rows; i++)
		line(frame, NULL, "%s", "");
}

/* One row of the columns, counted from the bottom; a column that is not 0 is at least one high. */
static void bars_row(const struct frame *frame, const struct top_sample *now, uint64_t most, int row)
{
	char text[TOP_MINUTES + 1];
	int i;

	for (i = 0; i < TOP_MINUTES; i++) {
		uint64_t n = now->minutes[i];
		double height = most ? (double)n / (double)most * BAR_ROWS : 0;

		text[i] = n && (row == 0 || height > row + 0.5) ? '#' : ' ';
	}
	text[TOP_MINUTES] = 0;
	if (row == BAR_ROWS - 1 && now->has_forecast)
		line(frame, bar, "%10" PRIu64 " %s", most, text);
	else
		line(frame, bar, "%10s %s", "", text);
}

static void forecast(const struct frame *frame, const struct top_sample *now)
{
	uint64_t most = 0, sum = 0;
	int i;

	for (i = 0; i < TOP_MINUTES; i++) {
		sum += now->minutes[i];
		most = now->minutes[i] > most ? now->minutes[i] : most;
	}
	if (now->has_forecast)
		line(frame, bold, "Due in the next hour, by minute: %" PRIu64, sum);
	else
		line(frame, bold, "Due in the next hour: not known of this server");
	for (i = BAR_ROWS - 1; i >= 0; i--)
		bars_row(frame, now, most, i);
	line(frame, NULL, "%10s +%s", "", "--------------+--------------+--------------+-------------+");
	line(frame, NULL, "%10s %s", "", "now            15             30             45          60");
}

void top_frame(FILE *out, const struct jobs *jobs, const struct top_sample *now, const struct top_sample *before,
    int rows, int colour, int cursor)
{
	struct frame frame = {out, colour, cursor};

	if (rows < TOP_ROWS)
		rows = TOP_ROWS;
	if (cursor)
		fputs("\033[H", out);
	head(&frame, jobs, now);
	line(&frame, NULL, "%s", "");
	tube_lines(&frame, now, before, rows - FIXED_ROWS);
	line(&frame, NULL, "%s", "");
	forecast(&frame, now);
	if (cursor)
		fputs("q ends\033[J", out);
	fflush(out);
}
