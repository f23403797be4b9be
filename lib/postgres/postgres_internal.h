#ifndef LIB_POSTGRES_POSTGRES_INTERNAL_H
#define LIB_POSTGRES_POSTGRES_INTERNAL_H

/*
 * The inside of a store in PostgreSQL: struct postgres, which is one open store, and the parts that its pairs lie in.
 *
 *     put by SQL:  inbox --intake.c-->  ww_jobs_put --engine--> store.c --a row a turn--> ring 0..3
 *                                                                   |                        | ring.c: what lasts
 *                                                                   v                        v
 *                                                  pairs of what is near, in memory        slots 0..168
 *
 * The record of a job that is not far (far.h) is in memory with a byte before it, its *part*: where the newest row about
 * it lies. 0 to 3 are the parts of the ring, 4 to 172 the slots. A record that leaves a slot, because the job has ended or
 * its record is written anew, is noted: the note becomes a row of `gone` before that part of the ring is emptied in which
 * the change lies.
 *
 *     ring:   | 2 oldest | 3 | 0 | 1 current |     each turn adds a row to the current part
 *               `-> living jobs go to their slots, notes to `gone`, then TRUNCATE: it will be current next
 *
 * A replay reads slots first, without what is gone, then the parts of the ring in the order of turns. What it finds
 * twice it takes from the later row, so that a part may be written on in many steps.
 *
 * Pairs that belong to no job (limits, tubes, counts, runs) are written again as a whole, an *image*, when the ring
 * turns.
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
	SLOT_REST = 168, /* for jobs due after the coming week */
	PARTS = RING_PARTS + SLOTS,
	ENDED_PARTS = 4
};

/* Which rows were taken: their number, and their ids together (xor). The thread of the inbox counts them. */
struct taken_rows {
	_Atomic uint64_t count;
	_Atomic uint64_t ids;
};

struct part {
	struct ids ids; /* jobs written there; those that have left are still in it */
	size_t living;  /* jobs whose newest row it has */
	int has_rows;
	/* Of a slot (far.h): */
	size_t sorted;  /* ids that are in order */
	uint64_t least; /* no job that is far is due before, or later than `greatest` */
	uint64_t greatest;
	uint64_t least_before; /* the write under way */
	uint64_t greatest_before;
	uint64_t stay_until; /* what is due before that does not leave memory */
};

/* A key that was read, to read on behind it. */
struct read_key {
	unsigned char bytes[STORE_KEY_MAX + 1];
	size_t size;
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
	size_t body_max;             /* of a body put by a call; SQL may put longer ones */
	struct store memory;
	struct link writer;     /* holds the owner's lock; used only by callers of the engine */
	_Atomic uint64_t alive; /* CLOCK_BOOTTIME when the last answered statement was sent */
	uint64_t timeline;      /* of PostgreSQL, from 1 on */
	uint64_t looked;        /* when the writer's connection was last checked */
	_Atomic int is_losing;  /* a thread has noticed the loss: `why` is written */
	_Atomic int lost;       /* WW_EIO: a connection is gone, and nothing is written any more */
	char why[LINK_WHY_MAX];

	/* Of the write under way. */
	struct changes round;
	size_t left_before; /* notes of the current part that earlier turns made */
	size_t taken_before;
	struct ids moves;  /* of records: from part << 16 | to part, then the id */
	struct ids taken;  /* of the inbox, not yet written */
	uint64_t given;    /* the id of the next job that is put; 0: an even one */
	uint64_t turn;     /* of the last row */
	uint64_t even;     /* the greatest even id given so far */
	uint64_t numbered; /* half of it when the sequence of ids was last moved on */
	int needs_image;

	/* The ring. */
	uint64_t position; /* how often it was turned */
	unsigned current;  /* the part that it leads to */
	uint64_t began;    /* when it became current, on CLOCK_MONOTONIC */
	int has_news;      /* more was written there than an image */
	int is_emptying;
	unsigned emptying; /* the part, if so */
	size_t emptied;    /* ids of it that are done */
	uint64_t again;    /* when to retry what has failed, or to look for another part */
	uint64_t now;      /* of the engine's elapsed clock, at the last write */
	struct part parts[PARTS];
	struct lefts lefts[RING_PARTS];
	struct taken_rows taken_of[RING_PARTS]; /* of that part of the inbox */

	/* Far jobs (far.h). */
	int is_writing;
	int has_visits;         /* in this write all far jobs of some part came */
	uint64_t far_most;      /* no id of a slot is greater */
	uint64_t far_least;     /* of all parts */
	struct ids visits;      /* ids of those that came */
	size_t visited_before;  /* how many of them came before the last visit */
	uint64_t visited_since; /* on CLOCK_MONOTONIC */
	uint64_t seen_from;     /* all far jobs with these ids are in memory */
	uint64_t seen_to;
	unsigned nearing; /* the part that comes near; 0: none does */
	uint64_t nearing_after;
	uint64_t nearing_since; /* when that was last looked for, on CLOCK_MONOTONIC */
	struct read_key last[STORE_TABLES];

	/* Ends by SQL (fence.h). */
	uint64_t fenced;                  /* the block of tokens that contains the floor */
	uint64_t ended_from[ENDED_PARTS]; /* blocks before this one have no rows in the part */
	uint64_t fenced_since;            /* when that was last checked, on CLOCK_MONOTONIC */

	/* The clock of PostgreSQL (state.c). */
	_Atomic uint64_t ahead; /* Unix time of PostgreSQL minus CLOCK_BOOTTIME, a lower bound; modulo 2^64 */
	uint64_t ahead_since;   /* CLOCK_BOOTTIME of that estimate */

	/* The inbox: of the thread that reads it. */
	struct link reader;
	pthread_t thread;
	_Atomic int is_ending; /* the thread is to end */
	int stop[2];           /* a pipe: a byte in it ends the thread */
	_Atomic int has_ends;  /* the ends of former owners' deliveries are read: the store may deliver */
	_Atomic int is_first;  /* the inbox has not been read yet: empty nothing */
	uint64_t xmax;         /* of the last reading's snapshot: it saw nothing that began later */
	struct ids open;       /* transactions that were under way then */
	struct id_set known;   /* rows that are read again, though taken */
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
