/* Rows and sets of ids. */
/* tier: quick */
#include "lib/postgres/ids.h"
#include "tests/support/suite.h"
#include "weekwheel/allocator.h"
#include "weekwheel/error.h"

START_TEST(a_row_keeps_what_is_added)
{
	struct ids ids = {0};

	for (uint64_t i = 0; i < 1000; i++)
		OK(ww_postgres_ids_add(&ids, ww_allocator_default(), 7 * i));
	ck_assert_uint_eq(ids.count, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(ids.all[i], 7 * i);
	ww_postgres_ids_free(&ids, ww_allocator_default());
	ck_assert_uint_eq(ids.count + ids.room, 0);
}
END_TEST

START_TEST(a_set_has_what_is_set_and_nothing_else)
{
	struct id_set set = {0};

	ck_assert(!ww_postgres_ids_has(&set, 1));
	for (int again = 0; again < 2; again++)
		for (uint64_t id = 1; id <= 3000; id++)
			OK(ww_postgres_ids_set(&set, ww_allocator_default(), id * id));
	ck_assert_uint_eq(set.slots.count, 3000);
	for (uint64_t id = 1; id <= 3000; id++) {
		ck_assert(ww_postgres_ids_has(&set, id * id));
		ck_assert(id == 1 || !ww_postgres_ids_has(&set, id * id - 1));
	}
	ww_postgres_ids_clear(&set, ww_allocator_default());
	ck_assert(!ww_postgres_ids_has(&set, 4));
}
END_TEST

TEST_MAIN("postgres/ids", a_row_keeps_what_is_added, a_set_has_what_is_set_and_nothing_else)
