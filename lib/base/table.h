#ifndef LIB_BASE_TABLE_H
#define LIB_BASE_TABLE_H

/*
 * A map from the hash of a key to the index of a record. Records and keys are the caller's: a lookup asks whether the
 * record that it found is the right one.
 *
 * An *entry* is 64 bits: the high half of the hash above the index. Entries are sorted, and lie in *lines* of eight, a
 * cache line each. The *home* of an entry is the line that its hash stands for when the hashes are spread evenly over
 * the lines. An entry lies in its home, or in the next line with room if the home is full of lesser ones. It pushes
 * greater ones on. With hashes of 8 bits, lines of 4 entries, and 8 lines, of 32 hashes each:
 *
 *     line 0    03 1a  -  -
 *     line 1    20 29 31 38     full: what is greater goes on
 *     line 2    3b 44 5e  -     3b has its home in line 1
 *     line 3     -  -  -  -     unused places are greater than any entry
 *
 * A search ends at the first entry that is not less than the one sought, mostly in the home, also if the key is
 * missing. On average it looks at 1.1 lines after the table has grown and at 1.3 before, which are neighbours. Where
 * entries lie depends on nothing but the entries: no churn can spoil a table.
 *
 * The table grows by a fifth and in place: lines are added behind the others, and each insertion moves a few entries,
 * the greatest first, to their homes among the larger number of lines. The *threshold* divides the entries:
 *
 *     entries below the threshold             entries from the threshold on
 *     |  home: hash * low >> 32  |--> ... -->|  home: hash * high >> 32     |
 *     line 0                                                      line high - 1, and some spare ones
 *
 * It shrinks the same way: the threshold rises, and the least entries move first. An entry has all of the hash that
 * this takes, and no record is touched. The other half of the hash is not used: in a table of ten million, one miss in
 * four hundred asks about a record that has the same 32 bits.
 *
 * Lines come in *segments* of 8 KiB: growing neither copies the table nor asks for a large block. Only the last segment
 * may be shorter, and is copied when it grows.
 *
 * Memory: 9.2 bytes a key before it grows and 11.0 while it does; it shrinks at 12.8, and takes 13.5 at most
 * meanwhile. Below a thousand keys the spare lines, half a KiB, weigh more.
 *
 * Errors: 0 or a negative WW_E*; on error the table maps what it did before, but may hold more memory.
 * Threads: one at a time; lookups may run at the same time as other lookups.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"

/* No record. Every other index may be stored. */
#define TABLE_NONE UINT32_MAX

#define TABLE_LINE 8u      /* entries a line */
#define TABLE_SEGMENT 128u /* lines a segment; a power of two */
#define TABLE_EMPTY UINT64_MAX

struct table_line {
	uint64_t entry[TABLE_LINE];
};

struct table {
	struct table_line **segment;
	const struct ww_allocator *allocator;
	uint64_t threshold;
	size_t count;
	uint32_t low;      /* lines that the homes of entries below the threshold are spread over */
	uint32_t high;     /* and of the others; equal to low unless the table grows or shrinks */
	uint32_t lines;    /* that exist; the last is never full, so that a walk along full lines ends */
	uint32_t capacity; /* segments that there are pointers for */
	int growing;       /* which way the threshold goes while low is not high */
};

/* Whether the record at the index has the key that is sought; the context says which. */
typedef int table_same_fn(const void *context, uint32_t index);

/* Make an empty table, embedded in the caller's. The allocator is not copied. Errors: WW_ENOMEM. */
int ww_table_init(struct table *table, const struct ww_allocator *allocator);

/* Give back all memory. Harmless for a table of zeros. */
void ww_table_destroy(struct table *table);

/*
 * Map the hash to the index. The caller ensures that the pair of hash and index is absent, and the key, too.
 * Constant time, whatever the size, except that it walks along equal hashes.
 * Errors: WW_EINVAL: the index is TABLE_NONE. WW_ENOMEM.
 */
int ww_table_insert(struct table *table, uint64_t hash, uint32_t index);

/* Forget the index under that hash. Time: as ww_table_insert. Errors: WW_EINVAL: it is not there. */
int ww_table_remove(struct table *table, uint64_t hash, uint32_t index);

/* What the table has asked of the allocator and not given back. */
size_t ww_table_bytes(const struct table *table);

static inline size_t table_count(const struct table *table)
{
	return table->count;
}

static inline struct table_line *table_line(const struct table *table, uint32_t line)
{
	return &table->segment[line / TABLE_SEGMENT][line % TABLE_SEGMENT];
}

static inline uint32_t table_home(const struct table *table, uint64_t entry)
{
	uint64_t lines = entry < table->threshold ? table->low : table->high;

	return (uint32_t)((entry >> 32) * lines >> 32);
}

/* How many entries of a line are less. Without a branch, which would be mispredicted. */
static inline uint32_t table_rank(const struct table_line *line, uint64_t entry)
{
	const uint64_t *in = line->entry;
	int low = (in[0] < entry) + (in[1] < entry) + (in[2] < entry) + (in[3] < entry);
	int high = (in[4] < entry) + (in[5] < entry) + (in[6] < entry) + (in[7] < entry);

	return (uint32_t)(low + high);
}

static inline uint32_t table_search(
    const struct table *table, uint64_t first, uint64_t home_of, table_same_fn *same, const void *context)
{
	for (uint32_t i = table_home(table, home_of);; i++) {
		const struct table_line *line = table_line(table, i);

		for (uint32_t k = table_rank(line, first); k < TABLE_LINE; k++) {
			uint64_t index = line->entry[k] - first;

			if (index >= TABLE_NONE)
				return TABLE_NONE;
			if (same(context, (uint32_t)index))
				return (uint32_t)index;
		}
	}
}

/* Ask for the line where a search for the hash begins, which then comes from memory while the caller does other things. */
static inline void table_prefetch(const struct table *table, uint64_t hash)
{
	const struct table_line *line = table_line(table, table_home(table, hash >> 32 << 32));

	__builtin_prefetch(line);
	/* gcc drops calls of a function that does no more than prefetch, since it returns nothing. */
	__asm__ volatile("" : : "r"(line));
}

/* The index that a search for the hash asks about first, if it is in that line, or TABLE_NONE: what to prefetch next. */
static inline uint32_t table_guess(const struct table *table, uint64_t hash)
{
	uint64_t first = hash >> 32 << 32;
	const struct table_line *line = table_line(table, table_home(table, first));
	uint32_t rank = table_rank(line, first);
	uint64_t index = rank < TABLE_LINE ? line->entry[rank] - first : TABLE_NONE;

	return index < TABLE_NONE ? (uint32_t)index : TABLE_NONE;
}

/* Return the index under the hash for which same answers other than 0, or TABLE_NONE. */
static inline uint32_t table_find(const struct table *table, uint64_t hash, table_same_fn *same, const void *context)
{
	uint64_t first = hash >> 32 << 32, last = first | UINT32_MAX;
	uint32_t found = table_search(table, first, first, same, context);

	/* The threshold may lie among the entries of one hash. */
	if (found == TABLE_NONE && (first < table->threshold) != (last < table->threshold))
		found = table_search(table, first, last, same, context);
	return found;
}

#endif
