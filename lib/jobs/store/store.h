#ifndef LIB_JOBS_STORE_STORE_H
#define LIB_JOBS_STORE_STORE_H

/*
 * What jobs are stored in: tables of pairs of bytes, in order of their keys, that change all at once or not at all.
 *
 *     META     one record                            what is true of the whole
 *     JOBS     id                          -> job    everything about it
 *     DUE      due time, id                -> tube, priority    of delayed and ready jobs on elapsed time
 *     WALL     due time, id                -> tube, priority    of those on wall time
 *     BURIED   tube, order of burying, id  -> nothing
 *     KEYS     tube, key                   -> id
 *     TUBES    number                      -> counts, name
 *
 * Numbers in keys are big-endian, so that the order of bytes is theirs.
 *
 * One thread at a time. Bytes that a store hands out are valid until its next change or end of reading.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/jobs.h"

enum store_table { STORE_META, STORE_JOBS, STORE_DUE, STORE_WALL, STORE_BURIED, STORE_KEYS, STORE_TUBES, STORE_TABLES };

/* The longest key: a tube and a key. */
#define STORE_KEY_MAX (4 + WW_JOB_KEY_MAX)

struct store_bytes {
	const void *data;
	size_t size;
};

struct store_cursor; /* of the kind of store */

/* What a store can do. All return WW_OK or an error of error.h. */
struct store_ops {
	/* Begin to change; what is read then sees the changes. */
	int (*begin)(void *store);
	int (*commit)(void *store);
	void (*abort)(void *store);
	/* What was read need not stay valid any more. Not between begin and commit. */
	void (*rest)(void *store);
	/* WW_ENOTFOUND: there is no such key. */
	int (*get)(void *store, enum store_table table, struct store_bytes key, struct store_bytes *value);
	int (*put)(void *store, enum store_table table, struct store_bytes key, struct store_bytes value);
	int (*remove)(void *store, enum store_table table, struct store_bytes key);
	/* The pair with the least key that is not less; and the one with the greatest key that is. */
	int (*seek)(void *store, enum store_table table, struct store_bytes from, struct store_bytes *key,
	    struct store_bytes *value);
	int (*before)(void *store, enum store_table table, struct store_bytes to, struct store_bytes *key,
	    struct store_bytes *value);
	/*
	 * The pair after the one that the last seek, before or next of that table gave, if nothing has changed since.
	 */
	int (*next)(void *store, enum store_table table, struct store_bytes *key, struct store_bytes *value);
	int (*sync)(void *store);
	uint64_t (*disk)(void *store);
	int (*close)(void *store);
};

struct store {
	const struct store_ops *ops;
	void *self;
};

int ww_store_lmdb_open(struct store *store, const struct ww_jobs_config *config);
int ww_store_memory_open(struct store *store, const struct ww_jobs_config *config);

static inline void store_write32(unsigned char *to, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(number >> (24 - 8 * i));
}

static inline void store_write64(unsigned char *to, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		to[i] = (unsigned char)(number >> (56 - 8 * i));
}

static inline uint32_t store_read32(const void *from)
{
	const unsigned char *bytes = from;

	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline uint64_t store_read64(const void *from)
{
	return (uint64_t)store_read32(from) << 32 | store_read32((const unsigned char *)from + 4);
}

#endif
