#ifndef LIB_JOBS_LOCAL_CODED_H
#define LIB_JOBS_LOCAL_CODED_H

/*
 * The ready jobs that have a code: in each group, which is that of all jobs in a tube without groups, a heap for each
 * code. A worker that knows codes up to one finds its best job, and the group whose turn it is, in a tree.
 *
 *     in a group:  code 3: heap    code 7: heap    code 12: heap      by rank of the first job of the heap
 *     in a tube:   group, by its lowest code, ...                     by its turn
 *                  heap of a group, ...                               to count jobs above a code
 *
 * The jobs without a code are in the group's other heap, and the row, as if there were no codes. The group has two places
 * in the order of turns: one in the row and one here. It loses both when a job of it starts.
 *
 * An empty heap is freed after a batch. The number of codes has no bound: a team that deploys each hour has hundreds among
 * the jobs of a month.
 *
 * Complexity: O(log codes + log groups + log ready). Only making room allocates, and only that fails.
 */

#include <stdint.h>
#include <sys/queue.h>

#include "lib/jobs/local/codes.h"
#include "lib/jobs/local/heap.h"

struct entry;
struct group;
struct jobs_local;
struct tube;

/* A place in the order of turns: the least `at`, then the least number, is next. */
struct turn {
	uint64_t at;     /* by the time of the tube */
	uint64_t number; /* of all that were given in the tube */
};

/* The ready jobs of a group that have a code. */
struct coded_heap {
	struct code_node in_group; /* its rank is that of the first job */
	struct code_node in_tube;  /* it counts only */
	struct group *group;
	struct ready_heap heap;
	TAILQ_ENTRY(coded_heap) in_idle; /* while is_idle */
	int is_idle;
};

/* What a group has of them. */
struct coded_group {
	struct code_node *heaps; /* NULL: it has no such job */
	struct code_node turn;   /* in its tube's tree of groups, by the lowest code of its ready jobs */
	uint64_t ready;
	int is_in; /* that tree */
};

/* Make room for one more job of this code. */
int ww_jobs_coded_reserve(struct group *group, uint32_t code);
/* A job becomes ready, or not any more. The group is told that its jobs may start, or are held, by the next two. */
void ww_jobs_coded_add(struct group *group, struct entry *entry);
void ww_jobs_coded_remove(struct group *group, struct entry *entry);
/* Let the group stand in its tube's tree if it has ready jobs, at this turn unless it stands there; or let it leave. */
void ww_jobs_coded_join(struct group *group, struct turn turn);
void ww_jobs_coded_leave(struct group *group);
/* The best job of a group that has a code up to this one, or NULL. */
struct entry *ww_jobs_coded_best(const struct group *group, uint32_t code);
/* Forget all heaps of a group. They are empty, or the store is being closed. */
void ww_jobs_coded_forget(struct group *group);
/* After a batch: forget some heaps of which nothing is left. */
void ww_jobs_coded_settle(struct jobs_local *jobs);

#endif
