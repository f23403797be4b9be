/* The rows on the pages of an index: www.sqlite.org/fileformat2.html, "B-tree Pages" and "Record Format". */

#include "lib/jobs/store/rows.h"

#include <stdlib.h>

enum { USABLE = PAGES_SIZE - PAGES_SUM, INNER_INDEX = 2, LEAF_TABLE = 13, LEAF_INDEX = 10 };
/* A row is at most a job with its body. */
#define ROW_MOST (UINT64_C(1) << 31)

struct rows_walk {
	struct pages_image *image;
	rows_fn *fn;
	void *context;
	unsigned char *payload; /* of a row that has more than its page */
	size_t room;
};

/* Read a number of up to nine bytes. Returns what is behind it, or NULL. */
static const unsigned char *read_number(const unsigned char *at, const unsigned char *end, uint64_t *number)
{
	*number = 0;
	for (int i = 0; at && at < end && i < 9; i++) {
		unsigned char byte = *at++;
		if (i == 8) {
			*number = *number << 8 | byte;
			return at;
		}
		*number = *number << 7 | (byte & 0x7f);
		if (!(byte & 0x80))
			return at;
	}
	return NULL;
}

/* ---- A row */

static int64_t read_whole(const unsigned char *at, size_t size)
{
	uint64_t number = at[0] & 0x80 ? UINT64_MAX : 0;

	for (size_t i = 0; i < size; i++)
		number = number << 8 | at[i];
	return (int64_t)number;
}

/* Returns what is behind the column, or NULL. */
static const unsigned char *read_column(
    const unsigned char *at, const unsigned char *end, uint64_t type, struct rows_column *column)
{
	static const unsigned char sizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
	uint64_t size = type >= 12 ? (type - 12) / 2 : type < 10 ? sizes[type] : UINT64_MAX;

	if (size > (uint64_t)(end - at))
		return NULL;
	*column = (struct rows_column){.kind = type == 0 ? ROWS_NULL : type >= 12 ? ROWS_BYTES : ROWS_NUMBER};
	if (type >= 12)
		column->bytes = (struct store_bytes){at, (size_t)size};
	else if (type == 8 || type == 9)
		column->number = (int64_t)type - 8;
	else if (size)
		column->number = read_whole(at, (size_t)size);
	return at + size;
}

/* Give the row of a payload. One that cannot be a row is left out: what it was is not known. */
static int give_row(const struct rows_walk *walk, struct rows_row *row, const unsigned char *payload, uint64_t size)
{
	const unsigned char *end = payload + size;
	uint64_t head, type;
	const unsigned char *types = read_number(payload, end, &head);
	const unsigned char *body;

	if (!types || head > size)
		return WW_OK;
	body = payload + head;
	for (row->columns = 0; types < payload + head && row->columns < ROWS_COLUMNS; row->columns++) {
		types = read_number(types, payload + head, &type);
		if (!types)
			return WW_OK;
		body = read_column(body, end, type, &row->column[row->columns]);
		if (!body)
			return WW_OK;
	}
	return walk->fn(walk->context, row);
}

/* ---- A cell of a page */

static int room_for(struct rows_walk *walk, size_t size)
{
	unsigned char *more;

	if (size <= walk->room)
		return WW_OK;
	more = realloc(walk->payload, size);
	if (!more)
		return WW_ENOMEM;
	walk->payload = more;
	walk->room = size;
	return WW_OK;
}

/* The bytes of a payload on its page; the others lie on pages of their own. */
static size_t local_size(int is_table, uint64_t size)
{
	uint64_t most = is_table ? USABLE - 35 : (USABLE - 12) * 64 / 255 - 23;
	uint64_t least = (USABLE - 12) * 32 / 255 - 23;
	uint64_t local = least + (size - least) % (USABLE - 4);

	if (size <= most)
		return (size_t)size;
	return (size_t)(local <= most ? local : least);
}

/* Add what lies on other pages. Returns 1, 0 if one of them is lost, or an error. */
static int gather(struct rows_walk *walk, const unsigned char *at, size_t local, uint64_t size)
{
	uint32_t next = store_read32(at + local);
	int error = room_for(walk, (size_t)size);

	if (error)
		return error;
	memcpy(walk->payload, at, local);
	for (size_t have = local; have < size;) {
		unsigned char page[PAGES_SIZE];
		size_t part = (size_t)size - have < USABLE - 4 ? (size_t)size - have : USABLE - 4;
		if (ww_image_page(walk->image, next, page))
			return 0;
		memcpy(walk->payload + have, page + 4, part);
		have += part;
		next = store_read32(page);
	}
	return 1;
}

static int read_cell(struct rows_walk *walk, const unsigned char *page, int kind, size_t offset)
{
	const unsigned char *end = page + USABLE;
	const unsigned char *at = page + offset + (kind == INNER_INDEX ? 4 : 0);
	struct rows_row row = {.has_id = kind == LEAF_TABLE};
	uint64_t size, id = 0;
	size_t local;
	int result;

	if (at >= end)
		return WW_OK;
	at = read_number(at, end, &size);
	if (at && row.has_id)
		at = read_number(at, end, &id);
	if (!at || size > ROW_MOST)
		return WW_OK;
	row.id = (int64_t)id;
	local = local_size(row.has_id, size);
	if (local + (local < size ? 4 : 0) > (size_t)(end - at))
		return WW_OK;
	if (local == size)
		return give_row(walk, &row, at, size);
	result = gather(walk, at, local, size);
	return result == 1 ? give_row(walk, &row, walk->payload, size) : result;
}

static int read_page(struct rows_walk *walk, uint32_t number, const unsigned char *page)
{
	size_t head = number == 1 ? 100 : 0;
	int kind = page[head];
	size_t cells = (size_t)page[head + 3] << 8 | page[head + 4];
	size_t pointers = head + (kind == INNER_INDEX ? 12 : 8);
	int error = WW_OK;

	if (kind != INNER_INDEX && kind != LEAF_TABLE && kind != LEAF_INDEX)
		return WW_OK;
	for (size_t i = 0; i < cells && pointers + 2 * i + 2 <= USABLE && !error; i++) {
		const unsigned char *pointer = page + pointers + 2 * i;
		error = read_cell(walk, page, kind, (size_t)pointer[0] << 8 | pointer[1]);
	}
	return error;
}

int ww_rows_each(struct pages_image *image, rows_fn *fn, void *context)
{
	struct rows_walk walk = {.image = image, .fn = fn, .context = context};
	unsigned char page[PAGES_SIZE];
	int error = WW_OK;

	for (uint32_t number = 1; number <= image->pages && !error; number++)
		if (!image->is_free[number - 1] && ww_image_page(image, number, page) == WW_OK)
			error = read_page(&walk, number, page);
	free(walk.payload);
	return error;
}
