#ifndef TESTS_LIB_BASE_TABLE_FIXTURE_H
#define TESTS_LIB_BASE_TABLE_FIXTURE_H

/* Shared by the tests of the table: keys that are their own records, and a check of every invariant. */

#include <stdint.h>
#include <string.h>

#include "lib/base/table.h"
#include "tests/support/memory.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

/* A record's key is its index here. */
static inline int is_sought(const void *context, uint32_t index)
{
	const uint32_t *sought = context;

	return *sought == index;
}

static inline uint32_t find(const struct table *table, uint64_t hash, uint32_t index)
{
	return table_find(table, hash, is_sought, &index);
}

/* A random-looking hash, always the same for the same number. */
static inline uint64_t scattered(uint64_t number)
{
	uint64_t state = number * UINT64_C(0x2545f4914f6cdd1d);

	return seed_next(&state);
}

/* Insert, and below remove, the keys from..to - 1 under scattered hashes. */
static inline void insert_keys(struct table *table, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		OK(ww_table_insert(table, scattered(i), i));
}

static inline void remove_keys(struct table *table, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		OK(ww_table_remove(table, scattered(i), i));
}

/* How the entries of a table lie. */
struct shape {
	size_t entries;
	uint64_t walked; /* lines visited to find each entry once */
	uint32_t longest;
};

/* Walk every line. Returns the name of the first broken invariant, or NULL. */
static inline const char *table_broken(const struct table *table, struct shape *shape)
{
	uint64_t before = 0;
	uint32_t full_from = 0; /* all lines from here to the current one are full */

	*shape = (struct shape){0, 0, 0};
	for (uint32_t i = 0; i < table->lines; i++) {
		const struct table_line *line = table_line(table, i);
		int ended = 0;

		for (uint32_t k = 0; k < TABLE_LINE; k++) {
			uint64_t entry = line->entry[k];
			uint32_t home = table_home(table, entry);

			if (entry == TABLE_EMPTY) {
				ended = 1;
				continue;
			}
			if (ended)
				return "an entry behind an unused place";
			if (shape->entries > 0 && entry <= before)
				return "entries out of order";
			if (home > i || home < full_from)
				return "an entry that a search would miss";
			before = entry;
			shape->entries++;
			shape->walked += i - home + 1;
			if (i - home + 1 > shape->longest)
				shape->longest = i - home + 1;
		}
		if (ended)
			full_from = i + 1;
	}
	if (full_from != table->lines)
		return "a full last line";
	if (shape->entries != table->count)
		return "a wrong count";
	if (table->low > table->high)
		return "too few lines to spread over";
	return NULL;
}

static inline struct shape checked(const struct table *table)
{
	struct shape shape;
	const char *broken = table_broken(table, &shape);

	ck_assert_msg(broken == NULL, "%s", broken);
	return shape;
}

#endif
