/* Around a plot: the <svg> of a page, and the one of a file that stands alone. */
#include <string.h>

#include "tools/bench/plot.h"
#include "tools/bench/plot_style.h"

enum { TITLE = 72, FOOT_LINE = 14, FOOT_MARGIN = 16 };
/* Of a character of the foot's size, generously, whatever font a viewer has. */
#define FOOT_CHARACTER 6.2

void plot_open(FILE *out, double width, double height, const char *label)
{
	fprintf(out, "<svg class=\"plot\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", width, height);
	style_write_text(out, label);
	fputs("\">\n", out);
}

void plot_close(FILE *out)
{
	fputs("</svg>\n", out);
}

/* Return how much of the text goes into a line: to the last blank that fits, or between two characters. */
static size_t foot_break(const char *text, size_t room)
{
	size_t size = strlen(text), at = room;

	if (size <= room)
		return size;
	while (at > 0 && text[at] != ' ')
		at--;
	if (at > 0)
		return at;
	for (at = room; at > 1 && ((unsigned char)text[at] & 0xc0) == 0x80;)
		at--;
	return at;
}

/* Write the lines of the text below `y`, if there is an `out`; return how many there are. */
static size_t foot_write(FILE *out, const char *text, double width, double y)
{
	size_t room = (size_t)((width - 32) / FOOT_CHARACTER), lines = 0;

	while (*text) {
		size_t size = foot_break(text, room);

		if (out) {
			fprintf(out, "<text class=\"foot\" x=\"16\" y=\"%.1f\">", y + FOOT_LINE * (double)(lines + 1));
			style_write_part(out, text, size);
			fputs("</text>\n", out);
		}
		lines++;
		text += size;
		text += *text == ' ';
	}
	return lines;
}

double plot_open_file(
    FILE *out, double width, double height, const char *title, const char *subtitle, const char *const foot[2])
{
	size_t lines = foot_write(NULL, foot[0], width, 0);
	double foot_top = TITLE + height + FOOT_MARGIN / 2;
	double whole;

	whole = foot_top + FOOT_LINE * (double)(lines + foot_write(NULL, foot[1], width, 0)) + FOOT_MARGIN;
	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" width=\"%.0f\" height=\"%.0f\" ", width,
	    whole);
	fprintf(out, "viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>", width, whole);
	style_write_text(out, title);
	fputs("</title>\n<style>\n", out);
	style_write_rules(out, 1);
	fputs("</style>\n", out);
	style_write_markers(out);
	fprintf(out, "<rect width=\"%.0f\" height=\"%.0f\" rx=\"8\" fill=\"#fff\"/>\n", width, whole);
	fputs("<text class=\"title\" x=\"16\" y=\"32\">", out);
	style_write_text(out, title);
	fputs("</text>\n<text class=\"subtitle\" x=\"16\" y=\"53\">", out);
	style_write_text(out, subtitle);
	fputs("</text>\n", out);
	foot_write(out, foot[1], width, foot_top + FOOT_LINE * (double)foot_write(out, foot[0], width, foot_top));
	fputs("<g transform=\"translate(12 0)\">\n", out);
	return TITLE;
}

void plot_close_file(FILE *out)
{
	fputs("</g>\n</svg>\n", out);
}
