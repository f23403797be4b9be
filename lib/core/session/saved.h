#ifndef LIB_CORE_SESSION_SAVED_H
#define LIB_CORE_SESSION_SAVED_H

/*
 * What ww_session_save writes and ww_session_load reads. Numbers are little-endian.
 *
 *     header | block | block | ... | an empty block
 *
 *     header  magic 8 | version 4 | flags 4 | wall clock 8, ns since 1970 | 0 4 | sum 4
 *     block   size of its records 4 | their number 4 | sum 4 | records
 *     record  size of the value 4 | of the key 2 | flags 2 | left 8, ns | TTL 8, us
 *             | end 8, ns, if flagged | weight 8, if flagged | key | value
 *
 * left and end are counted from the moment that the header names. Entries therefore need no clocks of their own, and
 * time that passes while they are written counts like time that passes afterwards.
 *
 * A sum is a CRC-32C. The sum of a block goes on from the sum before it, and covers its size and number as well as its
 * records. A block that is missing or from elsewhere is thus detected like a flipped bit. The empty block shows that
 * nothing was cut off. A block is a unit of reading: it is checked as a whole before any of its entries is made.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SAVED_MAGIC "\211wwsess\n"
#define SAVED_VERSION 1u
#define SAVED_HAS_ENDS 1u /* in the header: the map kept ends, and an entry without one has none */

enum {
	SAVED_MAGIC_SIZE = 8,
	SAVED_HEADER = 32,
	SAVED_HEADER_SUMMED = 28,
	SAVED_BLOCK = 12,
	SAVED_SUMMED = 8,
	SAVED_RECORD = 24
};
/* The largest head of a record, with all that may be flagged. */
enum { SAVED_HEAD_MOST = SAVED_RECORD + 16 };

/* Of a record. */
#define SAVED_END 1u
#define SAVED_WEIGHT 2u
#define SAVED_PINNED 4u
#define SAVED_FLAGS (SAVED_END | SAVED_WEIGHT | SAVED_PINNED)

/* The longest encoded value. */
#define SAVED_VALUE_MAX ((size_t)INT32_MAX)
/* Records gathered in a block, unless one alone is longer. */
#define SAVED_ROOM ((size_t)64 << 10)

static inline void saved_put(unsigned char *to, uint64_t number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++, number >>= 8)
		to[i] = (unsigned char)number;
}

static inline uint64_t saved_get(const unsigned char *from, size_t bytes)
{
	uint64_t number = 0;

	while (bytes--)
		number = number << 8 | from[bytes];
	return number;
}

#endif
