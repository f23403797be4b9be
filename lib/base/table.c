/* All that changes a table: entries are put in and taken out, and the threshold moves. */

#include "lib/base/table.h"

#include <stdatomic.h>
#include <string.h>

#define LAST (TABLE_LINE - 1)
#define FULL 7u   /* entries a line, on average, at which the table grows */
#define SPARSE 5u /* below which it shrinks */
#define DENSE 6u  /* which it shrinks to */
/* Lines behind the last home, for what is pushed on; at the end it is rarely more than one. */
#define SPARE 8u
/*
 * Steps of the threshold in an insertion or removal, of an entry or an unused line each. Until the threshold has passed
 * all entries, a thirty-second more are inserted: a table that shrinks is done with it long before it must grow.
 */
#define STEPS 32

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

static uint32_t segments(uint32_t lines)
{
	return (lines + TABLE_SEGMENT - 1) / TABLE_SEGMENT;
}

/*
 * A child of fork destroys the table as it was at the fork, which may be between any two of these stores. `capacity`
 * says whether the directory can be freed, and `lines` which segments: they are lowered before a block is exchanged and
 * raised afterwards, and the former block is freed last. At worst the child does not free what is just exchanged.
 */
static inline void in_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static int resize_directory(struct table *table, uint32_t capacity)
{
	const struct ww_allocator *allocator = table->allocator;
	struct table_line **made = allocator->allocate(allocator->user, capacity * sizeof *made);
	struct table_line **former = table->segment;
	uint32_t former_capacity = table->capacity;

	if (made == NULL)
		return WW_ENOMEM;
	if (former != NULL)
		memcpy(made, former, segments(table->lines) * sizeof *made);
	table->capacity = 0;
	in_order();
	table->segment = made;
	in_order();
	table->capacity = capacity;
	in_order();
	if (former != NULL)
		allocator->free(allocator->user, former, former_capacity * sizeof *made);
	return WW_OK;
}

/* Make the last segment, or one more, which begins at line `first`, this many lines long; none if it is 0. */
static int resize_segment(struct table *table, uint32_t first, uint32_t lines)
{
	const struct ww_allocator *allocator = table->allocator;
	struct table_line *former = NULL, *made = NULL;
	uint32_t former_lines = table->lines - first;

	if (former_lines > 0)
		former = table->segment[first / TABLE_SEGMENT];
	if (lines > 0) {
		made = allocator->allocate(allocator->user, lines * sizeof *made);
		if (made == NULL)
			return WW_ENOMEM;
		memset(made, 0xff, lines * sizeof *made);
		if (former != NULL)
			memcpy(made, former, (former_lines < lines ? former_lines : lines) * sizeof *made);
	}
	table->lines = first;
	in_order();
	if (made != NULL)
		table->segment[first / TABLE_SEGMENT] = made;
	in_order();
	table->lines = first + lines;
	in_order();
	if (former != NULL)
		allocator->free(allocator->user, former, former_lines * sizeof *made);
	return WW_OK;
}

/* Come nearer to this many lines, by a segment at most. */
static int extend(struct table *table, uint32_t lines)
{
	uint32_t first = table->lines / TABLE_SEGMENT * TABLE_SEGMENT;

	if (first / TABLE_SEGMENT == table->capacity && resize_directory(table, 2 * table->capacity))
		return WW_ENOMEM;
	return resize_segment(table, first, lines - first < TABLE_SEGMENT ? lines - first : TABLE_SEGMENT);
}

/* Give back lines behind the spare ones, of a segment at most. Without memory for a shorter segment it stays. */
static void cut(struct table *table)
{
	uint32_t first = (table->lines - 1) / TABLE_SEGMENT * TABLE_SEGMENT;
	uint32_t end = table->high + SPARE;

	/* As many more may have been added for what was pushed on, and would be again. */
	if (table->lines <= end + SPARE)
		return;
	if (end < first)
		end = first;
	/* Nothing is pushed on past a line that is not full, and the lines behind are no entry's home. */
	if (table_line(table, end - 1)->entry[LAST] != TABLE_EMPTY || resize_segment(table, first, end - first))
		return;
	if (table->capacity > 8 && segments(table->lines) <= table->capacity / 4)
		(void)resize_directory(table, table->capacity / 2);
}

size_t ww_table_bytes(const struct table *table)
{
	return table->lines * sizeof(struct table_line) + table->capacity * sizeof(struct table_line *);
}

/* ---- Entries ---------------------------------------------------------------------------------------------------- */

/* Put the entry where it belongs, and push on what is greater. Errors: WW_ENOMEM. */
static int put(struct table *table, uint64_t entry)
{
	uint32_t home = table_home(table, entry), end = home;

	while (table_line(table, end)->entry[LAST] != TABLE_EMPTY)
		end++;
	/* The last of all lines must not become full. */
	if (end == table->lines - 1 && table_line(table, end)->entry[LAST - 1] != TABLE_EMPTY) {
		if (extend(table, table->lines + SPARE))
			return WW_ENOMEM;
	}
	for (uint32_t i = home;; i++) {
		struct table_line *line = table_line(table, i);
		uint64_t last = line->entry[LAST];
		uint32_t k = LAST;

		if (last < entry)
			continue;
		for (; k > 0 && line->entry[k - 1] > entry; k--)
			line->entry[k] = line->entry[k - 1];
		line->entry[k] = entry;
		if (last == TABLE_EMPTY)
			return WW_OK;
		entry = last;
	}
}

