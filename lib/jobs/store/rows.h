#ifndef LIB_JOBS_STORE_ROWS_H
#define LIB_JOBS_STORE_ROWS_H

/* The rows on the pages of an index, of whatever table: for a store that SQLite cannot open. */

#include "lib/jobs/store/image.h"
#include "lib/jobs/store/store.h"

enum { ROWS_COLUMNS = 8 };

struct rows_column {
	enum { ROWS_NULL, ROWS_NUMBER, ROWS_BYTES } kind;
	int64_t number;
	struct store_bytes bytes;
};

struct rows_row {
	int has_id; /* of a table with row ids; without them all columns are given */
	int64_t id;
	int columns;
	struct rows_column column[ROWS_COLUMNS];
};

/* Returns 0 or an error, which ends the walk. The row is valid until it returns. */
typedef int rows_fn(void *context, const struct rows_row *row);

/* Call fn for each row on each page that is not free and can be read. Errors: that of fn, WW_ENOMEM. */
int ww_rows_each(struct pages_image *image, rows_fn *fn, void *context);

#endif
