/*
 * The tree of codes finds what a search of all its nodes finds. WW_SEED sets the seed, which is printed.
 */
/* tier: check */
#include "lib/jobs/local/codes.h"

#include <string.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"

enum { NODES = 40, CODES = 12 };

static struct code_node nodes[NODES];
static int is_in[NODES];
static struct code_node *tree;
static uint64_t state;

static int is_better(const struct code_node *one, const struct code_node *other)
{
	if (!one->count || !other)
		return one->count != 0;
	return one->first < other->first || (one->first == other->first && one->then < other->then);
}

static void compare(uint64_t code)
{
	const struct code_node *best = NULL;
	uint64_t above = 0;
	uint64_t lowest = UINT64_MAX;
	uint64_t found = UINT64_MAX;

	for (int i = 0; i < NODES; i++) {
		if (!is_in[i])
			continue;
		ck_assert_ptr_eq(ww_jobs_codes_find(tree, nodes[i].code, nodes[i].tie), &nodes[i]);
		if (nodes[i].code <= code && is_better(&nodes[i], best))
			best = &nodes[i];
		if (nodes[i].code <= code || !nodes[i].count)
			continue;
		above += nodes[i].count;
		if (nodes[i].code < lowest)
			lowest = nodes[i].code;
	}
	ck_assert_ptr_eq(ww_jobs_codes_best(tree, code), best);
	ck_assert_uint_eq(ww_jobs_codes_above(tree, code, &found), above);
	ck_assert_uint_eq(found, lowest);
}

static void change(struct code_node *node)
{
	node->first = seed_below(&state, 4);
	node->then = seed_next(&state);
	node->count = seed_below(&state, 3);
}

static void step(int i)
{
	struct code_node *node = &nodes[i];

	if (!is_in[i]) {
		node->code = seed_below(&state, CODES);
		node->tie = (uint64_t)i;
		change(node);
		ww_jobs_codes_add(&tree, node, seed_next(&state));
		is_in[i] = 1;
	} else if (seed_below(&state, 2)) {
		change(node);
		ww_jobs_codes_changed(tree, node);
	} else {
		ww_jobs_codes_remove(&tree, node);
		is_in[i] = 0;
	}
}

START_TEST(the_tree_finds_what_a_search_finds)
{
	state = seed_of_run("test_jobs_codes");
	for (int i = 0; i < 20000; i++) {
		step((int)seed_below(&state, NODES));
		compare(seed_below(&state, CODES + 1));
	}
	for (int i = 0; i < NODES; i++)
		if (is_in[i])
			ww_jobs_codes_remove(&tree, &nodes[i]);
	ck_assert_ptr_null(tree);
}
END_TEST

static int depth_of(const struct code_node *node)
{
	int left = node ? depth_of(node->left) : 0;
	int right = node ? depth_of(node->right) : 0;

	return node ? 1 + (left > right ? left : right) : 0;
}

START_TEST(codes_that_grow_make_no_deep_tree)
{
	static struct code_node many[4096];

	tree = NULL;
	state = seed_of_run("test_jobs_codes");
	for (uint64_t i = 0; i < 4096; i++) {
		many[i] = (struct code_node){.code = i, .first = i, .count = 1};
		ww_jobs_codes_add(&tree, &many[i], seed_next(&state));
	}
	/* A tree of random weights is some 30 deep; a row would be 4096. */
	ck_assert_int_lt(depth_of(tree), 100);
	ck_assert_uint_eq(tree->all, 4096);
}
END_TEST

TEST_MAIN("jobs/codes", the_tree_finds_what_a_search_finds, codes_that_grow_make_no_deep_tree)
