#ifndef TOOLS_WEEKWHEEL_SESSIOND_DATA_DATA_H
#define TOOLS_WEEKWHEEL_SESSIOND_DATA_DATA_H

/*
 * The sessions: a map for each database, from key to value, with deadlines. Only these functions change a map.
 *
 *     command ---> stripes of its keys, locked ---> map (weekwheel/session.h)
 *                                              \--> keep: what changed, for the journal
 *
 * A stripe is a lock for all keys with one hash. A thread that changes a key holds its stripe until the change is in
 * the map and in the journal, so the records of a key are in order. A call with several keys, or with several commands
 * in one, holds all their stripes at once. A reader of one key takes no stripe, unless a thread holds several just
 * then. It reads again if a thread takes several meanwhile: otherwise it could see a part of that call.
 *
 * Times are ns of the driver's clock, which no step of the wall clock moves. Clients send and get wall time in ms: it is
 * what the wall clock says then. What outlasts a restart is in *steady* time, in ms: Unix time at the first start, and from
 * then on elapsed time, whatever the wall clock does.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/session.h"

enum { DATA_DATABASES_MAX = 64, DATA_STRIPES = 256 };

struct buffer;
struct data;

/* ---- Values */

#define VALUE_MAX ((size_t)512 * 1024 * 1024)

/* A value: one block. With 100 bytes it takes 112, a size that allocators have. */
struct value {
	uint32_t disk[2]; /* the deadline that the journal has for the key: value_disk */
	uint32_t size;    /* of the bytes */
	char bytes[];
};

static inline uint64_t value_disk(const struct value *value)
{
	return (uint64_t)value->disk[1] << 32 | value->disk[0];
}

static inline void value_set_disk(struct value *value, uint64_t deadline)
{
	value->disk[0] = (uint32_t)deadline;
	value->disk[1] = (uint32_t)(deadline >> 32);
}

/* A copy of these bytes, for the caller to free; NULL without memory. */
struct value *data_value(const void *bytes, size_t size);

/* ---- Keeping: what the journal hears */

#define DATA_NEVER UINT64_MAX
/* Deadlines are capped here, more than a century ahead. */
#define DATA_LAST (WW_DRIVER_TIME_MAX - 1)

/* A key's content, in full. */
struct data_record {
	unsigned database;
	const void *key;
	size_t length;
	const void *bytes; /* the value */
	size_t size;
	uint64_t ttl;      /* ns that a touch without a time starts anew; DATA_NEVER: no deadline */
	uint64_t deadline; /* when the key expires, unless it is touched; DATA_NEVER */
	uint64_t end;      /* of its lifetime, which no touch moves; DATA_NEVER */
	int is_new;        /* of a set or rename: the key had no entry, or it had expired */
};

/*
 * Called with the stripes of the keys held, by any thread, after the map has changed. But for `commit`, these functions must
 * not call the map. They cannot fail: a journal that cannot write reports that in `refuses`, which is called before each command
 * that writes, and in `settle`.
 */
struct data_keep {
	void *context;
	/* NULL: it accepts changes, or those that only delete; otherwise the answer for clients, "MISCONF ..." */
	const char *(*refuses)(void *context, int deletes);
	/*
	 * Whether this many more changes, with this many bytes of keys and values, fit into one record with those
	 * since `begin`.
	 */
	int (*takes)(void *context, size_t count, size_t bytes);
	void (*set)(void *context, const struct data_record *record);
	/* Only its times are new, and the journal has the deadline `disk`. Returns 0 if it may go on with that. */
	int (*touch)(void *context, const struct data_record *record, uint64_t disk);
	void (*erase)(void *context, unsigned database, const void *key, size_t length); /* deleted or evicted */
	int is_reporting; /* journals an expiry before it is reported, so that a key that is not there needs no note */
	void (*rename)(void *context, const struct data_record *record, const void *from, size_t from_length);
	void (*clear)(void *context, unsigned database); /* all stripes are held */
	/* What comes from this thread between the two belongs together: all of it, or nothing, after a crash. */
	void (*begin)(void *context);
	void (*commit)(void *context);
	/*
	 * Write a new image of all sessions: within the call, or begin one. 0 or a WW_E*; WW_EBUSY: one is being
	 * written.
	 */
	int (*save)(void *context, int wait);
	/* Return 1 while one is being written. *last gets when the last one was complete, in s of wall time. */
	int (*saving)(void *context, int64_t *last);
	/* Add lines for INFO, "name:value\r\n"; or NULL. */
	void (*info)(void *context, struct buffer *out);
	/*
	 * Before the answers of a turn are sent: wait until its changes are as durable as the settings ask. 0 or a
	 * WW_E*.
	 */
	int (*settle)(void *context);
	/* This thread makes no more changes. */
	void (*leave)(void *context);
};

/* ---- Opening */

enum data_policy { DATA_NOEVICTION, DATA_ALLKEYS_LRU, DATA_VOLATILE_LRU };

/* A key has expired or was evicted, with this value. No lock is held, or those of another key. */
typedef void data_gone_fn(
    void *context, unsigned database, const void *key, size_t length, const struct value *value, enum ww_gone why);

