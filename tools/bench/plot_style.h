#ifndef TOOLS_BENCH_PLOT_STYLE_H
#define TOOLS_BENCH_PLOT_STYLE_H

/* What plots look like: colours, markers, style sheets, and text that is safe in XML. */

#include <stddef.h>
#include <stdio.h>

/* Return the number of the style of a structure: class "s<number>", marker "#m<number>". */
unsigned style_of(const char *structure);

/* Return 1 if this is the structure that the others are compared with. */
int style_is_ours(const char *structure);

/* Return 1 if it is no structure but the reference. */
int style_is_floor(const char *structure);

/* Write the rules of plots for a style sheet. A picture that stands alone is always light. */
void style_write_rules(FILE *out, int alone);

/* Write the <defs> with the markers, which plots refer to. */
void style_write_markers(FILE *out);

/* Write the opening tag <g> around what belongs to a structure. */
void style_write_group(FILE *out, const char *structure);

/* Write the text for XML. What XML cannot hold, or is not UTF-8, becomes "?". */
void style_write_text(FILE *out, const char *text);

/* The same for text[0 .. size-1]. */
void style_write_part(FILE *out, const char *text, size_t size);

#endif
