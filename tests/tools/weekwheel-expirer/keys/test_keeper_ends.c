/* What the keeper tells of ends: which are sure, and which keys were deleted instead. */
/* tier: quick */
#include "tests/tools/weekwheel-expirer/keys/fixture.h"

START_TEST(one_that_a_lookup_finds_ended_is_told_late)
{
	struct keeper_stats stats;
	uint64_t again;
	char name[NAME];

	begin(_i, 0);
	set(3, 1000);
	pass(990);
	/* It ends while Redis is silent, and its lookup is sent first, since the last request was for others. */
	world.keeper.last = KEEPER_ASK;
	ck_assert_int_eq(keeper_heard(&world.keeper, name, name_of(3, name)), 0);
	world.keeper.look_at = world.local;
	world.local += 30 * (uint64_t)MS;
	world.keeper.clock_at = world.local + (uint64_t)MS;
	ck_assert_int_eq(keeper_next(&world.keeper, world.local, &again), 0);
	ck_assert_int_eq(world.keeper.kind, KEEPER_LOOK);
	answer();
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.expired, 1);
	ck_assert_uint_eq(stats.due, 1);
	ck_assert_uint_gt(stats.late_ns, 15 * (uint64_t)MS);
	/* One that is deleted before its deadline is not told. */
	set(3, 1000);
	pass(500);
	world.key[3] = (struct model_key){.told = redis_ms() + 1};
	pass(500);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.expired, 1);
	end();
}
END_TEST

/* A client deletes the key. That is heard at once, or with the next request's answer. */
static void delete_key(int number, int64_t after_ms)
{
	look_at(&world.key[number]);
	ck_assert_int_eq(world.key[number].is_there, 1);
	world.key[number] = (struct model_key){.told = redis_ms() + after_ms};
}

START_TEST(what_is_deleted_is_told_from_what_expires)
{
	begin(_i, 0);
	set(0, 1000);
	set(1, 1000);
	set(2, 1000);
	set(3, 1500);
	pass(500);
	/* Long before its deadline: that is no end. */
	delete_key(1, 1);
	/* Its deadline passes before it is looked up. */
	pass(498);
	delete_key(2, 1);
	pass(50);
	check_told(1, 1);
	/* An end that Redis has told before it is asked for is one, but so might a deletion have been. */
	pass(world.key[3].until - redis_ms() - 1);
	world.local += 3 * (uint64_t)MS;
	look_at(&world.key[3]);
	world.key[3].told = redis_ms();
	hear();
	pass(50);
	check_told(1, 2);
	end();
}
END_TEST

START_TEST(what_may_have_been_missed_makes_ends_unsure)
{
	begin(_i, 0);
	for (int i = 0; i < 5; i++)
		set(i == 4 ? KEYS - 1 : i, 1000 * (i + 1));
	pass(500);
	/* This process stands still: what is told meanwhile is heard later. */
	world.local += 1200 * (uint64_t)MS;
	pass(100);
	check_told(0, 1);
	pass(1000);
	check_told(1, 1);
	/* Redis answers late. */
	world.trip = 700 * (uint64_t)MS;
	pass(300);
	world.trip = 60000;
	pass(100);
	check_told(1, 2);
	/* A connection was lost, and a key that the pass has found is sure again. */
	keeper_connected(&world.keeper, world.local, _i);
	pass(1000);
	check_told(2, 2);
	/* It is due before the pass comes to it. */
	pass(world.key[KEYS - 1].until - redis_ms() - 1);
	world.local += 3 * (uint64_t)MS;
	keeper_connected(&world.keeper, world.local, _i);
	pass(100);
	check_told(2, 3);
	end();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {one_that_a_lookup_finds_ended_is_told_late,
	    what_is_deleted_is_told_from_what_expires, what_may_have_been_missed_makes_ends_unsure};

	return suite_run_kinds("expirer/keeper_ends", tests, sizeof tests / sizeof *tests, keeper_kind, 2, NULL);
}
