/* Collects the cells of a table and writes them in aligned columns. */
#include "tools/weekwheel/jobs/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/utf8.h"

enum { CELL_MAX = 300, GAP = 2 };

void table_begin(struct text_table *table, const struct table_column *columns, size_t count)
{

	*table = (struct text_table){.columns = columns, .count = count};
	for (size_t i = 0; i < count; i++)
		table->width[i] = strlen(columns[i].name);
}

void table_cell(struct text_table *table, const char *format, ...)
{
	size_t column = table->filled % table->count;
	char text[CELL_MAX], shown[CELL_MAX];
	va_list arguments;
	size_t length;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	length = strlen(text);
	utf8_show(text, length, shown, sizeof shown);
	length = strlen(shown);
	if (utf8_length(shown) > table->width[column])
		table->width[column] = utf8_length(shown);
	table->cells = memory_grow(table->cells, &table->capacity, table->filled, sizeof *table->cells);
	table->cells[table->filled] = memory_zeroed(length + 1, 1);
	memcpy(table->cells[table->filled++], shown, length);
}

/* The last column gets no trailing blanks. */
static void write_cell(const struct text_table *table, FILE *out, size_t column, const char *text)
{
	int last = column + 1 == table->count;
	/* printf counts bytes. */
	int width = (int)(table->width[column] + strlen(text) - utf8_length(text));

	if (table->optional && column == table->optional && !table->has_optional)
		return;
	if (table->columns[column].right)
		fprintf(out, "%*s", width, text);
	else if (last)
		fputs(text, out);
	else
		fprintf(out, "%-*s", width, text);
	if (last)
		fputc('\n', out);
	else
		fprintf(out, "%*s", GAP, "");
}

static void table_clear(struct text_table *table)
{

	for (size_t i = 0; i < table->filled; i++)
		free(table->cells[i]);
	table->filled = 0;
}

/* Something is in the optional column for the first time. */
static int is_widened(const struct text_table *table)
{
	if (!table->optional || table->has_optional)
		return 0;
	for (size_t i = table->optional; i < table->filled; i += table->count)
		if (strcmp(table->cells[i], "-") != 0)
			return 1;
	return 0;
}

void table_write(struct text_table *table, FILE *out)
{
	if (is_widened(table)) {
		table->has_optional = 1;
		table->titled = 0;
	}
	for (size_t i = 0; i < table->count && !table->titled; i++)
		write_cell(table, out, i, table->columns[i].name);
	table->titled = 1;
	for (size_t i = 0; i < table->filled; i++)
		write_cell(table, out, i % table->count, table->cells[i]);
	table_clear(table);
}

void table_free(struct text_table *table)
{
	table_clear(table);
	free(table->cells);
	table->cells = NULL;
	table->capacity = 0;
}
