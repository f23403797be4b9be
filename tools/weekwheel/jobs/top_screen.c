/* Writes the lines of top's screen: cut to its width, without anything that could move the cursor. */
#include "tools/weekwheel/jobs/top_screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <wchar.h>

#include "tools/common/utf8.h"

const char *const screen_bold = "1", *const screen_warning = "33";

struct screen screen_begin(FILE *out, const struct top_look *look)
{
	if (look->cursor)
		fputs("\033[H", out);
	return (struct screen){out, look, look->columns - 1, look->rows - 1};
}

/* On a terminal, also clear what an earlier frame left to the right. */
void screen_next(struct screen *screen)
{
	fputs(screen->look->cursor ? "\033[K\r\n" : "\n", screen->out);
	screen->left--;
}

void screen_end(struct screen *screen, const char *last)
{
	screen_blank(screen, screen->left);
	if (screen->look->cursor)
		fprintf(screen->out, "%.*s\033[J", screen->width, last);
	fflush(screen->out);
}

void screen_paint(const struct screen *screen, const char *colour)
{
	if (screen->look->colour)
		fprintf(screen->out, "\033[%sm", colour ? colour : "0");
}

/* Take the next character and its columns. '?' stands for one that the terminal cannot show. */
static int32_t take(const struct screen *screen, const char **text, int *columns)
{
	int32_t code = utf8_take(text, *text + strlen(*text));

	*columns = code < 0x80 ? 1 : wcwidth((wchar_t)code);
	if (code >= ' ' && code != 0x7f && (code < 0x80 || (screen->look->utf8 && *columns > 0)))
		return code;
	*columns = 1;
	return '?';
}

/* Copy what fits, without blanks at the end. Return whether that is all. */
static int cut(const struct screen *screen, const char *text, char out[TOP_LINE_MAX])
{
	int left = screen->width;
	size_t at = 0;

	while (*text && at + 4 < TOP_LINE_MAX) {
		int columns;
		int32_t code = take(screen, &text, &columns);

		if (columns > left)
			break;
		left -= columns;
		at += utf8_put(out + at, code);
	}
	out[at] = 0;
	while (at && out[at - 1] == ' ')
		out[--at] = 0;
	return !text[strspn(text, " ")];
}

static void write_line(struct screen *screen, const char *colour, const char *text)
{
	if (screen->left <= 0)
		return;
	if (colour && *text)
		screen_paint(screen, colour);
	fputs(text, screen->out);
	if (colour && *text)
		screen_paint(screen, NULL);
	screen_next(screen);
}

void screen_line(struct screen *screen, const char *colour, const char *format, ...)
{
	char text[TOP_LINE_MAX], shown[TOP_LINE_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	cut(screen, text, shown);
	write_line(screen, colour, shown);
}

void screen_first(struct screen *screen, const char *colour, const char *const *texts, size_t count)
{
	char shown[TOP_LINE_MAX];

	for (size_t i = 0; i < count; i++)
		if (cut(screen, texts[i], shown))
			break;
	write_line(screen, colour, shown);
}

void screen_blank(struct screen *screen, int count)
{
	while (count-- > 0)
		screen_line(screen, NULL, "%s", "");
}

const char *screen_count(char text[12], uint64_t n)
{
	if (n < 10000000)
		snprintf(text, 12, "%" PRIu64, n);
	else if (n < 10000000000)
		snprintf(text, 12, "%" PRIu64 "M", n / 1000000);
	else if (n < 10000000000000)
		snprintf(text, 12, "%" PRIu64 "G", n / 1000000000);
	else
		snprintf(text, 12, "%.1e", (double)n);
	return text;
}