struct data_config {
	unsigned databases;  /* 1 to DATA_DATABASES_MAX */
	uint64_t lifetime;   /* ns; 0: none */
	int has_lifetimes;   /* keys may have lifetimes of their own, though `lifetime` is 0 */
	int keeps_lifetimes; /* a set of a key that is there goes on with its lifetime, unless it says another */
	uint64_t
	    stays_ended; /* ns: how long an ended key is recalled, for clients that write without knowing of its end */
	uint64_t memory; /* bytes; 0: no bound */
	enum data_policy policy; /* what happens at the bound */
	int is_virtual;          /* time stands still until data_advance */
	data_gone_fn *gone;      /* NULL: no calls */
	void *context;           /* for gone */
};

/* Returns 0 or a WW_E*. */
int data_open(struct data **data, const struct data_config *config);
/* Report changes from now on. Call it before clients come, or never. */
void data_set_keep(struct data *data, const struct data_keep *keep);
/* Free the maps with all entries. NULL is harmless. */
void data_close(struct data *data);

/* Make the map of a database before its first use. Returns 0 or a WW_E*. */
int data_select(struct data *data, unsigned database);
/* For walks: the map of a database; NULL if nobody has selected it. */
struct ww_session *data_map(const struct data *data, unsigned database);
unsigned data_databases(const struct data *data);
/* Whether entries can have ends of lifetimes. */
int data_has_lifetimes(const struct data *data);
/* The end of the server's own lifetime, if it begins now; DATA_NEVER: there is none. */
uint64_t data_lifetime_end(const struct data *data);
/*
 * For the journal, before clients come: make an entry as it was. The value is taken over, also on error. The bound of
 * memory refuses nothing and evicts nothing, as keys fill other shards than before. Returns 0 or a WW_E*. Nothing is
 * reported to keep.
 */
int data_restore(struct data *data, const struct data_record *record, struct value *value);

/* Now: on the driver's clock in ns, by the wall clock in ms, and steady in ms. */
uint64_t data_now(const struct data *data);
int64_t data_wall_ms(struct data *data);
int64_t data_steady_ms(const struct data *data);
/* Convert between the clocks. What gives ns makes 1 or DATA_LAST of what is out of range. */
int64_t data_to_wall_ms(struct data *data, uint64_t ns);
uint64_t data_from_wall_ms(struct data *data, int64_t ms);
int64_t data_to_steady_ms(const struct data *data, uint64_t ns);
uint64_t data_from_steady_ms(const struct data *data, int64_t ms);
int64_t data_steady_to_wall_ms(struct data *data, int64_t ms);
/* Steady time less the driver's, in ms. It may be set before anything is restored. */
int64_t data_steady_offset(const struct data *data);
void data_set_steady_offset(struct data *data, int64_t ms);
/* Whether the clock is virtual. */
int data_is_virtual(const struct data *data);
/* In config's gone: the deadline of that key, steady; INT64_MAX: it had none. */
int64_t data_gone_ms(const struct data *data);
/* Step the virtual clock, and wait until what has expired by then was reported. WW_EINVAL: time is real. */
int data_advance(struct data *data, uint64_t ns);

/* Wait until gone was called for all entries that have left the maps so far. The caller holds no stripe. */
void data_settle_gone(struct data *data);
/* The same for all that has expired so far, whoever holds stripes. */
void data_settle_expired(struct data *data, uint64_t since);

/* ---- Stripes */

struct data_stripes {
	uint64_t bits[DATA_STRIPES / 64];
};

void data_stripes_add(struct data_stripes *stripes, const void *key, size_t length);
void data_stripes_all(struct data_stripes *stripes);
/* For the keys of a command that writes, or of several commands. */
void data_lock(struct data *data, const struct data_stripes *stripes);
void data_unlock(struct data *data, const struct data_stripes *stripes);
/* Return when all threads that hold stripes now have released them. */
void data_pass(struct data *data);
/* The same as data_lock and data_unlock for one key. */
unsigned data_lock_key(struct data *data, const void *key, size_t length);
void data_unlock_key(struct data *data, unsigned stripe);
/* For a reader of one key. */
struct data_reading {
	int stripe;    /* that is held, or -1 */
	uint64_t seen; /* how many times a thread had taken several */
};
void data_read_begin(struct data *data, const void *key, size_t length, struct data_reading *reading);
/* Returns 1 if a thread has taken several meanwhile: read again, as this may be a part of its changes. */
int data_read_end(struct data *data, const struct data_reading *reading);

/* ---- Reading */

struct data_key {
	unsigned database;
	const char *bytes;
	size_t length;
};

struct data_entry {
	uint64_t version; /* 0: the key has no entry */
	uint64_t ttl;     /* as in struct data_record */
	uint64_t deadline;
	uint64_t end;
	uint64_t disk; /* value_disk */
	size_t size;
};

/* What a read has found: all of it, while the value is there; or without `disk` and `size`. */
void data_entry_fill(struct data_entry *entry, const struct ww_session_found *found);
void data_entry_times(struct data_entry *entry, const struct ww_session_found *found);

