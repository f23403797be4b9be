#ifndef TOOLS_BENCH_PAGE_STYLE_H
#define TOOLS_BENCH_PAGE_STYLE_H

#include <stdio.h>

/* Write the rules of the page for a style sheet: light, or dark where the reader's screen is. */
void page_style_write(FILE *out);

#endif
