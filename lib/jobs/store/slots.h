#ifndef LIB_JOBS_STORE_SLOTS_H
#define LIB_JOBS_STORE_SLOTS_H

/*
 * The waiting jobs in the index: the wheel continues on disk. Its slots are hours.
 *
 *       now            edge
 *        |--- near -----|-- rest of its hour --|--- hour ---|--- hour ---|  ...  due time
 *           by due time   far: in a slot by id   far: each hour is a slot
 *
 *     far     slot, id         -> due time, job    written once, at the end of one of some two hundred slots
 *     gone    slot, id                             a far job that was cancelled or moved; the row itself stays
 *     near    line, due, id    -> job
 *     place   id               -> slot             of a far job, as it was put
 *     moved   id               -> value of JOBS    of every other job; it hides the place
 *     slots   slot             -> rows, gone, bytes   about how many there are
 *
 * When a large hour nears, its jobs are demoted: read in order of due time, a piece at a time, and written into near. A
 * small hour is put in order in memory when it is read, and stays where it is. Its jobs that are left a day later are
 * demoted then. The edge is the last job that was demoted, or the end of an hour; rows of far up to the edge are dead.
 * When the edge has passed the whole hour, its slot is dropped. A slot of which half is gone is rewritten. Places of
 * dead jobs are removed when they outnumber the living.
 *
 * There are two lines of time, elapsed and wall, each with slots and an edge of its own.
 *
 * Complexity: finding a job is O(log n). Going through a slot in order of due time reads the slot once for each
 * few thousand of its jobs.
 */

#include <sqlite3.h>

#include "lib/jobs/store/store.h"

struct sqlite;

enum { SLOTS_ELAPSED, SLOTS_WALL, SLOTS_LINES };
/* The order of jobs that wait. */
struct slots_mark {
	uint64_t due;
	uint64_t id;
};

/*
 * Jobs of a slot after a mark, in order of due time, as many as there is room for. Backwards: those before it, the last
 * first.
 */
struct slots_view {
	struct slots_mark *jobs;
	size_t room;
	size_t count;
	size_t at;
	uint64_t slot;
	struct slots_mark from;
	int back;
	int is_whole; /* nothing comes behind */
	int is_valid;
	unsigned version; /* of the index */
};

struct slots_walk {
	int is_far;
	struct slots_view view;
};

struct slots_count {
	uint64_t slot;
	int64_t rows;
	int64_t bytes; /* of them */
	int64_t gone;
	int is_dirty;
};

/* Statements of the reader. Those that end with _DOWN go backwards. */
enum {
	READ_STATE,
	READ_MOVED,
	READ_PLACE,
	READ_FAR,
	READ_GONE,
	READ_NEAR,
	READ_SLOT,
	READ_SLOT_DOWN,
	SCAN_FAR,
	SCAN_GONE,
	SCAN_NEAR, /* of each line one */
	SCAN_NEAR_WALL,
	SCAN_PLACE,
	SCAN_MOVED,
	READ_NEAR_DOWN,
	SCAN_PLACE_DOWN,
	SCAN_MOVED_DOWN,
	SLOTS_READS
};

/* Statements of the writer. */
enum {
	PICK_FAR,
	PICK_GONE,
	PICK_JOB,
	PICK_PLACES,
	FIND_MARK,
	PUT_FAR,
	PUT_NEAR,
	PUT_GONE,
	PUT_PLACE,
	PUT_MOVED,
	PUT_COUNT,
	PUT_STATE,
	REMOVE_NEAR,
	REMOVE_GONE,
	REMOVE_MOVED,
	REMOVE_PLACE,
	SLOTS_WRITES
};

struct slots {
	struct sqlite *sqlite;
	uint64_t ahead;
	sqlite3_stmt *reads[SLOTS_READS];
	sqlite3_stmt *writes[SLOTS_WRITES];
	/* The reader's. */
	struct slots_mark seen[SLOTS_LINES]; /* the edges in its transaction */
	struct slots_walk walk[SLOTS_LINES];
	int ids[2]; /* of the walk by ids: the last steps in place and in moved */
	/* The writer's. */
	struct slots_mark edge[SLOTS_LINES];
	struct slots_view picked;
	struct slots_count *counts; /* in order */
	size_t slots;
	size_t room;
	int is_pressed;      /* there is no room: throw out whatever is gone */
	uint64_t highest;    /* id with a place */
	int64_t placed;      /* rows of place */
	int64_t purge_above; /* as many places are worth a purge */
	uint64_t purged;     /* up to this id; 0: no purge is under way */
};

/* ---- Where a job lies */

