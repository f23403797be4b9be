#ifndef TOOLS_WEEKWHEEL_JOBS_TABLE_H
#define TOOLS_WEEKWHEEL_JOBS_TABLE_H

/* Tables of text: cells are collected, and columns are made as wide as they must be. */

#include <stddef.h>
#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 16 };

struct table_column {
	const char *name;
	int right; /* numbers stand at the right */
};

struct table {
	const struct table_column *columns;
	size_t count;
	char **cells;
	size_t filled, capacity;
	size_t width[TABLE_COLUMNS_MAX]; /* kept from one page to the next */
	int titled;
};

void table_begin(struct table *table, const struct table_column *columns, size_t count);

/* Add the next cell. What could confuse a terminal is replaced by '?'. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Write what was collected, with the columns' names before the first rows, and begin a new page. */
void table_write(struct table *table, FILE *out);
void table_free(struct table *table);

#endif
