#ifndef LIB_JOBS_LOCAL_CODES_H
#define LIB_JOBS_LOCAL_CODES_H

/*
 * Things in order of their codes, of which the first by another rank is found among all codes up to one: a treap, whose
 * nodes keep the count and the best of their subtrees.
 *
 *     code:   3    7    7    12   40           up to 12: the node of rank 1
 *     rank:   5    1    9    2    0
 *
 * The owner has the nodes in its structs. Complexity: O(log n), however the codes were chosen. No function fails.
 */

#include <stdint.h>

struct code_node {
	uint64_t code;
	uint64_t tie;   /* of equal codes, the lower one is first: a code and a tie are one node's */
	uint64_t first; /* the rank: the lower one, then */
	uint64_t then;
	uint64_t count; /* of what it stands for; a node with 0 has no rank */
	/* Of the tree: */
	uint64_t all; /* the counts of it and all below it */
	struct code_node *left;
	struct code_node *right;
	struct code_node *best; /* of it and all below it; NULL: all counts are 0 */
	uint64_t weight;        /* at random; none below it has more */
};

/* Add a node, whose code, tie, rank and count are set. NULL is an empty tree. */
void ww_jobs_codes_add(struct code_node **tree, struct code_node *node, uint64_t random);
void ww_jobs_codes_remove(struct code_node **tree, const struct code_node *node);
/* The rank or the count of a node in the tree has changed. */
void ww_jobs_codes_changed(struct code_node *tree, const struct code_node *node);

/* The node of a code and tie, or NULL. */
struct code_node *ww_jobs_codes_find(struct code_node *tree, uint64_t code, uint64_t tie);
/* The first one by rank of those up to a code, or NULL. */
struct code_node *ww_jobs_codes_best(struct code_node *tree, uint64_t code);
/* The sum of counts above a code, and the lowest code there that counts; it stays as it is if the sum is 0. */
uint64_t ww_jobs_codes_above(const struct code_node *tree, uint64_t code, uint64_t *lowest);

#endif
