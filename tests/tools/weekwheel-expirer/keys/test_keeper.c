/* The keeper beside a Redis: each key ends in time, whatever changes, and whatever the clocks and the connection do. */
/* tier: quick */
#include "tests/tools/weekwheel-expirer/keys/fixture.h"

START_TEST(all_of_one_deadline_are_told_and_none_early)
{
	struct keeper_stats stats;

	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 5000);
	pass(4990);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.known, KEYS);
	ck_assert_uint_eq(world.asked, 0);
	pass(10 + SOON_MS);
	ck_assert_uint_eq(world.expired, KEYS);
	ck_assert_uint_eq(world.early, 0);
	pass(100);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.expired, KEYS);
	ck_assert_uint_eq(stats.known, 0);
	ck_assert_uint_eq(stats.passes, 1);
	end();
}
END_TEST

START_TEST(changes_are_followed)
{
	begin(_i, 0);
	set(0, 1000); /* earlier */
	set(1, 1000); /* later */
	set(2, 1000); /* persists */
	set(3, 1000); /* is deleted */
	set(4, 0);    /* gets a deadline */
	pass(500);
	set(0, 100);
	set(1, 2000);
	set(2, 0);
	world.key[3] = (struct model_key){.told = redis_ms() + 1};
	set(4, 200);
	pass(100 + SOON_MS);
	ck_assert_uint_eq(world.expired, 1);
	pass(100 + SOON_MS);
	ck_assert_uint_eq(world.expired, 2);
	pass(1000);
	ck_assert_uint_eq(world.expired, 2);
	pass(1000);
	ck_assert_uint_eq(world.expired, 3);
	ck_assert_uint_eq(world.early, 0);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	ck_assert_int_eq(world.key[2].is_there, 1);
	end();
}
END_TEST

START_TEST(with_only_later_a_touch_costs_no_lookup)
{
	struct keeper_stats before, after;

	begin(_i, 1);
	for (int i = 0; i < KEYS; i++)
		set(i, 1000);
	pass(500);
	keeper_read_stats(&world.keeper, &before);
	for (int i = 0; i < KEYS; i++)
		set(i, 2000);
	pass(400);
	keeper_read_stats(&world.keeper, &after);
	ck_assert_uint_eq(after.looks, before.looks);
	/* At the old deadline all are asked for, and found later. */
	pass(200);
	keeper_read_stats(&world.keeper, &after);
	ck_assert_uint_eq(after.later, KEYS);
	ck_assert_uint_eq(world.expired, 0);
	pass(1500);
	ck_assert_uint_eq(world.expired, KEYS);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	end();
}
END_TEST

START_TEST(a_flush_begins_a_pass_that_forgets)
{
	struct keeper_stats stats;

	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	pass(500);
	memset(world.key, 0, sizeof world.key);
	keeper_pass(&world.keeper);
	ck_assert_int_eq(world.keeper.is_exact, 0);
	set(7, 300);
	pass(200);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.known, 1);
	ck_assert_uint_eq(stats.passes, 2);
	pass(100 + SOON_MS);
	ck_assert_uint_eq(world.expired, 1);
	end();
}
END_TEST

START_TEST(a_lost_connection_loses_no_key)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 1000);
	pass(999);
	for (int round = 0; round < 20; round++) {
		uint64_t again;

		/* A request that is never answered. */
		world.local += 500000;
		(void)keeper_next(&world.keeper, world.local, &again);
		while (world.answers > 0)
			free(world.answer[--world.answers]);
		keeper_connected(&world.keeper, world.local, _i);
	}
	pass(200);
	ck_assert_uint_eq(world.expired, KEYS);
	for (int i = 0; i < KEYS; i++)
		ck_assert_int_eq(world.untold[i], 0);
	ck_assert_uint_eq(world.sure + world.unsure, KEYS);
	ck_assert_uint_eq(deadlines_count(world.keeper.deadlines), 0);
	end();
}
END_TEST

START_TEST(a_pass_drops_no_key_whose_deadline_may_have_passed)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, i % 2 ? 1000 : 100000);
	pass(990);
	/* Nobody is there while half of them end and others are deleted. It goes through the rest before all are asked for. */
	world.local += 100 * (uint64_t)MS;
	for (int i = 0; i < KEYS; i++) {
		look_at(&world.key[i]);
		world.key[i].is_there &= i % 4 != 0;
		world.key[i].told = 0;
	}
	keeper_connected(&world.keeper, world.local, _i);
	world.keeper.batch = 1;
	pass(200);
	ck_assert_uint_eq(world.sure, 0);
	ck_assert_uint_eq(world.unsure, KEYS / 2);
	check_known();
	end();
}
END_TEST

/* How often Redis was asked for its time within a second: its answers take this many ns more than the quickest. */
static unsigned clocks_asked(uint64_t more)
{
	unsigned before;

	begin(1, 0);
	pass(1000);
	before = world.keeper.clocks;
	world.trip += more;
	pass(1000);
	before = world.keeper.clocks - before;
	end();
	return before;
}

START_TEST(after_a_slow_answer_the_time_is_asked_again_soon)
{
	ck_assert_uint_le(clocks_asked(0), 6);
	ck_assert_uint_ge(clocks_asked(3 * MS), 15);
}
END_TEST

