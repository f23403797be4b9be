#ifndef LIB_JOBS_STORE_STORE_H
#define LIB_JOBS_STORE_STORE_H

/*
 * The port to the storage of jobs: tables of pairs of bytes, in order of their keys. A write happens as a whole or not
 * at all.
 *
 *     META     "meta", "now"              about the whole store: what seldom changes, and what every write changes
 *              "limit", number         -> a limit (local/rule.c)
 *     JOBS     id                      -> table, and its key there without the id: where the job lies
 *     DUE      due time, id            -> job     that waits on elapsed time: delayed, ready or reserved
 *     WALL     due time, id            -> job     such jobs on wall time
 *     BURIED   tube, order, id         -> job
 *     KEYS     hash of tube and key, id   -> nothing
 *     TUBES    number                  -> counts, name
 *     COUNTS   tube, slot              -> how many jobs wait there (local/counts.c)
 *
 * Numbers in keys are big-endian, so the order of bytes is the order of numbers.
 *
 * Threads: one at a time. Bytes that a store hands out are valid until its next change or `rest`.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "weekwheel/jobs.h"

enum store_table {
	STORE_META,
	STORE_JOBS,
	STORE_DUE,
	STORE_WALL,
	STORE_BURIED,
	STORE_KEYS,
	STORE_TUBES,
	STORE_COUNTS,
	STORE_TABLES
};

/* The longest key, of BURIED. */
#define STORE_KEY_MAX 20

struct store_bytes {
	const void *data;
	size_t size;
};

/* Functions that return an int return WW_OK or an error of error.h. */
struct store_ops {
	/* Begin a write. Reads see its changes from then on. */
	int (*begin)(void *store);
	int (*commit)(void *store);
	void (*abort)(void *store);
	/* End reading: what was read becomes invalid. Not between begin and commit. */
	void (*rest)(void *store);
	/* WW_ENOTFOUND: there is no such key. */
	int (*get)(void *store, enum store_table table, struct store_bytes key, struct store_bytes *value);
	/*
	 * Whether a new or larger job of this many bytes may be put. WW_EFULL: there is room only for removing. May be
	 * called at any time during a write.
	 */
	int (*room)(void *store, size_t size);
	int (*put)(void *store, enum store_table table, struct store_bytes key, struct store_bytes value);
	int (*remove)(void *store, enum store_table table, struct store_bytes key);
	/* Read the pair with the least key from `from` on, or with the greatest key before `to`. */
	int (*seek)(void *store, enum store_table table, struct store_bytes from, struct store_bytes *key,
	    struct store_bytes *value);
	int (*before)(void *store, enum store_table table, struct store_bytes to, struct store_bytes *key,
	    struct store_bytes *value);
	/* Read the pair after the last one that was read in that table so. Only if nothing has changed since. */
	int (*next)(void *store, enum store_table table, struct store_bytes *key, struct store_bytes *value);
	int (*sync)(void *store);
	/* What the clocks of DUE and WALL say, in their due times; 0: there is no such clock. Once a minute is enough. */
	void (*set_time)(void *store, uint64_t elapsed, uint64_t wall);
	uint64_t (*disk)(void *store);
	/*
	 * Why it cannot write: WW_OK, WW_EFULL, or WW_EIO until it is opened again. The text, unless NULL, names the
	 * file.
	 */
	int (*fault)(void *store, char text[WW_FAULT_MAX]);
	int (*close)(void *store);
	/* These may be NULL. The id of the next new job, where the engine itself would give `next` or a greater one. */
	uint64_t (*id)(void *store, uint64_t next);
	/* Unix time in ns by the clock of the storage, from below, where that is not this machine's. */
	uint64_t (*wall)(void *store);
	/* The number of this opening, of which there have been `next` - 1, or a greater one. */
	uint64_t (*epoch)(void *store, uint64_t next);
	/*
	 * Where others may finish a job, too: revoke their right to finish the delivery of this token. WW_ESTALE: one
	 * has finished it, or is about to, which the engine learns later. A revocation stays even if the write fails.
	 */
	int (*revoke)(void *store, uint64_t id, uint64_t token);
	/*
	 * Where reading on would take long: no pair of DUE or WALL from there on has a lesser due time than this. UINT64_MAX:
	 * there is none.
	 */
	uint64_t (*quiet)(void *store, enum store_table table, struct store_bytes from);
};

struct store {
	const struct store_ops *ops;
	void *self;
};

/* Sizes of the store on disk. Tests make them small, so that everything happens often. */
struct store_sizes {
	size_t active;    /* bytes in memory when the index takes them over; commits wait from twice as much on */
	uint64_t journal; /* the same for bytes of a file: jobs that come and go leave nothing else behind */
	size_t view;      /* jobs of a slot that are put in order at a time */
	int64_t few;      /* fewer dead rows than this are not worth a rewrite */
};

extern struct store_sizes ww_store_sizes;

int ww_store_disk_open(struct store *store, const struct ww_jobs_config *config);
int ww_store_memory_open(struct store *store, const struct ww_jobs_config *config);

/* ---- Of a store in memory, also while another thread reads it */

typedef int store_pair_fn(void *context, struct store_bytes key, struct store_bytes value);

/* The memory that it takes. */
size_t ww_store_memory_bytes(const struct store *store);
/* Call pair for each pair of a table in order, until it returns an error, which is then the answer. */
int ww_store_memory_each(const struct store *store, enum store_table table, store_pair_fn *pair, void *context);

static inline int store_compare(struct store_bytes one, struct store_bytes other)
{
	size_t size = one.size < other.size ? one.size : other.size;
	int order = size ? memcmp(one.data, other.data, size) : 0;

	return order ? order : (one.size > other.size) - (one.size < other.size);
}

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
