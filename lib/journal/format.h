#ifndef LIB_JOURNAL_FORMAT_H
#define LIB_JOURNAL_FORMAT_H

/*
 * The bytes of a journal's file.
 *
 *     journal.7   | head | record 41 | record 42 | record 43 | end |
 *     journal.8   | head | record 44 | record 45 | zeros ...
 *
 * A file has no other bytes than these and zeros, but at its end perhaps a part of a record that could not be written.
 * Heads and records end with a byte that is not zero. A record that a power failure has torn, or a copy has cut off, can
 * therefore be distinguished from a damaged one: it lacks a sector, or its end.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/base/crc32c.h"

#define JOURNAL_MAGIC UINT64_C(0x004e52554f4a5757) /* "WWJOURN", and a byte for the version */
#define JOURNAL_VERSION 2u
/* Space that a file gets in advance: a sync then has no size to write. */
#define JOURNAL_PREPARED (1 << 20)
/*
 * A record has fewer bytes than this: with its head and last byte one call can write it, as Linux takes 0x7ffff000. It also
 * bounds what damage can make a reader allocate.
 */
#define JOURNAL_RECORD_MAX (UINT32_C(0x7ffff000) - (uint32_t)sizeof(struct journal_record))

struct journal_head {
	uint64_t magic;
	uint64_t number;   /* of the file */
	uint64_t first;    /* number of its first record */
	uint32_t unsynced; /* so many records before that were perhaps not stable when it was made */
	uint32_t prepared; /* bytes that the file has at least */
	uint32_t salt;     /* seeds the sums of its records: a body that has a journal's bytes is none */
	uint32_t flags;
	uint32_t salt_again; /* if the head is damaged, the records still can be read */
	uint32_t sum;        /* of the members before it */
};

/* The store was closed: its index is complete without a log. */
#define JOURNAL_CLOSED 1u
/* What its records are. Files of 0.1 do not say it: they may be of either kind. */
#define JOURNAL_JOBS 2u
#define JOURNAL_SESSIONS 4u
#define JOURNAL_KEYS 8u /* of another server, and their ends */
#define JOURNAL_KINDS (JOURNAL_JOBS | JOURNAL_SESSIONS | JOURNAL_KEYS)

struct journal_record {
	uint32_t size; /* of the bytes behind this; 0: the end, another file goes on */
	uint32_t sum;  /* of the salt and the bytes */
	uint64_t number;
	uint32_t unsynced; /* so many records before it were perhaps not stable when it was written */
	uint32_t head_sum; /* of the salt and the members before it */
};

static inline uint32_t journal_head_sum(const struct journal_head *head)
{
	return ww_crc32c(0, head, offsetof(struct journal_head, sum));
}

static inline uint32_t journal_record_sum(uint32_t salt, const struct journal_record *record)
{
	/* Its last byte is not 0. */
	return ww_crc32c(salt, record, offsetof(struct journal_record, head_sum)) | UINT32_C(0xc0000000);
}

/* Behind the bytes of a record there is this one. Records begin at multiples of 8. */
#define JOURNAL_LAST 0x4c

static inline uint64_t journal_after(uint64_t at, uint32_t size)
{
	return (at + sizeof(struct journal_record) + size + 1 + 7) & ~UINT64_C(7);
}

#endif