START_TEST(steps_of_the_clock_are_followed)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 10000 + i);
	pass(1000);
	world.offset += 5 * SECOND;
	pass(3500);
	ck_assert_uint_eq(world.expired, 0);
	pass(2000);
	ck_assert_uint_eq(world.expired, KEYS);
	ck_assert_uint_eq(world.early, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 2000 + i);
	pass(1000);
	world.offset -= 60 * SECOND;
	pass(500);
	/* One that is set after the step need not wait until time is where it was. */
	set(0, 400);
	pass(400 + SOON_MS);
	ck_assert_uint_eq(world.expired, KEYS + 1);
	set(0, 60500);
	pass(60000 - SOON_MS);
	ck_assert_uint_eq(world.expired, KEYS + 1);
	pass(1000);
	ck_assert_uint_eq(world.expired, 2 * KEYS + 1);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	ck_assert_uint_eq(world.keeper.stats.steps, 2);
	end();
}
END_TEST

START_TEST(a_step_back_of_the_clock_changes_no_deadline)
{
	uint32_t from = 0;

	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 2000 + i);
	pass(1000);
	world.offset -= 60 * SECOND;
	pass(500);
	/* What a journal is told of keys from before the step, and of one from after it. */
	set(0, 4000);
	pass(20);
	memset(world.kept, 0, sizeof world.kept);
	while (ends_report_again(&world.keeper, &from))
		;
	for (int i = 0; i < KEYS; i++)
		ck_assert_int_le(llabs(world.kept[i] - world.key[i].until), 10);
	/* One that is deleted long before its deadline has not ended. */
	world.key[1] = (struct model_key){.told = redis_ms()};
	pass(20);
	ck_assert_uint_eq(world.sure + world.unsure, 0);
	/* Nor is any asked for early, as by the clock from before the step. */
	world.asked = 0;
	pass(2000);
	ck_assert_uint_eq(world.asked, 0);
	pass(61000);
	ck_assert_uint_eq(world.expired, KEYS - 1);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	end();
}
END_TEST

/* They are asked for while they are what tells of changes. None tells of a flush: no end is sure. */
START_TEST(events_are_watched)
{
	begin(_i, 0);
	world.events = "gxE";
	world.keeper.by_events = 1;
	for (int i = 0; i < KEYS; i++)
		set(i, 3000);
	pass(4000);
	ck_assert_int_eq(world.keeper.is_told, 1);
	check_told(0, KEYS);
	world.events = "AK";
	pass(1100);
	ck_assert_int_eq(world.keeper.is_told, 0);
	keeper_connected(&world.keeper, world.local, _i);
	world.events = "AKE";
	pass(1100);
	ck_assert_int_eq(world.keeper.is_told, 1);
	world.events = "Ex";
	pass(1100);
	ck_assert_int_eq(world.keeper.is_told, 0);
	end();
}
END_TEST

/* Others change keys, and miss something, while an answer is on its way. */
static void anything(void)
{
	if (seed_below(&world.state, 4) == 0)
		make_anew((int)seed_below(&world.state, KEYS));
	if (seed_below(&world.state, 4) == 0)
		set((int)seed_below(&world.state, KEYS), 1 + (int64_t)seed_below(&world.state, 50));
	if (seed_below(&world.state, 200) == 0)
		keeper_pass(&world.keeper);
}

START_TEST(random_changes_end_in_time)
{
	begin(_i, 0);
	world.meanwhile = anything;
	for (int round = 0; round < seed_rounds(5000); round++) {
		int number = (int)seed_below(&world.state, KEYS);

		switch (seed_below(&world.state, 8)) {
		case 0:
			look_at(&world.key[number]);
			if (world.key[number].is_there)
				world.key[number] = (struct model_key){.told = redis_ms() + 1};
			break;
		case 1:
			set(number, 0);
			break;
		default:
			set(number, 1 + (int64_t)seed_below(&world.state, seed_below(&world.state, 2) ? 50 : 100000));
		}
		pass((int64_t)seed_below(&world.state, 30));
	}
	world.meanwhile = NULL;
	pass(1000);
	check_known();
	pass(200000);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	for (int i = 0; i < KEYS; i++)
		ck_assert_int_eq(world.key[i].is_there && world.key[i].until != 0, 0);
	check_told(world.sure, world.unsure);
	ck_assert_uint_gt(world.sure, 5 * world.unsure);
	ck_assert_uint_eq(deadlines_count(world.keeper.deadlines), 0);
	end();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {all_of_one_deadline_are_told_and_none_early, changes_are_followed,
	    with_only_later_a_touch_costs_no_lookup, a_flush_begins_a_pass_that_forgets, a_lost_connection_loses_no_key,
	    a_pass_drops_no_key_whose_deadline_may_have_passed, after_a_slow_answer_the_time_is_asked_again_soon,
	    steps_of_the_clock_are_followed, a_step_back_of_the_clock_changes_no_deadline, events_are_watched,
	    random_changes_end_in_time};

	return suite_run_kinds("expirer/keeper", tests, sizeof tests / sizeof *tests, keeper_kind, 2, NULL);
}