/* Call fn with the value. It must be short, and may not call back. Returns 1, 0 if there is none, or a WW_E*. */
int data_read(struct data *data, const struct data_key *key, ww_look_fn *fn, void *context);
/* The same, with all that is known. fn may be NULL. Without an entry, entry->version is 0. */
int data_inspect(
    struct data *data, const struct data_key *key, struct data_entry *entry, ww_look_fn *fn, void *context);
/* The same, but does not count as a use of the key. */
int data_is_there(struct data *data, const struct data_key *key);
/* The same, but also true if its lifetime ended lately and it stays ended. */
int data_is_taken(struct data *data, const struct data_key *key);
uint64_t data_count(struct data *data, unsigned database);
/* As ww_session_recalled: call fn for a few keys that are recalled. */
int data_recalled(struct data *data, unsigned database, uint64_t *cursor, ww_recalled_fn *fn, void *context);
/* How long an ended key is recalled, in ms. */
uint64_t data_stays_ended_ms(const struct data *data);
/* How many ended keys were forgotten early, for lack of room or memory. */
uint64_t data_recalls_dropped(struct data *data);
/* For the journal, before clients come: recall the end of a key's lifetime until that time. */
void data_remember(struct data *data, const struct data_key *key, uint64_t end, uint64_t until);
uint64_t data_random(const struct data *data);
/* Return a random cursor of ww_session_scan. */
uint64_t data_cursor(struct data *data, unsigned database);
void data_stats(struct data *data, struct ww_session_stats *stats);

/* ---- Changing: the caller holds the key's stripe */

/* The TTL of what is over when it comes. */
#define DATA_TTL_OVER UINT64_C(1)

/* Times of a set or a touch. */
struct data_times {
	uint64_t ttl;      /* ns; DATA_NEVER: the key has no deadline; or DATA_TTL_OVER */
	uint64_t deadline; /* 0: ttl from now on */
	uint64_t end;      /* of the lifetime; 0: the entry's goes on, or the server's own begins; DATA_NEVER: none */
	uint64_t version;  /* of a set: that the entry must have; 0: any, or none */
	uint64_t disk; /* of a set that keeps the times of an entry: its `disk`, which the journal keeps; otherwise 0 */
	int is_anew;   /* of a set, without an entry: ignore a recalled lifetime */
};

/*
 * Return 0, or WW_ENOMEM (the bound is reached), WW_ETOOBIG, WW_EOVERFLOW (the TTL is too long), WW_ESTALE (what has the
 * version has expired or was evicted), WW_EFULL (with what has changed since data_begin it is too much for the journal), or
 * WW_EBACKWARDS: its lifetime has ended lately, and it stays ended. To a client that is as if it had been set and had ended.
 */
int data_set(
    struct data *data, const struct data_key *key, const void *bytes, size_t size, const struct data_times *times);
/*
 * The same, and *former gets the former value, for the caller to free, or NULL. A value that has expired is reported,
 * not returned.
 */
int data_swap(struct data *data, const struct data_key *key, const void *bytes, size_t size,
    const struct data_times *times, struct value **former);
/*
 * Give the entry other times, keeping its value and the end of its lifetime; with its first deadline the server's own
 * begins. Returns 1, 0 if it is gone, or a WW_E*.
 */
int data_touch(
    struct data *data, const struct data_key *key, const struct data_entry *entry, uint64_t ttl, uint64_t deadline);
/* Returns 1, or 0 if there was none. */
int data_delete(struct data *data, const struct data_key *key);
/* The same, but return the value, for the caller to free, or NULL. */
struct value *data_take(struct data *data, const struct data_key *key);
/*
 * Undo a set of this thread: the key has again what it had, `former` as data_swap returned it, which is taken over, and
 * whose times are in *was; NULL: nothing. The bound of memory does not refuse it.
 */
void data_undo(struct data *data, const struct data_key *key, struct value *former, const struct data_entry *was);
/* Whether memory is bounded, so that a set may be refused. */
int data_is_bounded(const struct data *data);
/* Whether this many changes, with this many bytes of keys and values, fit into one record with those of this thread. */
int data_takes(const struct data *data, size_t count, size_t bytes);
/*
 * What has the name `to` goes. Returns 1, or 0 if there is no entry, or a WW_E*. Both stripes are held. WW_EBACKWARDS: `to`
 * has ended lately and stays ended.
 */
int data_rename(struct data *data, const struct data_key *key, const struct data_key *to);
/* Clear the databases from the first to the last. All stripes are held. What has expired already is still reported. */
int data_clear(struct data *data, unsigned first, unsigned last);

/* Why the journal refuses changes, or even those that only delete; NULL: it does not. */
const char *data_refuses(const struct data *data, int deletes);
void data_begin(struct data *data);
void data_commit(struct data *data);
int data_settle(struct data *data);
void data_leave(struct data *data);
/* WW_ENOTFOUND: nothing keeps the sessions. */
int data_save(struct data *data, int wait);
int data_saving(const struct data *data, int64_t *last);
void data_keep_info(struct data *data, struct buffer *out);

#endif
