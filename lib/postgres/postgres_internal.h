#ifndef LIB_POSTGRES_POSTGRES_INTERNAL_H
#define LIB_POSTGRES_POSTGRES_INTERNAL_H

/*
 * The inside of a store in PostgreSQL: struct postgres, which is one open store, and the parts that its pairs lie in.
 *
 *     put by SQL:  inbox --intake.c-->  ww_jobs_put --engine--> store.c --a row a turn--> ring 0..3
 *                                                                   |                        | ring.c: what lasts
 *                                                                   v                        v
 *                                                            all pairs in memory        slots 0..168
 *
 * Each job's record is in memory with a byte before it, its *part*: where the newest row about it lies. 0 to 3 are the
 * parts of the ring, 4 to 172 the slots. A record that leaves a slot, because the job has ended or its record is written
 * anew, is noted: the note becomes a row of `gone` before that part of the ring is emptied in which the change lies.
 *
 *     ring:   | 2 oldest | 3 | 0 | 1 current |     each turn adds a row to the current part
 *               `-> living jobs go to their slots, notes to `gone`, then TRUNCATE: it will be current next
 *
 * A replay reads slots first, without what is gone, then the parts of the ring in the order of turns. What it finds twice
 * it takes from the later row, so that a part may be written on in many steps.
 *
 * Pairs that belong to no job (limits, tubes, counts, runs) are written again as a whole, an *image*, when the ring turns.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/jobs/backend.h"
#include "lib/jobs/local/port.h"
#include "lib/jobs/store/changes.h"
#include "lib/postgres/array.h"
#include "lib/postgres/ids.h"
#include "lib/postgres/link.h"
#include "weekwheel/jobs_postgres.h"

enum {
	RING_PARTS = 4,
	SLOTS = 169,
	SLOT_REST = 168, /* for what is due in no hour of the coming week */
	PARTS = RING_PARTS + SLOTS,
	ENDED_PARTS = 4
};

/* Which rows were taken: their number, and their ids together (xor). The thread of the inbox counts them. */
struct taken_rows {
	_Atomic uint64_t count;
	_Atomic uint64_t ids;
};

struct part {
	struct ids ids; /* of jobs that were written there; those that have left are still in it */
	size_t living;  /* jobs of which it has the newest row */
	int has_rows;
};

/* A record that left a slot in a turn. */
struct left {
	uint64_t id;
	uint64_t turn;
	unsigned slot;
};

struct lefts {
	struct left *all;
	size_t count;
	size_t room;
};

struct postgres {
	const struct ww_allocator *allocator;
	struct ww_jobs_postgres_config config;
	struct ww_jobs *jobs;        /* on this store */
	struct jobs_backend backend; /* the engine's, with some functions of our own */
	struct jobs_backend engine;  /* as it is */
	size_t body_max;             /* of a body that is put by a call; SQL may put longer ones */
	struct store memory;
	struct link writer;     /* holds the owner's lock; only whoever executes calls uses it */
	_Atomic uint64_t alive; /* CLOCK_BOOTTIME when a statement was sent that has been answered */
	uint64_t timeline;      /* of PostgreSQL, from 1 on */
	uint64_t looked;        /* when it was last seen whether the writer's connection was ended */
	_Atomic int is_losing;  /* somebody has noticed it: `why` is written */
	_Atomic int lost;       /* WW_EIO: a connection is gone, and nothing is written any more */
	char why[LINK_WHY_MAX];

	/* Of the write under way. */
	struct changes round;
	size_t left_before; /* notes of the current part that earlier turns made */
	size_t taken_before;
	struct ids moves;  /* of records: from part << 16 | to part */
	struct ids taken;  /* of the inbox, not yet written */
	uint64_t given;    /* the id of the job that is put next; 0: an even one */
	uint64_t turn;     /* of the last row */
	uint64_t even;     /* the greatest even id that was given */
	uint64_t numbered; /* half of it when the sequence of ids was last moved on */
	int needs_image;

	/* The ring. */
	uint64_t position; /* how often it was turned */
	unsigned current;  /* the part that this leads to */
	uint64_t began;    /* when it became current, on CLOCK_MONOTONIC */
	int has_news;      /* more was written there than an image */
	int is_emptying;
	unsigned emptying; /* the part, if so */
	size_t emptied;    /* ids of it that are done */
	uint64_t again;    /* when to try again what has failed, or to look for another part */
	uint64_t now;      /* of the engine's elapsed clock, at the last write */
	struct part parts[PARTS];
	struct lefts lefts[RING_PARTS];
	struct taken_rows taken_of[RING_PARTS]; /* of that part of the inbox */

	/* Ends by SQL (fence.h). */
	uint64_t fenced;                  /* the block of tokens that the floor is the beginning of, or in */
	uint64_t ended_from[ENDED_PARTS]; /* blocks before this one have no rows in the part */
	uint64_t fenced_since;            /* when that was last looked at, on CLOCK_MONOTONIC */

	/* The clock of PostgreSQL (state.c). */
	_Atomic uint64_t ahead; /* Unix time of PostgreSQL minus CLOCK_BOOTTIME, from below; modulo 2^64 */
	uint64_t ahead_since;   /* CLOCK_BOOTTIME of that estimate */

	/* The inbox: of the thread that reads it. */
	struct link reader;
	pthread_t thread;
	_Atomic int is_ending; /* the thread is to end */
	int stop[2];           /* a pipe: something is written to end the thread */
	_Atomic int has_ends;  /* what former owners' deliveries came to was read: the store may deliver */
	_Atomic int is_first;  /* the inbox has not been read yet: nothing is emptied */
	uint64_t xmax;         /* of the snapshot of the last reading: what began later, it has not seen */
	struct ids open;       /* transactions that were under way then */
	struct id_set known;   /* rows that are read again, and were taken */
};

/* In `moves`: no part. */
#define NO_PART 0xffffu

static inline int is_of_job(enum store_table table)
{
	return table == STORE_DUE || table == STORE_WALL || table == STORE_BURIED;
}

static inline uint64_t id_of_key(struct store_bytes key)
{
	return store_read64((const unsigned char *)key.data + key.size - 8);
}

#endif
