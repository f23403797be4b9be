/* What plots look like. */
#include "tools/bench/plot_style.h"

#include <stdint.h>
#include <string.h>

/*
 * Relatives share a hue and differ in shade and marker. The hues, after Okabe and Ito, stay apart for colour-blind
 * eyes; shapes tell them apart without any colour.
 */
static const struct style {
	const char *name;
	const char *light, *dark; /* the colour on a light and on a dark ground */
	int open;                 /* the marker is an outline */
	const char *marker;       /* a path around 0 0 */
} styles[] = {
    {"weekwheel", "#d13a00", "#ff7d4d", 0, "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z"},
    {"linked", "#0069b0", "#4fa8e8", 0, "M-3.6-3.6h7.2v7.2h-7.2z"},
    {"linked-clocks", "#4a8fc7", "#93c8f0", 1, "M-3.6-3.6h7.2v7.2h-7.2z"},
    {"flat", "#007d5c", "#2bc79d", 0, "M0-4.6l4.4 7.8h-8.8z"},
    {"flat60", "#3f9d82", "#8be0c8", 1, "M0-4.6l4.4 7.8h-8.8z"},
    {"rounds300", "#946c00", "#dcb343", 0, "M0-4.8l4.4 4.8l-4.4 4.8l-4.4-4.8z"},
    {"rounds3600", "#b58a14", "#f0d480", 1, "M0-4.8l4.4 4.8l-4.4 4.8l-4.4-4.8z"},
    {"scan", "#7a4f2d", "#cfa07c", 1, "M-3.6-3.6l7.2 7.2m0-7.2l-7.2 7.2"},
    {"heap2", "#8c3585", "#d98ad2", 0, "M0 4.6l4.4-7.8h-8.8z"},
    {"heap4", "#b3589f", "#f0b3e4", 1, "M0 4.6l4.4-7.8h-8.8z"},
    {"libev", "#3c4858", "#c6d0dc", 1, "M-4.6 0h9.2m-4.6-4.6v9.2"},
    {"libevent", "#55657a", "#a4b2c3", 1, "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z"},
    {"libuv", "#6d7c90", "#8595a8", 0, "M-3.8-3.8h7.6l-7.6 7.6h7.6z"},
    {"floor", "#8a8a8a", "#9a9a9a", 0, "M-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0z"},
    /* Whatever is not known here. */
    {"", "#444444", "#cccccc", 0, "M-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0z"},
};

enum { STYLES = sizeof styles / sizeof *styles };

unsigned style_of(const char *structure)
{
	unsigned i = 0;

	while (i + 1 < STYLES && strcmp(styles[i].name, structure) != 0)
		i++;
	return i;
}

int style_is_ours(const char *structure)
{
	return strcmp(structure, "weekwheel") == 0;
}

int style_is_floor(const char *structure)
{
	return strcmp(structure, "floor") == 0;
}

static const char rules[] =
    ".plot{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif}\n"
    ".plot text{fill:#333}\n"
    ".plot .axis{fill:#666}\n"
    ".plot .axis.x,.plot .axis.m{text-anchor:middle}\n"
    ".plot .axis.y,.plot .end{text-anchor:end}\n"
    ".plot .what{font-weight:600}\n"
    ".plot .name,.plot .value{fill:currentColor}\n"
    ".plot .value{font-weight:400;opacity:.8}\n"
    ".plot .s0 .name{font-weight:700}\n"
    ".plot .title{font-size:19px;font-weight:600;fill:#1a1a1a}\n"
    ".plot .subtitle{font-size:13px;fill:#555}\n"
    ".plot .foot{font-size:10px;fill:#777}\n"
    ".halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-opacity:.85}\n"
    ".grid{stroke:#d9d9d9}\n"
    ".minor{stroke:#ededed}\n"
    ".mark{stroke:#777;stroke-dasharray:3 3}\n"
    ".line,.leader,.whisker,.peak{fill:none;stroke:currentColor;stroke-linejoin:round}\n"
    ".line{stroke-width:1.5}\n"
    ".s0 .line{stroke-width:3.4}\n"
    ".floor .line{stroke-dasharray:5 4}\n"
    ".whisker{stroke-width:1.1;opacity:.65}\n"
    ".leader{stroke-width:.8;opacity:.55}\n"
    ".far{stroke-dasharray:1.5 3}\n"
    ".bin{fill:currentColor;stroke:currentColor;stroke-width:.5}\n"
    ".peak{stroke-width:1.5}\n"
    ".stem{stroke:currentColor;stroke-width:2;opacity:.28}\n"
    ".s0 .stem{stroke-width:5}\n"
    ".s use{fill:currentColor;stroke:currentColor;stroke-width:1.5}\n"
    ".s.open use{fill:#fff}\n";

/* Whoever points at one structure sees the others fade. */
static const char pointer_rules[] = ".plot:has(.s:hover) .s:not(:hover){opacity:.2}\n";

static const char dark_rules[] = ".plot text{fill:#ddd}\n"
                                 ".plot .axis{fill:#a6a6a6}\n"
                                 ".grid{stroke:#3d4249}\n"
                                 ".minor{stroke:#2b2f35}\n"
                                 ".s.open use{fill:#1b1e23}\n"
                                 ".halo{stroke:#1b1e23}\n";

void style_write_rules(FILE *out, int alone)
{
	unsigned i;

	fputs(rules, out);
	for (i = 0; i < STYLES; i++)
		fprintf(out, ".s%u{color:%s}", i, styles[i].light);
	fputc('\n', out);
	if (alone)
		return;
	fprintf(out, "%s@media(prefers-color-scheme:dark){\n%s", pointer_rules, dark_rules);
	for (i = 0; i < STYLES; i++)
		fprintf(out, ".s%u{color:%s}", i, styles[i].dark);
	fputs("\n}\n", out);
}

void style_write_markers(FILE *out)
{
	unsigned i;

	fputs("<defs>", out);
	for (i = 0; i < STYLES; i++)
		fprintf(out, "<path id=\"m%u\" d=\"%s\"/>", i, styles[i].marker);
	fputs("</defs>\n", out);
}

void style_write_group(FILE *out, const char *structure)
{
	unsigned style = style_of(structure);

	fprintf(out, "<g class=\"s s%u%s%s\">", style, styles[style].open ? " open" : "",
	    style_is_floor(structure) ? " floor" : "");
}

/* Return the length of the character at text, or 0 where there is none that XML can hold. */
static size_t style_character(const unsigned char *text, size_t size)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = *text < 0x80   ? 1
	                : *text < 0xc0 ? 0
	                : *text < 0xe0 ? 2
	                : *text < 0xf0 ? 3
	                : *text < 0xf8 ? 4
	                               : 0;
	uint32_t code;
	size_t i;

	if (length == 0 || length > size)
		return 0;
	if (length == 1)
		return (*text >= ' ' && *text != 0x7f) || *text == '\t' || *text == '\n';
	code = *text & (0x7fU >> length);
	for (i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) || (code & 0xfffe) == 0xfffe)
		return 0;
	return length;
}

static const char *style_entity(unsigned char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	default:
		return NULL;
	}
}

void style_write_part(FILE *out, const char *text, size_t size)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + size;

	while (at < end) {
		size_t length = style_character(at, (size_t)(end - at));
		const char *entity = style_entity(*at);

		if (length == 0)
			fputc('?', out);
		else if (entity)
			fputs(entity, out);
		else
			fwrite(at, 1, length, out);
		at += length ? length : 1;
	}
}

void style_write_text(FILE *out, const char *text)
{
	style_write_part(out, text, strlen(text));
}
