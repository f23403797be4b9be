/* Names that collide in uthash's own hash do not in the seeded one. */
/* tier: quick */
#include "lib/base/seeded.h"

#include <stdio.h>

#include "tests/support/suite.h"

enum { NAMES = 256, ZERO_BITS = 10 };

struct named {
	UT_hash_handle hh;
	char name[16];
};

static struct named all[NAMES];

/* All of them lie in one chain of any table of up to 1,024. */
static void find_names(void)
{
	unsigned hash;
	int found = 0;

	for (unsigned i = 0; found < NAMES; i++) {
		struct named *named = &all[found];

		(void)snprintf(named->name, sizeof named->name, "tube%u", i);
		HASH_JEN(named->name, strlen(named->name), hash);
		found += hash % (1u << ZERO_BITS) == 0;
	}
}

START_TEST(made_up_names_lie_in_many_chains)
{
	struct named *table = NULL;
	struct named *found;
	unsigned longest = 0;

	find_names();
	for (int i = 0; i < NAMES; i++)
		HASH_ADD_STR(table, name, &all[i]);
	for (unsigned i = 0; i < table->hh.tbl->num_buckets; i++)
		if (table->hh.tbl->buckets[i].count > longest)
			longest = table->hh.tbl->buckets[i].count;
	ck_assert_uint_lt(longest, NAMES / 8);
	for (int i = 0; i < NAMES; i++) {
		HASH_FIND_STR(table, all[i].name, found);
		ck_assert_ptr_eq(found, &all[i]);
	}
	HASH_CLEAR(hh, table);
}
END_TEST

START_TEST(a_process_has_one_seed)
{
	ck_assert_uint_ne(seeded_seed(), 0);
	ck_assert_uint_eq(seeded_seed(), seeded_seed());
	ck_assert_uint_eq(seeded_hash("tube", 4), seeded_hash("tube", 4));
}
END_TEST

TEST_MAIN("base/seeded", made_up_names_lie_in_many_chains, a_process_has_one_seed)