/* Take out entry k of line i, and take back what it had pushed on. */
static void take(struct table *table, uint32_t i, uint32_t k)
{
	for (;; i++, k = 0) {
		struct table_line *line = table_line(table, i);
		int full = line->entry[LAST] != TABLE_EMPTY;
		uint64_t next;

		for (; k < LAST; k++)
			line->entry[k] = line->entry[k + 1];
		line->entry[LAST] = TABLE_EMPTY;
		if (!full)
			return;
		next = table_line(table, i + 1)->entry[0];
		if (next == TABLE_EMPTY || table_home(table, next) > i)
			return;
		line->entry[LAST] = next;
	}
}

/* ---- Growing and shrinking -------------------------------------------------------------------------------------- */

/* The least entry that could have this home among this many lines. */
static uint64_t first_of(uint32_t home, uint32_t lines)
{
	return (((uint64_t)home << 32) + lines - 1) / lines << 32;
}

/* Move entry k of line i, which the threshold passes. */
static int move(struct table *table, uint32_t i, uint32_t k, uint64_t threshold)
{
	uint64_t entry = table_line(table, i)->entry[k], former = table->threshold;

	take(table, i, k);
	table->threshold = threshold;
	if (put(table, entry) == WW_OK)
		return WW_OK;
	/* There is room where it was. */
	table->threshold = former;
	(void)put(table, entry);
	return WW_ENOMEM;
}

/* Lower the threshold by the greatest entry below it, or by a home that has none. */
static int lower_threshold(struct table *table)
{
	uint32_t home = table_home(table, table->threshold - 1), i = home, rank;

	while (table_line(table, i)->entry[LAST] < table->threshold)
		i++;
	rank = table_rank(table_line(table, i), table->threshold);
	if (rank == 0 && i == home) {
		table->threshold = first_of(home, table->low);
		return WW_OK;
	}
	if (rank == 0) {
		i--;
		rank = TABLE_LINE;
	}
	return move(table, i, rank - 1, table_line(table, i)->entry[rank - 1]);
}

/* Raise the threshold by the least entry above it, or by the homes that have none. */
static int raise_threshold(struct table *table)
{
	uint32_t i = table_home(table, table->threshold), rank;
	uint64_t entry;

	while (table_line(table, i)->entry[LAST] < table->threshold)
		i++;
	rank = table_rank(table_line(table, i), table->threshold);
	entry = table_line(table, i)->entry[rank];
	if (entry != TABLE_EMPTY)
		return move(table, i, rank, entry + 1);
	table->threshold = i + 1 < table->high ? first_of(i + 1, table->high) : TABLE_EMPTY;
	return WW_OK;
}

/* Go on growing or shrinking. Errors: WW_ENOMEM, after which this can be called again. */
static int step(struct table *table)
{
	int error = WW_OK;

	if (table->low == table->high) {
		cut(table);
		return WW_OK;
	}
	if (table->growing && table->lines < table->high + SPARE)
		return extend(table, table->high + SPARE);
	for (int i = 0; i < STEPS && table->low != table->high && error == WW_OK; i++) {
		if (table->growing && table->threshold == 0)
			table->low = table->high;
		else if (!table->growing && table->threshold == TABLE_EMPTY)
			table->high = table->low;
		else
			error = table->growing ? lower_threshold(table) : raise_threshold(table);
	}
	return error;
}

static void begin_to_grow(struct table *table, uint32_t lines)
{
	table->high = lines;
	table->threshold = TABLE_EMPTY;
	table->growing = 1;
}

static void begin_to_shrink(struct table *table, uint32_t lines)
{
	table->low = lines;
	table->threshold = 0;
	table->growing = 0;
}

/* ---- What callers call ------------------------------------------------------------------------------------------ */

int ww_table_init(struct table *table, const struct ww_allocator *allocator)
{
	struct table made = {.allocator = allocator, .low = 1, .high = 1};

	if (resize_directory(&made, 8))
		return WW_ENOMEM;
	if (extend(&made, made.high + SPARE)) {
		ww_table_destroy(&made);
		return WW_ENOMEM;
	}
	*table = made;
	return WW_OK;
}

void ww_table_destroy(struct table *table)
{
	const struct ww_allocator *allocator = table->allocator;

	while (table->lines > 0)
		(void)resize_segment(table, (table->lines - 1) / TABLE_SEGMENT * TABLE_SEGMENT, 0);
	if (table->capacity > 0)
		allocator->free(allocator->user, table->segment, table->capacity * sizeof *table->segment);
	table->segment = NULL;
	table->capacity = 0;
}

int ww_table_insert(struct table *table, uint64_t hash, uint32_t index)
{
	int error;

	if (index == TABLE_NONE)
		return WW_EINVAL;
	if (table->low == table->high && table->count >= (size_t)table->low * FULL)
		begin_to_grow(table, table->low + table->low / 5 + 1);
	error = step(table);
	if (error == WW_OK)
		error = put(table, hash >> 32 << 32 | index);
	if (error == WW_OK)
		table->count++;
	return error;
}

int ww_table_remove(struct table *table, uint64_t hash, uint32_t index)
{
	uint64_t entry = hash >> 32 << 32 | index;
	uint32_t i = table_home(table, entry), k;

	if (index == TABLE_NONE)
		return WW_EINVAL;
	while (table_line(table, i)->entry[LAST] < entry)
		i++;
	k = table_rank(table_line(table, i), entry);
	if (table_line(table, i)->entry[k] != entry)
		return WW_EINVAL;
	take(table, i, k);
	table->count--;
	if (table->low == table->high && table->low > 1 && table->count < (size_t)table->low * SPARSE)
		begin_to_shrink(table, (uint32_t)(table->count / DENSE + 1));
	/* Without memory, the next call goes on. */
	(void)step(table);
	return WW_OK;
}
