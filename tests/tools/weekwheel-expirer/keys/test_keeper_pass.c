/* The keeper's passes over all keys, with a window or without: requests, and what changes until their answers come. */
/* tier: quick */
#include "tests/tools/weekwheel-expirer/keys/fixture.h"

static void make_all_anew(void)
{
	for (int i = 0; i < KEYS; i++)
		make_anew(i);
}

static void make_last_anew(void)
{
	if (world.keeper.kind == KEEPER_LOOK)
		make_all_anew();
}

START_TEST(a_change_while_an_answer_is_on_its_way_is_no_old_one)
{
	void (*const meanwhile[])(void) = {make_all_anew, make_last_anew};

	for (int k = 0; k < 2; k++) {
		begin(_i, 1);
		for (int i = 0; i < KEYS; i++)
			set(i, 1000);
		pass(500);
		/* One that goes on makes Redis's answer to the others unclear. */
		if (k)
			set(0, 10000);
		pass(400);
		world.meanwhile = meanwhile[k];
		pass(200);
		world.meanwhile = NULL;
		pass(100);
		for (int i = 1; i < KEYS; i++)
			ck_assert_int_eq(world.key[i].is_there, 1);
		check_known();
		end();
	}
}
END_TEST

static void flush_while_scanning(void)
{
	if (world.keeper.kind != KEEPER_SCAN || world.scanned < KEYS / 2)
		return;
	keeper_pass(&world.keeper);
	world.meanwhile = NULL;
}

/* All are deleted between their page and their lookups, and made anew before the answer. */
static void replace_all(void)
{
	if (world.keeper.kind == KEEPER_SCAN)
		for (int i = 0; i < KEYS; i++)
			world.key[i] = (struct model_key){.told = redis_ms()};
	if (world.keeper.kind == KEEPER_LOOK)
		make_all_anew();
}

START_TEST(a_change_while_a_lookup_is_on_its_way_is_no_old_one)
{
	begin(_i, 1);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	pass(500);
	keeper_pass(&world.keeper);
	world.meanwhile = replace_all;
	pass(500);
	world.meanwhile = make_all_anew;
	pass(100);
	world.meanwhile = NULL;
	pass(100);
	check_known();
	end();
}
END_TEST

START_TEST(a_pass_that_begins_while_a_page_is_on_its_way_begins_at_the_beginning)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	world.meanwhile = flush_while_scanning;
	pass(500);
	ck_assert(world.meanwhile == NULL);
	ck_assert_uint_eq(world.keeper.stats.passes, 2);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	check_known();
	/* A lookup from before a flush does not count as seen either. */
	set(7, 50000);
	world.key[7].told = redis_ms();
	for (uint64_t again; world.keeper.kind != KEEPER_LOOK; world.local += (uint64_t)MS) {
		answer();
		hear();
		ck_assert_int_eq(keeper_next(&world.keeper, world.local, &again), 0);
	}
	memset(world.key, 0, sizeof world.key);
	keeper_pass(&world.keeper);
	answer();
	pass(500);
	check_known();
	end();
}
END_TEST

START_TEST(a_key_that_may_not_be_looked_at_is_left_out)
{
	struct keeper_stats stats;

	begin(_i, 0);
	set(5, 500);
	pass(100);
	world.refused = 5;
	for (int i = 0; i < KEYS; i++)
		set(i, 1000);
	pass(500);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.refused, 1);
	ck_assert_uint_eq(stats.known, KEYS - 1);
	pass(500 + SOON_MS);
	ck_assert_uint_eq(world.expired, KEYS - 1);
	end();
}
END_TEST

START_TEST(other_errors_are_not_taken)
{
	struct redisReply command = {
	    .type = REDIS_REPLY_ERROR, .str = "NOPERM User key has no permissions to run the 'pttl' command"};
	struct redisReply key = {.type = REDIS_REPLY_ERROR, .str = "NOPERM No permissions to access a key"};
	struct redisReply loading = {.type = REDIS_REPLY_ERROR, .str = "LOADING Redis is unable to access its data"};

	begin(_i, 0);
	ck_assert_int_eq(keeper_takes_error(&world.keeper, &key), 0);
	world.keeper.kind = KEEPER_LOOK;
	ck_assert_int_eq(keeper_takes_error(&world.keeper, &key), 1);
	ck_assert_int_eq(keeper_takes_error(&world.keeper, &command), 0);
	ck_assert_int_eq(keeper_takes_error(&world.keeper, &loading), 0);
	end();
}
END_TEST

START_TEST(a_long_way_makes_batches_and_pauses_no_smaller)
{
	begin(_i, 0);
	world.trip = 5 * (uint64_t)MS;
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < KEYS; i++)
			set(i, 500);
		pass(600);
	}
	ck_assert_uint_gt(world.keeper.batch, 200);
	/* A page takes two round trips, and its pause none. */
	world.scans = 0;
	keeper_pass(&world.keeper);
	pass(150);
	ck_assert_int_ge(world.scans, 9);
	end();
}
END_TEST

static void wait_for_a_processor(void)
{
	world.work = seed_below(&world.state, 2) ? 10 * (uint64_t)MS : 0;
}

static void expire_slowly(void)
{
	world.work = world.keeper.kind == KEEPER_ASK ? 10 * (uint64_t)MS : 0;
}

