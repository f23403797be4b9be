/* What top explains on '?': words wrapped to the screen, page by page. */
#include <string.h>

#include "tools/weekwheel/jobs/top_screen.h"

static const char *const paragraphs[] = {
    "q or Ctrl-C ends. ? shows this help; another key goes on.",
    "",
    "READY jobs wait for a worker. HELD ones of them wait for a limit.",
    "DELAYED jobs are not due yet.",
    "RESERVED jobs are with a worker.",
    "BURIED jobs failed: 'weekwheel peek' shows why, 'weekwheel kick' tries again.",
    "PUTS/S, DONE/S: jobs put and finished a second.",
    "",
    "A wheel has a slot for each second, minute, hour or day, and ^ is now. A job stays in its slot while time passes.",
    "The fuller the slot, the higher its character; max is the fullest.",
    "In a narrow terminal a character stands for several slots.",
    "",
    "A higher terminal shows limits and schedules, too, if there are any.",
    "A wider one shows more columns.",
};

/* Return how much of the text goes on a line: whole words, or a part of one that is longer than the line. */
static size_t wrap(const char *text, size_t width)
{
	size_t size = strlen(text);

	if (size <= width)
		return size;
	for (size = width; size && text[size] != ' ';)
		size--;
	return size ? size : width;
}

/* Draw the lines from `first` on, as far as they fit, and return how many the text has; NULL draws nothing. */
static int each_line(struct screen *screen, size_t width, int first)
{
	int line = 0;

	for (size_t i = 0; i < sizeof paragraphs / sizeof *paragraphs; i++) {
		const char *text = paragraphs[i];

		do {
			size_t size = wrap(text, width);

			if (screen && line >= first)
				screen_line(screen, NULL, "%.*s", (int)size, text);
			line++;
			text += size + (text[size] == ' ');
		} while (*text);
	}
	return line;
}

int top_help(FILE *out, int page, const struct top_look *look)
{
	size_t width = look->columns > 2 ? (size_t)look->columns - 1 : 1;
	int lines = look->rows > 2 ? look->rows - 1 : 1;
	struct screen screen;

	if ((page - 1) * lines >= each_line(NULL, width, 0))
		return 0;
	screen = screen_begin(out, look);
	each_line(&screen, width, (page - 1) * lines);
	screen_end(&screen, "any key goes on");
	return 1;
}
