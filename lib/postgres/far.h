#ifndef LIB_POSTGRES_FAR_H
#define LIB_POSTGRES_FAR_H

/*
 * Far jobs: those that lie in a slot of PostgreSQL and not in memory.
 *
 *        now        +1 h            +2 h
 *     ----|--- in memory ---|--- far: memory has the id, and the key's hash ---------------->  due time
 *                    the hours are read when they come near, a piece at a time
 *
 * A far job that is asked for *visits* memory: one alone, by its id, or all of its slot, where somebody goes through the due
 * times. It stays until others visit, or for a second.
 *
 * The ids of a slot are in order, but for the last few. Those of jobs that have left it are marked.
 *
 * Threads: whoever executes calls of the engine. Errors: those of store.h, and WW_ENOMEM.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/jobs/store/store.h"

struct postgres;

/* What is due later than this goes to the rest: the same slot stands for a past hour. */
enum { HOURS_AHEAD = 160 };
#define HOUR (3600 * WW_SECOND)

/* What is due in so many hours, the one that has begun and later ones, is near. Tests have 0, so that almost all is far. */
extern unsigned ww_postgres_far_hours;

/* ---- Ids */

/* The part in which the id lies, a slot; or NO_PART. */
unsigned ww_postgres_far_find(struct postgres *postgres, uint64_t id);
int ww_postgres_far_is_in(struct postgres *postgres, unsigned part, uint64_t id);
/* It has left the slot, or has not, after all. */
void ww_postgres_far_mark(struct postgres *postgres, unsigned part, uint64_t id, int has_left);

/* ---- Jobs */

/* A slot has this job, which is not in memory; it was found there at the start. */
int ww_postgres_far_note(struct postgres *postgres, unsigned part, uint64_t id, uint64_t due);
/* The job lies in its slot: memory forgets it if it is far. Between two writes. */
void ww_postgres_far_leave(struct postgres *postgres, uint64_t id);
/* It visits memory. WW_ENOTFOUND: there is no such far job. */
int ww_postgres_far_visit(struct postgres *postgres, uint64_t id);
/* All jobs of a part visit memory. */
int ww_postgres_far_visit_part(struct postgres *postgres, unsigned part);
/* So many of them visit it, or all that are left, from this place in `ids` on. *end is behind the last one. */
int ww_postgres_far_visit_next(struct postgres *postgres, unsigned part, size_t from, size_t most, size_t *end);
/* A part that may have far jobs which are due in that time, or NO_PART. */
unsigned ww_postgres_far_between(const struct postgres *postgres, uint64_t from, uint64_t to);
/* The time before which no far job is due that is due from then on. */
uint64_t ww_postgres_far_quiet(const struct postgres *postgres, uint64_t from);
/* Let far jobs of ids between these visit, at least the first of them. Returns 1 if any came, 0, or an error. */
int ww_postgres_far_visit_ids(struct postgres *postgres, uint64_t from, uint64_t to);
/* Somebody goes through due times, and is at this one: who visits there stays for another second. */
void ww_postgres_far_use(struct postgres *postgres, uint64_t due);
/* Nobody reads any more: those that came before the last ones leave, and after a second all. */
void ww_postgres_far_rest(struct postgres *postgres);
/* Of the write under way. */
void ww_postgres_far_begin(struct postgres *postgres);
void ww_postgres_far_abort(struct postgres *postgres);
/* The part is empty. */
void ww_postgres_far_clear(struct postgres *postgres, unsigned part);
/* Read some of what comes near. Returns whether there is more to do at once. */
int ww_postgres_far_tend(struct postgres *postgres);

#endif