/* A few answers show how long Redis itself takes. */
START_TEST(batches_are_fitted_to_redis_and_not_to_a_busy_machine)
{
	void (*const meanwhile[])(void) = {wait_for_a_processor, expire_slowly};

	for (int k = 0; k < 2; k++) {
		begin(_i, 0);
		world.meanwhile = meanwhile[k];
		for (int round = 0; round < 20; round++) {
			for (int i = 0; i < KEYS; i++)
				set(i, 500);
			pass(600);
		}
		if (k == 0)
			ck_assert_uint_gt(world.keeper.batch, 100);
		else
			ck_assert_uint_lt(world.keeper.batch, 50);
		end();
	}
}
END_TEST

START_TEST(a_pass_leaves_others_half_of_the_time)
{
	uint64_t began;

	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	pass(500);
	world.work = 200000;
	keeper_pass(&world.keeper);
	began = world.local;
	world.busy = 0;
	while (!world.keeper.is_exact)
		pass(1);
	/* The rest is the time of Redis's clock, and the last pause that ends no pass. */
	ck_assert_uint_gt(world.local - began, world.busy * 18 / 10);
	ck_assert_uint_lt(world.local - began, world.busy * 24 / 10);
	end();
}
END_TEST

START_TEST(a_page_is_looked_up_in_pieces)
{
	char name[NAME];

	begin(_i, 0);
	pass(500);
	world.work = 1000;
	world.busy_most = 0;
	/* As a page of them. */
	for (int i = 0; i < 250; i++)
		ck_assert_int_eq(waiting_add(&world.keeper.waiting, name, name_of(i, name)), 0);
	world.keeper.page = world.keeper.waiting.added;
	pass(20);
	ck_assert_uint_eq(world.keeper.waiting.dropped, world.keeper.waiting.added);
	ck_assert_uint_le(world.busy_most, 130 * world.work);
	/* Many changes are looked up at once: that costs Redis less. */
	for (int i = 0; i < 250; i++)
		ck_assert_int_eq(keeper_heard(&world.keeper, name, name_of(i, name)), 0);
	pass(20);
	ck_assert_uint_ge(world.busy_most, 250 * world.work);
	end();
}
END_TEST

static void touch_all(void)
{
	for (int i = 0; i < KEYS; i++) {
		world.key[i].until += 10;
		world.key[i].told = redis_ms();
	}
}

START_TEST(a_pass_goes_on_while_changes_never_end)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	world.trip = (uint64_t)MS;
	world.meanwhile = touch_all;
	pass(500);
	ck_assert_int_gt(world.scans, 8);
	world.meanwhile = NULL;
	pass(2000);
	check_known();
	/* The sweep goes on too. */
	memset(world.key + 1, 0, (KEYS - 1) * sizeof *world.key);
	keeper_pass(&world.keeper);
	for (int turn = 0; turn < 300; turn++) {
		uint64_t again;
		char name[NAME];

		for (int i = 0; i < KEEPER_LOOKS + 1; i++)
			ck_assert_int_eq(keeper_heard(&world.keeper, name, name_of(0, name)), 0);
		ck_assert_int_eq(keeper_next(&world.keeper, world.local, &again), 0);
		world.local += world.trip;
		answer();
	}
	ck_assert_int_eq(world.keeper.waiting.added > world.keeper.waiting.dropped, 1);
	ck_assert_uint_eq(deadlines_count(world.keeper.deadlines), 1);
	end();
}
END_TEST

START_TEST(a_window_keeps_what_is_due_within_it)
{
	struct keeper_stats stats;

	window_of_begin = 4000;
	begin(_i, 0);
	window_of_begin = 0;
	for (int i = 0; i < KEYS; i++)
		set(i, 100 * i + 50);
	for (int second = 0; second < 30; second++) {
		pass(1000);
		keeper_read_stats(&world.keeper, &stats);
		ck_assert_uint_le(stats.known, 41);
		ck_assert_int_eq(stats.is_exact, 1);
		ck_assert_uint_le(stats.passes, (unsigned)second / 2 + 2);
		ck_assert_uint_eq(world.expired, 10 * (unsigned)(second + 1) - (second == 29));
		/* One that is known moves behind the window, and back. */
		set(KEYS - 1, second % 2 ? 100000 : 4500);
	}
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	ck_assert_uint_eq(world.early, 0);
	end();
}
END_TEST

START_TEST(a_window_that_is_too_short_is_told)
{
	window_of_begin = 1000;
	begin(_i, 0);
	window_of_begin = 0;
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	pass(500);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	/* Nine pages, and as many lookups. */
	world.trip = 80 * (uint64_t)MS;
	pass(3000);
	ck_assert_int_eq(world.keeper.is_exact, 0);
	ck_assert_int_eq(world.keeper.is_outrun, 1);
	world.trip = 60000;
	pass(1500);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	ck_assert_int_eq(world.keeper.is_outrun, 0);
	end();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_change_while_an_answer_is_on_its_way_is_no_old_one,
	    a_change_while_a_lookup_is_on_its_way_is_no_old_one,
	    a_pass_that_begins_while_a_page_is_on_its_way_begins_at_the_beginning,
	    a_key_that_may_not_be_looked_at_is_left_out, other_errors_are_not_taken,
	    a_long_way_makes_batches_and_pauses_no_smaller, batches_are_fitted_to_redis_and_not_to_a_busy_machine,
	    a_pass_leaves_others_half_of_the_time, a_page_is_looked_up_in_pieces,
	    a_pass_goes_on_while_changes_never_end, a_window_keeps_what_is_due_within_it,
	    a_window_that_is_too_short_is_told};

	return suite_run_kinds("expirer/keeper_pass", tests, sizeof tests / sizeof *tests, keeper_kind, 2, NULL);
}
