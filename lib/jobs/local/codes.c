/* Things in order of their codes: a treap that finds the first one by rank up to a code. */
#include "lib/jobs/local/codes.h"

#include <stddef.h>

static int is_before(const struct code_node *one, uint64_t code, uint64_t tie)
{
	return one->code < code || (one->code == code && one->tie < tie);
}

static struct code_node *better(struct code_node *one, struct code_node *other)
{
	if (!one || !other)
		return one ? one : other;
	if (one->first != other->first)
		return one->first < other->first ? one : other;
	return one->then <= other->then ? one : other;
}

static struct code_node *itself(struct code_node *node)
{
	return node->count ? node : NULL;
}

static struct code_node *best_of(const struct code_node *tree)
{
	return tree ? tree->best : NULL;
}

static uint64_t all_of(const struct code_node *tree)
{
	return tree ? tree->all : 0;
}

static void sum_up(struct code_node *node)
{
	node->all = node->count + all_of(node->left) + all_of(node->right);
	node->best = better(itself(node), better(best_of(node->left), best_of(node->right)));
}

/* ---- The tree */

/* Those before a place, and the others. */
static void split(
    struct code_node *tree, const struct code_node *at, struct code_node **before, struct code_node **after)
{
	if (!tree) {
		*before = *after = NULL;
		return;
	}
	if (is_before(tree, at->code, at->tie)) {
		split(tree->right, at, &tree->right, after);
		*before = tree;
	} else {
		split(tree->left, at, before, &tree->left);
		*after = tree;
	}
	sum_up(tree);
}

/* All of `before` are before those of `after`. */
static struct code_node *join(struct code_node *before, struct code_node *after)
{
	if (!before || !after)
		return before ? before : after;
	if (before->weight >= after->weight) {
		before->right = join(before->right, after);
		sum_up(before);
		return before;
	}
	after->left = join(before, after->left);
	sum_up(after);
	return after;
}

static struct code_node **side(struct code_node *tree, const struct code_node *node)
{
	return is_before(tree, node->code, node->tie) ? &tree->right : &tree->left;
}

static void add(struct code_node **tree, struct code_node *node)
{
	if (!*tree || (*tree)->weight < node->weight) {
		split(*tree, node, &node->left, &node->right);
		*tree = node;
	} else
		add(side(*tree, node), node);
	sum_up(*tree);
}

void ww_jobs_codes_add(struct code_node **tree, struct code_node *node, uint64_t random)
{
	node->weight = random;
	add(tree, node);
}

void ww_jobs_codes_remove(struct code_node **tree, const struct code_node *node)
{
	if (*tree == node) {
		*tree = join(node->left, node->right);
		return;
	}
	ww_jobs_codes_remove(side(*tree, node), node);
	sum_up(*tree);
}

void ww_jobs_codes_changed(struct code_node *tree, const struct code_node *node)
{
	if (tree != node)
		ww_jobs_codes_changed(*side(tree, node), node);
	sum_up(tree);
}

/* ---- Questions */

struct code_node *ww_jobs_codes_find(struct code_node *tree, uint64_t code, uint64_t tie)
{
	while (tree && (tree->code != code || tree->tie != tie))
		tree = is_before(tree, code, tie) ? tree->right : tree->left;
	return tree;
}

struct code_node *ww_jobs_codes_best(struct code_node *tree, uint64_t code)
{
	struct code_node *best = NULL;

	while (tree) {
		if (tree->code > code) {
			tree = tree->left;
			continue;
		}
		best = better(best, better(itself(tree), best_of(tree->left)));
		tree = tree->right;
	}
	return best;
}

uint64_t ww_jobs_codes_above(const struct code_node *tree, uint64_t code, uint64_t *lowest)
{
	uint64_t sum = 0;

	while (tree) {
		if (tree->code <= code) {
			tree = tree->right;
			continue;
		}
		/* Codes on the left are lower than those seen so far. */
		uint64_t here = tree->count + all_of(tree->right);
		if (tree->count)
			*lowest = tree->code;
		else if (here)
			(void)ww_jobs_codes_above(tree->right, code, lowest);
		sum += here;
		tree = tree->left;
	}
	return sum;
}