/* Slots of the wall clock come after all of the elapsed time. */
#define SLOTS_WALL_FIRST (UINT64_C(1) << 23)
#define SLOTS_HOUR UINT64_C(3600000000000)

static inline uint64_t slots_of(int line, uint64_t due)
{
	return due / SLOTS_HOUR + (line ? SLOTS_WALL_FIRST : 0);
}

static inline int slots_line(uint64_t slot)
{
	return slot >= SLOTS_WALL_FIRST;
}

/* When the slot begins. */
static inline uint64_t slots_start(uint64_t slot)
{
	return slot % SLOTS_WALL_FIRST * SLOTS_HOUR;
}

static inline int slots_is_before(struct slots_mark one, struct slots_mark other)
{
	return one.due < other.due || (one.due == other.due && one.id < other.id);
}

/* Whether a job lies in near when that is the edge. */
static inline int slots_is_near(struct slots_mark job, struct slots_mark edge)
{
	return !slots_is_before(edge, job);
}

/* Whether the edge has passed the whole slot. */
static inline int slots_is_passed(uint64_t slot, const struct slots_mark edge[SLOTS_LINES])
{
	return edge[slots_line(slot)].due >= slots_start(slot) + SLOTS_HOUR;
}

/* A key of DUE or WALL; what is missing at its end is 0. */
static inline struct slots_mark slots_mark_of(struct store_bytes key)
{
	unsigned char bytes[16] = {0};

	if (key.size)
		memcpy(bytes, key.data, key.size < sizeof bytes ? key.size : sizeof bytes);
	return (struct slots_mark){store_read64(bytes), store_read64(bytes + 8)};
}

/* The tables that are kept here. */
static inline int slots_have(enum store_table table)
{
	return table == STORE_JOBS || table == STORE_DUE || table == STORE_WALL;
}

/* ---- slots_view.c */

/* Give it room, once. */
int ww_store_slots_view_open(struct slots_view *view, const struct ww_allocator *allocator, size_t room);
void ww_store_slots_view_close(struct slots_view *view, const struct ww_allocator *allocator);
/*
 * Fill a view from its slot, by two statements that go through far and gone. Jobs up to the edge are dead.
 */
int ww_store_slots_look(struct slots_view *view, sqlite3_stmt *far, sqlite3_stmt *gone, struct slots_mark edge);
/* Whether the view, which was filled before, has what comes from there on. Then it is set to that. */
int ww_store_slots_seen(struct slots_view *view, uint64_t slot, struct slots_mark from, int back);

/* ---- slots.c */

/* Make the tables, in the writer's transaction. */
int ww_store_slots_make(struct sqlite *sqlite);
/* Jobs of a large slot are demoted `ahead` before they are due. */
int ww_store_slots_open(struct slots *slots, struct sqlite *sqlite, uint64_t ahead);
void ww_store_slots_close(struct slots *slots);
/* Read again what a transaction that failed has changed in memory. */
int ww_store_slots_reread(struct slots *slots);
/* The greatest id in the index. */
int ww_store_slots_highest(sqlite3 *connection, uint64_t *id);

/* ---- slots_read.c: as in store.h. ww_store_slots_begin comes first in a transaction. */

int ww_store_slots_begin(struct slots *slots);
int ww_store_slots_get(struct slots *slots, enum store_table table, struct store_bytes key, struct store_bytes *value);
int ww_store_slots_seek(struct slots *slots, enum store_table table, struct store_bytes from, struct store_bytes *key,
    struct store_bytes *value);
int ww_store_slots_before(struct slots *slots, enum store_table table, struct store_bytes to, struct store_bytes *key,
    struct store_bytes *value);
int ww_store_slots_next(
    struct slots *slots, enum store_table table, struct store_bytes *key, struct store_bytes *value);
void ww_store_slots_rest(struct slots *slots);

/* ---- slots_write.c: first all that is removed, then what is put, in order of the keys */

int ww_store_slots_put(struct slots *slots, enum store_table table, struct store_bytes key, struct store_bytes value);
int ww_store_slots_remove(struct slots *slots, enum store_table table, struct store_bytes key);
/* Write the edges and the counts, before the commit. */
int ww_store_slots_save(struct slots *slots);
/* The count of a slot; made if it is missing. NULL: there is no memory. */
struct slots_count *ww_store_slots_count(struct slots *slots, uint64_t slot);

/* ---- slots_tend.c */

/*
 * Do one piece of the work due at `now` on each line, in a transaction: demote, drop, rewrite, purge. Returns 1 if
 * there was any, 0, or an error.
 */
int ww_store_slots_tend(struct slots *slots, const uint64_t now[SLOTS_LINES]);

#endif
