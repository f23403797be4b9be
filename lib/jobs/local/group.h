#ifndef LIB_JOBS_LOCAL_GROUP_H
#define LIB_JOBS_LOCAL_GROUP_H

/*
 * The groups of a tube, which take turns: a group is the jobs that name it, and one more has those that name none. Each
 * that has ready jobs stands in its tube's row, unless its limit holds it.
 *
 *     row:  first --> group --> group --> last     The first one starts a job and goes to the end.
 *
 * Turns come in the order of their time (jobs.h has the rule). What begins to wait with weight 1 gets a turn behind all
 * others of that weight, so that these need no more than a row. Groups of greater weights stand in a tree beside it.
 *
 * A group with jobs that have a code stands in a second row, for them (coded.h).
 *
 * A tube has `limits` once a job of it named a group, or a limit was set. Groups of which nothing is left, neither jobs
 * in memory nor a limit nor starts that count, are forgotten after a batch.
 *
 * Complexity: O(1), and O(log n) in the ready jobs of a group and the groups that have a weight. Only functions that make something allocate; they return
 * WW_OK or WW_ENOMEM. No other function fails.
 */

#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/seeded.h"
#include "lib/jobs/local/coded.h"
#include "lib/jobs/local/heap.h"
#include "lib/jobs/local/limiter.h"
#include "lib/jobs/local/rule.h"
#include "lib/jobs/store/store.h"

struct entry;
struct image;
struct jobs_local;
struct tube;

/* What a group has once it has had a weight. */
struct weighed {
	struct code_node node; /* in its tube's tree, while GROUP_IN_TREE */
	struct group *group;
	uint64_t number; /* of its pair in META; 0: it never had one */
};

struct group {
	UT_hash_handle hh; /* by name */
	struct limiter limiter;
	struct ready_heap *heap; /* its own, or the tube's for those that name no group */
	struct ready_heap own;
	struct coded_group coded;    /* its jobs that have a code are in no other heap */
	TAILQ_ENTRY(group) in_row;   /* while it is in the row */
	struct weighed *weighed;     /* or NULL */
	struct turn turn;            /* in the row, where it grows, or in the tree */
	STAILQ_ENTRY(group) in_idle; /* while is_idle */
	enum { GROUP_OUT, GROUP_IN_ROW, GROUP_IN_TREE, GROUP_HELD } place;
	int is_idle;
	uint32_t number; /* in its tube; 0: names no group */
	uint32_t length;
	uint64_t running;
	uint64_t entries; /* in memory */
	char name[];
};

/* The limits and groups of a tube. */
struct limits {
	struct limiter whole;
	struct rule each;          /* of each group that has none of its own */
	uint64_t each_used;        /* until then `each` had its bursts used up; 0: never */
	uint64_t rules;            /* that are set */
	uint64_t held;             /* ready jobs of groups that are GROUP_HELD */
	uint64_t now;              /* the time of turns: of the last one that came */
	uint64_t last_turn;        /* the number of the last one that was given */
	struct code_node *weighed; /* groups that stand there and not in the row */
	struct code_node *turns;   /* groups with ready jobs that have a code */
	struct code_node *coded;   /* those jobs, by group and code */
	struct group *none;        /* the jobs that name no group */
	struct group *named;       /* hashed */
	struct group **numbered;
	uint32_t numbered_room;
	uint32_t free_number; /* lower ones are taken */
	TAILQ_HEAD(, group) row;
};

/* ---- Made and found */

/* Make a tube's `limits`, unless it has them. */
int ww_jobs_limits_make(struct tube *tube, struct limits **limits);
void ww_jobs_limits_free(struct tube *tube);
/* Find the group of this name. NULL: there is none. */
struct group *ww_jobs_group_find(const struct tube *tube, struct store_bytes name);
/* Find or make it, and store its number; 0 for the empty name. */
int ww_jobs_group_get(struct tube *tube, struct store_bytes name, uint32_t *number);
/* Make room for a weight of it, which is its rule's. */
int ww_jobs_group_weigh(struct group *group);
/* The group of an entry. NULL: its tube has no `limits`. */
struct group *ww_jobs_group_of(const struct image *image);

/* ---- Its ready jobs */

/* Make room for one more. */
int ww_jobs_ready_reserve(const struct image *image);
void ww_jobs_ready_add(struct entry *entry);
void ww_jobs_ready_remove(struct entry *entry);

/* How many of its jobs are ready. */
uint64_t ww_jobs_group_ready(const struct group *group);
/* The group whose turn it is for a worker that knows codes up to one. NULL: nothing may start. */
struct group *ww_jobs_group_next(const struct limits *limits, uint32_t code);
/* The first ready job of a group for that worker, or NULL. */
struct entry *ww_jobs_group_first(const struct group *group, uint32_t code);

/* ---- The row */

/* It may start jobs again: let it into the row, if it has ready ones. */
void ww_jobs_group_let(struct group *group);
/* Its limit holds its ready jobs. */
void ww_jobs_group_hold(struct group *group);
/* The turn of a group comes: the time of turns is that. */
void ww_jobs_group_comes(const struct group *group);
/* Its turn was used: it gets another one. */
void ww_jobs_group_turn(struct group *group);

/* ---- Forgotten */

/* A group may have neither entries nor a limit any more. */
void ww_jobs_group_idle(struct group *group);
/* After a batch: forget some groups of which nothing is left. */
void ww_jobs_groups_settle(struct jobs_local *jobs);

#endif
