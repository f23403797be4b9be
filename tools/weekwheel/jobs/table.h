#ifndef TOOLS_WEEKWHEEL_JOBS_TABLE_H
#define TOOLS_WEEKWHEEL_JOBS_TABLE_H

/* Tables of text: collects cells, and makes each column as wide as its widest cell. */

#include <stddef.h>
#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 16 };

struct table_column {
	const char *name;
	int right; /* aligned to the right */
};

struct text_table {
	const struct table_column *columns;
	size_t count;
	char **cells;
	size_t filled, capacity;
	size_t width[TABLE_COLUMNS_MAX]; /* kept from one page to the next */
	int titled;
	size_t optional; /* a column that is left out while it has nothing but "-"; 0: none */
	int has_optional;
};

void table_begin(struct text_table *table, const struct table_column *columns, size_t count);

/* Add the next cell. '?' replaces bytes that could confuse a terminal. */
void table_cell(struct text_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Write the collected rows, after the names of the columns on the first call and where the optional column has something
 * for the first time, and begin a new page.
 */
void table_write(struct text_table *table, FILE *out);
void table_free(struct text_table *table);

#endif
